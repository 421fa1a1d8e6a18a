// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"time"

	"github.com/creelrm/creel/subcluster/rm/sched/places"
)

// rare returns the GrantExtra of w's container on n, nil if it needs none.
func (w *Ask) rare(n *Node, at places.Distance) *GrantExtra {
	if w.want == nil && !w.strict {
		return nil
	}
	return &GrantExtra{Want: w.want, Insists: w.insists(n, at)}
}

// insists returns the NamedPlaces of w's container on n.
func (w *Ask) insists(n *Node, at places.Distance) NamedPlaces {
	if !w.strict {
		return 0
	}
	i := insisted
	if at == places.AtNode && w.named.Place(n.host.Name()) != nil {
		i |= onHost
	}
	if at <= places.AtRack {
		if p := w.named.Place(n.rack.Name()); p != nil {
			i |= onRack
			if p.Strict {
				i |= rackStrict
			}
		}
	}
	return i
}

// grant books the container that w gets on n.
func (p *partition) grant(w *Ask, n *Node, at places.Distance, reason Reason) {
	a, size := w.app, w.size
	if h := w.hold; h != nil && (h.node == n || w.count == 1) {
		p.reservations.drop(h)
	}
	rare := w.rare(n, at)
	p.grants = append(p.grants, Grant{
		App:                 a,
		Node:                n,
		Size:                size,
		AllocationRequestID: w.alloc,
		Priority:            w.priority,
		ExecutionType:       w.execution,
		Reason:              reason,
		Waited:              time.Duration(p.now - w.asked),
		AM:                  w.am,
		Rare:                rare,
	})
	n.free.Sub(&size.V)
	p.nodes.reindex(n)
	if rare != nil && w.want != nil {
		p.tags.Count(a, n, w.want.Tags, 1)
	}
	p.charge(a, size, 1)
	a.queue.granted++
	a.queue.near[at]++
	p.served(w, n, at)
	if w.count == 0 {
		p.forgetIfEmpty(w)
	}
	if w.am {
		p.enroll(a)
	}
}
