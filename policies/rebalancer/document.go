// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// ResolveIn calls Resolve for each pool that has nodes in the view.
func (t *Tree) ResolveIn(view *subcluster.View, tolerance float64) (changed bool) {
	for _, label := range t.Pools() {
		if total := Total(view.In(label)); !total.IsZero() {
			changed = t.In(label).Resolve(total, tolerance) || changed
		}
	}
	return changed
}

// CheckIn calls Check for each pool of nodes. view may be nil.
func (t *Tree) CheckIn(view *subcluster.View) error {
	for _, label := range t.Pools() {
		if err := t.In(label).Check(Total(view.In(label))); err != nil && label != "" {
			return fmt.Errorf("on nodes of label %s: %w", label, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Resolve computes the amounts of percentages, for a federation of size total. If an amount would change by more than
// tolerance, relative to itself, it recomputes all amounts and returns true.
func (t *Tree) Resolve(total creel.Resource, tolerance float64) (changed bool) {
	of := func(percent float64) creel.Resource {
		return total.Scale(int64(math.Round(percent*1000)), 100_000)
	}
	far := func(was, is creel.Resource) bool {
		differs := func(a, b int64) bool { return math.Abs(float64(a-b)) > tolerance*float64(max(a, b)) }
		return was.IsZero() != is.IsZero() || differs(was.MemoryMB, is.MemoryMB) || differs(was.VCores, is.VCores)
	}
	for i := range t.Queues {
		q := &t.Queues[i]
		changed = changed || q.GuaranteePercent > 0 && far(q.Guarantee, of(q.GuaranteePercent)) ||
			q.MaximumPercent > 0 && far(q.Maximum, of(q.MaximumPercent)) ||
			q.UserLimitPercent > 0 && far(q.UserLimit, of(q.UserLimitPercent)) ||
			q.PreemptionPercent > 0 && far(q.Preemption, of(q.PreemptionPercent))
	}
	for i := range t.Queues {
		q := &t.Queues[i]
		if q.GuaranteePercent > 0 && changed {
			q.Guarantee = of(q.GuaranteePercent)
		}
		if q.MaximumPercent > 0 && changed {
			q.Maximum = of(q.MaximumPercent)
		}
		if q.UserLimitPercent > 0 && changed {
			q.UserLimit = of(q.UserLimitPercent)
		}
		if q.PreemptionPercent > 0 && changed {
			q.Preemption = of(q.PreemptionPercent)
		}
	}
	return changed
}

// Encode writes the document that ParseTree reads.
func (t *Tree) Encode() ([]byte, error) {
	write := func(r creel.Resource, percent float64) (json.RawMessage, error) {
		if r.IsZero() && percent == 0 {
			return nil, nil
		}
		m := map[string]any{}
		if percent > 0 {
			m["percent"] = percent
		}
		if r.MemoryMB < Unbounded && !r.IsZero() {
			m["memory"] = r.MemoryMB
		}
		if r.VCores < Unbounded && !r.IsZero() {
			m["vCores"] = r.VCores
		}
		for _, a := range r.Others {
			m[a.Name] = a.Value
		}
		return json.Marshal(m)
	}
	limits := func(q *Queue) (out limitsJSON, err error) {
		if q.Weight > 0 {
			out.Weight = &q.Weight
		}
		if out.Guarantee, err = write(q.Guarantee, q.GuaranteePercent); err != nil {
			return out, err
		}
		if out.Maximum, err = write(q.Maximum, q.MaximumPercent); err != nil {
			return out, err
		}
		if out.UserLimit, err = write(q.UserLimit, q.UserLimitPercent); err != nil {
			return out, err
		}
		if out.Preemption, err = write(q.Preemption, q.PreemptionPercent); err != nil {
			return out, err
		}
		if out.Preemption != nil {
			out.PreemptionSeconds = int64(q.PreemptionEvery / time.Second)
		}
		return out, nil
	}
	doc := treeJSON{Queues: []queueJSON{}}
	for i := range t.Queues {
		q := &t.Queues[i]
		out := queueJSON{Queue: string(q.Path), Optout: q.Optout}
		var err error
		if out.limitsJSON, err = limits(q); err != nil {
			return nil, err
		}
		if q.MostOpportunistic > 0 {
			out.MaximumOpportunistic = &q.MostOpportunistic
		}
		if q.UserLimitOpportunistic > 0 {
			out.UserLimitOpportunistic = &q.UserLimitOpportunistic
		}
		for label := range t.Labels {
			on := t.In(label).Find(q.Path)
			if on == nil {
				continue
			}
			if out.Labels == nil {
				out.Labels = map[string]limitsJSON{}
			}
			if out.Labels[label], err = limits(on); err != nil {
				return nil, err
			}
		}
		doc.Queues = append(doc.Queues, out)
	}
	return json.Marshal(doc)
}

// Check rejects a tree whose settings contradict each other. Siblings must not be guaranteed more than their parent,
// or than the total. A maximum must not exceed an ancestor's maximum, and neither may a guarantee. total is the
// federation's size, zero if it is unknown.
func (t *Tree) Check(total creel.Resource) error {
	refuse := func(why, try string, args ...any) error {
		return &creel.Error{
			Kind: creel.ErrInvalidRequest, What: "the federation's queue tree is invalid",
			Why: fmt.Sprintf(why, args...), Try: try,
		}
	}
	sums, percents := map[creel.QueuePath]creel.Resource{}, map[creel.QueuePath]float64{}
	for i := range t.Queues {
		q := &t.Queues[i]
		above := q.Path.Parent()
		sums[above] = sums[above].Add(q.Guarantee)
		percents[above] += q.GuaranteePercent
		if q.Bounded() && !q.Guarantee.Fits(q.Maximum) ||
			q.MaximumPercent > 0 && q.GuaranteePercent > q.MaximumPercent {
			return refuse("the maximum of %s is below its guarantee", "raise it, or lower the guarantee", q.Path)
		}
		for ; above != "" && above != creel.RootQueue; above = above.Parent() {
			p := t.Find(above)
			if p == nil {
				continue
			}
			if q.MaximumPercent > p.MaximumPercent && p.MaximumPercent > 0 ||
				q.Bounded() && p.Bounded() && !q.Maximum.Fits(p.Maximum) {
				return refuse(
					"the maximum of %s exceeds the maximum of %s",
					"lower it, or leave it out: the one above applies",
					q.Path,
					above,
				)
			}
			if p.Bounded() && !q.Guarantee.Fits(p.Maximum) {
				return refuse("%s is guaranteed %s, and the maximum of %s is %s", "lower the guarantee",
					q.Path, q.Guarantee, above, p.Maximum)
			}
		}
	}
	for i := range t.Queues {
		if above := t.Find(t.Queues[i].Path.Parent()); above != nil && above.UserLimited() {
			return refuse("%s has a user limit and child queues", "a user limit applies to a queue that runs "+
				"applications: set it on the child queues", above.Path)
		}
	}
	for i := range t.Queues { // in the order of the document, so that the error is deterministic
		above := t.Queues[i].Path.Parent()
		if percents[above] > 100+1e-9 {
			return refuse(
				"the queues below %s are guaranteed %.4g%% of the federation together",
				"lower some to 100%% in all",
				above,
				percents[above],
			)
		}
		switch p := t.Find(above); {
		case p != nil && !p.Guarantee.IsZero() && !sums[above].Fits(p.Guarantee):
			return refuse("the queues below %s are guaranteed %s together, and it is guaranteed %s",
				"raise its guarantee, or lower theirs", above, sums[above], p.Guarantee)
		case above == creel.RootQueue && !total.IsZero() && !sums[above].Fits(total.Add(creel.NewResource(1024, 1))):
			return refuse("the queues below root are guaranteed %s together, and the federation has %s",
				"lower some guarantees", sums[above], total)
		}
	}
	return nil
}

// Total returns the size of all members of a view, including lost ones, so that a percentage does not shrink with
// each pause.
func Total(view *subcluster.View) (total creel.Resource) {
	if view == nil {
		return total
	}
	for i := range view.Members {
		m := &view.Members[i]
		if m.State != subcluster.StateDeregistered && m.State != subcluster.StateLost {
			total = total.Add(m.Load.Metrics.Total())
		}
	}
	return total
}

// QueueState is the present state of one queue of the federation: the values of the document, the values of the
// members' files, and the differences.
type QueueState struct {
	Queue creel.QueuePath `json:"queue"`
	// Label is the label of the nodes that all numbers refer to, "" for nodes without one.
	Label string `json:"label,omitempty"`
	// From is the source of guarantee and maximum: "document" or "members".
	From      string  `json:"from"`
	Guarantee Amounts `json:"guarantee"`
	Percent   float64 `json:"percent"` // the guarantee, of the federation's dominant type
	Weight    float64 `json:"weight,omitempty"`
	Maximum   Amounts `json:"maximum,omitempty"` // omitted if there is none
	UserLimit Amounts `json:"user_limit,omitempty"`
	// MaximumOpportunistic is the most opportunistic containers in all members together; 0: none is set.
	MaximumOpportunistic int64 `json:"maximum_opportunistic,omitempty"`
	// UserLimitOpportunistic is the same for each user.
	UserLimitOpportunistic int64 `json:"user_limit_opportunistic,omitempty"`
	Optout                 bool  `json:"optout,omitempty"`
	// Preemption is the most that is taken back for the queue in each PreemptionSeconds.
	Preemption        Amounts `json:"preemption,omitempty"`
	PreemptionSeconds int64   `json:"preemption_seconds,omitempty"`
	// Files is the sum of the guarantees in the members' files; Members lists them by member.
	Files   Amounts                        `json:"files"`
	Members map[creel.SubclusterID]Amounts `json:"members"`
	// Planned is the guarantee by the plan in members that follow it, in place of Members.
	Planned        map[creel.SubclusterID]Amounts  `json:"planned,omitempty"`
	Drift          []string                        `json:"drift,omitempty"`
	Held           []string                        `json:"held,omitempty"` // limits without a lease, or not in force
	QueueUse                                       // in all members that are not lost or deregistered
	MaximumPercent float64                         `json:"maximum_percent,omitempty"`
	Use            map[creel.SubclusterID]QueueUse `json:"use"` // the same by member, in percent of it
}

// QueueUse is a queue's used and pending resources; percent are of the dominant type.
type QueueUse struct {
	Used           Amounts `json:"used"`
	UsedPercent    float64 `json:"used_percent"`
	PendingPercent float64 `json:"pending_percent"`
	Running        int64   `json:"running"` // applications whose home is there
	Waiting        int64   `json:"waiting"`
	// OldestWait is the age of the oldest wait in seconds; omitted if it is unknown.
	OldestWait float64 `json:"oldest_wait_s,omitempty"`
	// Opportunistic is the use of opportunistic containers, which is not part of Used.
	Opportunistic        Amounts `json:"opportunistic,omitempty"`
	OpportunisticPercent float64 `json:"opportunistic_percent,omitempty"`
	// OpportunisticMost is the maximum of opportunistic containers that a member sets; nil: none.
	OpportunisticMost *int `json:"opportunistic_most,omitempty"`
}

// useOf describes a queue's load as parts of the total.
func useOf(load *subcluster.QueueLoad, total creel.Resource) QueueUse {
	waiting, running := load.UAMs.TakenFrom(load.AppsPending, load.AppsRunning)
	use := QueueUse{
		Used: amountsOf(load.Used), UsedPercent: 100 * Share(load.Used, total),
		PendingPercent: 100 * Share(load.Pending, total), Running: running, Waiting: waiting,
		OpportunisticMost: load.MostOpportunistic,
	}
	if !load.Opportunistic.IsZero() {
		use.Opportunistic = amountsOf(load.Opportunistic)
		use.OpportunisticPercent = 100 * Share(load.Opportunistic, total)
	}
	return use
}

// Amounts is a resource in the form of documents: memory in MB, vCores, and further types by name. Unbounded types
// are left out.
type Amounts map[string]int64

func amountsOf(r creel.Resource) Amounts {
	a := Amounts{}
	if r.MemoryMB < Unbounded {
		a["memory"] = r.MemoryMB
	}
	if r.VCores < Unbounded {
		a["vCores"] = r.VCores
	}
	for _, o := range r.Others {
		a[o.Name] = o.Value
	}
	return a
}

// plan records the plan's guarantee of the queue in a member.
func (s *QueueState) plan(id creel.SubclusterID, r creel.Resource) {
	if s.Planned == nil {
		s.Planned = map[creel.SubclusterID]Amounts{}
	}
	s.Planned[id] = amountsOf(r)
}

// lacking names the members without such a queue, "" if all have it.
func lacking(reporting []creel.SubclusterID, have map[creel.SubclusterID]Amounts) string {
	const named = 5
	var without []string
	for _, id := range reporting {
		if _, ok := have[id]; !ok {
			without = append(without, string(id))
		}
	}
	more := ""
	if n := len(without) - named; n > 0 {
		without, more = without[:named], fmt.Sprintf(" and %d more", n)
	}
	if len(without) == 0 {
		return ""
	}
	return "members without such a queue: " + strings.Join(without, ", ") + more
}

// Compare lists the queues of the document and of the members, sorted by label and path. Nodes without a label come
// first.
func Compare(view *subcluster.View, t *Tree) []QueueState {
	out := []QueueState{}
	for _, label := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(t.Pools(), view.Labels())))) {
		for _, s := range compare(view.In(label), t.In(label)) {
			s.Label = label
			out = append(out, s)
		}
	}
	return out
}

// compare is Compare for one pool of nodes.
func compare(view *subcluster.View, t *Tree) []QueueState {
	r := Read(view, t)
	paths := slices.Concat(r.Above, r.Queues)
	for i := range t.Queues {
		paths = append(paths, t.Queues[i].Path)
	}
	slices.Sort(paths)
	total, reporting := Total(view), []creel.SubclusterID(nil)
	for i := range view.Members {
		if m := &view.Members[i]; len(m.Load.Queues) > 0 && m.State != subcluster.StateDeregistered {
			reporting = append(reporting, m.ID)
		}
	}
	out := []QueueState{}
	for _, path := range slices.Compact(paths) {
		s := QueueState{
			Queue: path, From: "members", Members: map[creel.SubclusterID]Amounts{},
			Use: map[creel.SubclusterID]QueueUse{},
		}
		var files creel.Resource
		var all subcluster.QueueLoad
		for i := range view.Members {
			m := &view.Members[i]
			if load := m.Load.Find(path); load != nil && m.State != subcluster.StateDeregistered {
				s.Members[m.ID] = amountsOf(load.Capacity)
				files = files.Add(load.Capacity)
				if load.Planned != nil {
					s.plan(m.ID, *load.Planned)
				}
				if m.State == subcluster.StateLost {
					continue // its last metrics are out of date
				}
				s.Use[m.ID] = useOf(load, m.Load.Metrics.Total())
				all.Used, all.Pending = all.Used.Add(load.Used), all.Pending.Add(load.Pending)
				all.Opportunistic = all.Opportunistic.Add(load.Opportunistic)
				waiting, running := load.UAMs.TakenFrom(load.AppsPending, load.AppsRunning)
				all.AppsPending, all.AppsRunning = all.AppsPending+waiting, all.AppsRunning+running
			}
		}
		s.QueueUse = useOf(&all, total)
		guarantee := files
		if q := t.Find(path); q != nil {
			s.From, s.Weight, s.Optout = "document", q.Weight, q.Optout
			s.MaximumOpportunistic, s.UserLimitOpportunistic = q.MostOpportunistic, q.UserLimitOpportunistic
			if !q.Guarantee.IsZero() {
				guarantee = q.Guarantee
			}
			if q.Bounded() {
				s.Maximum, s.MaximumPercent = amountsOf(q.Maximum), 100*Share(q.Maximum.Min(total), total)
			}
			if q.UserLimited() {
				s.UserLimit = amountsOf(q.UserLimit)
				if _, parent := slices.BinarySearch(r.Above, path); parent {
					s.Drift = append(s.Drift, "its user limit has no effect: members have queues below it")
				}
			}
			if q.PreemptionBounded() {
				s.Preemption, s.PreemptionSeconds = amountsOf(q.Preemption), int64(q.PreemptionEvery/time.Second)
			}
			if text := lacking(reporting, s.Members); text != "" {
				s.Drift = append(s.Drift, text)
			}
			if len(s.Members) > 0 && drifts(files, guarantee, total) {
				s.Drift = append(s.Drift, fmt.Sprintf("members' files guarantee %.1f%% of the federation, the document %.1f%%",
					100*Share(files, total), 100*Share(guarantee, total)))
			}
		}
		s.Guarantee, s.Files, s.Percent = amountsOf(guarantee), amountsOf(files), 100*Share(guarantee, total)
		out = append(out, s)
	}
	return out
}
