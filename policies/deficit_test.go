// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

// planAt returns a view with a plan of the given queue records, written at the given time.
func planAt(t interface{ Fatal(...any) }, view *subcluster.View, queues ...subcluster.QueuePlan) *subcluster.Plan {
	p := subcluster.Plan{LeaseMS: 30_000, Queues: queues}
	for i := range view.Members {
		m := &view.Members[i]
		p.Total = p.Total.Add(m.Load.Metrics.Total())
		p.Members = append(p.Members, subcluster.MemberSize{Member: m.ID})
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := subcluster.ParsePlan(data, 1, view.At)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// drawFederation draws members in which root.q and root.other run, and the plan of root.q.
func drawFederation(t *rapid.T) (*subcluster.View, subcluster.QueuePlan) {
	const each = 100 << 10
	n := rapid.IntRange(1, 5).Draw(t, "members")
	q := subcluster.QueuePlan{Queue: "root.q"}
	var members []subcluster.Status
	for i := range n {
		id := creel.SubclusterID(fmt.Sprintf("sc-%d", i))
		used := int64(rapid.IntRange(0, 100).Draw(t, "used")) << 10
		free := int64(rapid.IntRange(0, 100).Draw(t, "free")) << 10
		load := subcluster.Load{
			Metrics: subcluster.ClusterMetrics{
				TotalMB:               each,
				TotalVirtualCores:     100,
				AvailableMB:           free,
				AvailableVirtualCores: free >> 10,
			},
			Queues: []subcluster.QueueLoad{{
				Queue: "root.q", Used: creel.NewResource(used, used>>10), Free: creel.NewResource(free, free>>10),
				Pending: creel.NewResource(int64(rapid.IntRange(0, 50).Draw(t, "pending"))<<10, 0),
			}},
		}
		members = append(members, subcluster.Status{
			Member: subcluster.Member{ID: id}, State: subcluster.StateActive, Load: load,
		})
		given := float64(rapid.IntRange(0, 100).Draw(t, "given")) / 100 / float64(n)
		if given > 0 {
			q.Members = append(q.Members, subcluster.MemberPlan{Member: id, Given: given})
			q.Entitled += given
		}
		q.Uses += float64(used) / each / float64(n)
	}
	q.Wants = q.Entitled * float64(rapid.IntRange(1, 3).Draw(t, "wants"))
	return subcluster.NewView(time.Unix(1000, 0), members, nil), q
}

func drawReach(t *rapid.T, view *subcluster.View) []Reach {
	var out []Reach
	for i := range view.Members {
		out = append(out, Reach{Member: view.Members[i].ID, Home: i == 0, UAM: i > 0 && rapid.Bool().Draw(t, "uam")})
	}
	return out
}

// A plan that does not cover the queue decides nothing: a plan of another queue, of a queue that does not follow it,
// of another partition, or no plan.
func TestEmptyPlanChangesNoDecision(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		view, q := drawFederation(t)
		reach := drawReach(t, view)
		g := Group{Count: int64(rapid.IntRange(1, 200).Draw(t, "count")), Size: creel.NewResource(1024, 1)}
		label := ""
		out, other := q, q
		out.Optout, other.Queue = true, "root.else"
		plan := rapid.SampledFrom([]*subcluster.Plan{
			planAt(t, view, other), planAt(t, view, out), planAt(t, view, subcluster.QueuePlan{Queue: "root.q"}),
		}).Draw(t, "plan")
		if rapid.Bool().Draw(t, "label") {
			label, plan = "gpu", planAt(t, view, q)
		}
		g.Label = label
		decide := func(p *subcluster.Plan) []any {
			v := *view
			v.Plan = p
			s := Submission{Queue: "root.q", Size: creel.NewResource(1024, 1), Label: label}
			home, because, err := Default().Home(&v, s, nil, seeded(1))
			split, err2 := Default().Split(&v, "root.q", g, reach, seeded(1))
			return []any{home, because, fmt.Sprint(err), split, fmt.Sprint(err2)}
		}
		if with, without := decide(plan), decide(nil); !reflect.DeepEqual(with, without) {
			t.Fatalf("with the plan %+v\nwithout %+v", with, without)
		}
	})
}

