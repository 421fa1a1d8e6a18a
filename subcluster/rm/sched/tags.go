// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Containers with allocation tags are counted per node and per rack, so that constraints are checked without
// iterating over containers. Waiting asks with a constraint are tried again after a count or an attribute changed.

// Want is the part of a scheduling request besides its amount. It is immutable after NewWant.
type Want struct {
	Tags       []string    // of its containers, in order
	Constraint *Constraint // nil for none
	Label      string      // of the partition of the ask
	Owner      any         // returned in grants
	key        string
}

// NewWant makes a Want. owner is for the caller.
func NewWant(tags []string, c *Constraint, label string, owner any) *Want {
	tags = slices.Compact(slices.Sorted(slices.Values(tags)))
	return &Want{Tags: tags, Constraint: c, Label: label, Owner: owner, key: strings.Join(tags, ",")}
}

// Key is equal for equal tags.
func (w *Want) Key() string { return w.key }

// tagCounts has the numbers of containers by tag, for one node or rack.
type tagCounts struct {
	all  map[string]int32
	apps map[*App]map[string]int32
}

func (k *tagCounts) add(a *App, tag string, by int32) {
	if k.all == nil {
		k.all, k.apps = map[string]int32{}, map[*App]map[string]int32{}
	}
	of := k.apps[a]
	if of == nil {
		of = map[string]int32{}
		k.apps[a] = of
	}
	for _, m := range []map[string]int32{k.all, of} {
		if m[tag] += by; m[tag] == 0 {
			delete(m, tag)
		}
	}
	if len(of) == 0 {
		delete(k.apps, a)
	}
}

// tagState holds a scheduler's tags, attributes and constraints. The default partition has those of all nodes.
type tagState struct {
	nodeTags   map[int32]*tagCounts
	rackTags   map[string]*tagCounts
	attributes map[string]map[string]string // by host, of PREFIX/NAME

	constrained []*Ask // of this partition, waiting for a node that satisfies them
	tagsChanged bool   // since the last try of waiting asks
}

// Tag counts (by 1) or removes (by -1) a container with allocation tags on a node. by 1 is for a container from
// before this ResourceManager started, by -1 for one that ends. Granted ones are counted at once. It is due before
// Release, and Schedule after it.
func (s *Scheduler) Tag(a *App, n *Node, tags []string, by int32) {
	if len(tags) == 0 {
		return
	}
	s = s.whole()
	if s.nodeTags == nil {
		s.nodeTags, s.rackTags = map[int32]*tagCounts{}, map[string]*tagCounts{}
	}
	a = a.whole()
	on, rack := s.nodeTags[n.serial], s.rackTags[n.rack.name]
	if on == nil {
		on = &tagCounts{}
		s.nodeTags[n.serial] = on
	}
	if rack == nil {
		rack = &tagCounts{}
		s.rackTags[n.rack.name] = rack
	}
	for _, tag := range tags {
		on.add(a, tag, by)
		rack.add(a, tag, by)
	}
	if len(on.all) == 0 {
		delete(s.nodeTags, n.serial)
	}
	if len(rack.all) == 0 {
		delete(s.rackTags, n.rack.name)
	}
	s.placesChanged()
}

// moveTags moves the counts of a node's containers to its new rack. Schedule is due.
func (s *Scheduler) moveTags(n *Node, to string) {
	s = s.whole()
	s.placesChanged() // even for a node without tags, because its neighbours changed
	on := s.nodeTags[n.serial]
	if on == nil {
		return
	}
	for _, rack := range []struct {
		name string
		sign int32
	}{{n.rack.name, -1}, {to, 1}} {
		k := s.rackTags[rack.name]
		if k == nil {
			k = &tagCounts{}
			s.rackTags[rack.name] = k
		}
		for a, tags := range on.apps {
			for tag, count := range tags {
				k.add(a, tag, rack.sign*count)
			}
		}
		if len(k.all) == 0 {
			delete(s.rackTags, rack.name)
		}
	}
}

// SetAttributes sets a host's attributes, by PREFIX/NAME. Schedule is due.
func (s *Scheduler) SetAttributes(host string, values map[string]string) {
	if s.attributes == nil {
		s.attributes = map[string]map[string]string{}
	}
	if s.attributes[host] = values; len(values) == 0 {
		delete(s.attributes, host)
	}
	s.placesChanged()
}

