// SPDX-License-Identifier: Apache-2.0

package slab

import (
	"testing"
	"unsafe"
)

type line struct {
	next *line
	_    [56]byte
}

// Values of a cache line lie within one, side by side.
func TestValuesLieWithinTheirLines(t *testing.T) {
	var p Pool[line]
	for i := range 5000 {
		if at := uintptr(unsafe.Pointer(p.New())) % unsafe.Sizeof(line{}); at != 0 {
			t.Fatalf("value %d lies %d bytes into a line", i, at)
		}
	}
}