// The balanced home takes a member with free capacity in which the queue still has unused entitlement, if there is
// one.
func TestHomesFollowRemainingEntitlement(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		view, q := drawFederation(t)
		view.Plan = planAt(t, view, q)
		size := creel.NewResource(1024, 1)
		home, why, err := Default().Home(view, Submission{Queue: "q", Size: size}, nil, seeded(1))
		if err != nil {
			t.Skip(err)
		}
		type at struct{ room, entitled bool }
		of := map[creel.SubclusterID]at{}
		anyRoom, any := false, false
		for i := range view.Members {
			m := &view.Members[i]
			l := &m.Load.Queues[0]
			net := l.Free.Sub(l.Pending)
			entitled, used := queuePlan{plan: view.Plan, queue: &q}.deficit(m, creel.Resource{})
			of[m.ID] = at{size.Fits(net) && !net.IsZero(), entitled-used > part(size, view.Plan.Total)}
			anyRoom = anyRoom || of[m.ID].room
		}
		for _, x := range of {
			any = any || x.entitled && (x.room || !anyRoom)
		}
		if anyRoom && !of[home].room {
			t.Fatalf("%s has no room and others have:\n%v", home, why)
		}
		if any && len(q.Members) > 0 {
			if !of[home].entitled {
				t.Fatalf("the queue has used its entitlement at %s and not elsewhere:\n%v", home, why)
			}
			if !strings.Contains(why.Because, "by the plan") {
				t.Fatalf("the reason does not say so: %v", why)
			}
		}
	})
}

// A split loses no container. The containers of a queue that wants more than its entitlement fit into free capacity
// and entitlement, at home first. The rest waits where the queue has an entitlement, if it should still get any of
// it. If the queue has all it wants by the plan, asks may wait at home or where the application already is.
func TestSplitsKeepToEntitlementsFirst(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		view, q := drawFederation(t)
		view.Plan = planAt(t, view, q)
		reach := drawReach(t, view)
		g := Group{Count: int64(rapid.IntRange(1, 300).Draw(t, "count")), Size: creel.NewResource(1024, 1)}
		plan, err := Default().Split(view, "root.q", g, reach, seeded(1))
		if err != nil {
			t.Fatal(err)
		}
		shares, sum := map[creel.SubclusterID]int64{}, int64(0)
		for _, s := range plan.Shares {
			shares[s.Member] = s.Count
			sum += s.Count
		}
		if sum != g.Count {
			t.Fatalf("%d of %d are asked for", sum, g.Count)
		}
		room := func(i int) int64 {
			l := &view.Members[i].Load.Queues[0]
			return max(0, Fitting(l.Free.Sub(l.Pending), g.Size, false))
		}
		deficit := func(i int) int64 {
			p := queuePlan{plan: view.Plan, queue: &q}
			if len(q.Members) == 0 {
				return 0
			}
			entitled, used := p.deficit(&view.Members[i], creel.Resource{})
			return p.containers(entitled-used, g.Size)
		}
		if q.Contended() {
			if least := min(g.Count, room(0), deficit(0)); shares[view.Members[0].ID] < least {
				t.Fatalf("home is asked for %d, and %d are within its room and entitlement:\n%v",
					shares[view.Members[0].ID], least, plan.Reason)
			}
		}
		all := int64(0)
		for i := range view.Members {
			all += room(i)
		}
		if all > 0 || len(q.Members) == 0 {
			return
		}
		left := false
		for i := range view.Members {
			left = left || deficit(i) > 0
		}
		for i := range view.Members {
			m := reach[i]
			asked := !q.Contended() && (i == 0 || m.UAM) // new since the plan was made: the rest waits as without one
			if n := shares[m.Member]; left && !asked && q.Given(m.Member) == 0 && n > 0 {
				t.Fatalf("%d wait at %s, where the queue is entitled to nothing:\n%v", n, m.Member, plan.Reason)
			}
		}
	})
}

