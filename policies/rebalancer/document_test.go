// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

func TestTreesThatPromiseTooMuchAreRefused(t *testing.T) {
	total := creel.NewResource(100<<10, 100)
	for _, c := range []struct{ why, doc string }{
		{"unknown field \"maximun\"", `{"queues":[{"queue":"root.a","maximun":"40%"}]}`},
		{"100", `{"queues":[{"queue":"root.a","maximum":"140%"}]}`},
		{"not a part of the federation", `{"queues":[{"queue":"root.a","maximum":"40"}]}`},
		{"120% of the federation together", `{"queues":[{"queue":"root.a","guarantee":"70%"},{"queue":"root.b","guarantee":"50%"}]}`},
		{"the federation has", `{"queues":[{"queue":"root.a","guarantee":{"memory":90000}},{"queue":"root.b","guarantee":{"memory":90000}}]}`},
		{"below its guarantee", `{"queues":[{"queue":"root.a","guarantee":"50%","maximum":"40%"}]}`},
		{"exceeds the maximum of root.a", `{"queues":[{"queue":"root.a","maximum":"40%"},{"queue":"root.a.x","maximum":"50%"}]}`},
		{"and it is guaranteed", `{"queues":[{"queue":"root.a","guarantee":"40%"},{"queue":"root.a.x","guarantee":"50%"}]}`},
		{"the maximum of root.a", `{"queues":[{"queue":"root.a","maximum":"40%"},{"queue":"root.a.x","guarantee":"50%"}]}`},
		{"named twice", `{"queues":[{"queue":"root.a"},{"queue":"root.a"}]}`},
		{"full path", `{"queues":[{"queue":"a"}]}`},
		{"not a node label", `{"queues":[{"queue":"root.a","labels":{"a b":{}}}]}`},
		{"field \"optout\" is in the wrong place", `{"queues":[{"queue":"root.a","labels":{"gpu":{"optout":true}}}]}`},
		{"on nodes of label gpu: guarantee of root.a: 120%", `{"queues":[{"queue":"root.a","labels":{"gpu":{"guarantee":"120%"}}}]}`},
	} {
		tree, err := ParseTree([]byte(c.doc), 1)
		if err == nil {
			tree.Resolve(total, 0)
			err = tree.Check(total)
		}
		if !errors.Is(err, creel.ErrInvalidRequest) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", c.doc, err, c.why)
		}
	}
}

// Percentages become amounts, follow the federation's size, and the document that is
// written reads as it was.
func TestPercentagesFollowTheFederation(t *testing.T) {
	tree, err := ParseTree([]byte(`{"queues":[{"queue":"root.a","guarantee":"20%","maximum":{"percent":40}},
		{"queue":"root.b","weight":2,"maximum":{"memory":1000},"optout":true}]}`), 3)
	if err != nil {
		t.Fatal(err)
	}
	if !tree.Resolve(creel.NewResource(1000, 100), 0.01) {
		t.Fatal("nothing was resolved")
	}
	if err := tree.Check(creel.NewResource(1000, 100)); err != nil {
		t.Fatal(err)
	}
	if q := tree.Find(
		"root.a",
	); !q.Maximum.Equal(creel.NewResource(400, 40)) ||
		!q.Guarantee.Equal(creel.NewResource(200, 20)) {
		t.Fatalf("%+v", q)
	}
	if tree.Resolve(creel.NewResource(1005, 100), 0.01) {
		t.Error("half a percent more changed the document")
	}
	if !tree.Resolve(creel.NewResource(2000, 100), 0.01) || tree.Find("root.a").Maximum.MemoryMB != 800 {
		t.Errorf("twice the federation: %+v", tree.Find("root.a"))
	}
	data, err := tree.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseTree(data, 3)
	if err != nil || !reflect.DeepEqual(again, tree) {
		t.Fatalf("%s reads as %+v, %v; it was %+v", data, again, err, tree)
	}
}

