// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"
	"unsafe"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// The fields that every decision touches stay within the cache lines they were laid out for.
func TestHotRecordsFillWholeCacheLines(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		return // laid out for 64 bits
	}
	for _, x := range []struct {
		what     string
		is, want uintptr
	}{
		{"size of a node", unsafe.Sizeof(node{}), 128},
		{"place of what the scheduler knows of a node", unsafe.Offsetof(node{}.Node), 32},
		{"size of what the scheduler knows of a node", unsafe.Sizeof(sched.Node{}), 64},
		{"size of a container", unsafe.Sizeof(container{}), 64},
	} {
		if x.is != x.want {
			t.Errorf("%s: %d bytes, want %d", x.what, x.is, x.want)
		}
	}
	m, err := New(Defaults())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if at := uintptr(unsafe.Pointer(m.containers.blank())) % 64; at != 0 {
			t.Errorf("container %d lies %d bytes into a line", i, at)
		}
		if at := uintptr(unsafe.Pointer(m.nodes.add(creel.NodeID{Host: "h"}, ""))) % 64; at != 0 {
			t.Errorf("node %d lies %d bytes into a line", i, at)
		}
	}
}