// If a queue wanted little when the plan was made, the unused entitlement in some member is next to nothing: a new
// application's containers do not all wait there.
func TestWaitingDemandSpreadsBeyondStalePlan(t *testing.T) {
	load := func(used int64) subcluster.Load {
		return subcluster.Load{
			Metrics: subcluster.ClusterMetrics{TotalMB: 100 << 10, TotalVirtualCores: 100, AllocatedMB: 100 << 10,
				AllocatedVirtualCores: 100},
			Queues: []subcluster.QueueLoad{{Queue: "root.q", Used: creel.NewResource(used<<10, used)}},
		}
	}
	view := subcluster.NewView(time.Unix(1000, 0), []subcluster.Status{
		{Member: subcluster.Member{ID: "sc-1"}, State: subcluster.StateActive, Load: load(10)},
		{Member: subcluster.Member{ID: "sc-2"}, State: subcluster.StateActive, Load: load(0)},
	}, nil)
	view.Plan = planAt(t, view, subcluster.QueuePlan{Queue: "root.q", Entitled: 0.06, Wants: 0.06,
		Members: []subcluster.MemberPlan{{Member: "sc-1", Given: 0.05}, {Member: "sc-2", Given: 0.01}}})
	reach := []Reach{{Member: "sc-1", Home: true}, {Member: "sc-2", UAM: true}}
	plan, err := Default().Split(view, "root.q", Group{Count: 100, Size: creel.NewResource(1024, 1)}, reach, seeded(1))
	if err != nil {
		t.Fatal(err)
	}
	shares := map[creel.SubclusterID]int64{}
	for _, s := range plan.Shares {
		shares[s.Member] = s.Count
	}
	if shares["sc-1"] < 40 || shares["sc-2"] < 2 {
		t.Errorf("%v wait: two fit into what the plan leaves in sc-2, and the rest waits as without a plan\n%v",
			shares, plan.Reason)
	}
}

// Waiting asks of a queue go where it should still get something, and beyond that in proportion to its entitlements,
// however many applications they belong to: each moves its part. In a member where the queue has nothing waiting when
// its containers complete, other queues get those resources.
func TestWaitingDemandGoesWhereQueueIsNext(t *testing.T) {
	ids := []creel.SubclusterID{"sc-1", "sc-2", "sc-3", "sc-4"}
	const gib = 1 << 10
	split := func(pending []int64, unreported int64, one Group, seed uint64) (map[creel.SubclusterID]int64, Plan) {
		var members []subcluster.Status
		for i, used := range []int64{15, 3, 2, 9} {
			members = append(members, subcluster.Status{
				Member: subcluster.Member{ID: ids[i]}, State: subcluster.StateActive,
				Load: subcluster.Load{
					Metrics: subcluster.ClusterMetrics{TotalMB: 100 * gib, TotalVirtualCores: 100, AllocatedMB: 100 * gib,
						AllocatedVirtualCores: 100},
					Queues: []subcluster.QueueLoad{{Queue: "root.q", Used: creel.NewResource(used*gib, used),
						Pending: creel.NewResource(pending[i]*gib, pending[i])}},
				},
			})
		}
		view := subcluster.NewView(time.Unix(1000, 0), members, nil)
		given := func(n float64) float64 { return n / 400 }
		view.Plan = planAt(t, view, subcluster.QueuePlan{Queue: "root.q", Entitled: given(46), Wants: given(135),
			Members: []subcluster.MemberPlan{
				{Member: "sc-1", Given: given(20)}, {Member: "sc-2", Given: given(10)},
				{Member: "sc-3", Given: given(8)}, {Member: "sc-4", Given: given(8)},
			}})
		plan, err := Default().Split(view, "root.q", one, []Reach{
			{Member: "sc-1", Home: true, Stuck: true, Known: true},
			{Member: "sc-2", UAM: true, Known: true, Pending: unreported},
			{Member: "sc-3", UAM: true, Known: true}, {Member: "sc-4", UAM: true, Known: true},
		}, seeded(seed))
		if err != nil {
			t.Fatal(err)
		}
		shares := map[creel.SubclusterID]int64{}
		for _, s := range plan.Shares {
			shares[s.Member] = s.Count
		}
		return shares, plan
	}
	// The queue should still get 5, 7, 6 and none: 18. Asks beyond that are split 20 to 10 to 8 to 8.
	for _, c := range []struct {
		name         string
		pending      []int64 // by the last reports
		unreported   int64   // at sc-2, of the application
		applications int     // share the asks waiting at sc-1
		want         []float64
	}{
		{"one application", []int64{100, 0, 6, 0}, 0, 1, []float64{43.3, 26.1, 15.3, 15.3}},
		{"of ten", []int64{100, 0, 6, 0}, 0, 10, []float64{43.3, 26.1, 15.3, 15.3}},
		{"of a hundred", []int64{100, 0, 6, 0}, 0, 100, []float64{43.3, 26.1, 15.3, 15.3}},
		{"not all is reported", []int64{100, 0, 6, 0}, 4, 1, []float64{45, 23, 16, 16}},
		{"fewer wait than it should still get", []int64{9, 0, 0, 0}, 0, 1, []float64{2.5, 3.5, 3, 0}},
		{"all wait where they should", []int64{43, 26, 21, 15}, 0, 1, []float64{43, 0, 0, 0}},
	} {
		got, wait := make([]float64, 4), c.pending[0]/int64(c.applications)
		for i := range c.applications {
			one := Group{Count: wait, Size: creel.NewResource(gib, 1), From: "sc-1"}
			shares, plan := split(c.pending, c.unreported, one, uint64(i))
			if plan.Waiting == wait { // no part is worth moving, and none is moved
				shares = map[creel.SubclusterID]int64{"sc-1": wait}
			}
			if shares["sc-1"] != plan.Waiting {
				t.Fatalf("%s: %d wait at sc-1, and %d are said to\n%v", c.name, shares["sc-1"], plan.Waiting, plan.Reason)
			}
			for k, id := range ids {
				got[k] += float64(shares[id])
			}
		}
		for k, id := range ids {
			// Fractions go by lot: one of one application, and by chance some of many.
			if d, most := math.Abs(got[k]-c.want[k]), max(1, 1.5*math.Sqrt(float64(c.applications))); d > most {
				t.Errorf("%s: %v of those at sc-1 wait at %s then, expected %v", c.name, got[k], id, c.want[k])
			}
		}
	}
}

