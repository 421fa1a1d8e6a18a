// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

// story is a federation of three members of a hundred nodes each and its plans.
type story struct {
	t      *testing.T
	at     time.Time
	nodes  map[creel.SubclusterID]int64 // of members that take applications
	uses   int64                        // nodes in each, by root.q
	before *subcluster.Plan
}

const over = 100 * time.Second

func (s *story) view() *subcluster.View {
	var members []subcluster.Status
	for _, id := range []creel.SubclusterID{"sc-1", "sc-2", "sc-3"} {
		n, active := s.nodes[id]
		m := subcluster.Status{Member: subcluster.Member{ID: id}, State: subcluster.StateActive}
		if !active {
			m.State = subcluster.StateLost
		}
		m.Load.Metrics = subcluster.ClusterMetrics{TotalMB: n << 10, TotalVirtualCores: n}
		used := min(n, s.uses)
		m.Load.Queues = []subcluster.QueueLoad{{
			Queue: "root.q", Used: creel.NewResource(used<<10, used), Pending: creel.NewResource(300<<10, 300),
		}}
		members = append(members, m)
	}
	return subcluster.NewView(s.at, members, nil)
}

// plan makes the next one some seconds later and returns the parts that members count with.
func (s *story) plan(later time.Duration) *subcluster.Plan {
	s.at = s.at.Add(later)
	r := Read(s.view(), &Tree{})
	r.SlowStart(s.view(), s.before, over)
	out := Publish(r, (&Planner{}).Plan(&r.Input, nil), s.before, PlanBounds{})
	out.At = s.at
	s.before = out
	return out
}

func (s *story) counts(id creel.SubclusterID, want float64) {
	s.t.Helper()
	if got := s.before.Counts(id); math.Abs(got-want) > 1e-9 {
		s.t.Errorf("%s counts with %.3f of its size and not %.3f: %+v", id, got, want, s.before.Starts)
	}
}

func begin(t *testing.T) *story {
	s := &story{t: t, at: time.Unix(1000, 0), nodes: map[creel.SubclusterID]int64{"sc-1": 100, "sc-2": 10}}
	s.plan(0)
	s.nodes["sc-2"], s.nodes["sc-3"] = 100, 100 // nodes and members of a starting federation join one by one
	s.plan(10 * time.Second)
	for _, id := range []creel.SubclusterID{"sc-1", "sc-2", "sc-3"} {
		s.counts(id, 1)
	}
	s.plan(200 * time.Second)
	return s
}

func TestReturnRampMatchesAbsence(t *testing.T) {
	s := begin(t)
	delete(s.nodes, "sc-3")
	s.plan(10 * time.Second)
	s.nodes["sc-3"] = 100
	s.plan(10 * time.Second)
	s.counts("sc-3", 0.9) // ten seconds cost a tenth
	s.plan(5 * time.Second)
	s.counts("sc-3", 0.95)
	s.plan(5 * time.Second)
	s.counts("sc-3", 1)

	delete(s.nodes, "sc-3")
	for range 20 {
		s.plan(10 * time.Second)
	}
	s.counts("sc-3", subcluster.LeastCounts) // its part for readers that see it before the next plan
	s.nodes["sc-3"] = 100
	p := s.plan(10 * time.Second)
	s.counts("sc-3", 0.1)
	if text := p.Starts[2].Text(""); text != "sc-3 counts with 10% of its size: it was away; all of it in 1m30s" {
		t.Error(text)
	}
	given := 0.0
	for _, m := range p.Queue("root.q").Members {
		if m.Member == "sc-3" {
			given = m.Given
		}
	}
	if want := 0.1 / 3; math.Abs(given-want) > 1e-6 {
		t.Errorf("root.q is given %.4f in it, not %.4f: a tenth of it", given, want)
	}
	s.plan(45 * time.Second)
	s.counts("sc-3", 0.55)
	s.plan(45 * time.Second)
	s.counts("sc-3", 1)
	s.counts("sc-1", 1)
}

func TestLostNodesCountAtOnceRegrowthIsSlow(t *testing.T) {
	s := begin(t)
	weight := func() (w float64) {
		for _, m := range s.before.Queue("root.q").Members {
			if m.Member == "sc-2" {
				w = m.Weight
			}
		}
		return w
	}
	was := weight()
	s.nodes["sc-2"] = 20
	if r := Read(s.view(), &Tree{}); true {
		r.SlowStart(s.view(), s.before, over)
		if !Changed(r, s.before) {
			t.Error("the next plan waits for its time though a member has lost most of its nodes")
		}
	}
	s.plan(time.Second)
	s.counts("sc-2", 1) // of its size
	if w := weight(); math.Abs(w-20.0/220) > 0.01 {
		t.Errorf("one plan later its weight is %.3f, it was %.3f, and it has 20 of 220 nodes", w, was)
	}
	s.nodes["sc-2"] = 23 // some nodes more are none to be slow with
	s.plan(time.Second)
	s.counts("sc-2", 1)
	s.nodes["sc-2"] = 100
	s.plan(time.Second)
	s.counts("sc-2", 0.23)
	s.plan(27 * time.Second)
	s.counts("sc-2", 0.5)
}

func TestRunningUseStaysEntitledDuringSlowStart(t *testing.T) {
	s := begin(t)
	delete(s.nodes, "sc-3")
	for range 20 {
		s.plan(10 * time.Second)
	}
	s.nodes["sc-3"], s.uses = 100, 60
	given := s.plan(10 * time.Second).Queue("root.q").Given("sc-3")
	s.counts("sc-3", 0.1)
	if want := 0.6 / 3; math.Abs(given-want) > 1e-6 {
		t.Errorf("the queue uses %.3f of the federation there and is given %.3f", want, given)
	}
}

// Whatever members join or leave, the part that a member counts with is between the least and all, rises by no more
// than its time allows, and is all of it when nothing changes.
func TestPartsOfMembersThatComeAndGo(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		s := begin(t)
		was := map[creel.SubclusterID]float64{}
		for i := range rapid.IntRange(1, 30).Draw(rt, "plans") {
			for _, id := range []creel.SubclusterID{"sc-1", "sc-2", "sc-3"} {
				switch rapid.IntRange(0, 5).Draw(rt, fmt.Sprint(id, i)) {
				case 0:
					delete(s.nodes, id)
				case 1:
					s.nodes[id] = int64(rapid.IntRange(1, 200).Draw(rt, "nodes"))
				}
			}
			later := time.Duration(rapid.IntRange(0, 30).Draw(rt, "seconds")) * time.Second
			for j := range s.plan(later).Starts {
				x := &s.before.Starts[j]
				if x.Away {
					was[x.Member] = 0
					continue
				}
				counted := x.Counts * float64(x.Size.VCores) // in nodes
				grown := later.Seconds() / over.Seconds() * float64(x.Size.VCores)
				least := subcluster.LeastCounts * float64(x.Size.VCores)
				if x.Counts > 1 || counted < least-1e-9 {
					rt.Fatalf("%+v", x)
				}
				if w := was[x.Member]; w > 0 && x.Counts < 1 && counted > max(w+grown, least)+1e-6 {
					rt.Fatalf("%s counts with %.2f nodes after %.2f, %s later", x.Member, counted, w, later)
				}
				was[x.Member] = counted
			}
		}
		for range 11 {
			s.plan(10 * time.Second)
		}
		for i := range s.before.Starts {
			if x := &s.before.Starts[i]; x.Slow() {
				rt.Fatalf("nothing has changed for %s: %+v", over, x)
			}
		}
	})
}
