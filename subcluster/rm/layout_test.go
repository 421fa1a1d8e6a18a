// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/creelrm/creel"
	"pgregory.net/rapid"
)

// What every decision touches stays within the cache lines it was laid out for.
func TestHotRecordsFillWholeCacheLines(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		return // laid out for 64 bits
	}
	for _, x := range []struct {
		what     string
		is, want uintptr
	}{
		{"size of a node", unsafe.Sizeof(node{}), 128},
		{"place of what ends leave alone", unsafe.Offsetof(node{}.rack), 64},
		{"size of a container", unsafe.Sizeof(container{}), 64},
	} {
		if x.is != x.want {
			t.Errorf("%s: %d bytes, want %d", x.what, x.is, x.want)
		}
	}
	m := &Machine{hosts: map[string]*host{}}
	for i := range 3 {
		if at := uintptr(unsafe.Pointer(m.newContainer())) % 64; at != 0 {
			t.Errorf("container %d lies %d bytes into a line", i, at)
		}
		if at := uintptr(unsafe.Pointer(m.newNode(creel.NodeID{Host: "h"}))) % 64; at != 0 {
			t.Errorf("node %d lies %d bytes into a line", i, at)
		}
	}
}

// Marks are two sets that do not know of each other.
func TestMarksAreTwoSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b marks
		twins := [kinds]map[int32]bool{{}, {}}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.Int32Range(0, 300).Draw(t, "i")
			k := rapid.SampledFrom([]mark{ran, token}).Draw(t, "kind")
			switch rapid.IntRange(0, 20).Draw(t, "what") {
			case 0:
				b.dropAll(k)
				clear(twins[k])
			case 1, 2, 3, 4, 5:
				b.drop(k, i)
				delete(twins[k], i)
			default:
				b.set(k, i)
				twins[k][i] = true
			}
			if j := rapid.Int32Range(0, 300).Draw(t, "j"); b.has(k, j) != twins[k][j] {
				t.Fatalf("%d: %v, want %v", j, b.has(k, j), twins[k][j])
			}
		}
		for k, twin := range twins {
			all := slices.Collect(b.all(mark(k)))
			if len(all) != len(twin) || !slices.IsSorted(all) {
				t.Fatal(all, twin)
			}
			for _, i := range all {
				if !twin[i] {
					t.Fatalf("%d is no member", i)
				}
			}
		}
	})
}
