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

// NamedPlaces lists the places of a container's node that its ask named, if the ask accepts no other places; 0 for an
// ask that runs anywhere. Restore asks for them again.
type NamedPlaces uint8

const (
	insisted   NamedPlaces = 1 << iota // "*" is not relaxed
	onHost                             // the host was named,
	onRack                             // and the rack,
	rackStrict                         // only its named hosts
)

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

// Reason is the reason for the choice of a container's node.
type Reason uint8

// Reasons of a grant.
const (
	ReasonNone      Reason = iota
	NodeLocal              // on a host the ask named
	RackLocal              // on a rack that the ask named
	OffSwitch              // anywhere, because the ask named no place
	Relaxed                // anywhere, after the wait for a local node
	RackRelaxed            // on the rack, after the wait for a local node
	FromReservation        // on the node reserved for it
	Recovered              // it ran before: see Charge
	ByNode                 // by the AM's NodeManager: distributed scheduling
)

var reasons = [...]string{
	"none",
	"node-local",
	"rack-local",
	"off-switch",
	"relaxed to any node",
	"relaxed to the rack",
	"from its reservation",
	"recovered",
	"placed by a NodeManager",
}

func (r Reason) String() string { return reasons[r] }

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
