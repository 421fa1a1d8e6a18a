// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/app/sim/opportune"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/invariants"
)

// Under all faults, nodes have queues, AMs ask again for what was killed, and some promotions are lost on their way.
func TestSeedsWithOpportunisticContainers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	var sum opportune.Result
	faults := map[string]int64{}
	for seed := range uint64(*seeds) {
		seed += *first
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := faulty(t, seed)
			c.Opportunistic = 0.5
			logged(t, &c)
			r := run(t, c)
			if !r.Good() {
				t.Fatalf("%d of %d ended: %s", r.Finished+r.Failed, r.Submitted, strings.Join(r.Broken, "\n"))
			}
			o := r.Opportunistic
			if o.Granted == 0 || o.AtOnce == 0 || len(o.Waits) == 0 {
				t.Errorf("%d granted, %d started at once, %d waited", o.Granted, o.AtOnce, len(o.Waits))
			}
			sum.ForRoom, sum.Shed, sum.Promoted = sum.ForRoom+o.ForRoom, sum.Shed+o.Shed, sum.Promoted+o.Promoted
			for kind, n := range r.Faults {
				faults[kind] += n
			}
		})
	}
	if *seeds < defaultSeeds {
		return // a few seeds need not draw every kind
	}
	if sum.ForRoom == 0 || sum.Shed == 0 || sum.Promoted == 0 {
		t.Errorf("%d killed for room, %d shed, %d promoted", sum.ForRoom, sum.Shed, sum.Promoted)
	}
	for _, kind := range []string{
		"nodes killed with a queue", "subclusters restarted while containers waited", "answers with promotions lost",
	} {
		if faults[kind] == 0 {
			t.Errorf("no seed had %s", kind)
		}
	}
}

// With distributed scheduling proxies place most opportunistic containers, in all members and under all faults.
func TestSeedsWithPlacingProxies(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	var placed, granted int64
	for seed := range uint64(*seeds) {
		seed += *first
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := faulty(t, seed)
			c.Opportunistic, c.Distributed = 0.5, true
			logged(t, &c)
			r := run(t, c)
			if !r.Good() {
				t.Fatalf("%d of %d ended: %s", r.Finished+r.Failed, r.Submitted, strings.Join(r.Broken, "\n"))
			}
			o := r.Opportunistic
			t.Logf("%d of %d, %d refused", o.Placed, o.Granted, r.Faults["placed containers that their member refused"])
			placed, granted = placed+o.Placed, granted+o.Granted
		})
	}
	if placed < granted/2 {
		t.Errorf("proxies placed %d of %d opportunistic containers", placed, granted)
	}
}

// A federation-wide maximum of opportunistic containers holds over all ResourceManagers together after every event.
// Proxies place containers too, members are killed, and messages are lost.
func TestOpportunisticMaximumHoldsUnderFaults(t *testing.T) {
	opportunisticLimitHolds(t, invariants.GlobalMaximum, rebalancer.Tree{Queues: []rebalancer.Queue{
		{Path: "root.default", MostOpportunistic: 12}, {Path: "root.research", MostOpportunistic: 7},
	}})
}

// So does a federation-wide limit of each user.
func TestOpportunisticUserLimitHoldsUnderFaults(t *testing.T) {
	opportunisticLimitHolds(t, invariants.UserLimits, rebalancer.Tree{Queues: []rebalancer.Queue{
		{Path: "root.default", UserLimitOpportunistic: 6}, {Path: "root.research", UserLimitOpportunistic: 4},
	}})
}

func opportunisticLimitHolds(t *testing.T, of invariants.Invariant, tree rebalancer.Tree) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	for i, faults := range []*Faults{
		{Subcluster: 2 * time.Minute, Down: 40 * time.Second, Nodes: 2 * time.Minute, Loss: 0.004, Double: 0.01},
		{Partition: 2 * time.Minute, Down: 40 * time.Second, Empty: 4 * time.Minute},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			c := faulty(t, 9202+uint64(i))
			c.Faults, c.Rebalancer, c.Opportunistic, c.Distributed = faults, true, 0.7, i%2 == 1
			c.Tree = &rebalancer.Tree{Queues: slices.Clone(tree.Queues)}
			r := run(t, c)
			if !r.Good() {
				t.Errorf("%d of %d ended: %s", r.Finished+r.Failed, r.Submitted, strings.Join(r.Broken, "\n"))
			}
			t.Logf("%.2f of a maximum at most, %d granted, %v", r.Fullest, r.Opportunistic.Granted, r.Invariants.Checked)
			if r.Invariants.Checked[of] == 0 || r.Fullest < 0.7 {
				t.Errorf("at most %.2f of a maximum was in use: nothing was held back", r.Fullest)
			}
		})
	}
}
