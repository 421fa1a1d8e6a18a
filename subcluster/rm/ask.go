// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

const anyPlace = "*"

// want is one scheduler key of an attempt: what it still asks for at one
// priority, allocation request id and execution type. The "*" entry rules
// count and size; places name hosts and racks.
type want struct {
	attempt   *attempt
	size      *size  // of "*"; nil until it came
	stops     *queue // whose maximum it waits for, so that nobody passes it
	hold      *reservation
	priority  int32
	count     int32 // of "*": containers still wanted
	alloc     int64
	execution creel.ExecutionType
	strict    bool // of "*": only listed places
	enforce   bool
	master    bool              // the attempt's own container
	level     level3            // how far from the listed places it may go now
	byName    map[string]*place // of hosts and racks, when there are many

	hosts []*place // with count > 0, in the order they came
	racks []*place

	// Delay scheduling, beside level.
	since   int64 // opportunities when the wait began; -1 = not waiting
	relaxAt int64 // opportunities at which the level rises
	serial  int64
	slot    int32
	wake    *timer
}

// level3 is how far from its places an ask may go.
type level3 uint8

const (
	atNode level3 = iota
	atRack
	atAny
)

// place is a host or rack entry of a want. host or onRack is what it names, nil
// as long as no node has registered there.
type place struct {
	name   string
	host   *host
	onRack *rack
	rack   bool
	strict bool
	count  int32
}

// resolve looks for what a place names.
func (m *Machine) resolve(p *place) {
	if p.rack {
		p.onRack = m.racks[p.name]
	} else {
		p.host = m.hosts[p.name]
	}
}

func (w *want) compare(priority int32, alloc int64, ex creel.ExecutionType) int {
	return cmp.Or(cmp.Compare(w.priority, priority), cmp.Compare(w.alloc, alloc), cmp.Compare(w.execution, ex))
}

// want finds or makes the key.
func (a *attempt) want(priority int32, alloc int64, ex creel.ExecutionType, make bool) *want {
	i, found := slices.BinarySearchFunc(a.wants, 0, func(w *want, _ int) int { return w.compare(priority, alloc, ex) })
	if found {
		return a.wants[i]
	}
	if !make {
		return nil
	}
	w := &want{attempt: a, priority: priority, alloc: alloc, execution: ex, since: -1}
	a.wants = slices.Insert(a.wants, i, w)
	return w
}

// ask takes one entry: it replaces the former one of its key and place. v is
// the normalized size; only that of "*" counts. last is what the entry before
// it gave, as entries of one key come together: its want, if it still is one.
func (m *Machine) ask(a *attempt, last *want, r *Ask, v vec) *want {
	ex := r.ExecutionType
	if ex == 0 {
		ex = creel.Guaranteed
	}
	w := last
	if w == nil || w.compare(r.Priority, r.AllocationRequestID, ex) != 0 {
		if w = a.want(r.Priority, r.AllocationRequestID, ex, r.Count > 0); w == nil {
			return nil
		}
	}
	if r.ResourceName == anyPlace || r.ResourceName == "" {
		if r.Count > w.count && !w.strict == !r.StrictLocality && w.count == 0 {
			m.endDelay(w)
		}
		w.strict, w.enforce = r.StrictLocality, r.EnforceExecution
		s := w.size
		if r.Count > 0 || s == nil {
			s = m.size(v)
		}
		m.setCount(w, r.Count, s)
		if w.hold != nil && (w.count == 0 || w.hold.size != w.size) {
			m.unreserve(w.hold)
		}
	} else {
		m.setPlace(w, r.ResourceName, r.Count, r.StrictLocality)
	}
	if m.forgetIfEmpty(w) {
		return nil
	}
	return w
}

// setCount sets what is outstanding, here and up the tree.
func (m *Machine) setCount(w *want, count int32, s *size) {
	if w.size == s && w.count == count {
		return
	}
	a := w.attempt.app
	var delta vec
	if w.size != nil {
		delta.addTimes(&w.size.v, -int64(w.count))
	}
	if s != nil {
		delta.addTimes(&s.v, int64(count))
	}
	d := count - w.count
	if count == 0 || w.size != s {
		m.unblock(w)
	}
	w.count, w.size = count, s
	m.appChanged(a)
	a.pending.add(&delta)
	a.pendingCount += d
	for q := a.queue; q != nil; q = q.parent {
		q.pending.add(&delta)
		q.pendingCount += d
	}
}

// countDown is setCount for one container less.
func (m *Machine) countDown(w *want) {
	a, s := w.attempt.app, w.size
	w.count--
	m.unblock(w)
	m.appChanged(a)
	a.pending.addTimes(&s.v, -1)
	a.pendingCount--
	for q := a.queue; q != nil; q = q.parent {
		q.pending.addTimes(&s.v, -1)
		q.pendingCount--
	}
}

// fewPlaces is up to how many places a list is quicker than a map.
const fewPlaces = 12

func (w *want) placed() bool { return len(w.hosts) > 0 || len(w.racks) > 0 }

