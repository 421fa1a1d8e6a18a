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

// tagState has the tags and attributes of all nodes, which all partitions share, and the asks with a constraint.
type tagState struct {
	tags        *constraints.Tags
	constrained []*Ask // of this partition, waiting for a node that satisfies them
	tagsChanged bool   // since the last try of waiting asks
}

// place returns the node as constraints see it.
func (n *Node) place() constraints.Node {
	return constraints.Node{Serial: n.serial, Host: n.id.Host, Rack: n.rack.name, Label: n.of.label}
}

// Tag counts (by 1) or removes (by -1) a container with allocation tags on a node. by 1 is for a container from
// before this ResourceManager started, by -1 for one that ends. Granted ones are counted at once. It is due before
// Release, and Schedule after it.
func (s *Scheduler) Tag(a *App, n *Node, tags []string, by int32) {
	if len(tags) == 0 {
		return
	}
	s.tags.Count(&a.whole().tagged, n.place(), tags, by)
	s.placesChanged()
}

// moveTags moves the counts of a node's containers to its new rack. Schedule is due.
func (s *Scheduler) moveTags(n *Node, to string) {
	s.placesChanged() // even for a node without tags, because its neighbours changed
	s.tags.Move(n.place(), to)
}

// SetAttributes sets a host's attributes, by PREFIX/NAME. Schedule is due.
func (s *Scheduler) SetAttributes(host string, values map[string]string) {
	s.tags.SetAttributes(host, values)
	s.placesChanged()
}

// SetAppTags sets the application tags of an application.
func (s *Scheduler) SetAppTags(a *App, tags []string) { a.tagged.Tags = tags }

// placesChanged records that constraints may be satisfied on further nodes.
func (s *Scheduler) placesChanged() {
	s = s.whole()
	s.tagsChanged, s.further = len(s.constrained) > 0, true
	for _, p := range s.parts {
		p.tagsChanged, p.further = len(p.constrained) > 0, true
	}
}

// retryConstrained retries the asks that wait for a node which satisfies them. It cancels a reservation on a node
// that no longer satisfies its constraint.
func (s *Scheduler) retryConstrained() {
	for _, w := range s.constrained {
		if w.hold != nil && !s.allows(w, w.hold.node) {
			s.unreserve(w.hold)
		}
		if w.count > 0 && w.app.waits {
			s.retry(w.app.queue)
			s.mayBorrow(w.app)
		}
	}
}

// allows reports whether the constraint of an ask, if it has one, admits a node. It is inlined: an ask without a
// constraint pays for one comparison.
func (s *Scheduler) allows(w *Ask, n *Node) bool { return w.want == nil || s.satisfied(w, n) }

//go:noinline
func (s *Scheduler) satisfied(w *Ask, n *Node) bool {
	return s.refused(w, n) == nil
}

// refused returns the clause of an ask's constraint that excludes a node, nil if none does.
func (s *Scheduler) refused(w *Ask, n *Node) *constraints.Constraint {
	at := n.place()
	return s.tags.Refused(w.want.Constraint, &w.app.whole().tagged, &at)
}

// whole returns the default partition's scheduler, which has all nodes.
func (s *Scheduler) whole() *Scheduler {
	if s.main != nil {
		return s.main
	}
	return s
}

// TagsOn returns a node's counts by tag, nil for none.
func (s *Scheduler) TagsOn(n *Node) []constraints.TagCount { return s.tags.On(n.serial) }

// Place sets the number of containers that an application wants for a priority, allocation request id and tags:
// absolute if more is false, else in addition. It returns the number outstanding afterwards. r's label is that of
// want, and its place is anywhere. Serve is due after the last Place of a call.
func (s *Scheduler) Place(a *App, r *Request, want *constraints.Want, v *amounts.Vec, more bool) int32 {
	if want.Label != "" && s.main == nil {
		p := s.partitionOr(want.Label)
		return p.Place(s.appIn(a, p), r, want, v, more)
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
		w = s.newWanting(a, r.Priority, r.AllocationRequestID, want)
	}
	w.want = want
	size := w.size
	if r.Count > 0 || size == nil {
		size = s.sizeOf(*v)
	}
	s.setCount(w, count, size)
	if w.hold != nil && (w.count == 0 || w.hold.size != w.size) {
		s.unreserve(w.hold)
	}
	s.forgetIfEmpty(w)
	return count
}

func (s *Scheduler) newWanting(a *App, priority int32, alloc int64, want *constraints.Want) *Ask {
	w := &Ask{app: a, priority: priority, alloc: alloc, execution: creel.Guaranteed, since: -1, want: want}
	i, _ := slices.BinarySearchFunc(a.asks, w, func(x, w *Ask) int {
		return cmp.Or(x.compareKey(w.priority, w.alloc, w.execution), -1)
	})
	a.asks = slices.Insert(a.asks, i, w)
	if a.wants == nil {
		a.wants = map[wantKey]*Ask{}
	}
	a.wants[wantKey{priority, alloc, want.Key()}] = w
	s.constrained = append(s.constrained, w)
	return w
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

// ServeWant tries one scheduling request of an application, as Serve tries all asks, so that each of many is placed
// before the next is considered. Schedule is due before the first, and Serve after the last.
func (s *Scheduler) ServeWant(a *App, r *Request, want *constraints.Want) {
	if p := s.partition(want.Label); p != nil && p != s {
		if a = a.partIn(p); a == nil {
			return
		}
		s = p
	}
	if !a.waits {
		s.enroll(a) // its user counts as active while limits are checked
	}
	if !a.waits || s.blockedAbove(a) != nil {
		return
	}
	if w := a.wanting(r, want); w != nil {
		s.prefetchNodes(w)
		s.serve(w)
	}
}

// Wanting returns the number of containers outstanding under a key and tags.
func (s *Scheduler) Wanting(a *App, r *Request, want *constraints.Want) int32 {
	if _, w := s.wantingIn(a, r, want); w != nil {
		return w.count
	}
	return 0
}

// wantingIn finds the ask that Wanting counts, and its partition.
func (s *Scheduler) wantingIn(a *App, r *Request, want *constraints.Want) (*Scheduler, *Ask) {
	if p := s.partition(want.Label); p != nil && p != s {
		if a = a.partIn(p); a == nil {
			return p, nil
		}
		s = p
	}
	return s, a.wanting(r, want)
}

// Refused reports whether the constraint excludes every node with enough free resources for a container of this key
// and tags. It checks all nodes.
func (s *Scheduler) Refused(a *App, r *Request, want *constraints.Want) bool {
	s, w := s.wantingIn(a, r, want)
	if w == nil {
		return false
	}
	for _, n := range s.nodes {
		if n != nil && n.use == Open && s.sizes.Fits(&w.size.V, &n.free) && s.allows(w, n) {
			return false
		}
	}
	if s.shared > 0 {
		n, _, _ := s.seekLent(w)
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
