// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// homeRule chooses among the members that can take a submission.
type homeRule interface {
	name() string // as in documents; defined only here
	// given returns the document's weights, nil if there are none.
	given() Weights
	// with returns the rule with other weights, nil if the rule takes none.
	with(Weights) homeRule
	// choose returns one of the indices in d.in, which is not empty, and the reason. It returns -1 if the rule
	// excludes all members. It may exclude further members, set scores, and set the numbers behind the scores.
	choose(d *homeDecision, rnd *rand.Rand) (int, string)
}

// homeDecision is one choice in progress. Each submission examines every member, but a reason lists only a few. So
// this has only codes and scores, and tell composes texts for the listed members at the end.
type homeDecision struct {
	view  *subcluster.View
	sub   Submission
	tried []creel.SubclusterID
	in    []int // indices of the members that are not excluded, ascending

	// Parallel to view.Members:
	code     []Exclusion // "" for those in
	score    []float64
	standing []standing // of balancedHome
	facts    []facts
	known    *federationFacts // source of facts
	sent     []RecentLoad     // nil: not counted; see sentSince
	space    []RecentLoad     // buffer of sent

	// numbers writes the numbers behind a member's score; nil: there are none.
	numbers func(i int, n *Numbers)
}

// decisions pools finished decisions: with a thousand members a decision takes 60 kB. The resulting reason shares no
// memory with it.
var decisions = sync.Pool{New: func() any { return &homeDecision{} }}

func newHomeDecision(view *subcluster.View, s Submission, tried []creel.SubclusterID) *homeDecision {
	d := decisions.Get().(*homeDecision)
	d.view, d.sub, d.tried = view, s, tried
	d.known = factsOf(view, s.Queue, s.Label)
	d.facts = d.known.of
	d.in = append(d.in[:0], d.known.active...)
	d.code = append(d.code[:0], d.known.states...)
	d.score = cleared(d.score, len(d.facts))
	d.standing = cleared(d.standing, len(d.facts))
	return d
}

// over returns a finished decision to the pool.
func (d *homeDecision) over() {
	*d = homeDecision{in: d.in, code: d.code, score: d.score, standing: d.standing, space: d.space}
	decisions.Put(d)
}

// cleared returns a slice of n zero values. It reuses s if s is large enough.
func cleared[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

func (d *homeDecision) status(i int) *subcluster.Status { return &d.view.Members[i] }

// readmit restores all members: a submission must not be rejected here for a cause that excludes every member.
func (d *homeDecision) readmit() {
	clear(d.code)
	d.in = d.in[:0]
	for i := range d.code {
		d.in = append(d.in, i)
	}
}

// exclude removes the members for which why returns a code other than "".
func (d *homeDecision) exclude(why func(i int) Exclusion) {
	d.in = slices.DeleteFunc(d.in, func(i int) bool {
		code := why(i)
		if code != "" {
			d.code[i] = code
		}
		return code != ""
	})
}

// chooseHome filters the members, lets the rule choose, and fills the reason.
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
			Try:  "submit to another queue, or ask an administrator to change the policy",
		}
	}
	d := newHomeDecision(view, s, tried)
	defer d.over()
	if err := d.refused(); err != nil {
		reason.Because = "the federation lacks a label or resource type that it needs"
		d.readmit()
		d.tell(&reason, -1)
		return "", reason, err
	}
	d.filter()
	d.excludeEmpty(weights)
	chosen := -1
	switch {
	case len(d.in) == 0:
	case s.Reserved != "": // the member was chosen when the reservation was made
		chosen, reason.Because = d.in[0], "it holds the reservation"
	default:
		chosen, reason.Because = rule.choose(d, rnd)
		reason.Because = fallback + reason.Because
	}
	d.tell(&reason, chosen)
	if chosen < 0 {
		if reason.Because == "" {
			reason.Because = "no member can take it"
		}
		return "", reason, &creel.Error{
			Kind: creel.ErrNoSubcluster,
			What: fmt.Sprintf("no subcluster for queue %q", s.Queue),
			Why:  reason.Because + excludedText(reason.Candidates),
			Try:  "try again later, or see `creel subcluster list`",
		}
	}
	reason.Chosen = d.id(chosen)
	return reason.Chosen, reason, nil
}

