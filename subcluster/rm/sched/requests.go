// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
)

// Place sets the number of containers that an application wants for a priority, allocation request id and tags:
// absolute if more is false, else in addition. It returns the number outstanding afterwards. r's label is that of
// want, and its place is anywhere. Scheduler.Serve is due after the last Place of a call.
func (t *Tags) Place(a *App, r *Request, want *constraints.Want, v *amounts.Vec, more bool) int32 {
	part := t.part
	if want.Label != "" && part.label == "" {
		p := part.cluster.partitionOr(want.Label)
		return p.tags.Place(part.cluster.appIn(a, p), r, want, v, more)
	}
	w := a.wanting(r, want)
	count := r.Count
	if w != nil && more {
		count = clampInt32(int64(count) + int64(w.count))
	}
	if w == nil {
		if count <= 0 {
			return 0
		}
		w = t.ask(a, r.Priority, r.AllocationRequestID, want)
	}
	w.want = want
	size := w.size
	if r.Count > 0 || size == nil {
		size = part.sizeOf(*v)
	}
	part.setCount(w, count, size)
	if w.hold != nil && (w.count == 0 || w.hold.size != w.size) {
		part.reservations.drop(w.hold)
	}
	part.forgetIfEmpty(w)
	return count
}

// ask makes the ask of a scheduling request.
func (t *Tags) ask(a *App, priority int32, alloc int64, want *constraints.Want) *Ask {
	w := &Ask{app: a, priority: priority, alloc: alloc, execution: creel.Guaranteed, since: -1, want: want}
	i, _ := slices.BinarySearchFunc(a.asks, w, func(x, w *Ask) int {
		return cmp.Or(x.compareKey(w.priority, w.alloc, w.execution), -1)
	})
	a.asks = slices.Insert(a.asks, i, w)
	if a.wants == nil {
		a.wants = map[wantKey]*Ask{}
	}
	a.wants[wantKey{priority, alloc, want.Key()}] = w
	t.waiting = append(t.waiting, w)
	return w
}

// forget removes an ask that is satisfied or dropped.
func (t *Tags) forget(w *Ask) {
	if w.want != nil {
		delete(w.app.wants, wantKey{w.priority, w.alloc, w.want.Key()})
		t.waiting = slices.DeleteFunc(t.waiting, func(x *Ask) bool { return x == w })
	}
}

// wanting finds an application's ask under a key and tags.
func (a *App) wanting(r *Request, want *constraints.Want) *Ask {
	return a.wants[wantKey{r.Priority, r.AllocationRequestID, want.Key()}]
}

// Wants is the number of an application's outstanding scheduling requests.
func (a *App) Wants() int {
	n := len(a.wants)
	for _, x := range a.parts {
		n += len(x.wants)
	}
	return n
}

// Serve tries one scheduling request of an application, as Scheduler.Serve tries all asks, so that each of many is
// placed before the next is considered. Schedule is due before the first, and Scheduler.Serve after the last.
func (t *Tags) Serve(a *App, r *Request, want *constraints.Want) {
	part := t.part
	if p := part.cluster.partition(want.Label); p != nil && p != part {
		if a = a.partIn(p); a == nil {
			return
		}
		part = p
	}
	if !a.waits {
		part.enroll(a) // its user counts as active while limits are checked
	}
	if !a.waits || part.retries.blockedAbove(a) != nil {
		return
	}
	if w := a.wanting(r, want); w != nil {
		part.prefetchNodes(w)
		part.serve(w)
	}
}

// Wanting returns the number of containers outstanding under a key and tags.
func (t *Tags) Wanting(a *App, r *Request, want *constraints.Want) int32 {
	if _, w := t.find(a, r, want); w != nil {
		return w.count
	}
	return 0
}

// find finds the ask that Wanting counts, and its partition.
func (t *Tags) find(a *App, r *Request, want *constraints.Want) (*partition, *Ask) {
	part := t.part
	if p := part.cluster.partition(want.Label); p != nil && p != part {
		if a = a.partIn(p); a == nil {
			return p, nil
		}
		part = p
	}
	return part, a.wanting(r, want)
}

// Refused reports whether the constraint excludes every node with enough free resources for a container of this key
// and tags. It checks all nodes.
func (t *Tags) Refused(a *App, r *Request, want *constraints.Want) bool {
	p, w := t.find(a, r, want)
	if w == nil {
		return false
	}
	for _, n := range p.nodes.All() {
		if n != nil && n.use == Open && p.sizes.Fits(&w.size.V, &n.free) && t.allows(w, n) {
			return false
		}
	}
	if lending := &p.cluster.lending; lending.shared > 0 {
		n, _, _ := lending.seek(w)
		return n == nil
	}
	return true
}

// retry retries the asks that wait for a node which satisfies them. It cancels a reservation on a node
// that no longer satisfies its constraint.
func (t *Tags) retry() {
	p := t.part
	for _, w := range t.waiting {
		if w.hold != nil && !t.allows(w, w.hold.node) {
			p.reservations.drop(w.hold)
		}
		if w.count > 0 && w.app.waits {
			p.retries.add(w.app.queue)
			p.cluster.lending.mayBorrow(w.app)
		}
	}
}
