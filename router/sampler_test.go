// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"math"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/waitstats"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/history"
	"github.com/creelrm/creel/subcluster"
)

// sampled is a history with its sampler and its clock.
type sampled struct {
	history.History
	router.Sampler
	at          time.Time
	submissions int64
	waiting     *router.Waiting
}

func newSampled() *sampled { return &sampled{at: time.Unix(1_800_000_000, 0)} }

// steps observes a view for some whole steps. Three applications are submitted each second.
func (s *sampled) steps(n int, view *subcluster.View) {
	for range n * int(history.Step/time.Second) {
		s.Observe(&s.History, router.Observation{
			Now: s.at, View: view, Submissions: s.submissions, Waiting: s.waiting,
		})
		s.at, s.submissions = s.at.Add(time.Second), s.submissions+3
	}
	s.Observe(&s.History, router.Observation{Now: s.at, Submissions: s.submissions})
}

// last returns the figures of the last step; -1 for unknown ones.
func (s *sampled) last(subject history.Subject) (v history.Values) {
	got, _ := s.Read(s.at, subject, history.Fine, history.Step)
	for m := range v {
		v[m] = -1
		if values := got.Values[m]; values != nil && history.Known(values[0]) {
			v[m] = values[0]
		}
	}
	return v
}

var fed = history.Subject{}

func memberOf(id string) history.Subject { return history.Subject{Kind: history.Member, Name: id} }

func queueOf(path string) history.Subject { return history.Subject{Kind: history.Queue, Name: path} }

// loaded has members a and b of 100 GB each. Of each the queue root.x uses 30 GB, and is entitled to 50 GB.
func loaded(a, b subcluster.State) *subcluster.View {
	view := viewOf(a, b)
	for i := range view.Members {
		load := &view.Members[i].Load
		load.MemoryOnly = true
		load.Metrics.TotalMB, load.Metrics.AllocatedMB, load.Metrics.AppsPending = 100_000, 30_000, 4
		x := subcluster.QueueLoad{
			Queue: "root.x", Capacity: creel.Resource{MemoryMB: 50_000}, Used: creel.Resource{MemoryMB: 30_000}, AppsPending: 4,
		}
		root := x
		root.Queue, root.Capacity.MemoryMB = "root", 100_000
		gpu := x
		gpu.Label = "gpu"
		load.Queues = []subcluster.QueueLoad{root, x, gpu}
	}
	return view
}

func near(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-5 }

func TestSamplesOfUseAndEntitlement(t *testing.T) {
	s := newSampled()
	both := loaded(subcluster.StateActive, subcluster.StateActive)
	planned := creel.Resource{MemoryMB: 20_000}
	both.Members[0].Load.Queues[1].Planned = &planned
	s.steps(2, both)
	for subject, want := range map[history.Subject][3]float32{
		fed: {0.3, 0.35, 8}, memberOf("a"): {0.3, 0.2, 4}, memberOf("b"): {0.3, 0.5, 4}, queueOf("root.x"): {0.3, 0.35, 8},
		queueOf("root"): {0.3, 1, 8},
	} {
		v := s.last(subject)
		if !near(v[history.Use], want[0]) || !near(v[history.Entitlement], want[1]) || v[history.Waiting] != want[2] {
			t.Errorf("%v: %v, want %v", subject, v, want)
		}
	}
	if v := s.last(fed); v[history.Submissions] != 15 || v[history.Grants] != 40 { // members' rates are 4 a second
		t.Errorf("counts: %v", v)
	}
	// A list of applications counts instead of the reports.
	s.waiting = &router.Waiting{
		All: 5, Members: map[creel.SubclusterID]int64{"b": 5}, Queues: map[creel.QueuePath]int64{"root": 5},
	}
	s.steps(1, both)
	for subject, want := range map[history.Subject]float32{
		fed: 5, memberOf("a"): 0, memberOf("b"): 5, queueOf("root.x"): 0, queueOf("root"): 5,
	} {
		if v := s.last(subject); v[history.Waiting] != want {
			t.Errorf("%v has %v waiting applications, want %v", subject, v[history.Waiting], want)
		}
	}
}

// A lost member has a gap, and is in no sum. A frozen view is a gap for all.
func TestSamplesHaveGapsWhereNothingIsKnown(t *testing.T) {
	s := newSampled()
	s.steps(2, loaded(subcluster.StateActive, subcluster.StateActive))
	s.steps(2, loaded(subcluster.StateActive, subcluster.StateLost))
	if v := s.last(memberOf("b")); v != (history.Values{-1, -1, -1, -1, -1, -1, -1}) {
		t.Errorf("the lost member: %v", v)
	}
	if v := s.last(fed); !near(v[history.Use], 0.3) || v[history.Waiting] != 4 || v[history.Grants] != 20 {
		t.Errorf("the federation without it: %v", v)
	}
	frozen := loaded(subcluster.StateActive, subcluster.StateActive)
	frozen.Freeze = &subcluster.Freeze{Reason: "it is dark"}
	s.steps(2, frozen)
	for _, subject := range []history.Subject{fed, memberOf("a"), queueOf("root.x")} {
		v := s.last(subject)
		if subject == fed && v[history.Submissions] != 15 {
			t.Errorf("submissions are counted without a view: %v", v)
		}
		v[history.Submissions] = -1
		if v != (history.Values{-1, -1, -1, -1, -1, -1, -1}) {
			t.Errorf("%v in a frozen view: %v", subject, v)
		}
	}
	got, _ := s.Read(s.at, memberOf("b"), history.Fine, 6*history.Step)
	if u := got.Values[history.Use]; !history.Known(u[1]) || history.Known(u[2]) || history.Known(u[5]) {
		t.Errorf("the member before and after: %v", u)
	}
}

