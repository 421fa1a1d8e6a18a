// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// MoveTerms are the limits of moves.
type MoveTerms struct {
	Loaded       bool          // also move waiting applications out of loaded members, not only out of drained ones
	PerMinute    int           // applications, over all members; 0: none
	QueuePercent float64       // of a queue's waiting applications at a member, per minute (drains are exempt)
	DeadBand     float64       // least difference in use between a loaded and a free member, 0 to 1
	Again        time.Duration // least time between two moves of an application
}

// WaitingApplication is an application that waits for its AM's container, by its home's report.
type WaitingApplication struct {
	Application creel.ApplicationID
	Home        creel.SubclusterID
	Queue       creel.QueuePath
	Submitted   time.Time
	Label       string // of the nodes on which its AM's container must run
}

// PastMove is a move that was started; it may have ended.
type PastMove struct {
	Application creel.ApplicationID
	From, To    creel.SubclusterID
	Queue       creel.QueuePath
	At          time.Time // store's clock
	Under       bool      // it is under way
}

// MoveInput is the input of ChooseMoves.
type MoveInput struct {
	View *subcluster.View
	Now  time.Time // store's clock
	// Drained has the reason for each member to be emptied: "sc-1 is drained by alice (new disks)".
	Drained map[creel.SubclusterID]string
	Waiting []WaitingApplication
	Past    []PastMove
	Optout  func(creel.QueuePath) bool // nil: no queue has opted out
	// Excludes reports whether a queue's policy places no homes in a member, by a weight of 0; nil: no policy does.
	Excludes func(creel.QueuePath, creel.SubclusterID) bool
}

// ChosenMove is a move to be made, with its reason.
type ChosenMove struct {
	Application creel.ApplicationID `json:"application"`
	From        creel.SubclusterID  `json:"from"`
	To          creel.SubclusterID  `json:"to"`
	Queue       creel.QueuePath     `json:"queue"`
	Why         string              `json:"why"`
}

// place is a member that could take applications whose AMs run on nodes of one label.
type place struct {
	member *subcluster.Status // restricted to these nodes
	room   float64            // part of its size that is free and not requested, less applications on their way
	each   float64            // part of its size that one more application is assumed to use
}

// ChooseMoves chooses the applications that move now, and returns notes about the reasons why others stay. It decides
// by the members' reports and by the applications on their way. It does not count moves to a member that is not
// alive. Nor does it count moves dated in the future: the store's clock was set back.
//
//   - Applications waiting in a drained member move, the oldest first.
//   - With terms.Loaded, applications waiting in a loaded member move too. Its utilization exceeds, by the dead band,
//     the utilization of a member with free capacity and no waiting applications. The youngest moves first, since it
//     would wait longest.
//
// For an application whose AM runs on nodes of a label, only these nodes count. Candidates are the members that take
// applications, have its queue on these nodes and are not excluded by the queue's policy. The application goes to the
// candidate with the most free capacity. If no capacity is free, a drain moves it to the candidate with the least
// pending.
func ChooseMoves(in *MoveInput, terms MoveTerms) (chosen []ChosenMove, notes []string) {
	budget := terms.PerMinute
	lately := map[creel.ApplicationID]bool{}
	left := map[from]int{}
	pools := map[string][]place{} // by label
	for _, a := range in.Waiting {
		if _, known := pools[a.Label]; !known {
			pools[a.Label] = placesOf(in, a.Label)
		}
	}
	for _, p := range in.Past {
		age := in.Now.Sub(p.At)
		within := func(d time.Duration) bool { return age >= 0 && age < d }
		if p.Under || within(terms.Again) {
			lately[p.Application] = true
		}
		if p.Under && alive(in.View, p.From) || !p.Under && within(time.Minute) {
			budget--
			left[from{p.From, p.Queue}]++
		}
		if p.Under {
			for _, places := range pools {
				taken(places, p.To)
			}
		}
	}
	var drained, loaded []WaitingApplication
	count := map[from]int{}
	for _, a := range in.Waiting {
		count[from{a.Home, a.Queue}]++
		switch _, empty := in.Drained[a.Home]; {
		case lately[a.Application]:
		case empty:
			drained = append(drained, a)
		case terms.Loaded:
			loaded = append(loaded, a)
		}
	}
	byAge := func(a, b WaitingApplication) int {
		return cmp.Or(a.Submitted.Compare(b.Submitted), a.Application.Compare(b.Application))
	}
	slices.SortFunc(drained, byAge)
	slices.SortFunc(loaded, func(a, b WaitingApplication) int { return byAge(b, a) })
	note := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); len(notes) < 20 && !slices.Contains(notes, text) {
			notes = append(notes, text)
		}
	}
	choose := func(a WaitingApplication, to *place, why string) {
		chosen = append(chosen, ChosenMove{a.Application, a.Home, to.member.ID, a.Queue, why})
		to.room -= to.each
		budget--
		left[from{a.Home, a.Queue}]++
	}
	for _, a := range drained {
		to := in.best(pools[a.Label], a, func(*place) bool { return true })
		switch {
		case to == nil:
			there := ""
			if a.Label != "" {
				there = " there"
			}
			note("applications waiting in queue %s of %s%s stay: no other member that takes applications has that queue%s%s",
				a.Queue, a.Home, onLabel(a.Label), there, in.orExcluded(a.Queue))
		case budget <= 0:
			note("%d applications a minute are moved; the others move later", terms.PerMinute)
		default:
			choose(a, to, in.Drained[a.Home])
		}
	}
	for _, a := range loaded {
		member, ok := in.View.Member(a.Home)
		if !ok || !member.State.Alive() {
			continue
		}
		use := inUse(member.In(a.Label))
		to := in.best(pools[a.Label], a, func(p *place) bool {
			return p.room >= p.each && inUse(p.member)+terms.DeadBand <= use
		})
		key := from{a.Home, a.Queue}
		switch most := int(terms.QueuePercent / 100 * float64(count[key])); {
		case in.Optout != nil && in.Optout(a.Queue):
			note("queue %s has opted out", a.Queue)
		case to == nil:
			note("applications waiting in queue %s of %s%s stay: no member with that queue has free capacity and is used less by %.0f %%%s",
				a.Queue, a.Home, onLabel(a.Label), 100*terms.DeadBand, in.orExcluded(a.Queue))
		case budget <= 0:
			note("%d applications a minute are moved; the others move later", terms.PerMinute)
		case left[key] >= max(1, most):
			note("of the applications waiting in queue %s of %s, %.0f %% a minute are moved", a.Queue, a.Home, terms.QueuePercent)
		default:
			choose(a, to, fmt.Sprintf("%.0f %% of %s%s is in use and it waits there, %.0f %% of %s",
				100*use, a.Home, onLabel(a.Label), 100*inUse(to.member), to.member.ID))
		}
	}
	return chosen, notes
}