// Waiting asks are not placed again, after another plan or because their member is full, in a member in slow start:
// all applications of the queue decide at that moment, and together would fill it.
func TestWaitingDemandAvoidsSlowStart(t *testing.T) {
	view := starting(t, 15) // five containers fit
	reach := []Reach{{Member: "sc-1", Home: true, Known: true}, {Member: "sc-2", UAM: true, Known: true, Headroom: creel.NewResource(40<<10, 40)}}
	for _, c := range []struct {
		full, soon bool
		want       int64
	}{{false, false, 0}, {true, true, 0}, {true, false, 5}} {
		reach[0].Stuck = c.full
		g := Group{Count: 60, Size: creel.NewResource(1024, 1), From: "sc-1", Soon: c.soon}
		plan, err := Default().Split(view, "root.q", g, reach, seeded(1))
		if err != nil {
			t.Fatal(err)
		}
		moved := int64(0)
		for _, s := range plan.Shares {
			if s.Member == "sc-2" {
				moved = s.Count
			}
		}
		if moved != c.want {
			t.Errorf("%d are moved, not %d (waited for long: %t)\n%v", moved, c.want, c.full && !c.soon, plan.Reason)
		}
	}
}

// starting returns two equal members that can run 40 more containers each. The second is in slow start with a fifth
// of its hundred, and has as many in use.
func starting(t *testing.T, used int64) *subcluster.View {
	var members []subcluster.Status
	for _, id := range []creel.SubclusterID{"sc-1", "sc-2"} {
		members = append(members, subcluster.Status{
			Member: subcluster.Member{ID: id}, State: subcluster.StateActive,
			Load: subcluster.Load{Metrics: subcluster.ClusterMetrics{
				TotalMB: 100 << 10, TotalVirtualCores: 100, AllocatedMB: used << 10, AllocatedVirtualCores: used,
				AvailableMB: 40 << 10, AvailableVirtualCores: 40,
			}},
		})
	}
	view := subcluster.NewView(time.Unix(1000, 0), members, nil)
	plan := planAt(t, view)
	plan.SlowStartMS = 60_000
	plan.Starts = []subcluster.MemberStart{{Member: "sc-1", Counts: 1}, {Member: "sc-2", Counts: 0.2}}
	view.Plan = plan
	return view
}

