// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"time"

	"github.com/creelrm/creel"
)

// Member is a subcluster's side for one queue. Times are by its own clock. The zero cap of a new Member allows
// nothing: a queue with a maximum may not grow before its first grant.
type Member struct {
	ID      creel.SubclusterID
	Epoch   int64
	Terms   Terms
	Recover time.Time // until then containers of the epoch before may still be found

	held   creel.Resource
	ends   time.Time
	short  creel.Resource
	reason string
}

// Begin sets the cap to the queue's use at the time when it gets its maximum. This cap needs no grant, and lasts for
// one lease.
func (m *Member) Begin(now time.Time, uses creel.Resource) {
	m.held, m.ends = uses, now.Add(m.Terms.Lease-m.Terms.Margin)
}

// Ask makes a request. uses and needs must be current: the request reports the cap in force at that moment.
func (m *Member) Ask(now time.Time, uses, needs creel.Resource) Request {
	return Request{
		Member: m.ID, Epoch: m.Epoch, Holds: m.Cap(now), Uses: uses, Needs: needs.Max(uses),
		Recovering: now.Before(m.Recover),
	}
}

// Granted applies the answer to the request made at sent. It is called only after the record has been written.
func (m *Member) Granted(sent time.Time, g Grant) {
	m.held, m.ends = g.Cap, sent.Add(g.Lease-m.Terms.Margin)
	m.short, m.reason = g.Short, g.Reason
}

// Cap returns the most that the queue may use here at the given time.
func (m *Member) Cap(now time.Time) creel.Resource {
	if !now.Before(m.ends) {
		return creel.Resource{}
	}
	return m.held
}

// Ends returns the time when the lease is over.
func (m *Member) Ends() time.Time { return m.ends }

// Short returns the need beyond the cap at the last request, and the reason why it was not granted.
func (m *Member) Short() (creel.Resource, string) { return m.short, m.reason }