// orExcluded names the members in which the policy of a queue places no homes.
func (in *MoveInput) orExcluded(queue creel.QueuePath) string {
	var excluded []string
	if in.Excludes != nil && in.View != nil {
		for i := range in.View.Members {
			if id := in.View.Members[i].ID; in.Excludes(queue, id) {
				excluded = append(excluded, string(id))
			}
		}
	}
	if len(excluded) == 0 {
		return ""
	}
	return ", except " + strings.Join(excluded, ", ") + ", where its policy places no homes"
}

func onLabel(label string) string {
	if label == "" {
		return ""
	}
	return " on nodes of label " + label
}

func alive(view *subcluster.View, id creel.SubclusterID) bool {
	m, ok := view.Member(id)
	return ok && m.State.Alive()
}

// from is a queue of a member.
type from struct {
	member creel.SubclusterID
	queue  creel.QueuePath
}

// inUse returns the part of a member that is in use, for the type with the highest use.
func inUse(m *subcluster.Status) float64 {
	t, a := m.Load.Metrics.Total(), m.Load.Metrics.Available()
	return 1 - min(part(a.MemoryMB, t.MemoryMB), part(a.VCores, t.VCores))
}

func part(of, all int64) float64 {
	if all <= 0 {
		return 0
	}
	return max(0, float64(of)/float64(all))
}

// placesOf returns the members that take applications now and have nodes of a label.
func placesOf(in *MoveInput, label string) (out []place) {
	if in.View == nil {
		return nil
	}
	for i := range in.View.Members {
		m := &in.View.Members[i]
		if _, empty := in.Drained[m.ID]; empty || m.State != subcluster.StateActive || m.Load.Refusing != "" {
			continue
		}
		c := &m.Load.Metrics // the application counts cover all nodes
		on := m.In(label)
		if label != "" && (on.Load.Metrics.Total().IsZero() || len(on.Load.Queues) == 0) {
			continue
		}
		p := place{member: on, room: 1 - inUse(on), each: 0.01}
		if c.AppsRunning > 0 {
			p.each = min(1, inUse(on)/float64(c.AppsRunning))
		}
		p.each = max(p.each, 0.0001)
		p.room -= float64(c.AppsPending) * p.each
		out = append(out, p)
	}
	return out
}

func taken(places []place, to creel.SubclusterID) {
	for i := range places {
		if places[i].member.ID == to {
			places[i].room -= places[i].each
		}
	}
}

// best returns the place with the most free capacity that is not the home, has the queue and satisfies may.
func (in *MoveInput) best(places []place, a WaitingApplication, may func(*place) bool) (to *place) {
	for i := range places {
		p := &places[i]
		if p.member.ID == a.Home || len(p.member.Load.Queues) > 0 && p.member.Load.Find(a.Queue) == nil || !may(p) {
			continue
		}
		if in.Excludes != nil && in.Excludes(a.Queue, p.member.ID) {
			continue
		}
		if to == nil || p.room > to.room {
			to = p
		}
	}
	return to
}
