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
	p := &s.main
	if len(s.labelled) > 0 || r.Label != "" {
		if p = s.partitionFor(a, r); p != &s.main {
			a = s.appIn(a, p)
		}
	}
	return p.request(a, last, r, v)
}

// request is Request in one partition.
func (p *partition) request(a *App, last *Ask, r *Request, v *amounts.Vec) *Ask {
	ex := r.ExecutionType
	if ex == 0 {
		ex = creel.Guaranteed
	}
	w := last
	if w == nil || w.app != a || w.compare(r.Priority, r.AllocationRequestID, ex) != 0 {
		if w = a.ask(r.Priority, r.AllocationRequestID, ex, r.Count > 0); w == nil {
			return nil
		}
	}
	if r.ResourceName == AnyPlace || r.ResourceName == "" {
		if r.Count > w.count && !w.strict == !r.StrictLocality && w.count == 0 {
			p.delays.end(w)
		}
		w.strict, w.enforced = r.StrictLocality, r.Enforced
		size := w.size
		if r.Count > 0 || size == nil {
			size = p.sizeOf(*v)
		}
		p.setCount(w, r.Count, size)
		if w.hold != nil && (w.count == 0 || w.hold.size != w.size) {
			p.reservations.drop(w.hold)
		}
	} else {
		w.named.Set(&p.places, r.ResourceName, r.Count, r.StrictLocality)
	}
	if p.forgetIfEmpty(w) {
		return nil
	}
	return w
}

// partitionFor returns the partition of an entry. An entry of "*" removes its key from all other partitions, because
// a key has one label.
func (s *Scheduler) partitionFor(a *App, r *Request) *partition {
	to := s.partitionOr(r.Label)
	if r.ResourceName != AnyPlace && r.ResourceName != "" || len(a.parts) == 0 && to == &s.main {
		return to
	}
	ex := r.ExecutionType
	if ex == 0 {
		ex = creel.Guaranteed
	}
	if w := a.ask(r.Priority, r.AllocationRequestID, ex, false); w != nil && to != &s.main {
		s.main.dropAsk(w)
	}
	for _, x := range a.parts {
		if p := x.queue.part; p != to {
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
			return x.queue.part.label
		}
	}
	return ""
}

// sizeOf returns the unique Size for an amount.
func (p *partition) sizeOf(v amounts.Vec) *amounts.Size {
	return p.cluster.main.sizes.Of(v)
}

// Enroll updates an application's place in the order of service after its requests changed.
func (s *Scheduler) Enroll(a *App) {
	s.main.enroll(a)
	if len(s.labelled) > 0 {
		for _, x := range a.parts {
			x.queue.part.enroll(x)
		}
	}
}

// askForAM makes an ask from an application's AMAsk.
func (l *Line) askForAM(a *App) {
	am := a.am
	a.am = nil
	size := a.amSize
	if a.amPart != nil {
		a = a.amPart
	}
	p := a.queue.part
	w := a.ask(am.Priority, -1, creel.Guaranteed, true)
	w.am, w.strict = true, am.Strict
	for i := range am.Places {
		w.named.Set(&p.places, am.Places[i].Name, 1, am.Places[i].Strict)
	}
	p.setCount(w, 1, size)
}

// own returns the size of the ask's reservation, nil for none.
func (w *Ask) own() *amounts.Size {
	if w.hold == nil {
		return nil
	}
	return w.hold.size
}

// setCount sets the outstanding number of an ask, and updates the sums up the tree.
func (p *partition) setCount(w *Ask, count int32, size *amounts.Size) {
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
		p.retries.unblock(w)
	}
	w.asked = waitstats.Since(w.asked, p.now, int64(w.count), int64(count))
	w.count, w.size = count, size
	p.changes.app(a)
	a.pending.Add(&delta)
	a.pendingCount += d
	for q := a.queue; q != nil; q = q.parent {
		q.pending.Add(&delta)
		q.pendingCount += d
	}
	a.demandChanged()
}

