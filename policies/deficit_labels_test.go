// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

// onLabel returns members that have their own nodes and, with a label, the nodes of view: as large, as full, with the
// same queues. View's plan becomes the plan for the label, next to the plan for the members' own nodes.
func onLabel(t interface{ Fatal(...any) }, label string, own, view *subcluster.View) *subcluster.View {
	out := subcluster.NewView(view.At, own.Members, nil)
	for i := range out.Members {
		of, m := &view.Members[i].Load, &out.Members[i]
		total := of.Metrics.Total()
		m.Load.Labels.Known = true
		m.Load.Labels.Put(subcluster.Partition{
			Label: label, Total: total, Used: total.Sub(of.Metrics.Available()), Pending: of.Queues[0].Pending,
		})
		m.Load.Queues = slices.Clone(m.Load.Queues)
		for _, q := range of.Queues {
			q.Label = label
			m.Load.Queues = append(m.Load.Queues, q)
		}
	}
	both := *own.Plan
	both.Labels = []subcluster.LabelPlan{{Label: label, Plan: *view.Plan}}
	data, err := json.Marshal(both)
	if err != nil {
		t.Fatal(err)
	}
	if out.Plan, err = subcluster.ParsePlan(data, 1, view.At); err != nil {
		t.Fatal(err)
	}
	return out
}

// An ask with a label is decided by the plan of that label alone, as if there were no other nodes. Neither the state
// of nodes without it nor their plan matters. The result is the same whether the label is named or is the queue's
// default.
func TestLabelledAskFollowsLabelPlan(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		view, q := drawFederation(t)
		view.Plan = planAt(t, view, q)
		var others []subcluster.Status // nodes without the label, in as many members
		for i := range view.Members {
			m := view.Members[i]
			m.Load = subcluster.Load{Metrics: subcluster.ClusterMetrics{TotalMB: 1 << 20, TotalVirtualCores: 1000},
				Queues: []subcluster.QueueLoad{{Queue: "root.q", Used: gigs(rapid.Int64Range(0, 1000).Draw(t, "used"))}}}
			others = append(others, m)
		}
		own := subcluster.NewView(view.At, others, nil)
		given := subcluster.QueuePlan{Queue: "root.q", Wants: 1, Entitled: 0.5}
		for i := range others {
			given.Members = append(given.Members, subcluster.MemberPlan{
				Member: others[i].ID, Given: rapid.Float64Range(0, 1).Draw(t, "given"),
			})
		}
		own.Plan = planAt(t, own, given)
		labelled := onLabel(t, "gpu", own, view)
		reach := drawReach(t, view)
		g := Group{Count: int64(rapid.IntRange(1, 300).Draw(t, "count")), Size: gig}
		decide := func(v *subcluster.View, label string) []any {
			g.Label = label
			home, because, err := Default().Home(v, Submission{Queue: "root.q", Size: gig, Label: label}, nil, seeded(1))
			split, err2 := Default().Split(v, "root.q", g, reach, seeded(1))
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			out := []any{home, split.Shares, split.Waiting}
			for _, c := range because.Candidates {
				out = append(out, c.Code, c.Score)
			}
			return out
		}
		alone, named := decide(view, ""), decide(labelled, "gpu")
		for i := range labelled.Members {
			labelled.Members[i].Load.Labels.Add("root.q", []string{"*"}, "gpu")
		}
		byDefault := decide(labelled, "")
		if !reflect.DeepEqual(alone, named) || !reflect.DeepEqual(alone, byDefault) {
			t.Fatalf("alone %v\nas a label %v\nas the queue's default %v", alone, named, byDefault)
		}
	})
}

// oddPlan entitles a queue to nodes without a label in sc-1, and to nodes of label gpu in sc-2.
func oddPlan(t *testing.T) *subcluster.View {
	var members []subcluster.Status
	for _, id := range []creel.SubclusterID{"sc-1", "sc-2"} {
		m := labelled(id, 50<<10, free{"gpu": 50, "ssd": 50})
		m.Load.Queues = []subcluster.QueueLoad{{Queue: "root.q"}, {Queue: "root.q", Label: "gpu", Used: gigs(20)}}
		members = append(members, m)
	}
	view := subcluster.NewView(time.Unix(1000, 0), members, nil)
	plan := func(member creel.SubclusterID) *subcluster.Plan {
		return planAt(t, view, subcluster.QueuePlan{Queue: "root.q", Entitled: 0.5, Wants: 1,
			Members: []subcluster.MemberPlan{{Member: member, Given: 0.5}}})
	}
	nodes := &subcluster.View{At: view.At, Members: view.Members, Plan: plan("sc-2")}
	own := &subcluster.View{At: view.At, Members: view.Members, Plan: plan("sc-1")}
	view.Plan = own.Plan
	view.Plan.Labels = []subcluster.LabelPlan{{Label: "gpu", Plan: *nodes.Plan}}
	view.Plan.Labels[0].Total = gigs(200)
	return view
}

// Reasons name the nodes that the plan is for. A label without a plan, and members whose queues have different
// defaults, are decided by free capacity.
func TestReasonNamesPlannedNodes(t *testing.T) {
	home := func(view *subcluster.View, label string) Reason {
		_, why, err := Default().Home(view, Submission{Queue: "root.q", Size: gig, Label: label}, nil, seeded(1))
		if err != nil {
			t.Fatal(err)
		}
		return why
	}
	view := oddPlan(t)
	for label, want := range map[string][]string{
		"": {"chose sc-1: by the plan the queue is entitled to more there;", "of 0.0% of the federation, and not elsewhere"},
		"gpu": {"chose sc-2: by the plan the queue is entitled to more on nodes of label gpu there;",
			"label gpu free <memory:51200, vCores:50>", "using 10.0% of the federation's nodes of label gpu",
			"10.0% of 0.0% of the federation's nodes of label gpu, and not elsewhere"},
		"ssd": {"the better of two drawn"},
	} {
		for _, text := range want {
			if why := home(view, label).String(); !strings.Contains(why, text) || label == "ssd" && strings.Contains(why, "plan") {
				t.Errorf("label %q: not %q\n%s", label, text, why)
			}
		}
	}
	reach := []Reach{{Member: "sc-1", Home: true}, {Member: "sc-2"}}
	split, err := Default().Split(view, "root.q", Group{Count: 9, Size: gig, Label: "gpu"}, reach, seeded(1))
	if want := "by the plan, within the queue's entitlement (50.0% of the federation's nodes of label gpu): 9 at sc-2; " +
		"at the cost of a UAM in sc-2"; err != nil ||
		split.Reason.Because != want {
		t.Errorf("%v, %v", split.Reason, err)
	}
	view = oddPlan(t)
	view.Members[0].Load.Labels.Add("root.q", []string{"*"}, "gpu")
	if why := home(view, "").String(); strings.Contains(why, "plan") {
		t.Errorf("gpu is the default in sc-1 alone\n%s", why)
	}
}
