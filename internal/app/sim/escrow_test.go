// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/invariants"
)

// boundedTree bounds two queues of demoQueues, and the users of one, to parts of a federation.
func boundedTree() *rebalancer.Tree {
	return &rebalancer.Tree{Queues: []rebalancer.Queue{
		{Path: "root.default", MaximumPercent: 20},
		{Path: "root.research", MaximumPercent: 30, Maximum: creel.Resource{}, UserLimitPercent: 15},
	}}
}

// Federation-wide maxima and user limits hold in all ResourceManagers together at every
// event, whatever goes wrong.
func TestFederationWideLimitsHoldUnderFaults(t *testing.T) {
	kinds := []struct {
		name   string
		faults *Faults
	}{
		{"none", nil},
		{"messages", &Faults{
			Loss: 0.004, Double: 0.01, Late: 0.02, Delay: 3 * time.Second, Stale: 0.01, Again: 0.004, Orphans: true,
		}},
		{"members cut off", &Faults{Partition: 2 * time.Minute, Down: 40 * time.Second, Pause: 3 * time.Minute}},
		{"members killed", &Faults{Subcluster: 2 * time.Minute, Down: 40 * time.Second, Nodes: 2 * time.Minute}},
		{"the store", &Faults{Store: 3 * time.Minute, Fails: 3 * time.Minute, Slow: 4 * time.Minute, Loses: 5 * time.Minute,
			Down: 40 * time.Second}},
		{"the store emptied", &Faults{Empty: 4 * time.Minute}},
		{"the rebalancer", &Faults{Planner: 10 * time.Minute, Down: time.Minute}},
		{"clocks", &Faults{Jumps: 2 * time.Minute, StoreJumps: 3 * time.Minute, Drift: 0.01, Down: time.Minute}},
	}
	for i, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			c := faulty(t, 9000+uint64(i))
			c.Faults, c.Rebalancer, c.Tree = kind.faults, true, boundedTree()
			r := run(t, c)
			if !r.Good() {
				t.Errorf("%d of %d ended, %d lost, %d doubled: %s",
					r.Finished+r.Failed, r.Submitted, r.Lost, r.Doubled, strings.Join(r.Broken, "\n"))
			}
			t.Log(fmt.Sprintf("%.2f of a maximum in use at most", r.Fullest), r.Invariants.Checked, r.Faults)
			for _, i := range []invariants.Invariant{
				invariants.GlobalMaximum, invariants.UserLimits,
			} {
				if r.Invariants.Checked[i] == 0 {
					t.Errorf("%s was not checked", i)
				}
			}
			if r.Fullest < 0.7 {
				t.Errorf("at most %.2f of a maximum was in use: nothing was held back", r.Fullest)
			}
		})
	}
}
