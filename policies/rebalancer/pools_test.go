// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

// drawPool draws the reports of two members about some nodes.
func drawPool(t *rapid.T, label string) (totals [2]creel.Resource, rows [2][]subcluster.QueueLoad) {
	amount := func(what string, most int64) creel.Resource {
		n := rapid.Int64Range(0, most).Draw(t, what+label)
		return creel.NewResource(1024*n, n)
	}
	for m := range 2 {
		totals[m] = amount("total", 40).Add(creel.NewResource(1024, 1))
		left := totals[m]
		for _, path := range []creel.QueuePath{"root.a", "root.b"} {
			used := amount("used", left.VCores)
			left = left.Sub(used)
			rows[m] = append(rows[m], subcluster.QueueLoad{
				Queue: path, Capacity: totals[m].Scale(1, 2), Used: used, Pending: amount("pending", 60),
			})
		}
	}
	return totals, rows
}

func poolMembers(totals [2]creel.Resource, rows [2][]subcluster.QueueLoad) (out []subcluster.Status) {
	for m, id := range []creel.SubclusterID{"sc-1", "sc-2"} {
		s := subcluster.Status{State: subcluster.StateActive}
		s.ID = id
		s.Load.Metrics = subcluster.ClusterMetrics{TotalMB: totals[m].MemoryMB, TotalVirtualCores: totals[m].VCores}
		s.Load.Queues = rows[m]
		out = append(out, s)
	}
	return out
}

// The plan of a label's nodes is the plan of a federation that has these nodes alone, and the plan of the others is
// as if there were no labels.
func TestLabelNodesArePlannedSeparately(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		plain, plainRows := drawPool(t, "")
		gpu, gpuRows := drawPool(t, "gpu")
		both := poolMembers(plain, plainRows)
		for m := range both {
			l := &both[m].Load
			l.Queues = nil
			var used creel.Resource
			for i := range plainRows[m] { // by queue, then label
				row := gpuRows[m][i]
				row.Label = "gpu"
				used = used.Add(row.Used)
				l.Queues = append(l.Queues, plainRows[m][i], row)
			}
			l.Labels.Put(subcluster.Partition{Label: "gpu", Total: gpu[m], Used: used})
		}
		tree, err := ParseTree([]byte(`{"queues":[{"queue":"root.a","weight":3,
			"labels":{"gpu":{"guarantee":{"memory":4096},"maximum":{"memory":10240},"preemption":{"memory":2048}}}}]}`), 1)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(1000, 0)
		make := func(members []subcluster.Status, tree *Tree) *subcluster.Plan {
			pools := ReadPools(subcluster.NewView(at, members, nil), tree, nil, 0)
			return (&Planner{}).PlanPools(pools, nil, PlanBounds{}, true, at)
		}
		is := make(both, tree)
		alone := make(poolMembers(gpu, gpuRows), tree.In("gpu"))
		if of := is.In("gpu"); of == nil || !reflect.DeepEqual(of.Queues, alone.Queues) ||
			!reflect.DeepEqual(of.Preemption, alone.Preemption) || len(of.Preemption) != 1 || len(is.Preemption) != 0 {
			t.Fatalf("on nodes of the label %+v, of these alone %+v", of, alone.Queues)
		}
		without := *tree
		without.Labels = nil
		if plain := make(poolMembers(plain, plainRows), &without); !reflect.DeepEqual(is.Queues, plain.Queues) {
			t.Fatalf("with a label %+v, without one %+v", is.Queues, plain.Queues)
		}
		sum := 0.0
		for _, q := range is.In("gpu").Queues {
			sum += q.Entitled
			most := Share(creel.Resource{MemoryMB: 10240}, is.In("gpu").Total)
			if q.Queue == "root.a" && q.Entitled > most+1e-9 {
				t.Fatalf("root.a is entitled to %v, above its maximum on the nodes %v", q.Entitled, most)
			}
		}
		if sum > 1+1e-9 || math.IsNaN(sum) {
			t.Fatalf("entitlements of the nodes sum to %v", sum)
		}
		is.Under(7, time.Minute)
		data, err := json.Marshal(is)
		if err != nil {
			t.Fatal(err)
		}
		read, err := subcluster.ParsePlan(data, 5, at)
		if err != nil {
			t.Fatal(err)
		}
		of := read.In("gpu")
		if of.Version != 5 || !of.Ends().Equal(at.Add(time.Minute)) || of.Queue("root.a") == nil ||
			of.Queue("a").Entitled != is.In("gpu").Queue("root.a").Entitled {
			t.Fatalf("read from the store it is %+v", of)
		}
		if PoolsChanged(ReadPools(subcluster.NewView(at, both, nil), tree, read, 0), read) {
			t.Fatal("of the same reports a plan is not waited for")
		}
	})
}