// Settings on nodes of a label are a tree of their own: percentages and sums refer to these nodes, and the document
// reads back as it was written.
func TestLabelNodesHaveTheirOwnTree(t *testing.T) {
	member := subcluster.Status{State: subcluster.StateActive}
	member.Load.Metrics = subcluster.ClusterMetrics{TotalMB: 1000, TotalVirtualCores: 100}
	member.Load.Labels.Put(subcluster.Partition{Label: "gpu", Total: creel.NewResource(200, 20)})
	view := subcluster.NewView(time.Unix(1000, 0), []subcluster.Status{member}, nil)
	tree, err := ParseTree([]byte(`{"queues":[
		{"queue":"root.b","labels":{"gpu":{"guarantee":"60%","weight":2},"fpga":{"maximum":"50%"}}},
		{"queue":"root.a","guarantee":"60%","optout":true,"labels":{"gpu":{"guarantee":"40%","maximum":{"memory":100}}}}]}`), 3)
	if err != nil {
		t.Fatal(err)
	}
	if !tree.ResolveIn(view, 0.01) || tree.ResolveIn(view, 0.01) {
		t.Fatal("percentages do not become amounts, once")
	}
	if err := tree.CheckIn(view); err != nil {
		t.Fatal(err)
	}
	gpu := tree.In("gpu")
	if a, b := gpu.Find("root.a"), gpu.Find("root.b"); !a.Guarantee.Equal(creel.NewResource(80, 8)) || !a.Optout ||
		a.Maximum.MemoryMB != 100 || !b.Guarantee.Equal(creel.NewResource(120, 12)) || b.Weight != 2 {
		t.Errorf("on nodes of label gpu: %+v, %+v", a, b)
	}
	if q := tree.Find("root.a"); !q.Guarantee.Equal(creel.NewResource(600, 60)) || q.Bounded() {
		t.Errorf("on nodes without a label: %+v", q)
	}
	if q := tree.In("fpga").Find("root.b"); q.Bounded() || q.MaximumPercent != 50 {
		t.Errorf("of nodes that there are not: %+v", q)
	}
	data, err := tree.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseTree(data, 3)
	if err != nil || !reflect.DeepEqual(again, tree) {
		t.Fatalf("%s reads as %+v, %v; it was %+v", data, again, err, tree)
	}
	gpu.Find("root.a").Guarantee = creel.NewResource(2000, 8)
	if err := tree.CheckIn(view); err == nil || !strings.Contains(err.Error(), "on nodes of label gpu") {
		t.Errorf("more is guaranteed of the label than there is: %v", err)
	}
}

// Members without a queue of the document are named, members that left the federation are not, and guarantees are
// compared as parts of it.
func TestDriftNamesTheMembersThatLackAQueue(t *testing.T) {
	var members []subcluster.Status
	for i := range 8 {
		m := subcluster.Status{State: subcluster.StateActive}
		m.ID = creel.SubclusterID(fmt.Sprint("sc-", i))
		m.Load.Metrics = subcluster.ClusterMetrics{TotalMB: 100 << 10, TotalVirtualCores: 100}
		m.Load.Queues = []subcluster.QueueLoad{{Queue: "root.all", Capacity: creel.NewResource(50<<10, 50)}}
		if i == 7 {
			m.State = subcluster.StateDeregistered
		}
		if i == 0 {
			m.Load.Queues = append(m.Load.Queues,
				subcluster.QueueLoad{Queue: "root.first", Capacity: creel.NewResource(50<<10, 50)})
		}
		members = append(members, m)
	}
	tree, err := ParseTree([]byte(`{"queues": [
		{"queue": "root.all", "guarantee": {"memory": 358400, "vCores": 350}},
		{"queue": "root.first", "guarantee": {"memory": 51200, "vCores": 50}},
		{"queue": "root.more", "weight": 1}]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	want := map[creel.QueuePath][]string{
		"root.first": {"members without such a queue: sc-1, sc-2, sc-3, sc-4, sc-5 and 1 more"},
		"root.more":  {"members without such a queue: sc-0, sc-1, sc-2, sc-3, sc-4 and 2 more"},
	}
	compare := func() {
		t.Helper()
		for _, s := range Compare(subcluster.NewView(time.Unix(1000, 0), members, nil), tree) {
			if !slices.Equal(s.Drift, want[s.Queue]) {
				t.Errorf("drift of %s is %q, not %q", s.Queue, s.Drift, want[s.Queue])
			}
		}
	}
	compare()
	members[3].Load.Queues[0].Capacity = creel.NewResource(20<<10, 20)
	want["root.all"] = []string{"members' files guarantee 45.7% of the federation, the document 50.0%"}
	compare()
}

// Maxima of opportunistic containers are numbers above 0, and read back as they were written.
func TestOpportunisticMaximumReadsBack(t *testing.T) {
	tree, err := ParseTree([]byte(`{"queues":[{"queue":"root.a","maximum_opportunistic":20},
		{"queue":"root.b","user_limit_opportunistic":2}]}`), 3)
	if err != nil {
		t.Fatal(err)
	}
	a, b := tree.Find("root.a"), tree.Find("root.b")
	if a.MostOpportunistic != 20 || a.UserLimitOpportunistic != 0 || b.MostOpportunistic != 0 || b.UserLimitOpportunistic != 2 {
		t.Errorf("%+v, %+v", a, b)
	}
	for _, s := range compare(subcluster.NewView(time.Unix(1, 0), nil, nil), tree) {
		if q := tree.Find(s.Queue); s.MaximumOpportunistic != q.MostOpportunistic ||
			s.UserLimitOpportunistic != q.UserLimitOpportunistic {
			t.Errorf("%s has the state %+v", s.Queue, s)
		}
	}
	data, err := tree.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParseTree(data, 3); err != nil || !reflect.DeepEqual(again, tree) {
		t.Errorf("%s reads as %+v, %v", data, again, err)
	}
	for _, bad := range []string{"0", "-1", `"20%"`, "1.5"} {
		for _, field := range []string{"maximum_opportunistic", "user_limit_opportunistic"} {
			doc := fmt.Sprintf(`{"queues":[{"queue":"root.a",%q:%s}]}`, field, bad)
			if _, err := ParseTree([]byte(doc), 3); err == nil {
				t.Errorf("%s was accepted", doc)
			}
		}
	}
}