// place gives the entry of a host or rack, nil if there is none.
func (w *want) place(name string) *place {
	if w.byName != nil {
		return w.byName[name]
	}
	list := w.hosts
	if strings.HasPrefix(name, "/") {
		list = w.racks
	}
	for _, p := range list {
		if p.name == name {
			return p
		}
	}
	return nil
}

// atHost and atRack give the entry that names the host or the rack of a node.
func (w *want) atHost(n *node) *place {
	if w.byName != nil {
		return w.byName[n.host.name]
	}
	for _, p := range w.hosts {
		if p.host == n.host || p.host == nil && p.name == n.host.name {
			return p
		}
	}
	return nil
}

func (w *want) atRack(n *node) *place {
	if w.byName != nil {
		return w.byName[n.rack.name]
	}
	for _, p := range w.racks {
		if p.onRack == n.rack || p.onRack == nil && p.name == n.rack.name {
			return p
		}
	}
	return nil
}

func (m *Machine) setPlace(w *want, name string, count int32, strict bool) {
	p := w.place(name)
	if p == nil {
		if count <= 0 {
			return
		}
		p = m.newPlace()
		p.name, p.rack = name, strings.HasPrefix(name, "/")
		m.resolve(p)
		if p.rack {
			w.racks = append(w.racks, p)
		} else {
			w.hosts = append(w.hosts, p)
		}
		if w.byName != nil {
			w.byName[name] = p
		} else if len(w.hosts)+len(w.racks) > fewPlaces {
			w.byName = make(map[string]*place, 2*fewPlaces)
			for _, x := range w.hosts {
				w.byName[x.name] = x
			}
			for _, x := range w.racks {
				w.byName[x.name] = x
			}
		}
	}
	p.count, p.strict = count, strict
	if count <= 0 {
		m.dropPlace(w, p)
	}
}

func (m *Machine) newPlace() *place {
	k := len(m.places)
	if k == 0 {
		return &place{}
	}
	p := m.places[k-1]
	m.places = m.places[:k-1]
	return p
}

// morePlaces bounds how many places are kept for reuse.
const morePlaces = 1 << 16

func (m *Machine) dropPlace(w *want, p *place) {
	if w.byName != nil {
		delete(w.byName, p.name)
	}
	list := &w.hosts
	if p.rack {
		list = &w.racks
	}
	if i := slices.Index(*list, p); i >= 0 {
		*list = slices.Delete(*list, i, i+1)
	}
	if *p = (place{}); len(m.places) < morePlaces {
		m.places = append(m.places, p)
	}
}

// served lowers the counts of the entries a container on n satisfied: the
// host's and its rack's for a local one, the rack's for a rack-local one, and
// always that of "*".
func (m *Machine) served(w *want, n *node, at level3) {
	if w.placed() {
		if at == atNode {
			m.lower(w, w.atHost(n))
		}
		if at <= atRack {
			named := len(w.racks) > 0
			m.lower(w, w.atRack(n))
			if named && len(w.racks) == 0 && len(w.hosts) > 0 {
				m.retry(w.attempt.app.queue) // hosts whose racks were not named count now; see rackAsked
			}
		}
	}
	m.countDown(w)
	if at != atAny {
		m.endDelay(w)
	}
}

func (m *Machine) lower(w *want, p *place) {
	if p == nil {
		return
	}
	if p.count--; p.count <= 0 {
		m.dropPlace(w, p)
	}
}

// restore takes back what served did at "*", for a container that never
// reached its master.
func (m *Machine) restore(a *attempt, c *Completed, priority int32, alloc int64) {
	if !a.schedulable() {
		return
	}
	w := a.want(priority, alloc, c.Execution, true)
	s := w.size
	if s == nil || w.count == 0 {
		s = m.size(m.t.vec(c.Resource))
	}
	m.setCount(w, w.count+1, s)
	m.enroll(a.app)
	m.retry(a.app.queue)
}

func (m *Machine) forgetIfEmpty(w *want) bool {
	if w.count > 0 || w.placed() {
		return false
	}
	m.endDelay(w)
	if w.hold != nil {
		m.unreserve(w.hold)
	}
	a := w.attempt
	if i := slices.Index(a.wants, w); i >= 0 {
		a.wants = slices.Delete(a.wants, i, i+1)
	}
	return true
}

// dropAsks forgets everything an attempt asked for.
func (m *Machine) dropAsks(a *attempt) {
	for len(a.wants) > 0 {
		w := a.wants[len(a.wants)-1]
		m.setCount(w, 0, w.size)
		w.byName, w.hosts, w.racks = nil, nil, nil
		m.forgetIfEmpty(w)
	}
	m.growers -= len(a.growing)
	a.growing = nil
}

// blacklist holds the hosts and racks an attempt avoids.
type blacklist struct{ names map[string]struct{} }

func (b *blacklist) bars(n *node) bool {
	if b == nil || len(b.names) == 0 {
		return false
	}
	if _, ok := b.names[n.host.name]; ok {
		return true
	}
	_, ok := b.names[n.rack.name]
	return ok
}

func (b *blacklist) change(add, remove []string) {
	if len(add) > 0 && b.names == nil {
		b.names = map[string]struct{}{}
	}
	for _, name := range add {
		b.names[name] = struct{}{}
	}
	for _, name := range remove {
		delete(b.names, name)
	}
}
