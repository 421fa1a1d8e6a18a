// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/waitstats"
	"github.com/creelrm/creel/subcluster"
)

// Summary is the state of the federation in one sentence and a few sums. The sums do not include lost members;
// Without lists these.
type Summary struct {
	State    Health
	Sentence string         // the worst finding with its cause, and the numbers of applications
	Remedy   string         // "" if there is nothing to do
	Members  map[string]int // by state
	Sum      subcluster.ClusterMetrics
	Without  []UncountedMember
}

// Health grades a Summary.
type Health string

// The grades.
const (
	Good Health = "good" // nothing to do
	Warn Health = "warn" // it serves, but an operator should check it
	Bad  Health = "bad"  // a part of it does not serve
)

// UncountedMember is a member that is not in the sums.
type UncountedMember struct {
	Member creel.SubclusterID
	Age    time.Duration // of its last heartbeat
}

// Counted reports whether sums include a member's metrics: it is alive or suspect.
func Counted(m *subcluster.Status) bool {
	return m.State.Alive() || m.State == subcluster.StateSuspect
}

// sums returns the members by state, and a Summary with the sums alone.
func sums(view *subcluster.View) (s Summary, by map[subcluster.State][]creel.SubclusterID) {
	s.Members, by = map[string]int{}, map[subcluster.State][]creel.SubclusterID{}
	for i := range view.Members {
		m := &view.Members[i]
		s.Members[m.State.String()]++
		by[m.State] = append(by[m.State], m.ID)
		switch {
		case Counted(m):
			of := m.Load.Metrics // an application counts at its home
			of.AppsPending, of.AppsRunning = m.Load.UAMs.TakenFrom(of.AppsPending, of.AppsRunning)
			s.Sum = addMetrics(s.Sum, &of)
		case m.State != subcluster.StateDeregistered:
			s.Without = append(s.Without, UncountedMember{m.ID, m.Age})
		}
	}
	return s, by
}