// SetAppTags sets the application tags of an application.
func (s *Scheduler) SetAppTags(a *App, tags []string) { a.tags = tags }

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
	return s.refused(w.want.Constraint, w.app.whole(), n) == nil
}

// cardinality returns the numbers of containers of the rarest and of the most frequent of a target's tags, or of all
// existing tags if it names none.
func (s *Scheduler) cardinality(t *Target, a *App, n *Node, rack bool) (least, most int32) {
	s = s.whole()
	k := s.nodeTags[n.serial]
	if rack {
		k = s.rackTags[n.rack.name]
	}
	if k == nil {
		return 0, 0
	}
	tags := t.Values
	if len(tags) == 0 {
		for tag := range k.all {
			if k.count(t, a, tag) > 0 {
				tags = append(tags, tag)
			}
		}
	}
	for i, tag := range tags {
		c := k.count(t, a, tag)
		if i == 0 {
			least, most = c, c
		}
		least, most = min(least, c), max(most, c)
	}
	return least, most
}

// count is the number of containers with a tag, in the applications of the target's namespace.
func (k *tagCounts) count(t *Target, a *App, tag string) int32 {
	switch t.Namespace {
	case OfAll:
		return k.all[tag]
	case OfOthers:
		return k.all[tag] - k.apps[a][tag]
	case OfSelf:
		return k.apps[a][tag]
	}
	n := int32(0)
	for x, tags := range k.apps {
		if t.Namespace == OfApp && x.id == t.App || t.Namespace == OfTagged && slices.Contains(x.tags, t.AppTag) {
			n += tags[tag]
		}
	}
	return n
}

// TagCount is the number of containers with an allocation tag on a node.
type TagCount struct {
	Tag   string
	Count int32
}

// TagsOn returns a node's counts by tag, nil for none.
func (s *Scheduler) TagsOn(n *Node) (out []TagCount) {
	if k := s.nodeTags[n.serial]; k != nil {
		for _, tag := range slices.Sorted(maps.Keys(k.all)) {
			out = append(out, TagCount{tag, k.all[tag]})
		}
	}
	return out
}

// Place sets the number of containers that an application wants for a priority, allocation request id and tags:
// absolute if more is false, else in addition. It returns the number outstanding afterwards. r's label is that of
// want, and its place is anywhere. Serve is due after the last Place of a call.
func (s *Scheduler) Place(a *App, r *Request, want *Want, v *amounts.Vec, more bool) int32 {
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

func (s *Scheduler) newWanting(a *App, priority int32, alloc int64, want *Want) *Ask {
	w := &Ask{app: a, priority: priority, alloc: alloc, execution: creel.Guaranteed, since: -1, want: want}
	i, _ := slices.BinarySearchFunc(a.asks, w, func(x, w *Ask) int {
		return cmp.Or(x.compareKey(w.priority, w.alloc, w.execution), -1)
	})
	a.asks = slices.Insert(a.asks, i, w)
	if a.wants == nil {
		a.wants = map[wantKey]*Ask{}
	}
	a.wants[wantKey{priority, alloc, want.key}] = w
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
func (a *App) wanting(r *Request, want *Want) *Ask {
	return a.wants[wantKey{r.Priority, r.AllocationRequestID, want.key}]
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
func (s *Scheduler) ServeWant(a *App, r *Request, want *Want) {
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
func (s *Scheduler) Wanting(a *App, r *Request, want *Want) int32 {
	if _, w := s.wantingIn(a, r, want); w != nil {
		return w.count
	}
	return 0
}

// wantingIn finds the ask that Wanting counts, and its partition.
func (s *Scheduler) wantingIn(a *App, r *Request, want *Want) (*Scheduler, *Ask) {
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
func (s *Scheduler) Refused(a *App, r *Request, want *Want) bool {
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
func whyRefused(by map[*Constraint]int, of int, out *Why) {
	var worst *Constraint
	for c, n := range by {
		if worst == nil || n > by[worst] || n == by[worst] && c.String() < worst.String() {
			worst = c
		}
	}
	out.Text = fmt.Sprintf("Its placement constraint refuses all %d nodes that it may use: %q refuses %d of them.",
		of, worst, by[worst])
	if worst.Wrong != "" {
		out.Try = "ask by another constraint"
		return
	}
	out.Try = "wait until containers with the tags start or end, give a node the attribute, add nodes, " +
		"or ask by another constraint"
}
