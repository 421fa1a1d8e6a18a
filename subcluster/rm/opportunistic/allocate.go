// SPDX-License-Identifier: Apache-2.0

package opportunistic

import (
	"math"
	"slices"
	"time"

	"github.com/creelrm/creel/subcluster/levels"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Placement is one container that Allocate placed and booked on a node.
type Placement struct {
	Node                int32
	Size                *amounts.Size
	Priority            int32
	AllocationRequestID int64
	Level               levels.Level
	Label               string
	Waited              time.Duration
}

// Call is one allocation for an attempt.
type Call struct {
	Now   int64
	Most  int                                   // containers, if above 0
	Draw  func(n int) int                       // a random number below n
	Suits func(serial int32, label string) bool // neither avoided by the attempt nor of another label
}

// Allocate places containers of an attempt's asks, the most urgent first, and appends them to out.
func (l *Nodes) Allocate(a *Asks, c *Call, out []Placement) []Placement {
	most := l.cfg.PerCall
	if most <= 0 {
		most = math.MaxInt
	}
	if c.Most > 0 {
		most = min(most, c.Most)
	}
	r := round{l: l, c: c, most: len(out) + min(most, math.MaxInt-len(out)), out: out}
	for _, w := range a.list {
		if w.Count > 0 {
			r.serve(w)
		}
		if len(r.out) >= r.most {
			break
		}
	}
	a.list = slices.DeleteFunc(a.list, func(w *ask) bool { return w.Count == 0 })
	return r.out
}

// round is the state of one Allocate.
type round struct {
	l    *Nodes
	c    *Call
	most int // length of out at which the call ends
	out  []Placement
}

// serve places containers of one ask.
func (r *round) serve(w *ask) {
	nodes := levels.Nodes[*node]{
		Host:  func(name string) []*node { return r.l.byName[name] },
		Rack:  func(string) []*node { return nil },
		Start: r.c.Draw,
		More:  func() bool { return len(r.out) < r.most },
		Place: func(n *node, at levels.Level) bool { return r.try(w, n, at) },
	}
	fills := r.l.cfg.Placing == LeastFilled
	if p := r.l.pools[w.label]; p != nil {
		nodes.Rack = func(name string) []*node { return p.racks[name] }
		if !fills {
			nodes.Least = p.sorted[:min(len(p.sorted), max(r.l.cfg.NodesUsed, 1))]
		}
	}
	nodes.Serve(&w.Ask)
	if fills {
		r.leastFilled(w)
	}
	w.Places = slices.DeleteFunc(w.Places, func(p *levels.Place) bool {
		if p.Count == 0 {
			delete(w.byName, p.Name)
		}
		return p.Count == 0
	})
}

// try places one container of an ask on a node, if the node admits it.
func (r *round) try(w *ask, n *node, at levels.Level) bool {
	if !r.l.admits(n, &w.size.V) || !r.c.Suits(n.serial, w.label) {
		return false
	}
	r.l.Put(n.serial, &w.size.V, false)
	r.out = append(r.out, Placement{
		Node: n.serial, Size: w.size, Priority: w.priority, AllocationRequestID: w.alloc, Level: at, Label: w.label,
		Waited: time.Duration(r.c.Now - w.asked),
	})
	return true
}
