// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/subcluster"
)

// Look is the input of one check.
type Look struct {
	View  *subcluster.View
	Tree  *rebalancer.Tree
	Plan  *subcluster.Plan // the last published plan, nil for none
	At    time.Time        // store's clock
	Caps  []*escrow.Record
	Users []*escrow.UsersRecord
	// InForce: routers, proxies and members follow the plan.
	InForce bool
}

// Reports checks the invariants on members' reports and the store's documents, one check after another. It is not
// safe for concurrent use. The unexported fields need no initialisation.
type Reports struct {
	// Within is the longest time that a temporary state may last: see the package.
	Within time.Duration
	Step   float64       // the most by which a weight changes in one plan
	Band   float64       // weights that differ by less stay
	Linger time.Duration // of escrow
	Tally  Tally

	pools map[string]*Reports // of nodes with a label, by label: each is checked as a separate federation
	of    *Reports            // owner of the pool, and of its Tally
	label string

	now    *Look
	exact  error // the first breach of an exact invariant in this check
	since  map[string]time.Time
	caps   map[string]*escrow.Record // at the previous check, by queue, or queue and user
	calm   *subcluster.Plan          // the first of the plans made from the same input
	plans  int                       // since
	seen   map[creel.SubclusterID]*lastReports
	over   map[creel.QueuePath]*Excess
	sums   []sum // by leaf queue, of this check
	active []*subcluster.Status
}

// lastReports are a member's last two reports of bounded queues.
type lastReports struct{ before, last report }

type report struct {
	at   time.Time
	used map[creel.QueuePath]creel.Resource
}

// sum is the total of a leaf queue in all active members.
type sum struct {
	queue                     creel.QueuePath
	guaranteed, used, pending creel.Resource
	rows                      []row
}

type row struct {
	in   *subcluster.Status
	load *subcluster.QueueLoad
}

// idlePart is the part of a member that must be idle for waiting asks to be a breach. lackPart is the part of an
// obligation that may be missing, since containers are not divisible.
const idlePart, lackPart = 0.1, 0.05

// Look makes one check, for nodes without a label and then for each label.
func (r *Reports) Look(l *Look) {
	r.look(l.in(""))
	for _, label := range l.View.Labels() {
		r.pool(label)
	}
	for _, label := range slices.Sorted(maps.Keys(r.pools)) {
		r.pools[label].look(l.in(label))
	}
}

// in returns the part of the input that covers the nodes of a label.
func (l *Look) in(label string) *Look {
	out := *l
	out.View, out.Tree, out.Plan = l.View.In(label), l.Tree.In(label), l.Plan.In(label)
	out.Caps, out.Users = nil, nil
	// Opportunistic containers are counted over the nodes of all labels. Their records are checked once, beside those
	// of nodes without a label.
	of := func(record string) bool { return record == label || label == "" && record == escrow.Opportunistic }
	for _, c := range l.Caps {
		if of(c.Label) {
			out.Caps = append(out.Caps, c)
		}
	}
	for _, u := range l.Users {
		if of(u.Each.Label) {
			out.Users = append(out.Users, u)
		}
	}
	return &out
}

// pool returns the Reports for the nodes of a label.
func (r *Reports) pool(label string) *Reports {
	p := r.pools[label]
	if p == nil {
		p = &Reports{Within: r.Within, Step: r.Step, Band: r.Band, Linger: r.Linger, of: r, label: label}
		if r.pools == nil {
			r.pools = map[string]*Reports{}
		}
		r.pools[label] = p
	}
	return p
}

// check counts a check of one invariant.
func (r *Reports) check(i Invariant, of string, breach error) {
	if r.of != nil {
		r.of.check(i, of+" on nodes of label "+r.label, breach)
		return
	}
	r.Tally.Check(i, of, breach)
}

func (r *Reports) look(l *Look) {
	if r.since == nil {
		r.since, r.caps = map[string]time.Time{}, map[string]*escrow.Record{}
		r.seen, r.over = map[creel.SubclusterID]*lastReports{}, map[creel.QueuePath]*Excess{}
	}
	r.now, r.exact = l, nil
	r.active = r.active[:0]
	for i := range l.View.Members {
		if m := &l.View.Members[i]; m.State == subcluster.StateActive && len(m.Load.Queues) > 0 {
			r.active = append(r.active, m)
		}
	}
	r.records()
	r.maxima()
	for _, m := range r.active {
		if !m.ByAgent() { // an agent reads Hadoop's metrics in several calls
			r.report(m)
		}
	}
	r.sum()
	total := rebalancer.Total(l.View)
	for i := range r.sums {
		r.guarantee(&r.sums[i], total)
		r.conserves(&r.sums[i])
	}
	r.judgePlan()
	if !l.InForce {
		r.check(RebalancerLoss, "", r.exact)
	}
}