func pick(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func count(n int64, one, many string) string {
	return fmt.Sprintf("%d %s", n, pick(int(n), one, many))
}

// names lists up to three members.
func names(ids []creel.SubclusterID) string {
	const most = 3
	text := ""
	for i, id := range ids[:min(len(ids), most)] {
		if i > 0 {
			text += ", "
		}
		text += string(id)
	}
	if more := len(ids) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// areNames is names with the verb.
func areNames(ids []creel.SubclusterID) string { return names(ids) + pick(len(ids), " is", " are") }

// addMetrics sums the additive metrics of two members.
func addMetrics(a subcluster.ClusterMetrics, b *subcluster.ClusterMetrics) subcluster.ClusterMetrics {
	add := func(sum *int64, n int64) { *sum = saturate(*sum, n) }
	add(&a.AppsSubmitted, b.AppsSubmitted)
	add(&a.AppsCompleted, b.AppsCompleted)
	add(&a.AppsPending, b.AppsPending)
	add(&a.AppsRunning, b.AppsRunning)
	add(&a.AppsFailed, b.AppsFailed)
	add(&a.AppsKilled, b.AppsKilled)
	add(&a.ReservedMB, b.ReservedMB)
	add(&a.AvailableMB, b.AvailableMB)
	add(&a.AllocatedMB, b.AllocatedMB)
	add(&a.PendingMB, b.PendingMB)
	add(&a.AvailableVirtualCores, b.AvailableVirtualCores)
	add(&a.AllocatedVirtualCores, b.AllocatedVirtualCores)
	add(&a.PendingVirtualCores, b.PendingVirtualCores)
	add(&a.ContainersAllocated, b.ContainersAllocated)
	add(&a.ContainersReserved, b.ContainersReserved)
	add(&a.ContainersPending, b.ContainersPending)
	add(&a.TotalMB, b.TotalMB)
	add(&a.TotalVirtualCores, b.TotalVirtualCores)
	add(&a.TotalNodes, b.TotalNodes)
	add(&a.LostNodes, b.LostNodes)
	add(&a.UnhealthyNodes, b.UnhealthyNodes)
	add(&a.DecommissioningNodes, b.DecommissioningNodes)
	add(&a.DecommissionedNodes, b.DecommissionedNodes)
	add(&a.ActiveNodes, b.ActiveNodes)
	add(&a.ContainersPerSecond, b.ContainersPerSecond)
	return a
}

// saturate returns a + b, limited to the range of int64: a member may report any numbers.
func saturate(a, b int64) int64 {
	return creel.Resource{MemoryMB: a}.Add(creel.Resource{MemoryMB: b}).MemoryMB
}

// Event is a change of the federation that this router observed.
type Event struct {
	At     time.Time // of this router's clock
	Kind   string    // member, view, policy, breaker
	Member creel.SubclusterID
	Text   string
}

// HistoryStep is the time covered by a point of a History.
const HistoryStep = 5 * time.Second

// historyPoints is the number of points in ten minutes.
const historyPoints = int(10 * time.Minute / HistoryStep)

// historyEvents bounds the stored events.
const historyEvents = 200

// unknown is the value of a figure that was unknown.
const unknown = -1

// History stores the last minutes of a router: rates for each HistoryStep, and events. Like Memory it is pure and has
// no lock.
type History struct {
	points []Point
	events []Event

	began       time.Time // start of the current step
	containers  float64   // sum over the step's observations
	observed    int
	waits       waitstats.Histogram // of the grants within the step
	submissions int64               // count at the start of the step
	waited      map[creel.SubclusterID][]uint64
	states      map[creel.SubclusterID]string
	open        map[creel.SubclusterID]string
	frozen      bool
	policies    int64
	seen        bool
}

// Point has the means of a step; -1 if unknown.
type Point struct {
	At          time.Time // the end of the step
	Containers  float64   // granted per second, by members' reports
	Submissions float64   // received per second, by this router
	// GrantP50 and GrantP99 are the seconds from an ask to the grant of a container. They cover the grants within the
	// step, by members' counts; -1 if there was none.
	GrantP50, GrantP99 float64
}

// Observation is the input of a History at one moment.
type Observation struct {
	Now         time.Time
	View        *subcluster.View
	Submissions int64                           // received since the start
	Open        map[creel.SubclusterID][]string // kinds of call that a breaker stops
}

// Observe adds an observation. It is called about once a second.
func (h *History) Observe(o Observation) {
	if h.began.IsZero() {
		h.began, h.submissions = o.Now, o.Submissions
	}
	if o.View != nil {
		h.compare(&o)
		if o.View.Freeze == nil {
			h.containers += containersPerSecond(o.View)
			h.observed++
			h.countWaits(o.View)
		}
	}
	took := o.Now.Sub(h.began)
	if took < HistoryStep {
		return
	}
	p := Point{At: o.Now, Containers: unknown, Submissions: float64(o.Submissions-h.submissions) / took.Seconds()}
	p.GrantP50, p.GrantP99 = quantile(&h.waits, 0.5), quantile(&h.waits, 0.99)
	if h.observed > 0 {
		p.Containers = h.containers / float64(h.observed)
	}
	if h.points = append(h.points, p); len(h.points) > historyPoints {
		h.points = slices.Delete(h.points, 0, len(h.points)-historyPoints)
	}
	h.began, h.submissions, h.containers, h.observed, h.waits = o.Now, o.Submissions, 0, 0, waitstats.Histogram{}
}

// containersPerSecond is the members' present rate of grants.
func containersPerSecond(view *subcluster.View) float64 {
	s, _ := sums(view)
	return float64(s.Sum.ContainersPerSecond)
}

// countWaits adds the members' grants since the last observation. It skips a member that is observed for the first
// time, or whose counts fell since it restarted: the times of its grants are unknown.
func (h *History) countWaits(view *subcluster.View) {
	now := make(map[creel.SubclusterID][]uint64, len(view.Members))
	for i := range view.Members {
		m := &view.Members[i]
		counts := m.Load.Waits
		if !Counted(m) || len(counts) != len(h.waits.Counts) {
			continue
		}
		now[m.ID] = counts
		before := h.waited[m.ID]
		if before == nil || fewer(counts, before) {
			continue
		}
		for i, n := range counts {
			h.waits.Counts[i] += n - before[i]
		}
	}
	h.waited = now
}

// fewer reports whether any bucket's count fell.
func fewer(counts, before []uint64) bool {
	for i, n := range counts {
		if n < before[i] {
			return true
		}
	}
	return false
}

func quantile(h *waitstats.Histogram, q float64) float64 {
	if d, ok := h.Quantile(q); ok {
		return d.Seconds()
	}
	return unknown
}

// compare records the differences from the last observation as events.
func (h *History) compare(o *Observation) {
	first := !h.seen
	h.seen = true
	event := func(kind string, id creel.SubclusterID, format string, values ...any) {
		h.events = append(h.events, Event{o.Now, kind, id, fmt.Sprintf(format, values...)})
		if len(h.events) > historyEvents {
			h.events = slices.Delete(h.events, 0, len(h.events)-historyEvents)
		}
	}
	states, open := map[creel.SubclusterID]string{}, map[creel.SubclusterID]string{}
	for i := range o.View.Members {
		m := &o.View.Members[i]
		states[m.ID] = m.State.String()
		switch was, known := h.states[m.ID]; {
		case !known:
			event("member", m.ID, "%s is %s", m.ID, m.State)
		case was != m.State.String():
			event("member", m.ID, "%s was %s and is %s: %s", m.ID, was, m.State, m.Reason)
		}
		open[m.ID] = strings.Join(o.Open[m.ID], ", ")
		switch was := h.open[m.ID]; {
		case open[m.ID] != "" && open[m.ID] != was:
			event("breaker", m.ID, "calls of kind %s to %s are cut off", open[m.ID], m.ID)
		case open[m.ID] == "" && was != "":
			event("breaker", m.ID, "%s is called again", m.ID)
		}
	}
	for id := range h.states {
		if _, still := states[id]; !still {
			event("member", id, "%s left the federation", id)
		}
	}
	switch frozen := o.View.Freeze != nil; {
	case frozen && !h.frozen:
		event("view", "", "the view froze: %s", o.View.Freeze.Reason)
	case !frozen && h.frozen:
		event("view", "", "the view is followed again")
	}
	if v := o.View.Policies.Version; !first && v != h.policies {
		event("policy", "", "policies changed, to version %d", v)
	}
	h.states, h.open, h.frozen, h.policies = states, open, o.View.Freeze != nil, o.View.Policies.Version
}

// Points returns the points of the last ten minutes, oldest first.
func (h *History) Points() []Point { return slices.Clone(h.points) }

// Events returns the last events, newest first.
func (h *History) Events() []Event {
	out := slices.Clone(h.events)
	slices.Reverse(out)
	return out
}