// countDown is setCount for one container less.
func (p *partition) countDown(w *Ask) {
	a, v := w.app, &w.size.V
	w.count--
	p.retries.unblock(w)
	p.changes.app(a)
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
func (p *partition) served(w *Ask, n *Node, at places.Distance) {
	if !w.named.Any() {
		p.countDown(w)
		if at != places.AtAny {
			p.delays.end(w)
		}
		return
	}
	hosts, racks := len(w.named.Hosts), len(w.named.Racks)
	if at == places.AtNode {
		w.named.Lower(&p.places, w.named.OnHost(n.host))
	}
	if at <= places.AtRack {
		w.named.Lower(&p.places, w.named.OnRack(n.rack))
	}
	p.countDown(w)
	if at != places.AtAny {
		p.delays.end(w)
	}
	// Some asks may now go further, so the nodes that they skipped are tried. Without named hosts, an ask may use its
	// racks at once; without hosts and racks, any node; and without racks, hosts whose racks were not named (see
	// rackAsked).
	if w.count > 0 && (hosts > 0 && len(w.named.Hosts) == 0 || racks > 0 && len(w.named.Racks) == 0) {
		p.retries.add(w.app.queue)
		p.cluster.lending.mayBorrow(w.app)
	}
}

// Restore makes an application ask again for a container that was granted on a node and ended before the AM received
// it. of is the Rare field of its Grant.
func (s *Scheduler) Restore(
	a *App, n *Node, size *amounts.Size, priority int32, alloc int64, ex creel.ExecutionType,
	of *GrantExtra,
) {
	p := s.partitionOr(of.Label)
	if p != &s.main {
		a = s.appIn(a, p)
	}
	p.restore(a, n, size, &Request{Priority: priority, AllocationRequestID: alloc, ExecutionType: ex}, of)
}

// restore is Restore in one partition, for a container under the key of r.
func (p *partition) restore(a *App, n *Node, size *amounts.Size, r *Request, of *GrantExtra) {
	priority, alloc, ex, want := r.Priority, r.AllocationRequestID, r.ExecutionType, of.Want
	var w *Ask
	if want == nil {
		if w = a.ask(priority, alloc, ex, false); w == nil {
			w = a.ask(priority, alloc, ex, true)
			w.strict = of.Insists != 0
		}
		p.insist(w, n, of.Insists)
	} else if w = a.wanting(r, want); w == nil {
		w = p.tags.ask(a, priority, alloc, want)
	}
	if w.size != nil && w.count > 0 {
		size = w.size
	}
	p.setCount(w, w.count+1, size)
	p.enroll(a)
	p.retries.add(a.queue)
	p.cluster.lending.mayBorrow(a)
}

// insist adds to w the places of a node that the ask of a container had named.
func (part *partition) insist(w *Ask, n *Node, insists NamedPlaces) {
	again := func(name string, strict bool) {
		count := int32(1)
		if p := w.named.Place(name); p != nil {
			count, strict = count+p.Count, p.Strict
		}
		w.named.Set(&part.places, name, count, strict)
	}
	if insists&onHost != 0 {
		again(n.host.Name(), false)
	}
	if insists&onRack != 0 {
		again(n.rack.Name(), insists&rackStrict != 0)
	}
}

func (p *partition) forgetIfEmpty(w *Ask) bool {
	if w.count > 0 || w.named.Any() {
		return false
	}
	p.delays.end(w)
	if w.hold != nil {
		p.reservations.drop(w.hold)
	}
	a := w.app
	if i := slices.Index(a.asks, w); i >= 0 {
		a.asks = slices.Delete(a.asks, i, i+1)
	}
	p.tags.forget(w)
	return true
}

// DropAsks drops all asks of an application, including an AM's that is not made yet.
func (s *Scheduler) DropAsks(a *App) {
	a.am = nil
	for _, x := range a.parts {
		x.queue.part.dropAsks(x)
	}
	s.main.dropAsks(a)
}

// dropAsks is DropAsks in one partition.
func (p *partition) dropAsks(a *App) {
	for len(a.asks) > 0 {
		p.dropAsk(a.asks[len(a.asks)-1])
	}
	p.enroll(a)
}

func (p *partition) dropAsk(w *Ask) {
	p.setCount(w, 0, w.size)
	w.named = places.List[Node]{}
	p.forgetIfEmpty(w)
}
