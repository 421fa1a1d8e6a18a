// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"testing"
	"time"

	"github.com/creelrm/creel/subcluster"
)

// The rebalancer's part of why comes from its plan for the queue and the home; without a plan, and for a queue that
// it does not cover, there is none.
func TestTheRebalancersWordIsItsPlans(t *testing.T) {
	view := subcluster.NewView(time.Now(), nil, nil)
	if w := rebalancerWord(view, "root.a", "", "sc-a"); w != nil {
		t.Errorf("without a plan: %+v", w)
	}
	plan, err := subcluster.ParsePlan([]byte(`{"term":1,"tree":1,"lease_ms":0,"total":{"memory":100,"vCores":10},
		"members":[{"member":"sc-a","share":0.5},{"member":"sc-b","share":0.5}],
		"queues":[{"queue":"root.a","wants":0.6,"uses":0.3,"entitled":0.4,"reason":"its weight",
			"members":[{"member":"sc-a","given":0.1,"weight":0.25},{"member":"sc-b","given":0.3,"weight":0.75}]},
			{"queue":"root.b","wants":0,"uses":0,"entitled":0,"optout":true}],"error":{},
		"labels":[{"label":"gpu","queues":[{"queue":"root.a","wants":0.9,"uses":0.1,"entitled":0.8,"reason":"all",
			"members":[{"member":"sc-b","given":0.7,"weight":1}]}]}]}`), 7, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	view.Plan = plan
	want := RebalancerWord{
		Plan: 7, Queue: "root.a", Wants: 0.6, Uses: 0.3, Entitled: 0.4, Reason: "its weight", Followed: true,
		AtHome: 0.3, Weight: 0.75,
	}
	if w := rebalancerWord(view, "root.a", "", "sc-b"); w == nil || *w != want {
		t.Errorf("of a queue: %+v, want %+v", w, want)
	}
	on := RebalancerWord{
		Plan: 7, Queue: "root.a", Label: "gpu", Wants: 0.9, Uses: 0.1, Entitled: 0.8, Reason: "all", Followed: true,
		AtHome: 0.7, Weight: 1,
	}
	if w := rebalancerWord(view, "root.a", "gpu", "sc-b"); w == nil || *w != on {
		t.Errorf("on nodes of a label: %+v, want %+v", w, on)
	}
	if w := rebalancerWord(view, "root.a", "ssd", "sc-b"); w != nil {
		t.Errorf("on nodes of a label without a plan: %+v", w)
	}
	if w := rebalancerWord(view, "root.b", "", "sc-b"); w == nil || w.Followed || w.Weight != 0 {
		t.Errorf("of a queue that does not follow: %+v", w)
	}
	if w := rebalancerWord(view, "root.c", "", "sc-b"); w != nil {
		t.Errorf("of an unknown queue: %+v", w)
	}
}