// A member that has nodes of a label and reports no queues of it, like one of an earlier version, is in the plan of
// the other nodes, and in none of the label.
func TestMemberWithoutLabelReportIsNotPlanned(t *testing.T) {
	members := poolMembers(
		[2]creel.Resource{creel.NewResource(1000, 10), creel.NewResource(1000, 10)},
		[2][]subcluster.QueueLoad{{{Queue: "root.a"}}, {{Queue: "root.a"}, {Queue: "root.a", Label: "gpu"}}},
	)
	for m := range members {
		members[m].Load.Labels.Put(subcluster.Partition{Label: "gpu", Total: creel.NewResource(500, 5)})
	}
	pools := ReadPools(subcluster.NewView(time.Unix(1000, 0), members, nil), &Tree{}, nil, 0)
	if len(pools) != 2 || len(pools[0].Members) != 2 || len(pools[1].Members) != 1 || pools[1].Members[0] != "sc-2" {
		t.Fatalf("%+v", pools)
	}
}

// A member's nodes of a label start slowly by the label's previous size, whatever other nodes it has.
func TestNodesOfALabelStartSlowlyByThemselves(t *testing.T) {
	totals := [2]creel.Resource{creel.NewResource(102400, 100), creel.NewResource(102400, 100)}
	members := poolMembers(totals, [2][]subcluster.QueueLoad{
		{{Queue: "root.a"}, {Queue: "root.a", Label: "gpu"}}, {{Queue: "root.a"}, {Queue: "root.a", Label: "gpu"}},
	})
	members[0].Load.Labels.Put(subcluster.Partition{Label: "gpu", Total: totals[0]})
	start := time.Unix(1000, 0)
	var plan *subcluster.Plan
	for i := range 20 { // minutes, with plans of two
		at := start.Add(time.Duration(i) * time.Minute)
		if i == 10 { // the second gets such nodes
			members[1].Load.Labels.Put(subcluster.Partition{Label: "gpu", Total: totals[1]})
		}
		pools := ReadPools(subcluster.NewView(at, members, nil), &Tree{}, plan, 4*time.Minute)
		plan = (&Planner{}).PlanPools(pools, plan, PlanBounds{SlowStart: 4 * time.Minute}, false, at)
		plan.Stamp(int64(i), at)
		one, two := plan.In("gpu").Counts("sc-1"), plan.In("gpu").Counts("sc-2")
		if others := plan.Counts("sc-2"); others != 1 || one != 1 {
			t.Fatalf("minute %d: its nodes without the label count with %v, the first's with %v", i, others, one)
		}
		if want := min(1, 0.1+0.25*float64(i-9)); i >= 10 && (two < want-0.26 || two > want+1e-9) {
			t.Fatalf("minute %d: the new nodes count with %v", i, two)
		}
	}
	if plan.In("gpu").Counts("sc-2") != 1 {
		t.Errorf("at the end they count with %v", plan.In("gpu").Counts("sc-2"))
	}
}
