// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/waitstats"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
)

// AnyPlace is the resource name of the entry for containers at any place.
const AnyPlace = "*"

// Request is one entry of an application's asks, as in YARN's ResourceRequest: the absolute number of containers
// still wanted for (Priority, AllocationRequestID, ExecutionType, ResourceName).
type Request struct {
	Priority            int32
	Count               int32
	AllocationRequestID int64
	ResourceName        string // host, rack or "*"; "" is "*"
	ExecutionType       creel.ExecutionType
	StrictLocality      bool   // relax_locality = false
	Enforced            bool   // its containers have its execution type
	Label               string // an existing partition; all entries of a key have the label of the "*" entry
}

func (w *Ask) compare(priority int32, alloc int64, ex creel.ExecutionType) int {
	c := w.compareKey(priority, alloc, ex)
	if c == 0 && w.want != nil {
		return 1 // scheduling requests follow the ask of their key
	}
	return c
}

func (w *Ask) compareKey(priority int32, alloc int64, ex creel.ExecutionType) int {
	return cmp.Or(cmp.Compare(w.priority, priority), cmp.Compare(w.alloc, alloc), cmp.Compare(w.execution, ex))
}

// ask finds or makes the ask of a key.
func (a *App) ask(priority int32, alloc int64, ex creel.ExecutionType, make bool) *Ask {
	i, found := slices.BinarySearchFunc(a.asks, 0, func(w *Ask, _ int) int { return w.compare(priority, alloc, ex) })
	if found {
		return a.asks[i]
	}
	if !make {
		return nil
	}
	w := &Ask{app: a, priority: priority, alloc: alloc, execution: ex, since: -1}
	a.asks = slices.Insert(a.asks, i, w)
	return w
}

// Request applies one entry, in place of the previous one with its key and place. v is the normalized size; only that
// of "*" counts. last is the result of Request for the previous entry, nil for the first: entries of one key are
// consecutive. After the last entry of a call, Serve or Enroll is due.
func (s *Scheduler) Request(a *App, last *Ask, r *Request, v *amounts.Vec) *Ask {
	ex := r.ExecutionType
	if ex == 0 {
		ex = creel.Guaranteed
	}
	if (len(s.parts) > 0 || r.Label != "") && s.main == nil {
		if p := s.partitionFor(a, r); p != s {
			return p.Request(s.appIn(a, p), last, r, v)
		}
	}
	w := last
	if w == nil || w.app != a || w.compare(r.Priority, r.AllocationRequestID, ex) != 0 {
		if w = a.ask(r.Priority, r.AllocationRequestID, ex, r.Count > 0); w == nil {
			return nil
		}
	}
	if r.ResourceName == AnyPlace || r.ResourceName == "" {
		if r.Count > w.count && !w.strict == !r.StrictLocality && w.count == 0 {
			s.delays.end(w)
		}
		w.strict, w.enforced = r.StrictLocality, r.Enforced
		size := w.size
		if r.Count > 0 || size == nil {
			size = s.sizeOf(*v)
		}
		s.setCount(w, r.Count, size)
		if w.hold != nil && (w.count == 0 || w.hold.size != w.size) {
			s.reservations.drop(w.hold)
		}
	} else {
		w.named.Set(&s.places, r.ResourceName, r.Count, r.StrictLocality)
	}
	if s.forgetIfEmpty(w) {
		return nil
	}
	return w
}

// partitionFor returns the partition of an entry. An entry of "*" removes its key from all other partitions, because
// a key has one label.
func (s *Scheduler) partitionFor(a *App, r *Request) *Scheduler {
	to := s.partitionOr(r.Label)
	if r.ResourceName != AnyPlace && r.ResourceName != "" || len(a.parts) == 0 && to == s {
		return to
	}
	ex := r.ExecutionType
	if ex == 0 {
		ex = creel.Guaranteed
	}
	if w := a.ask(r.Priority, r.AllocationRequestID, ex, false); w != nil && to != s {
		s.dropAsk(w)
	}
	for _, x := range a.parts {
		if p := x.queue.s; p != to {
			if w := x.ask(r.Priority, r.AllocationRequestID, ex, false); w != nil {
				p.dropAsk(w)
				p.enroll(x)
			}
		}
	}
	return to
}

// AskLabel returns the label of an application's current ask at a key, "" for none.
func (a *App) AskLabel(priority int32, alloc int64, ex creel.ExecutionType) string {
	if ex == 0 {
		ex = creel.Guaranteed
	}
	for _, x := range a.parts {
		if x.ask(priority, alloc, ex, false) != nil {
			return x.queue.s.label
		}
	}
	return ""
}

// sizeOf returns the unique Size for an amount.
func (s *Scheduler) sizeOf(v amounts.Vec) *amounts.Size {
	if s.main != nil {
		return s.main.sizes.Of(v)
	}
	return s.sizes.Of(v)
}

// Enroll updates an application's place in the order of service after its requests changed.
func (s *Scheduler) Enroll(a *App) {
	s.enroll(a)
	if len(s.parts) > 0 {
		for _, x := range a.parts {
			x.queue.s.enroll(x)
		}
	}
}

// askForAM makes an ask from an application's AMAsk.
func (s *Scheduler) askForAM(a *App) {
	am := a.am
	a.am = nil
	size := a.amSize
	if a.amPart != nil {
		a = a.amPart
		s = a.queue.s
	}
	w := a.ask(am.Priority, -1, creel.Guaranteed, true)
	w.am, w.strict = true, am.Strict
	for i := range am.Places {
		w.named.Set(&s.places, am.Places[i].Name, 1, am.Places[i].Strict)
	}
	s.setCount(w, 1, size)
}

