// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// followed is a crowded morning on which the queues of ResourceManagers follow a plan, in their priority and in
// preemption.
func followed(t *testing.T, seed uint64, faults *Faults) Config {
	c := faulty(t, seed)
	c.NodeSize, c.Faults, c.Rebalancer, c.Tree = creel.NewResource(2048, 2), faults, true, &rebalancer.Tree{}
	c.Queues.Preemption = queues.Preemption{
		On: true, Interval: time.Second, Wait: time.Second, PerRound: 1, Termination: 1,
	}
	for _, q := range []string{"default", "prod", "research"} {
		c.Tree.Queues = append(c.Tree.Queues, rebalancer.Queue{
			Path: creel.QueuePath("root." + q), GuaranteePercent: 33, PreemptionPercent: 4, PreemptionEvery: 30 * time.Second,
		})
	}
	return c
}

// Capacities that follow a plan, and preemption for a queue, are audited after every event, under all faults.
func TestQueuesFollowThePlanUnderFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	kinds := []struct {
		name   string
		faults *Faults
	}{
		{"none", nil},
		{"members", &Faults{
			Partition: 3 * time.Minute, Subcluster: 3 * time.Minute, Nodes: 3 * time.Minute, Down: 40 * time.Second,
		}},
		{"the plan", &Faults{
			Planner: 3 * time.Minute, Empty: 4 * time.Minute, Jumps: 3 * time.Minute, StoreJumps: 3 * time.Minute, Drift: 0.01,
			Down: time.Minute,
		}},
	}
	for i, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			w, err := New(followed(t, 9130+uint64(i), kind.faults))
			if err != nil {
				t.Fatal(err)
			}
			r := w.Run()
			if !r.Good() {
				t.Errorf("%d of %d ended, %d lost, %d doubled: %s",
					r.Finished+r.Failed, r.Submitted, r.Lost, r.Doubled, strings.Join(r.Broken, "\n"))
			}
			t.Logf("capacities were in force in %d rounds, %d containers taken back within budgets, %d looks at"+
				" queues that lost some; %v", w.audit.followed, w.audit.budgeted, w.audit.kept, r.Faults)
			if w.audit.followed < 50 {
				t.Errorf("a plan's capacities were in force in %d rounds", w.audit.followed)
			}
			if w.audit.budgeted == 0 || w.audit.kept == 0 {
				t.Errorf("%d containers were taken back within budgets, with %d looks at queues that lost some",
					w.audit.budgeted, w.audit.kept)
			}
		})
	}
}
