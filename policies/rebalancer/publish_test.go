// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"fmt"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// A plan places the entitlement. Beyond that the queue may want resources anywhere a moment later, so members hold
// the rest of the maximum as without a plan.
func TestOnlyPlanMovesMaximumShares(t *testing.T) {
	p := &subcluster.Plan{Total: creel.NewResource(1200, 1200)}
	for _, id := range []creel.SubclusterID{"a", "b", "c"} {
		p.Members = append(p.Members, subcluster.MemberSize{Member: id, Share: 1.0 / 3})
	}
	for _, c := range []struct {
		story    string
		entitled float64
		weights  []float64 // in a, b and c
		maximum  creel.Resource
		want     string
	}{
		{"it has no demand", 0, nil, creel.NewResource(600, 600), "[200 200 200]"},
		{"a little, in one member", 0.05, []float64{1, 0, 0}, creel.NewResource(600, 600), "[240 180 180]"},
		{"half of its maximum", 0.25, []float64{0, 1, 0}, creel.NewResource(600, 600), "[100 400 100]"},
		{"all of its maximum", 0.5, []float64{0.5, 0.5, 0}, creel.NewResource(600, 600), "[300 300 1]"},
		{"more than a maximum that was lowered since", 0.5, []float64{1, 0, 0}, creel.NewResource(300, 300), "[300 1 1]"},
		{"of what is bounded", 0.25, []float64{0, 1, 0}, creel.NewResource(600, Unbounded), "[100 400 100]"},
	} {
		q := &subcluster.QueuePlan{Queue: "root.q", Entitled: c.entitled}
		for i, w := range c.weights {
			if w > 0 {
				q.Members = append(q.Members, subcluster.MemberPlan{Member: p.Members[i].Member, Given: w * c.entitled, Weight: w})
			}
		}
		shares := EscrowShares(p, q, c.maximum)
		if got := fmt.Sprint([]int64{shares["a"].MemoryMB, shares["b"].MemoryMB, shares["c"].MemoryMB}); got != c.want {
			t.Errorf("%s: %s, wanted %s", c.story, got, c.want)
		}
	}
}
