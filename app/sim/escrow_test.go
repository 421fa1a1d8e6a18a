// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/invariants"
	"github.com/creelrm/creel/subcluster"
)

// boundedTree bounds two queues of demoQueues, and the users of one, to parts of a federation.
func boundedTree() *rebalancer.Tree {
	return &rebalancer.Tree{Queues: []rebalancer.Queue{
		{Path: "root.default", MaximumPercent: 20},
		{Path: "root.research", MaximumPercent: 30, Maximum: creel.Resource{}, UserLimitPercent: 15},
	}}
}

// Federation-wide maxima and user limits hold over all ResourceManagers together after every event, under all faults.
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

// Twenty members are killed and cut off, their rebalancer dies, messages arrive minutes late and the store comes back
// empty. The exact invariants hold after every event. It is a shortened version of the 20 x 500 nodes in
// docs/bench/rebalancer.md.
func TestTwentyMembersKeepTheFederationsLimits(t *testing.T) {
	c := day(t, 1, 9*time.Hour, 9*time.Hour+8*time.Minute, 8)
	c.Subclusters, c.NodeSize, c.Rebalancer, c.Tree = 20, creel.NewResource(2048, 2), true, boundedTree()
	f, err := NamedFaults(FaultNames())
	if err != nil {
		t.Fatal(err)
	}
	f.Planner, f.Subcluster, f.Partition, f.Empty = 4*time.Minute, 2*time.Minute, 3*time.Minute, 5*time.Minute
	f.Late = 0.001
	c.Faults = f
	r := run(t, c)
	if !r.Good() {
		t.Errorf("%d of %d ended, %d lost, %d doubled: %s",
			r.Finished+r.Failed, r.Submitted, r.Lost, r.Doubled, strings.Join(r.Broken, "\n"))
	}
	t.Logf("%.2f of a maximum in use at most; %v; by reports %v of %v; %v", r.Fullest, r.Invariants.Checked,
		r.Reported.Broken, r.Reported.Checked, r.Faults)
	for _, i := range []invariants.Invariant{invariants.GlobalMaximum, invariants.UserLimits, invariants.TrueHeadroom} {
		if r.Invariants.Checked[i] < 300 || r.Invariants.Broken[i] > 0 {
			t.Errorf("%s: %d checked, %d broken", i, r.Invariants.Checked[i], r.Invariants.Broken[i])
		}
	}
	for _, kind := range []string{"rebalancers killed", "subclusters restarted", "partitions", "store emptied"} {
		if r.Faults[kind] == 0 {
			t.Errorf("there were no %s", kind)
		}
	}
	if r.Fullest < 0.6 { // claims stop while the store is rebuilt, five times here
		t.Errorf("at most %.2f of a maximum was in use: nothing was held back", r.Fullest)
	}
}

// Hadoop's load-based weights, by its defaults: of the three fullest, those below a hundred
// waiting applications have all of their weight, those above a thousand none.
func TestWeightsByLoadAreHadoops(t *testing.T) {
	view := func(pending ...int64) *subcluster.View {
		var members []subcluster.Status
		for i, n := range pending {
			members = append(members, subcluster.Status{
				Member: subcluster.Member{ID: MemberID(i)}, State: subcluster.StateActive,
				Load: subcluster.Load{Metrics: subcluster.ClusterMetrics{AppsPending: n}},
			})
		}
		return subcluster.NewView(origin, members, nil)
	}
	for _, x := range []struct {
		pending, weights []int64 // weights by the first's
	}{
		{[]int64{0, 100, 99}, []int64{100, 100, 100}},
		{[]int64{0, 550, 1000}, []int64{100, 50, 0}},
		{[]int64{550, 550, 550, 550}, []int64{50, 50, 50, 100}}, // three are edited
		{[]int64{2000, 1000}, []int64{100, 100}},                // all are full
	} {
		w, most := loadWeights(view(x.pending...)), 0.0
		for _, v := range w {
			most = max(most, v)
		}
		for i, want := range x.weights {
			if got := 100 * w[string(MemberID(i))] / most; math.Abs(got-float64(want)) > 1e-9 {
				t.Errorf("%v: the weight of %s is %v, want %v", x.pending, MemberID(i), got, want)
			}
		}
	}
}
