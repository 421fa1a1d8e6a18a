// SPDX-License-Identifier: Apache-2.0

package member

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// A ResourceManager that was started in the middle of an interval, with applications of the previous epoch, takes
// nothing until the next: the amount taken before is not known.
func TestBudgetIsNotRespentAfterRestart(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)
	plan := &subcluster.Plan{At: now, LeaseMS: 30000, Preemption: []subcluster.PreemptionBudget{{
		Queue: "root.b", Begins: now.Truncate(time.Minute), Ends: now.Truncate(time.Minute).Add(time.Minute),
		Members: []subcluster.PreemptionMember{{Member: "sc-1", Share: creel.NewResource(1024, 1)}},
	}}}
	for _, c := range []struct {
		recovers bool
		first    time.Time
		want     int64
	}{{true, now, 0}, {true, now.Add(-time.Hour), 1024}, {false, now, 1024}} {
		k := &Follower{ID: "sc-1", recovers: c.recovers, first: c.first}
		if got := k.budgets(plan, now, now)[0]; got.Share.MemoryMB != c.want || !got.Until.Equal(now.Add(30*time.Second)) {
			t.Errorf("recovers %t, first look %s: %+v", c.recovers, c.first, got)
		}
	}
}
