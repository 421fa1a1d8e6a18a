// SPDX-License-Identifier: Apache-2.0

package opportunistic

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

func vec(mb, cores int64) amounts.Vec { return amounts.Vec{Memory: mb, VCores: cores} }

func TestRoomIsThresholdLessUseAndPending(t *testing.T) {
	u := NodeUse{
		Total: vec(10_000, 10), MemoryMB: 3_000, VCores: 2.5, Memory: 0.8, CPU: 0.8, Pending: vec(1_000, 1),
		Opportunistic: vec(2_000, 2), MostLent: 4,
	}
	if got := Room(&u); got.Memory != 4_000 || got.VCores != 4 {
		t.Errorf("room %v", got)
	}
	u.MostLent = 0.3
	if got := Room(&u); got.Memory != 1_000 || got.VCores != 1 {
		t.Errorf("below the ratio: room %v", got)
	}
}

// The room is never negative. With the measured use and the containers that use nothing yet it stays below the
// threshold, and with the opportunistic containers below the ratio.
func TestRoomStaysWithinThresholds(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		amount := rapid.Custom(func(t *rapid.T) amounts.Vec {
			return vec(rapid.Int64Range(0, 20_000).Draw(t, "mb"), rapid.Int64Range(0, 20).Draw(t, "cores"))
		})
		u := NodeUse{
			Total: amount.Draw(t, "total"), MemoryMB: rapid.Float64Range(0, 20_000).Draw(t, "use"),
			VCores: rapid.Float64Range(0, 20).Draw(t, "cpu"), Memory: rapid.Float64Range(0, 1).Draw(t, "memory part"),
			CPU: rapid.Float64Range(0, 1).Draw(t, "cpu part"), Pending: amount.Draw(t, "pending"),
			Opportunistic: amount.Draw(t, "opportunistic"), MostLent: rapid.Float64Range(0, 5).Draw(t, "ratio"),
		}
		room := Room(&u)
		if room.Memory < 0 || room.VCores < 0 {
			t.Fatalf("room %v", room)
		}
		check := func(room, pending, all, total int64, used, part float64) {
			lent, most := float64(room+pending)+used, u.MostLent*float64(total)
			if room > 0 && (lent > part*float64(total) || float64(room+all) > most) {
				t.Fatalf("room %d with use %f, pending %d and %d opportunistic of %d", room, used, pending, all, total)
			}
		}
		check(room.Memory, u.Pending.Memory, u.Opportunistic.Memory, u.Total.Memory, u.MemoryMB, u.Memory)
		check(room.VCores, u.Pending.VCores, u.Opportunistic.VCores, u.Total.VCores, u.VCores, u.CPU)
	})
}

func TestKillOfReadsEachReason(t *testing.T) {
	if k := KillOf("Container killed to lower the node's resource utilization.\n"); k != ForUse || k.String() != "use" {
		t.Errorf("%v", k)
	}
}
