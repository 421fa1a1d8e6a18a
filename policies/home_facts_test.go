// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
)

var factQueues = []creel.QueuePath{"root.a", "root.b.x", "root.c.x", "a", "x", "nowhere", ""}

// anyAmount is an amount with a further type, maybe.
func anyAmount(t *rapid.T, most int64) creel.Resource {
	r := creel.NewResource(rapid.Int64Range(0, most).Draw(t, "memory"), rapid.Int64Range(0, most/1000).Draw(t, "cores"))
	if rapid.IntRange(0, 3).Draw(t, "typed") == 0 {
		r = r.With("yarn.io/gpu", rapid.Int64Range(0, 4).Draw(t, "gpus"))
	}
	return r
}

// anyMember is a member of any state that reports anything.
func anyMember(t *rapid.T, id creel.SubclusterID) subcluster.Status {
	m := member(id, rapid.Int64Range(0, 100_000).Draw(t, "available"))
	m.State = rapid.SampledFrom([]subcluster.State{
		subcluster.StateActive, subcluster.StateActive, subcluster.StateActive, subcluster.StateDraining,
		subcluster.StateDeregistered,
	}).Draw(t, "state")
	load := &m.Load
	if rapid.IntRange(0, 5).Draw(t, "empty") == 0 {
		load.Metrics = subcluster.ClusterMetrics{}
	}
	load.Labels.Known = rapid.Bool().Draw(t, "labels known")
	labels := []string{""}
	if rapid.Bool().Draw(t, "has a label") {
		labels = append(labels, "ssd")
		load.Labels.Put(subcluster.Partition{
			Label: "ssd", Total: anyAmount(t, 50_000), Used: anyAmount(t, 50_000), Shared: rapid.Bool().Draw(t, "shared"),
		})
	}
	if rapid.IntRange(0, 4).Draw(t, "label of AMs") == 0 {
		load.Labels.AMs = "ssd"
	}
	if rapid.Bool().Draw(t, "rules") {
		load.Labels.Queues = []subcluster.QueueLabels{{Queue: "root.a"}, {Queue: "root.b", Accessible: []string{"ssd"}}}
		load.Labels.Queues[1].Default = rapid.SampledFrom(labels).Draw(t, "default")
	}
	for _, q := range factQueues[:3] {
		for _, label := range labels {
			if rapid.IntRange(0, 3).Draw(t, "reports") > 0 {
				load.Queues = append(load.Queues, subcluster.QueueLoad{
					Queue: q, Label: label, Capacity: anyAmount(t, 100_000), Used: anyAmount(t, 50_000),
					Free: anyAmount(t, 80_000), Pending: anyAmount(t, 20_000),
				})
			}
		}
	}
	return m
}

// anyFederation is a few members, and a plan maybe.
func anyFederation(t *rapid.T) ([]subcluster.Status, *subcluster.Plan) {
	var members []subcluster.Status
	for i := range rapid.IntRange(1, 12).Draw(t, "members") {
		members = append(members, anyMember(t, creel.SubclusterID(fmt.Sprintf("sc-%02d", i))))
	}
	if rapid.Bool().Draw(t, "no plan") {
		return members, nil
	}
	plan := &subcluster.Plan{Total: creel.NewResource(1_000_000, 1000), SlowStartMS: 1000, At: time.Unix(100, 0)}
	queue := subcluster.QueuePlan{Queue: "root.a"}
	for i := range members {
		plan.Starts = append(plan.Starts, subcluster.MemberStart{
			Member: members[i].ID, Counts: rapid.SampledFrom([]float64{0.3, 1, 1}).Draw(t, "counts"),
		})
		queue.Members = append(queue.Members, subcluster.MemberPlan{
			Member: members[i].ID, Given: rapid.Float64Range(0, 0.2).Draw(t, "given"),
		})
	}
	plan.Queues = []subcluster.QueuePlan{queue}
	if on := *plan; rapid.Bool().Draw(t, "a plan of a label") {
		on.Starts = nil
		for i := range members {
			on.Starts = append(on.Starts, subcluster.MemberStart{
				Member: members[i].ID, Counts: rapid.SampledFrom([]float64{0.3, 1, 1}).Draw(t, "counts there"),
			})
		}
		plan.Labels = []subcluster.LabelPlan{{Label: "ssd", Plan: on}}
	}
	return members, plan
}

