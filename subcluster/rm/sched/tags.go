// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
)

// Waiting asks with a constraint are tried again after a count of tagged containers or an attribute changed. Package
// constraints has the counts, and decides which nodes a constraint admits.

// Tags returns the scheduling requests and the tags of nodes.
func (s *Scheduler) Tags() *Tags { return &s.main.tags }

// place returns the node as constraints see it.
func (n *Node) place() constraints.Node {
	return constraints.Node{Serial: n.serial, Host: n.id.Host, Rack: n.rack.Name(), Label: n.of.label}
}

// Count counts (by 1) or removes (by -1) a container with allocation tags on a node. by 1 is for a container from
// before this ResourceManager started, by -1 for one that ends. Granted ones are counted at once. It is due before
// Release, and Schedule after it.
func (t *Tags) Count(a *App, n *Node, tags []string, by int32) {
	if len(tags) == 0 {
		return
	}
	t.counts.Count(&a.whole().tagged, n.place(), tags, by)
	t.change()
}

// move moves the counts of a node's containers to its new rack. Schedule is due.
func (t *Tags) move(n *Node, to string) {
	t.change() // even for a node without tags, because its neighbours changed
	t.counts.Move(n.place(), to)
}

// SetAttributes sets a host's attributes, by PREFIX/NAME. Schedule is due.
func (t *Tags) SetAttributes(host string, values map[string]string) {
	t.counts.SetAttributes(host, values)
	t.change()
}

// SetTags sets the application tags of an application.
func (a *App) SetTags(tags []string) { a.tagged.Tags = tags }

// change records that constraints may be satisfied on further nodes.
func (t *Tags) change() {
	s := t.part.cluster
	s.main.tags.changed = len(s.main.tags.waiting) > 0
	for _, p := range s.labelled {
		p.tags.changed = len(p.tags.waiting) > 0
	}
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

// allows reports whether the constraint of an ask, if it has one, admits a node. It is inlined: an ask without a
// constraint pays for one comparison.
func (t *Tags) allows(w *Ask, n *Node) bool { return w.want == nil || t.satisfied(w, n) }

//go:noinline
func (t *Tags) satisfied(w *Ask, n *Node) bool {
	return t.refused(w, n) == nil
}

// refused returns the clause of an ask's constraint that excludes a node, nil if none does.
func (t *Tags) refused(w *Ask, n *Node) *constraints.Constraint {
	at := n.place()
	return t.counts.Refused(w.want.Constraint, &w.app.whole().tagged, &at)
}

// On returns a node's counts by tag, nil for none.
func (t *Tags) On(n *Node) []constraints.TagCount { return t.counts.On(n.serial) }

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

// wantKey identifies a scheduling request of an application.
type wantKey struct {
	priority int32
	alloc    int64
	tags     string
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

// whyRefused names the clause that excludes most of the nodes which an ask could use.
func whyRefused(by map[*constraints.Constraint]int, of int, out *Why) {
	worst := constraints.Worst(by)
	out.Text = fmt.Sprintf("Its placement constraint refuses all %d nodes that it may use: %q refuses %d of them.",
		of, worst, by[worst])
	if worst.Wrong != "" {
		out.Try = "ask by another constraint"
		return
	}
	out.Try = "wait until containers with the tags start or end, give a node the attribute, add nodes, " +
		"or ask by another constraint"
}