// must counts a check of a rule that also applies without a plan.
func (r *Reports) must(i Invariant, of string, breach error) {
	if breach != nil && r.exact == nil {
		r.exact = fmt.Errorf("no plan is in force, and %s of %s: %w", i, of, breach)
	}
	r.check(i, of, breach)
}

// lasts counts a check of a state that may be temporary: it is a breach once it has lasted for Within.
func (r *Reports) lasts(i Invariant, of string, breach error) {
	key := string(i) + " " + of
	if breach == nil {
		delete(r.since, key)
		r.check(i, of, nil)
		return
	}
	began, known := r.since[key]
	if !known {
		began, r.since[key] = r.now.At, r.now.At
	}
	if lasted := r.now.At.Sub(began); lasted >= r.Within {
		breach = fmt.Errorf("%w, for %s", breach, lasted.Round(time.Second))
	} else {
		breach = nil
	}
	r.check(i, of, breach)
}

// records checks the records of escrow.
func (r *Reports) records() {
	next := map[string]*escrow.Record{}
	judge := func(i Invariant, key string, now *escrow.Record, leaves bool) {
		before := r.caps[key]
		r.must(i, key, CapsHeld(before, now))
		r.check(MemberLoss, key, LeaseKept(before, now, r.now.At, r.Linger, leaves))
		next[key] = now
	}
	for _, c := range r.now.Caps {
		judge(GlobalMaximum, subject(c), c, false)
	}
	for _, u := range r.now.Users {
		for user, c := range u.All {
			judge(UserLimits, subject(c)+", user "+user, c, user != escrow.EachUser)
		}
	}
	r.caps = next
}

// subject names the queue of a record of escrow.
func subject(c *escrow.Record) string {
	if c.Label == escrow.Opportunistic {
		return string(c.Queue) + ", opportunistic containers"
	}
	return string(c.Queue)
}

