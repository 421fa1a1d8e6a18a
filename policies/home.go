// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// homeRule is one way to choose among the members that can take a submission.
type homeRule interface {
	name() string // as documents write it; nowhere else does a list of names stand
	// given returns the document's weights; nil when there are none.
	given() Weights
	// with returns the rule with other weights; nil when it takes none.
	with(Weights) homeRule
	// choose returns an index into d.all out of d.in, which has at least one,
	// or -1 when the rule itself leaves nobody; and why. It may exclude further
	// members and set scores.
	choose(d *homeDecision, rnd *rand.Rand) (int, string)
}

// homeDecision is one choice while it is made.
type homeDecision struct {
	view *subcluster.View
	sub  Submission
	all  []Candidate // parallel to view.Members
	in   []int       // those not excluded, ascending
}

func (d *homeDecision) status(i int) *subcluster.Status { return &d.view.Members[i] }

// exclude takes members out; why returns "" for those that stay.
func (d *homeDecision) exclude(why func(i int) (Exclusion, string)) {
	d.in = slices.DeleteFunc(d.in, func(i int) bool {
		d.all[i].Code, d.all[i].Excluded = why(i)
		return d.all[i].Code != ""
	})
}

// chooseHome filters, lets the rule choose, and tells why.
func chooseHome(
	p Policy,
	view *subcluster.View,
	s Submission,
	tried []creel.SubclusterID,
	rnd *rand.Rand,
) (creel.SubclusterID, Reason, error) {
	rule := p.homeRule()
	reason := Reason{Policy: rule.name(), Version: p.version, PolicyOf: p.of}
	weights, fallback := weightsInForce(rule.given(), view)
	if fallback != "" {
		rule = rule.with(weights)
	}
	if _, no := rule.(rejectHome); no {
		reason.Because = "the policy of the queue rejects every submission"
		return "", reason, &creel.Error{
			Kind: creel.ErrNotPermitted,
			What: fmt.Sprintf("submission to queue %q rejected", s.Queue),
			Why:  reason.Because,
			Try:  "submit to another queue, or have the policy changed",
		}
	}
	d := &homeDecision{view: view, sub: s}
	if view != nil {
		d.all, d.in = make([]Candidate, len(view.Members)), make([]int, 0, len(view.Members))
		for i := range view.Members {
			d.all[i].Member = view.Members[i].ID
			d.in = append(d.in, i)
		}
	}
	if err := d.refused(); err != nil {
		reason.Because, reason.Candidates = "the federation does not have what it needs", d.all
		return "", reason, err
	}
	filterHomes(d, tried)
	chosen := -1
	if len(d.in) > 0 {
		chosen, reason.Because = rule.choose(d, rnd)
		reason.Because = fallback + reason.Because
	}
	reason.Candidates = d.all
	if chosen < 0 {
		if reason.Because == "" {
			reason.Because = "no member can take it"
		}
		return "", reason, &creel.Error{
			Kind: creel.ErrNoSubcluster,
			What: fmt.Sprintf("no subcluster for queue %q", s.Queue),
			Why:  reason.Because + excludedText(d.all),
			Try:  "try again later, or see `creel subcluster list`",
		}
	}
	reason.Chosen = d.all[chosen].Member
	return reason.Chosen, reason, nil
}