// excludedText lists at most a few excluded members with their causes.
func excludedText(all []Candidate) string {
	const most = 8
	var parts []string
	for i := range all {
		if c := &all[i]; c.Excluded != "" && len(parts) < most {
			parts = append(parts, string(c.Member)+": "+c.Out())
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// filter excludes members that cannot be the home of this submission under any rule.
func (d *homeDecision) filter() {
	here, strict := d.sub.onPlaces()
	if len(d.tried) == 0 && d.sub.Reserved == "" && !strict && d.known.all(&d.sub.Size) {
		return
	}
	fits, may := d.fitsSomewhere(), d.mayNameSomewhere()
	d.exclude(func(i int) Exclusion {
		f := &d.facts[i]
		switch {
		case len(d.tried) > 0 && slices.Contains(d.tried, d.id(i)):
			return ExcludedTried
		case d.sub.Reserved != "" && d.id(i) != d.sub.Reserved:
			return ExcludedReservation
		}
		if code := d.holds(i); code != "" && fits {
			return code
		}
		switch {
		case may && f.barred:
			return ExcludedLabel
		case strict && !slices.Contains(here, d.id(i)):
			return ExcludedPlace
		case d.known.lacksQueue(f):
			return ExcludedQueue
		}
		return ""
	})
}

// onPlaces returns the members that have one of the submission's hosts, or one of its racks if no host is known.
// strict is true if the submission accepts no other place and at least one member is known to have one of its places.
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

// cannotHold returns the reason why no node of the member can ever run a container of that size and label, "" if a
// node may. Missing reports do not exclude a member. For lent see partitionCannotHold.
func cannotHold(m *subcluster.Status, size creel.Resource, label string, lent bool) (Exclusion, string) {
	if m.Load.Labels.Known {
		return partitionCannotHold(m, size, label, lent)
	}
	if total := m.Load.Metrics.Total(); !total.IsZero() && label == "" {
		if size.MemoryMB > total.MemoryMB || size.VCores > total.VCores {
			return ExcludedTooLarge, fmt.Sprintf("%v is more than its total, %v", size, total)
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

// missingType returns the first named resource type of size that the queue has neither as capacity nor free.
func missingType(size creel.Resource, q *subcluster.QueueLoad) string {
	for _, a := range size.Others {
		if a.Value > 0 && q.Capacity.Get(a.Name) == 0 && q.Free.Get(a.Name) == 0 {
			return a.Name
		}
	}
	return ""
}

// fitsSomewhere reports whether at least one member with nodes, in any state, could run the AM. If none could, size
// and label exclude no member. The home then rejects the application, or lets it wait for new nodes, by limits that
// the view does not contain.
func (d *homeDecision) fitsSomewhere() bool {
	for i := range d.facts {
		if d.status(i).State != subcluster.StateDeregistered && d.facts[i].nodes && d.holds(i) == "" {
			return true
		}
	}
	return d.view == nil
}

// mayNameSomewhere reports whether the queue may name the label in at least one member. If not, this rule excludes no
// member: placement rules may put the application into another queue.
func (d *homeDecision) mayNameSomewhere() bool {
	for i := range d.facts {
		if !d.facts[i].barred && d.holds(i) == "" {
			return true
		}
	}
	return false
}

// room returns a member's free, pending and total resources for a queue and label. If the member is in slow start by
// the plan of those nodes, only a part of its total counts, and free resources are reduced accordingly (counting).
func room(
	view *subcluster.View,
	m *subcluster.Status,
	load *subcluster.QueueLoad,
	label string,
) (free, pending, total creel.Resource, of string) {
	free, pending, total, of = allRoom(m, load, label)
	if counts := view.Plan.In(label).Counts(m.ID); counts < 1 {
		free = counting(view, m, label, free)
		total = total.Scale(int64(counts*1000), 1000)
	}
	return free, pending, total, of
}

// allRoom is room without a plan. The source is the partition of the label if the member publishes it. Otherwise it
// is the queue's metrics if the member reports them (load), and else the cluster's metrics.
func allRoom(
	m *subcluster.Status, load *subcluster.QueueLoad, label string,
) (free, pending, total creel.Resource, of string) {
	if p := m.Load.Labels.Find(label); p != nil {
		return p.Free(), p.Pending, p.Total, "label"
	}
	total = m.Load.Metrics.Total()
	if load == nil {
		return m.Load.Metrics.Available(), m.Load.Metrics.Pending(), total, "cluster"
	}
	if total.IsZero() {
		total = load.Capacity
	}
	return load.Free, load.Pending, total, "queue"
}

// counting returns the part of a member's free resources that counts. It is reduced if the member is in slow start by
// the plan of the nodes with the label.
func counting(view *subcluster.View, m *subcluster.Status, label string, free creel.Resource) creel.Resource {
	counts := view.Plan.In(label).Counts(m.ID)
	if counts >= 1 {
		return free
	}
	total, used := m.Load.Metrics.Total(), m.Load.Metrics.Allocated()
	if p := m.Load.Labels.Find(label); p != nil {
		total, used = p.Total, p.Used
	}
	left := total.Scale(int64(counts*1000), 1000).Sub(used)
	free.MemoryMB = min(free.MemoryMB, max(0, left.MemoryMB)) // members report no totals of further types
	free.VCores = min(free.VCores, max(0, left.VCores))
	return free
}

// sentSince sets d.sent to the load sent to each member since its last heartbeat. Applications of unknown size count
// like the member's average application, and at least with their AM.
func (d *homeDecision) sentSince() {
	if d.sub.Assumed == nil {
		return
	}
	if cap(d.space) < len(d.code) {
		d.space = make([]RecentLoad, len(d.code))
	}
	d.sent = d.space[:len(d.code)]
	d.sub.Assumed(d.view, d.sent)
	for _, i := range d.in {
		s := &d.sent[i]
		if s.Apps > 0 && s.Size.MemoryMB == 0 && s.Size.IsZero() {
			m, each := d.status(i), d.sub.Size
			if running := m.Load.Metrics.AppsRunning; running > 0 {
				each = each.Max(m.Load.Metrics.Allocated().Scale(1, running))
			}
			s.Size = each.Scale(s.Apps, 1)
		}
	}
}

// sentTo returns the load sent to a member, zero if it was not counted.
func (d *homeDecision) sentTo(i int) RecentLoad {
	if d.sent == nil {
		return RecentLoad{}
	}
	return d.sent[i]
}

// Weights are the weights of members, as in a document. Nil means the same weight for every member.
type Weights map[creel.SubclusterID]float64

// of returns the weight of a member: 1 without weights, 0 for a member that they do not name.
func (w Weights) of(id creel.SubclusterID) float64 {
	if w == nil {
		return 1
	}
	return w[id]
}

// excludeWeightless excludes members of weight 0.
func (d *homeDecision) excludeWeightless(w Weights) {
	if w == nil {
		return
	}
	d.exclude(func(i int) Exclusion {
		if w.of(d.id(i)) <= 0 {
			return ExcludedWeight
		}
		return ""
	})
}

// excludeEmpty excludes members without nodes if a member with nodes is left that the weights do not exclude.
func (d *homeDecision) excludeEmpty(w Weights) {
	if !d.known.empties {
		return
	}
	if slices.ContainsFunc(d.in, func(i int) bool { return d.facts[i].nodes && w.of(d.id(i)) > 0 }) {
		d.exclude(func(i int) Exclusion {
			if d.facts[i].empty {
				return ExcludedNodes
			}
			return ""
		})
	}
}

const noWeight = "every member with weight is excluded"
