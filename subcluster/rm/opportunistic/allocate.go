// SPDX-License-Identifier: Apache-2.0

package opportunistic

import (
	"math"
	"slices"
	"time"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Level is the reason for the choice of a node.
type Level uint8

// Levels, in the order of trial.
const (
	OnHost Level = iota
	OnRack
	Anywhere
	Levels = iota
)

// Placement is one container that Allocate placed and booked on a node.
type Placement struct {
	Node                int32
	Size                *amounts.Size
	Priority            int32
	AllocationRequestID int64
	Level               Level
	Label               string
	Waited              time.Duration
}

// Call is one allocation for an attempt.
type Call struct {
	Now   int64
	Draw  func(n int) int                       // a random number below n
	Suits func(serial int32, label string) bool // neither avoided by the attempt nor of another label
}

// Allocate places containers of an attempt's asks, the most urgent first, and appends them to out.
func (l *Nodes) Allocate(a *Asks, c *Call, out []Placement) []Placement {
	most := l.cfg.PerCall
	if most <= 0 {
		most = math.MaxInt
	}
	r := round{l: l, c: c, most: len(out) + min(most, math.MaxInt-len(out)), out: out}
	for _, w := range a.list {
		if w.count > 0 {
			r.serve(w)
		}
		if len(r.out) >= r.most {
			break
		}
	}
	a.list = slices.DeleteFunc(a.list, func(w *ask) bool { return w.count == 0 })
	return r.out
}

// round is the state of one Allocate.
type round struct {
	l    *Nodes
	c    *Call
	most int // length of out at which the call ends
	out  []Placement
}

// serve places containers of one ask. An ask that got its number is dropped with its names.
func (r *round) serve(w *ask) {
	p := r.l.pools[w.label]
	for _, x := range slices.Clone(w.places) {
		if !x.ofRack() {
			r.onHost(w, x)
		}
	}
	if p == nil {
		return
	}
	for _, x := range slices.Clone(w.places) {
		if x.ofRack() && !x.strict {
			r.onRack(w, x, p.racks[x.name])
		}
	}
	if !w.strict {
		r.anywhere(w, p.sorted)
	}
}

// wants reports whether the ask may get another container in this call.
func (r *round) wants(w *ask) bool { return w.count > 0 && len(r.out) < r.most }

// onHost places containers on the nodes of a named host.
func (r *round) onHost(w *ask, x *place) {
	for _, n := range r.l.byName[x.name] {
		for x.count > 0 && r.wants(w) && r.try(w, n, OnHost) {
			r.lower(w, x)
		}
	}
}

// onRack places containers on the nodes of a named rack, one after the other from a random start.
func (r *round) onRack(w *ask, x *place, nodes []*node) {
	if len(nodes) == 0 || !r.wants(w) {
		return
	}
	at, refused := r.c.Draw(len(nodes)), 0
	for x.count > 0 && r.wants(w) && refused < len(nodes) {
		if r.try(w, nodes[at], OnRack) {
			r.lower(w, x)
			refused = 0
		} else {
			refused++
		}
		at = (at + 1) % len(nodes)
	}
}

// anywhere places each container on the first admitting node of the least loaded ones, from a random start.
func (r *round) anywhere(w *ask, nodes []*node) {
	nodes = nodes[:min(len(nodes), max(r.l.cfg.NodesUsed, 1))]
	for len(nodes) > 0 && r.wants(w) {
		from, found := r.c.Draw(len(nodes)), false
		for i := 0; i < len(nodes) && !found; i++ {
			found = r.try(w, nodes[(from+i)%len(nodes)], Anywhere)
		}
		if !found {
			return
		}
	}
}

// try places one container of an ask on a node, if the node admits it.
func (r *round) try(w *ask, n *node, at Level) bool {
	if !r.l.admits(n, &w.size.V) || !r.c.Suits(n.serial, w.label) {
		return false
	}
	r.l.Put(n.serial, &w.size.V, false)
	w.count--
	r.out = append(r.out, Placement{
		Node: n.serial, Size: w.size, Priority: w.priority, AllocationRequestID: w.alloc, Level: at, Label: w.label,
		Waited: time.Duration(r.c.Now - w.asked),
	})
	return true
}

// lower counts a container at a named place.
func (r *round) lower(w *ask, x *place) {
	if x.count--; x.count == 0 {
		w.forget(x)
	}
}
