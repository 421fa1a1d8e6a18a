// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"testing"
	"unsafe"

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
		{"size of a node", unsafe.Sizeof(node{}), 256},
		{"place of what they leave alone", unsafe.Offsetof(node{}.nodeInfo), 128},
		{"size of a container", unsafe.Sizeof(container{}), 128},
		{"place of what its end leaves alone", unsafe.Offsetof(container{}.created), 64},
	} {
		if x.is != x.want {
			t.Errorf("%s: %d bytes, want %d", x.what, x.is, x.want)
		}
	}
}

// A bitset is a set.
func TestBitsetIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bitset
		twin := map[int]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, 300).Draw(t, "i")
			if rapid.Bool().Draw(t, "set") {
				b.set(i)
				twin[i] = true
			} else {
				b.drop(i)
				delete(twin, i)
			}
			if j := rapid.IntRange(0, 300).Draw(t, "j"); b.has(j) != twin[j] {
				t.Fatalf("%d: %v, want %v", j, b.has(j), twin[j])
			}
		}
		all := slices.Collect(b.all())
		if len(all) != len(twin) || !slices.IsSorted(all) {
			t.Fatal(all, twin)
		}
		for _, i := range all {
			if !twin[i] {
				t.Fatalf("%d is no member", i)
			}
		}
	})
}
