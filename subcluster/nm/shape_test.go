// SPDX-License-Identifier: Apache-2.0

package nm

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
)

// Drawn use is that of the traces that the comment on Shape names: half of the vcores at most, most of the memory.
func TestShapesUseLessThanSizes(t *testing.T) {
	size := creel.NewResource(1000, 1)
	var memory, cpu, bursts int64
	const containers, looks = 200, 120
	for c := range containers {
		x := NewShape(0, creel.NewContainerID(id("1.1").Attempt, 0, int64(c)), Script{})
		for look := range looks {
			at := x.At(size, growth+time.Duration(look)*slot)
			if at.MemoryMB < 0 || at.MemoryMB > 1000 || at.MilliCores < 0 || at.MilliCores > 1000 {
				t.Fatalf("%v of %v", at, size)
			}
			memory, cpu = memory+at.MemoryMB, cpu+at.MilliCores
			if at.MilliCores == 1000 {
				bursts++
			}
		}
	}
	const n = containers * looks
	if memory/n < 550 || memory/n > 700 || cpu/n < 250 || cpu/n > 450 || bursts < n/100 || bursts > n/10 {
		t.Errorf("on average %d MB, %d milli-cores; %d bursts of %d", memory/n, cpu/n, bursts, n)
	}
}

func TestShapeFollowsScript(t *testing.T) {
	x, size := NewShape(0, id("1.1"), Script{Use: 20}), creel.NewResource(1000, 2)
	if at := x.At(size, time.Hour); at.MemoryMB != 200 || at.MilliCores != 400 {
		t.Errorf("20 percent of %v are %v", size, at)
	}
}