func anySubmission(t *rapid.T) Submission {
	s := Submission{
		Queue: rapid.SampledFrom(factQueues).Draw(t, "queue"),
		Size:  anyAmount(t, rapid.SampledFrom([]int64{2000, 120_000}).Draw(t, "most")),
		Label: rapid.SampledFrom([]string{"", "", "ssd", "tape"}).Draw(t, "label"),
	}
	if rapid.Bool().Draw(t, "counts what was sent") {
		apps := rapid.Int64Range(0, 3).Draw(t, "sent")
		size := anyAmount(t, 2000)
		s.Assumed = func(_ *subcluster.View, each []RecentLoad) {
			for i := range each {
				each[i] = RecentLoad{apps, size.Scale(apps*int64(i%4), 1)}
			}
		}
	}
	return s
}

func anyPolicy(t *rapid.T) Policy {
	name, weights := rapid.SampledFrom(HomeNames()).Draw(t, "policy"), ""
	if name != "uniform" && name != "reject" {
		weights = rapid.SampledFrom([]string{"", `{"sc-00":2,"sc-01":0,"sc-02":1,"sc-05":3}`}).Draw(t, "weights")
	}
	p, err := Parse([]byte(home(name, weights)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Whatever was decided over a view before, a choice equals the choice over a fresh view, to the last word of its
// reason. The facts stored once for all sizes agree with the member's report for each size.
func TestChoiceIsSameOnReusedView(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		members, plan := anyFederation(t)
		fresh := func() *subcluster.View {
			v := view(members...)
			v.Plan = plan
			return v
		}
		asked := fresh()
		for k := range uint64(rapid.IntRange(1, 20).Draw(t, "submissions")) {
			s, p := anySubmission(t), anyPolicy(t)
			id, reason, err := p.Home(asked, s, nil, seeded(k))
			wantID, wantReason, wantErr := p.Home(fresh(), s, nil, seeded(k))
			if id != wantID || !reflect.DeepEqual(reason, wantReason) || !reflect.DeepEqual(err, wantErr) {
				t.Fatalf("%+v\n%v %v %v, over a new view\n%v %v %v", s, id, reason, err, wantID, wantReason, wantErr)
			}
			d := newHomeDecision(asked, s, nil)
			for i := range members {
				m := d.status(i)
				if want, why := cannotHold(m, s.Size, homeLabel(m, s.Queue, s.Label), false); d.holds(i) != want {
					t.Fatalf("%s holds %v of label %q: %q, by its report %q %s", m.ID, s.Size, s.Label, d.holds(i), want, why)
				}
			}
			d.over()
		}
	})
}

// A changed copy of a view has facts of its own: of the nodes with a label alone, without a plan, when the store does
// not answer.
func TestCopiedViewIsNotConfusedWithOriginal(t *testing.T) {
	v := published(3, 2)
	s := small
	s.Queue = v.Members[0].Load.Queues[0].Queue
	v.Plan = &subcluster.Plan{SlowStartMS: 1000, Starts: []subcluster.MemberStart{{Member: "sc-0000", Counts: 0.5}}}
	starting := func(v *subcluster.View) float64 {
		_, reason, err := Default().Home(v, s, nil, seeded(1))
		if err != nil {
			t.Fatal(err)
		}
		return reason.Candidates[0].Numbers.Starting
	}
	if got := starting(v); got != 0.5 {
		t.Fatalf("it starts with %v", got)
	}
	changed := *v
	changed.Plan = nil
	if got := starting(&changed); got != 0 {
		t.Errorf("without a plan it starts with %v", got)
	}
	if got := starting(subcluster.Unreachable(v, "it is down")); got != 0 {
		t.Errorf("without a store there is no plan, and it starts with %v", got)
	}
	if _, reason, err := Default().Home(v.In("ssd"), s, nil, seeded(1)); err != nil || reason.Candidates[0].Numbers.Of != "cluster" {
		t.Errorf("of its nodes with another label: %v, %v", reason, err)
	}
}

// Many submissions are decided over one view at once.
func TestGoroutinesShareViewCache(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	v := published(20, 30)
	var wait sync.WaitGroup
	for g := range uint64(4) {
		wait.Go(func() {
			for i := range 300 {
				s := small
				s.Queue = v.Members[0].Load.Queues[i%30].Queue
				got, _, err := Default().Home(v, s, nil, seeded(g))
				want, _, _ := Default().Home(published(20, 30), s, nil, seeded(g))
				if got != want || err != nil {
					t.Errorf("%s: %s %v, alone %s", s.Queue, got, err, want)
					return
				}
			}
		})
	}
	wait.Wait()
}