// The nodes of a label are in slow start by their own plan, whatever the plan of other nodes says.
func TestSlowStartOnLabelNodes(t *testing.T) {
	view := starting(t, 0)
	other := *view.Plan
	other.Starts = []subcluster.MemberStart{{Member: "sc-1", Counts: 1}, {Member: "sc-2", Counts: 1}}
	other.Labels = []subcluster.LabelPlan{{Label: "gpu", Plan: *view.Plan}}
	view.Plan = &other
	for _, used := range []int64{15, 25} { // by the second member, of twenty that count; the first can run 30
		for i := range view.Members {
			view.Members[i].Load.Labels = subcluster.Labels{Known: true, Partitions: []subcluster.Partition{{
				Label: "gpu", Total: creel.NewResource(100<<10, 100),
				Used: creel.NewResource([]int64{70, used}[i]<<10, []int64{70, used}[i]),
			}}}
		}
		one := Group{Count: 60, Size: creel.NewResource(1024, 1), Label: "gpu"}
		plan, err := Default().Split(view, "root.q", one, []Reach{
			{Member: "sc-1", Home: true, Known: true, Headroom: creel.NewResource(30<<10, 30)},
			{Member: "sc-2", UAM: true, Known: true, Headroom: creel.NewResource(40<<10, 40)},
		}, seeded(1))
		if err != nil {
			t.Fatal(err)
		}
		got := map[creel.SubclusterID]int64{}
		for _, s := range plan.Shares {
			got[s.Member] = s.Count
		}
		if want := max(0, 20-used); got["sc-2"] != want || got["sc-1"] != 60-want {
			t.Errorf("sc-2 may have 20 containers and has %d; asked for are %v", used, got)
		}
		sub := Submission{Queue: "root.q", Size: creel.NewResource(1024, 1), Label: "gpu"}
		for seed := range uint64(20) {
			home, reason, err := Default().Home(view, sub, nil, seeded(seed))
			if err != nil {
				t.Fatal(err)
			}
			if why := reason.String(); used == 25 && (home != "sc-1" ||
				!strings.Contains(why, "in slow start with 20% of its nodes of label gpu")) {
				t.Errorf("with %d in use of 20 the home is %s\n%s", used, home, why)
			}
		}
	}
}

// A member in slow start gets asks that fit into its part, no homes beyond that, and no waiting asks.
func TestAMemberThatStartsSlowlyGetsItsPart(t *testing.T) {
	one := Group{Count: 60, Size: creel.NewResource(1024, 1)}
	shares := func(used int64, known bool) map[creel.SubclusterID]int64 {
		reach := []Reach{
			{Member: "sc-1", Home: true, Known: true, Headroom: creel.NewResource(30<<10, 30)},
			{Member: "sc-2", UAM: known, Known: known, Headroom: creel.NewResource(40<<10, 40)},
		}
		plan, err := Default().Split(starting(t, used), "root.q", one, reach, seeded(1))
		if err != nil {
			t.Fatal(err)
		}
		out := map[creel.SubclusterID]int64{}
		for _, s := range plan.Shares {
			out[s.Member] = s.Count
		}
		return out
	}
	for _, known := range []bool{false, true} {
		if got := shares(15, known); got["sc-1"] != 55 || got["sc-2"] != 5 {
			t.Errorf("sc-2 may have 20 containers and has 15; asked for are %v (headroom known: %t)", got, known)
		}
		if got := shares(25, known); got["sc-2"] != 0 {
			t.Errorf("sc-2 may have 20 containers and has 25; asked for are %v (headroom known: %t)", got, known)
		}
	}
	sub := Submission{Queue: "root.q", Size: creel.NewResource(1024, 1)}
	for _, used := range []int64{15, 25} {
		homes, why := map[creel.SubclusterID]int{}, ""
		for seed := range uint64(20) {
			home, reason, err := Default().Home(starting(t, used), sub, nil, seeded(seed))
			if err != nil {
				t.Fatal(err)
			}
			homes[home]++
			why = reason.String()
		}
		if used == 25 && (homes["sc-2"] > 0 || !strings.Contains(why, "in slow start with 20% of its size")) {
			t.Errorf("homes %v: it has more in use than its part\n%s", homes, why)
		}
		if homes["sc-1"] == 0 || used == 15 && homes["sc-1"] < 20 {
			t.Errorf("homes %v: with %d in use", homes, used)
		}
	}
}
