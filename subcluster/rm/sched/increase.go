// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// Increase tries to increase a container and reports whether it succeeded. Without free resources, or above a limit,
// it waits. It is tried again, before all other asks, when resources on its node become free; then it is returned as
// a Grant.
func (s *Scheduler) Increase(x *Increase) bool {
	p := x.Node.of
	if p.increases.grow(x) {
		return true
	}
	x.Node.increases = append(x.Node.increases, x)
	p.increases.waiting++
	return false
}

// grow books an increase if its node has enough free resources and limits admit it.
func (xs *increases) grow(x *Increase) bool {
	p := xs.part
	more := amounts.Size{V: x.To.V}
	if x.From != nil {
		more.V.Sub(&x.From.V)
	}
	a := x.App
	if p.label != "" {
		a = p.cluster.appIn(a, p)
	}
	if !p.sizes.Fits(&more.V, &x.Node.free) || a.admit(&more, nil).limit != explain.LimitNone {
		return false
	}
	if x.From == nil {
		p.chargeOn(a, x.Node, x.To)
		return true
	}
	p.resizeOn(a, x.Node, x.From, x.To)
	return true
}

// Withdraw cancels a waiting increase, if it waits.
func (s *Scheduler) Withdraw(x *Increase) {
	if i := slices.Index(x.Node.increases, x); i >= 0 {
		x.Node.increases = slices.Delete(x.Node.increases, i, i+1)
		x.Node.of.increases.waiting--
	}
}

// growOn tries the increases that wait for free resources on n, oldest first.
func (xs *increases) growOn(n *Node) {
	kept := n.increases[:0]
	for _, x := range n.increases {
		if !xs.grow(x) {
			kept = append(kept, x)
			continue
		}
		xs.waiting--
		xs.part.grants = append(xs.part.grants, Grant{App: x.App, Node: n, Size: x.To, Increase: x})
	}
	clear(n.increases[len(kept):])
	n.increases = kept
}