// own returns the size of the ask's reservation, nil for none.
func (w *Ask) own() *amounts.Size {
	if w.hold == nil {
		return nil
	}
	return w.hold.size
}

// setCount sets the outstanding number of an ask, and updates the sums up the tree.
func (s *Scheduler) setCount(w *Ask, count int32, size *amounts.Size) {
	if w.size == size && w.count == count {
		return
	}
	a := w.app
	var delta amounts.Vec
	if w.size != nil {
		delta.AddTimes(&w.size.V, -int64(w.count))
	}
	if size != nil {
		delta.AddTimes(&size.V, int64(count))
	}
	d := int64(count) - int64(w.count)
	if count == 0 || w.size != size {
		s.retries.unblock(w)
	}
	w.asked = waitstats.Since(w.asked, s.now, int64(w.count), int64(count))
	w.count, w.size = count, size
	s.changes.app(a)
	a.pending.Add(&delta)
	a.pendingCount += d
	for q := a.queue; q != nil; q = q.parent {
		q.pending.Add(&delta)
		q.pendingCount += d
	}
	a.demandChanged()
}

// countDown is setCount for one container less.
func (s *Scheduler) countDown(w *Ask) {
	a, v := w.app, &w.size.V
	w.count--
	s.retries.unblock(w)
	s.changes.app(a)
	a.pending.AddTimes(v, -1)
	a.pendingCount--
	for q := a.queue; q != nil; q = q.parent {
		q.pending.AddTimes(v, -1)
		q.pendingCount--
	}
	a.demandChanged()
}

// served lowers the counts of the entries that a container on n satisfied. These are the host and its rack for a
// local one, the rack for a rack-local one, and always "*".
func (s *Scheduler) served(w *Ask, n *Node, at places.Distance) {
	if !w.named.Any() {
		s.countDown(w)
		if at != places.AtAny {
			s.delays.end(w)
		}
		return
	}
	hosts, racks := len(w.named.Hosts), len(w.named.Racks)
	if at == places.AtNode {
		w.named.Lower(&s.places, w.named.OnHost(n.host))
	}
	if at <= places.AtRack {
		w.named.Lower(&s.places, w.named.OnRack(n.rack))
	}
	s.countDown(w)
	if at != places.AtAny {
		s.delays.end(w)
	}
	// Some asks may now go further, so the nodes that they skipped are tried. Without named hosts, an ask may use its
	// racks at once; without hosts and racks, any node; and without racks, hosts whose racks were not named (see
	// rackAsked).
	if w.count > 0 && (hosts > 0 && len(w.named.Hosts) == 0 || racks > 0 && len(w.named.Racks) == 0) {
		s.retries.add(w.app.queue)
		s.lending.mayBorrow(w.app)
	}
}

// Restore makes an application ask again for a container that was granted on a node and ended before the AM received
// it. of is the Rare field of its Grant.
func (s *Scheduler) Restore(
	a *App, n *Node, size *amounts.Size, priority int32, alloc int64, ex creel.ExecutionType,
	of *GrantExtra,
) {
	want := of.Want
	if of.Label != "" {
		p := s.partitionOr(of.Label)
		a, s = s.appIn(a, p), p
	}
	var w *Ask
	if want == nil {
		if w = a.ask(priority, alloc, ex, false); w == nil {
			w = a.ask(priority, alloc, ex, true)
			w.strict = of.Insists != 0
		}
		s.insist(w, n, of.Insists)
	} else if w = a.wanting(&Request{Priority: priority, AllocationRequestID: alloc}, want); w == nil {
		w = s.tags.ask(a, priority, alloc, want)
	}
	if w.size != nil && w.count > 0 {
		size = w.size
	}
	s.setCount(w, w.count+1, size)
	s.enroll(a)
	s.retries.add(a.queue)
	s.lending.mayBorrow(a)
}

// insist adds to w the places of a node that the ask of a container had named.
func (s *Scheduler) insist(w *Ask, n *Node, insists NamedPlaces) {
	again := func(name string, strict bool) {
		count := int32(1)
		if p := w.named.Place(name); p != nil {
			count, strict = count+p.Count, p.Strict
		}
		w.named.Set(&s.places, name, count, strict)
	}
	if insists&onHost != 0 {
		again(n.host.Name(), false)
	}
	if insists&onRack != 0 {
		again(n.rack.Name(), insists&rackStrict != 0)
	}
}

func (s *Scheduler) forgetIfEmpty(w *Ask) bool {
	if w.count > 0 || w.named.Any() {
		return false
	}
	s.delays.end(w)
	if w.hold != nil {
		s.reservations.drop(w.hold)
	}
	a := w.app
	if i := slices.Index(a.asks, w); i >= 0 {
		a.asks = slices.Delete(a.asks, i, i+1)
	}
	s.tags.forget(w)
	return true
}

// DropAsks drops all asks of an application, including an AM's that is not made yet.
func (s *Scheduler) DropAsks(a *App) {
	a.am = nil
	for _, x := range a.parts {
		x.queue.s.DropAsks(x)
	}
	for len(a.asks) > 0 {
		s.dropAsk(a.asks[len(a.asks)-1])
	}
	s.enroll(a)
}

func (s *Scheduler) dropAsk(w *Ask) {
	s.setCount(w, 0, w.size)
	w.named = places.List[Node]{}
	s.forgetIfEmpty(w)
}