// maxima checks the reported use of queues with a maximum. Members report at different moments. So the lesser of each
// member's last two reports counts, and the sum must exceed the maximum in two checks. Parts in the record may sum to
// more than the maximum, if it was lowered or a member's own cannot be changed. They also count while their member is
// lost, and bound the use that it brings back. CapsHeld checks that they do not rise.
func (r *Reports) maxima() {
	bounded := map[creel.QueuePath]creel.Resource{}
	for i := range r.now.Tree.Queues {
		if q := &r.now.Tree.Queues[i]; q.Bounded() {
			bounded[q.Path] = q.Maximum
		}
	}
	begun, ended := time.Time{}, r.now.At
	alive := map[creel.SubclusterID]bool{}
	for _, m := range r.active {
		alive[m.ID] = true
		s, at := r.seen[m.ID], r.now.View.At.Add(-m.Age)
		if s == nil {
			s = &lastReports{}
			r.seen[m.ID] = s
		}
		if at.After(s.last.at) {
			s.before, s.last = s.last, report{at, map[creel.QueuePath]creel.Resource{}}
			for path := range bounded {
				if load := m.Load.Find(path); load != nil {
					s.last.used[path] = load.Used
				}
			}
		}
		if s.before.at.After(begun) {
			begun = s.before.at
		}
		if s.last.at.Before(ended) {
			ended = s.last.at
		}
	}
	maps.DeleteFunc(r.seen, func(id creel.SubclusterID, s *lastReports) bool { return !alive[id] })
	maps.DeleteFunc(r.over, func(path creel.QueuePath, _ *Excess) bool { return bounded[path].IsZero() })
	if begun.After(ended) || len(alive) == 0 {
		return // the reports have no common moment
	}
	parts := map[creel.QueuePath]creel.Resource{}
	for _, c := range r.now.Caps {
		if c.Label == escrow.Opportunistic {
			continue // reports do not contain the number of containers
		}
		for i := range c.Holders {
			parts[c.Queue] = parts[c.Queue].Add(c.Holders[i].Cap).Add(c.Holders[i].Over)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(bounded)) {
		var used creel.Resource
		for _, s := range r.seen {
			used = used.Add(s.before.used[path].Min(s.last.used[path]))
		}
		o := r.over[path]
		if o == nil {
			o = &Excess{}
			r.over[path] = o
		}
		key := "use of " + string(path)
		breach := Within(used, o.Limit(used, bounded[path]).Max(parts[path]))
		if breach == nil {
			delete(r.since, key)
		} else if _, again := r.since[key]; !again {
			r.since[key], breach = r.now.At, nil
		}
		r.must(GlobalMaximum, string(path), breach)
	}
}

// report checks the exact rules within one member's report.
func (r *Reports) report(m *subcluster.Status) {
	sums, parents := map[creel.QueuePath]creel.Resource{}, map[creel.QueuePath]bool{}
	for i := range m.Load.Queues {
		if q := &m.Load.Queues[i]; q.Label == "" && q.Queue != creel.RootQueue {
			above := q.Queue.Parent()
			parents[above], sums[above] = true, sums[above].Add(q.Used)
		}
	}
	free := m.Load.Metrics.Available()
	for i := range m.Load.Queues {
		q := &m.Load.Queues[i]
		if q.Label != "" {
			continue
		}
		of := fmt.Sprintf("%s in %s", q.Queue, m.ID)
		if parents[q.Queue] {
			r.must(ParentConsistency, of, Children(q.Used, sums[q.Queue]))
		}
		breach := Room(memoryAndCores(q.Free), free)
		if above := m.Load.Find(q.Queue.Parent()); breach == nil && above != nil && q.Queue != creel.RootQueue {
			breach = Room(q.Free, above.Free)
		}
		r.must(TrueHeadroom, of, breach)
	}
}

// memoryAndCores returns the types that a member's metrics have.
func memoryAndCores(r creel.Resource) creel.Resource { return creel.NewResource(r.MemoryMB, r.VCores) }

// sum sums each leaf queue over the active members.
func (r *Reports) sum() {
	parents, at := map[creel.QueuePath]bool{creel.RootQueue: true}, map[creel.QueuePath]int{}
	for _, m := range r.active {
		for i := range m.Load.Queues {
			if q := &m.Load.Queues[i]; q.Queue != creel.RootQueue {
				parents[q.Queue.Parent()] = true
			}
		}
	}
	r.sums = r.sums[:0]
	for _, m := range r.active {
		for i := range m.Load.Queues {
			q := &m.Load.Queues[i]
			if q.Label != "" || parents[q.Queue] {
				continue
			}
			n, known := at[q.Queue]
			if !known {
				n = len(r.sums)
				at[q.Queue] = n
				r.sums = append(r.sums, sum{queue: q.Queue})
			}
			s := &r.sums[n]
			s.guaranteed, s.used = s.guaranteed.Add(q.Capacity), s.used.Add(q.Used)
			s.rows = append(s.rows, row{m, q})
		}
	}
	for i := range r.sums {
		s := &r.sums[i]
		loads := make([]rebalancer.MemberLoad, len(s.rows))
		for j, w := range s.rows {
			loads[j] = rebalancer.MemberLoad{QueueLoad: w.load, Size: w.in.Load.Metrics.Total()}
		}
		s.pending = rebalancer.DemandOf(r.now.Tree.Find(s.queue), loads).All
	}
}

// guarantee checks that a waiting queue has its guarantee, by the tree or the members' files.
func (r *Reports) guarantee(s *sum, total creel.Resource) {
	guaranteed := s.guaranteed
	if q := r.now.Tree.Find(s.queue); q != nil {
		if !q.Guarantee.IsZero() {
			guaranteed = q.Guarantee
		}
		if q.Bounded() {
			guaranteed = guaranteed.Min(q.Maximum)
		}
	}
	owed, lacks := Owed(guaranteed, s.used.Add(s.pending), s.used, total)
	var breach error
	if lacks > lackPart*owed && !r.heldBack(s.queue) {
		breach = fmt.Errorf("it is guaranteed %s, waits for %s and uses %s", guaranteed, s.pending, s.used)
	}
	r.lasts(Guarantee, string(s.queue), breach)
}

// heldBack reports whether a queue may be waiting because of user limits. Then the queue's guarantee is not checked.
func (r *Reports) heldBack(queue creel.QueuePath) bool {
	return slices.ContainsFunc(r.now.Users, func(u *escrow.UsersRecord) bool {
		return u.Each.Queue == queue && u.Each.Label != escrow.Opportunistic && u.HoldsBack()
	})
}

// conserves checks that, while a queue waits, no member has many idle resources that the queue may use within its
// share there.
func (r *Reports) conserves(s *sum) {
	var breach error
	q := r.now.Tree.Find(s.queue)
	full := q != nil && (q.UserLimited() || q.Bounded() && !s.used.Add(s.pending).Fits(q.Maximum))
	if !s.pending.IsZero() && !full {
		for _, w := range s.rows {
			total := w.in.Load.Metrics.Total()
			least := creel.NewResource(int64(idlePart*float64(total.MemoryMB)), int64(idlePart*float64(total.VCores)))
			own := w.load.Capacity.Sub(w.load.Used)
			if !total.IsZero() && least.Fits(memoryAndCores(w.load.Free)) && least.Fits(memoryAndCores(own)) {
				breach = fmt.Errorf("it waits for %s, and could get %s in %s, within its capacity there", s.pending,
					w.load.Free, w.in.ID)
				break
			}
		}
	}
	r.lasts(WorkConservation, string(s.queue), breach)
}

// judgePlan checks the plan in force.
func (r *Reports) judgePlan() {
	p := r.now.Plan
	if p == nil || !r.now.InForce {
		return
	}
	for i := range p.Queues {
		q := &p.Queues[i]
		r.starves(q)
		if t := r.now.Tree.Find(q.Queue); t != nil && t.Bounded() && !q.Optout {
			r.check(Rounding, string(q.Queue), SharesExact(t.Maximum, rebalancer.EscrowShares(p, q, t.Maximum)))
		}
	}
}

// Planned checks a newly published plan. before is the previous one, or nil.
func (r *Reports) Planned(before, p *subcluster.Plan) {
	for i := range p.Labels {
		x := &p.Labels[i]
		r.pool(x.Label).Planned(before.In(x.Label), &x.Plan)
	}
	r.plans++
	if r.calm == nil || !same(r.calm, p) {
		r.calm, r.plans = p, 0
	}
	if before == nil {
		return
	}
	// After as many plans as there are steps, made from the same input, weights have reached their targets.
	settled := r.plans > int(math.Ceil(1/r.Step))+1
	for i := range p.Queues {
		q := &p.Queues[i]
		breach := Steps(before, p, q, r.Step)
		if was := before.Queue(q.Queue); breach == nil && settled && was != nil {
			if id, d := farthest(was, q); d > r.Band+1e-6 {
				breach = fmt.Errorf("its weight in %s changed by %.4f after %d plans with the same input", id, d, r.plans)
			}
		}
		r.check(Stability, string(q.Queue), breach)
	}
}

// starves checks that a queue well below its entitlement gets something, and that its preemption budget is
// distributed. A queue whose limits grant nothing that it waits for does not starve.
func (r *Reports) starves(q *subcluster.QueuePlan) {
	var breach error
	limited := r.heldBack(q.Queue) || slices.ContainsFunc(r.sums, func(s sum) bool {
		return s.queue == q.Queue && s.pending.IsZero()
	})
	if !limited && q.Entitled > 0.01 && q.Entitled-q.Uses > lackPart*q.Entitled {
		t := r.now.Tree.Find(q.Queue)
		budget := r.now.Plan.PreemptionOf(q.Queue)
		switch {
		case q.Uses == 0:
			breach = fmt.Errorf("it is entitled to %.1f%% of the federation and uses nothing", 100*q.Entitled)
		case t != nil && t.PreemptionBounded() && !t.Optout && (budget == nil || len(budget.Members) == 0):
			breach = fmt.Errorf("it is entitled to %.1f%% of the federation and uses %.1f%%, and nothing may be taken back",
				100*q.Entitled, 100*q.Uses)
		}
	}
	r.lasts(NoStarvation, string(q.Queue), breach)
}

// same reports whether two plans were made from the same demand in the same members.
func same(a, b *subcluster.Plan) bool {
	if !sameMembers(a, b) || len(a.Queues) != len(b.Queues) || a.Tree != b.Tree {
		return false
	}
	for i := range b.Starts {
		if b.Starts[i].Slow() || a.Starts[i].Slow() {
			return false
		}
	}
	near := func(x, y float64) bool { return math.Abs(x-y) <= 0.01*max(x, y) }
	for i := range a.Queues {
		x, y := &a.Queues[i], &b.Queues[i]
		if x.Queue != y.Queue || !near(x.Wants, y.Wants) || !near(x.Uses, y.Uses) {
			return false
		}
	}
	return true
}