// excludedText lists who was excluded and why, at most a few.
func excludedText(all []Candidate) string {
	const most = 8
	var parts []string
	for _, c := range all {
		if c.Excluded != "" && len(parts) < most {
			parts = append(parts, string(c.Member)+": "+c.Excluded)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// filterHomes excludes who cannot be the home of this submission, whatever the
// rule.
func filterHomes(d *homeDecision, tried []creel.SubclusterID) {
	known, fits, may := queueKnownSomewhere(d), fitsSomewhere(d), d.mayNameSomewhere()
	here, strict := d.sub.onPlaces()
	d.exclude(func(i int) (Exclusion, string) {
		m := d.status(i)
		switch {
		case m.State != subcluster.StateActive:
			return Exclusion(m.State.String()), "it is " + m.State.String() + ": " + m.Reason
		case slices.Contains(tried, m.ID):
			return ExcludedTried, ExcludedTried.Text()
		case d.sub.Reserved != "" && m.ID != d.sub.Reserved:
			return ExcludedReservation, "the reservation is held by " + string(d.sub.Reserved)
		}
		if code, why := cannotHold(m, d.sub.Size, d.label(i), false); code != "" && fits {
			return code, why
		}
		if why := mayName(m, d.sub.Queue, d.label(i)); why != "" && may {
			return ExcludedLabel, why
		}
		if strict && !slices.Contains(here, m.ID) {
			return ExcludedPlace, fmt.Sprintf("the AM may run on %s alone, and it is not there", quoted(d.sub.Places))
		}
		if known && !hasQueue(m, d.sub.Queue) {
			return ExcludedQueue, fmt.Sprintf("it has no queue %q", d.sub.Queue)
		}
		return "", ""
	})
}

// onPlaces returns the members that have one of the submission's hosts, or of its
// racks if no host is known, if nothing else will do and somebody is known to have
// one.
func (s *Submission) onPlaces() (here []creel.SubclusterID, strict bool) {
	if !s.Strict || s.Where == nil {
		return nil, false
	}
	var racks []creel.SubclusterID
	for _, p := range s.Places {
		if isRack(p) {
			racks = append(racks, s.Where(p)...)
		} else {
			here = append(here, s.Where(p)...)
		}
	}
	if len(here) == 0 {
		here = racks
	}
	return here, len(here) > 0
}

func quoted(names []string) string {
	const most = 3
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%q and %d more", names[:most], more)
	}
	return fmt.Sprintf("%q", names)
}

// cannotHold says why no node of the member could ever run a container of that
// size and label, "" if it may. A member that reports too little is believed
// to be able. lent see partitionCannotHold.
func cannotHold(m *subcluster.Status, size creel.Resource, label string, lent bool) (Exclusion, string) {
	if m.Load.Labels.Known {
		return partitionCannotHold(m, size, label, lent)
	}
	if total := m.Load.Metrics.Total(); !total.IsZero() && label == "" {
		if size.MemoryMB > total.MemoryMB || size.VCores > total.VCores {
			return ExcludedTooLarge, fmt.Sprintf("%v is more than all it has, %v", size, total)
		}
	}
	if len(m.Load.Queues) == 0 {
		return "", ""
	}
	labelled := false
	for i := range m.Load.Queues {
		q := &m.Load.Queues[i]
		if q.Label != label {
			continue
		}
		labelled = true
		if missing := missingType(size, q); missing == "" {
			return "", ""
		}
	}
	switch {
	case !labelled && label != "":
		return ExcludedLabel, fmt.Sprintf("it has no node label %q", label)
	case !labelled:
		return "", ""
	}
	for _, a := range size.Others {
		return ExcludedResource, "it has no " + a.Name
	}
	return "", ""
}

// missingType is the first named resource type that the queue never has.
func missingType(size creel.Resource, q *subcluster.QueueLoad) string {
	for _, a := range size.Others {
		if a.Value > 0 && q.Capacity.Get(a.Name) == 0 && q.Free.Get(a.Name) == 0 {
			return a.Name
		}
	}
	return ""
}

// fitsSomewhere keeps a size or label that no member with nodes has, whatever its state,
// from excluding everybody: whether such an application is refused for good, or waits
// for nodes to come, is the home's to say, whose limits the view does not have.
func fitsSomewhere(d *homeDecision) bool {
	if d.view == nil {
		return true
	}
	for i := range d.view.Members {
		m := &d.view.Members[i]
		if m.State == subcluster.StateDeregistered || !hasNodes(m) {
			continue
		}
		if code, _ := cannotHold(m, d.sub.Size, d.label(i), false); code == "" {
			return true
		}
	}
	return false
}

// mayNameSomewhere keeps a label that the queue may name nowhere from excluding
// everybody: placement rules may give the application another queue.
func (d *homeDecision) mayNameSomewhere() bool {
	return slices.ContainsFunc(d.in, func(i int) bool {
		code, _ := cannotHold(d.status(i), d.sub.Size, d.label(i), false)
		return code == "" && mayName(d.status(i), d.sub.Queue, d.label(i)) == ""
	})
}

// queueKnownSomewhere keeps a queue that only placement rules know from
// excluding everybody.
func queueKnownSomewhere(d *homeDecision) bool {
	return slices.ContainsFunc(d.in, func(i int) bool {
		m := d.status(i)
		return len(m.Load.Queues) > 0 && hasQueue(m, d.sub.Queue)
	})
}

func hasQueue(m *subcluster.Status, q creel.QueuePath) bool {
	if q == "" || len(m.Load.Queues) == 0 {
		return true
	}
	return queueLoad(m, q, "") != nil
}

// queueLoad finds a queue's figures by its full path or, as clients may send
// it, by its leaf alone.
func queueLoad(m *subcluster.Status, q creel.QueuePath, label string) *subcluster.QueueLoad {
	if label == "" {
		if l := m.Load.Find(q); l != nil {
			return l
		}
	}
	for i := range m.Load.Queues {
		l := &m.Load.Queues[i]
		if l.Label == label && (l.Queue == q || !q.IsFull() && l.Queue.Leaf() == string(q)) {
			return l
		}
	}
	return nil
}

// room is what a member has for a queue and label: free now, waited for, and
// the size of the whole. Of the partition of a label where the member publishes it, else
// from the queue's own figures where the member reports them, else from the cluster's. A member that starts slowly by the plan has a part
// of its size, and of that free what nobody uses.
func room(
	view *subcluster.View,
	m *subcluster.Status,
	q creel.QueuePath,
	label string,
) (free, pending, total creel.Resource, of string) {
	if p := m.Load.Labels.Find(label); label != "" && p != nil {
		return p.Free(), p.Pending, p.Total, "label"
	}
	total = m.Load.Metrics.Total()
	free, pending, of = m.Load.Metrics.Available(), m.Load.Metrics.Pending(), "cluster"
	if l := queueLoad(m, q, label); l != nil {
		if total.IsZero() {
			total = l.Capacity
		}
		free, pending, of = l.Free, l.Pending, "queue"
	}
	if counts := view.Plan.Counts(m.ID); label == "" && counts < 1 {
		free = counting(view, m, free)
		total = total.Scale(int64(counts*1000), 1000)
	}
	return free, pending, total, of
}

// counting is what of the free counts of a member that may start slowly by the plan.
func counting(view *subcluster.View, m *subcluster.Status, free creel.Resource) creel.Resource {
	counts := view.Plan.Counts(m.ID)
	if counts >= 1 {
		return free
	}
	left := m.Load.Metrics.Total().Scale(int64(counts*1000), 1000).Sub(m.Load.Metrics.Allocated())
	free.MemoryMB = min(free.MemoryMB, max(0, left.MemoryMB)) // further types: the members do not sum them up
	free.VCores = min(free.VCores, max(0, left.VCores))
	return free
}

// assumed is what was sent there since its last heartbeat. Applications of unknown
// size count as the member's average one, and at least as their AM.
func (d *homeDecision) assumed(i int) (int64, creel.Resource) {
	if d.sub.Assumed == nil {
		return 0, creel.Resource{}
	}
	m := d.status(i)
	apps, size := d.sub.Assumed(m.ID)
	if apps > 0 && size.IsZero() {
		each := d.sub.Size
		if running := m.Load.Metrics.AppsRunning; running > 0 {
			each = each.Max(m.Load.Metrics.Allocated().Scale(1, running))
		}
		size = each.Scale(apps, 1)
	}
	return apps, size
}

// Weights of members, as in a document. Nil gives every member the same.
type Weights map[creel.SubclusterID]float64

// of is the weight of a member: 1 without weights, 0 for one not named.
func (w Weights) of(id creel.SubclusterID) float64 {
	if w == nil {
		return 1
	}
	return w[id]
}

// excludeWeightless takes out members of weight 0.
func (d *homeDecision) excludeWeightless(w Weights) {
	d.exclude(func(i int) (Exclusion, string) {
		if w.of(d.all[i].Member) <= 0 {
			return ExcludedWeight, ExcludedWeight.Text()
		}
		return "", ""
	})
}

const noWeight = "every member with weight is out"