// A step's waiting times are those of containers granted within it: not those that a member had granted before it was
// observed, or before it restarted.
func TestSamplesHaveContainerWaits(t *testing.T) {
	s := newSampled()
	pass := func(counts ...[]uint64) history.Values {
		view := viewOf(make([]subcluster.State, len(counts))...)
		for i, c := range counts {
			m := &view.Members[i]
			m.State, m.Load.Waits, m.Load.Metrics.ContainersPerSecond = subcluster.StateActive, c, 0
		}
		s.steps(1, view)
		return s.last(fed)
	}
	with := func(bucket int, n uint64) []uint64 {
		counts := make([]uint64, len(waitstats.Bounds)+1)
		counts[bucket] = n
		return counts
	}
	if v := pass(with(9, 1000), nil); v[history.GrantP50] != -1 || v[history.GrantP99] != -1 {
		t.Errorf("at the first look: %v", v)
	}
	late := with(9, 1000)
	late[0], late[5] = 99, 2
	v := pass(late, with(0, 5))
	if v[history.GrantP50] >= 0.001 || v[history.GrantP99] <= 0.1 || v[history.GrantP99] > 0.5 || v[history.Grants] != 101 {
		t.Errorf("of 99 at once and two of a tenth to half a second: %v", v)
	}
	if v := s.last(memberOf("a")); v[history.Grants] != 101 || v[history.GrantP99] <= 0.1 {
		t.Errorf("its member: %v", v)
	}
	if v := pass(late, with(0, 5)); v[history.GrantP99] != -1 || v[history.Grants] != 0 {
		t.Errorf("nothing was granted: %v", v)
	}
	more := with(0, 5)
	more[1] = 10
	v = pass(with(9, 7), more)
	if v[history.GrantP99] < 0.001 || v[history.GrantP99] > 0.005 || v[history.Grants] != 10 {
		t.Errorf("one started anew, the other granted: %v", v)
	}
	s.at = s.at.Add(time.Minute) // the router was paused
	many := with(0, 5)
	many[1] = 5000
	if v = pass(with(9, 7), many); v[history.GrantP99] != -1 || v[history.Grants] != 0 {
		t.Errorf("the grants of a whole pause are counted in one step: %v", v)
	}
}

// A queue's grants and waiting times are those of its members together, and a parent's those of its leaves.
func TestSamplesHaveContainerWaitsOfQueues(t *testing.T) {
	s := newSampled()
	pass := func(members ...[]subcluster.QueueWaits) func(path string) history.Values {
		view := viewOf(make([]subcluster.State, len(members))...)
		for i, waits := range members {
			m := &view.Members[i]
			m.State, m.Load.Waits, m.Load.QueueWaits = subcluster.StateActive, make([]uint64, len(waitstats.Bounds)+1), waits
			for _, q := range []creel.QueuePath{"root", "root.p", "root.p.x", "root.p.y"} {
				m.Load.Queues = append(m.Load.Queues, subcluster.QueueLoad{Queue: q})
			}
		}
		s.steps(1, view)
		return func(path string) history.Values { return s.last(queueOf(path)) }
	}
	of := func(queue creel.QueuePath, counts ...uint64) subcluster.QueueWaits {
		return subcluster.QueueWaits{Queue: queue, Counts: counts}
	}
	type queues = []subcluster.QueueWaits
	if x := pass(queues{of("root.p.x", 1000)}, nil)("root.p.x"); x[history.GrantP50] != -1 || x[history.Grants] > 0 {
		t.Errorf("at the first look: %v", x)
	}
	now := pass(queues{of("root.p.x", 1000, 0, 0, 0, 0, 2)}, queues{of("root.p.x", 6), of("root.p.y", 90)})
	for path, want := range map[string]float32{"root.p.x": 8, "root.p.y": 90, "root.p": 98, "root": 98} {
		if q := now(path); q[history.Grants] != want {
			t.Errorf("%s: %v, want %v grants", path, q, want)
		}
	}
	if x, y := now("root.p.x"), now("root.p.y"); x[history.GrantP99] <= 0.1 || y[history.GrantP99] >= 0.001 ||
		x[history.GrantP50] >= 0.001 {
		t.Errorf("two of eight waited: %v; none: %v", x, y)
	}
	now = pass(queues{of("root.p.x", 7)}, queues{of("root.p.x", 6, 1), of("root.p.y", 90)}) // made again in a member
	if x, y := now("root.p.x"), now("root.p.y"); x[history.Grants] != 1 || y[history.Grants] != 0 || y[history.GrantP50] != -1 {
		t.Errorf("after one grant: %v, %v", x, y)
	}
}
