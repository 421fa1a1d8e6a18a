// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
)

// Terms are the terms of all leases of a federation.
type Terms struct {
	Lease  time.Duration // of a cap, from the time of the request
	Linger time.Duration // time for which a cap counts after its lease is over
	Margin time.Duration // a member ends its lease this much earlier, since clocks differ in speed
}

// DefaultTerms returns the defaults of the settings.
func DefaultTerms() Terms {
	return Terms{Lease: 15 * time.Second, Linger: 10 * time.Minute, Margin: 500 * time.Millisecond}
}

// Record divides the maximum of one queue, for the nodes of one label or for nodes without a label. Times are by the
// store's clock.
type Record struct {
	Queue   creel.QueuePath `json:"queue"`
	Label   string          `json:"label,omitempty"`
	Maximum creel.Resource  `json:"maximum"`
	Tree    int64           `json:"tree"`             // version of the federation's queue tree that sets the maximum
	Source  string          `json:"source,omitempty"` // of the store in which it was written
	// Awaited are the members that may have caps unknown to this record. Until each of them has asked, no member gets
	// more than its reported cap. This ends at Settled at the latest, when all such caps have expired.
	Awaited []creel.SubclusterID `json:"awaited,omitempty"`
	Settled time.Time            `json:"settled"`
	// AwaitedStanding are the awaited members whose caps do not expire: the record awaits them without a time limit.
	AwaitedStanding []creel.SubclusterID `json:"awaited_standing,omitempty"`
	Holders         []Holder             `json:"holders,omitempty"` // by member
}

// Holder is one member's part of the maximum.
type Holder struct {
	Member  creel.SubclusterID `json:"member"`
	Epoch   int64              `json:"epoch"`
	Cap     creel.Resource     `json:"cap"`            // counts against the maximum
	Over    creel.Resource     `json:"over,omitempty"` // use beyond the cap, by earlier containers
	Needs   creel.Resource     `json:"needs"`          // use and pending at its last request
	Share   creel.Resource     `json:"share,omitzero"` // by the plan, zero for an even split
	Lease   time.Duration      `json:"lease"`
	Ends    time.Time          `json:"ends"`
	Version int64              `json:"version"` // rises with each answer
	// Standing: the cap counts until the member reports another one or leaves the federation. Fixed: the cap cannot
	// be changed. See the type Standing.
	Standing bool `json:"standing,omitempty"`
	Fixed    bool `json:"fixed,omitempty"`
}

// Lasts returns the reason why the holder's cap does not depend on a lease; "" if it does.
func (h *Holder) Lasts() string {
	switch {
	case h.Fixed:
		return "its own maximum counts: calls cannot change it"
	case h.Standing:
		return "as its maximum-capacity is set"
	}
	return ""
}

// Request is a member's request. Amounts are totals, not differences, so that a repeated request has no further
// effect.
type Request struct {
	Member creel.SubclusterID
	Epoch  int64
	Holds  creel.Resource // the cap in force at the member
	Uses   creel.Resource // containers and reservations
	Needs  creel.Resource // use and pending asks
	// Recovering: Uses may not count all containers of the previous epoch yet, so the cap is not lowered.
	Recovering bool
	// Else counts against the maximum like Uses, but does not raise the cap (see Users).
	Else creel.Resource
	// Leaves: the member wants nothing, and releases its part even if no other member is short.
	Leaves bool
	// Standing: the setting stays in force there without a lease. Fixed: it cannot be changed.
	Standing, Fixed bool
}

// Grant is the answer to a Request.
type Grant struct {
	Cap     creel.Resource
	Lease   time.Duration
	Version int64
	Short   creel.Resource // need beyond the cap
	Reason  string
}

// NewRecord makes the first record of a queue. Members may have caps that an emptied store has lost, so Adopt makes
// it await all members.
func NewRecord(q creel.QueuePath, maximum creel.Resource, tree int64) *Record {
	return &Record{Queue: q, Maximum: maximum, Tree: tree}
}

// Adopt prepares a record that was read from a store with the given source. A store that lost writes may have older
// leases and lower caps than the members. members lists all members of the federation; standing lists the members
// whose caps have no lease.
func (r *Record) Adopt(now time.Time, source string, members, standing []creel.SubclusterID, t Terms) {
	if r.Source == source {
		return
	}
	r.Source, r.Awaited, r.AwaitedStanding = source, slices.Clone(members), slices.Clone(standing)
	longest := t.Lease
	for i := range r.Holders {
		h := &r.Holders[i]
		h.Ends = later(h.Ends, now.Add(h.Lease))
		longest = max(longest, h.Lease)
	}
	r.Settled = later(r.Settled, now.Add(longest+t.Linger))
}

// settled reports whether the record has all caps that members may have.
func (r *Record) settled(now time.Time) bool {
	return len(r.AwaitedStanding) == 0 && (len(r.Awaited) == 0 || !now.Before(r.Settled))
}

// Members yields the members that have or may have a part, and whether the part has no lease.
func (r *Record) Members(yield func(id creel.SubclusterID, standing bool)) {
	for _, id := range r.Awaited {
		yield(id, false)
	}
	for _, id := range r.AwaitedStanding {
		yield(id, true)
	}
	for i := range r.Holders {
		yield(r.Holders[i].Member, r.Holders[i].Standing)
	}
}

// Leave drops parts without a lease whose members have left the federation. members lists its present members.
func (r *Record) Leave(members []creel.SubclusterID) {
	gone := func(id creel.SubclusterID) bool { return !slices.Contains(members, id) }
	r.Holders = slices.DeleteFunc(r.Holders, func(h Holder) bool { return h.Standing && gone(h.Member) })
	r.AwaitedStanding = slices.DeleteFunc(slices.Clone(r.AwaitedStanding), gone)
}

// Silent reports whether a member may have left, although the record counts or awaits it without a time limit. Such a
// member has made no request for the time of a lease.
func (r *Record) Silent(now time.Time) bool {
	return len(r.AwaitedStanding) > 0 || slices.ContainsFunc(r.Holders, func(h Holder) bool {
		return h.Standing && !now.Before(h.Ends)
	})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Limit sets the maximum if tree is a newer version of the queue tree.
func (r *Record) Limit(maximum creel.Resource, tree int64) {
	if tree > r.Tree {
		r.Maximum, r.Tree = maximum, tree
	}
}

// Plan sets the rebalancer's shares and reports whether any changed. Members without a share get an even split.
func (r *Record) Plan(shares map[creel.SubclusterID]creel.Resource) (changed bool) {
	for i := range r.Holders {
		h := &r.Holders[i]
		changed = changed || !h.Share.Equal(shares[h.Member])
		h.Share = shares[h.Member]
	}
	return changed
}

// Ask answers a request and changes the record accordingly. now is by the store's clock. A request of an earlier
// epoch is rejected with creel.ErrStale.
func (r *Record) Ask(now time.Time, q Request, t Terms) (Grant, error) {
	r.expire(now, t)
	i, known := slices.BinarySearchFunc(r.Holders, q.Member, func(h Holder, m creel.SubclusterID) int {
		return strings.Compare(string(h.Member), string(m))
	})
	if !known {
		r.Holders = slices.Insert(r.Holders, i, Holder{Member: q.Member, Epoch: q.Epoch})
	}
	h := &r.Holders[i]
	if q.Epoch < h.Epoch {
		return Grant{}, &creel.Error{
			Kind: creel.ErrStale,
			What: fmt.Sprintf("escrow of %s refused to %s", r.Queue, q.Member),
			Why:  fmt.Sprintf("epoch %d holds it, this is %d", h.Epoch, q.Epoch),
			Try:  "stop the older ResourceManager of this subcluster",
		}
	}
	itself := func(m creel.SubclusterID) bool { return m == q.Member }
	r.Awaited = slices.DeleteFunc(slices.Clone(r.Awaited), itself)
	r.AwaitedStanding = slices.DeleteFunc(slices.Clone(r.AwaitedStanding), itself)
	room := r.room(i)
	want, reason := r.want(now, i, &q)
	give := want.Min(room).Max(creel.Resource{})
	if q.Fixed {
		give, reason = q.Holds, "its own maximum cannot be changed by calls, and counts"
	}
	if reason == "" && !want.Fits(room) {
		reason = "other members have the rest of the maximum"
	}
	// The record counts the member's cap in force until it reports a lower one: the answer may be lost.
	cap := give.Max(q.Holds)
	if q.Recovering {
		cap = cap.Max(h.Cap)
	}
	over := q.Uses.Max(q.Else)
	if q.Recovering { // containers beyond its earlier cap may not be found yet
		over = over.Max(h.Cap.Add(h.Over))
	}
	h.Epoch, h.Cap, h.Over = q.Epoch, cap, positive(over.Sub(cap))
	h.Needs, h.Lease, h.Ends = q.Needs, t.Lease, now.Add(t.Lease)
	h.Standing, h.Fixed = q.Standing, q.Fixed
	h.Version++
	return Grant{
		Cap: give, Lease: t.Lease, Version: h.Version, Short: positive(q.Needs.Sub(give)), Reason: reason,
	}, nil
}

// expire drops parts whose lease and Linger are over.
func (r *Record) expire(now time.Time, t Terms) {
	r.Holders = slices.DeleteFunc(r.Holders, func(h Holder) bool {
		return !h.Standing && !now.Before(h.Ends.Add(t.Linger))
	})
}

// room returns the most that holder i may have: the maximum less the parts that count for the others.
func (r *Record) room(i int) creel.Resource {
	room := r.Maximum
	for j := range r.Holders {
		if j != i {
			room = room.Sub(r.Holders[j].Cap).Sub(r.Holders[j].Over)
		}
	}
	return positive(room)
}

// want returns the part that holder i should have if there is enough. It is the holder's need. If no other holder is
// short, it is at least the holder's share, to save requests.
func (r *Record) want(now time.Time, i int, q *Request) (creel.Resource, string) {
	h := &r.Holders[i]
	needs := q.Needs.Max(q.Uses)
	share := r.share(i)
	holds := q.Holds.Max(q.Uses)
	if q.Recovering { // its cap stays, and does not rise before the others have asked
		holds = holds.Max(h.Cap)
	}
	switch {
	case len(r.AwaitedStanding) > 0:
		return needs.Max(share).Min(holds), fmt.Sprintf(
			"the record is new in this store: no member gets more until all have asked, and the parts of these have "+
				"no lease: %v", r.AwaitedStanding)
	case len(r.Awaited) > 0 && now.Before(r.Settled):
		return needs.Max(share).Min(holds), fmt.Sprintf(
			"the record is new in this store: no member gets more until all have asked (%v missing), or at %s",
			r.Awaited, r.Settled.UTC().Format(time.TimeOnly))
	case q.Recovering:
		return needs.Max(h.Cap), "it is recovering: its part is unchanged"
	case q.Leaves:
		return needs, ""
	}
	short, lack, free := r.lack(now, i)
	switch {
	case !short && q.Standing: // a change makes its ResourceManager reload all queues
		return needs.Max(share).Max(q.Holds), ""
	case !short:
		return needs.Max(share), ""
	case lack.IsZero():
		return needs, ""
	}
	// Beyond its share it keeps the amount that the others do not lack.
	keeps := positive(q.Holds.Max(q.Uses).Add(free).Sub(lack))
	return needs.Min(share.Max(keeps)), "other members are below their shares"
}

// share returns the share of holder i: by the plan, or an even share.
func (r *Record) share(i int) creel.Resource {
	if s := r.Holders[i].Share; !s.IsZero() {
		return s.Min(r.Maximum)
	}
	return r.Maximum.Scale(1, int64(len(r.Holders)))
}

// lack reports whether a holder other than i needs more than its cap. It returns the total shortfall of the holders
// below their shares, and the part of the maximum that no holder has. A holder with an expired lease has no needs.
func (r *Record) lack(now time.Time, i int) (short bool, lack, free creel.Resource) {
	free = r.Maximum
	for j := range r.Holders {
		h := &r.Holders[j]
		free = free.Sub(h.Cap).Sub(h.Over)
		if j == i || !now.Before(h.Ends) || h.Needs.Fits(h.Cap) {
			continue
		}
		short = true
		lack = lack.Add(positive(h.Needs.Min(r.share(j)).Sub(h.Cap)))
	}
	return short, lack, positive(free)
}

// Counted returns the sum of the amounts that count against the maximum.
func (r *Record) Counted() creel.Resource {
	var sum creel.Resource
	for i := range r.Holders {
		sum = sum.Add(r.Holders[i].Cap)
	}
	return sum
}

func positive(r creel.Resource) creel.Resource { return r.Max(creel.Resource{}) }

// Clone returns a deep copy.
func (r *Record) Clone() *Record {
	c := *r
	c.Holders = slices.Clone(r.Holders)
	c.Awaited, c.AwaitedStanding = slices.Clone(r.Awaited), slices.Clone(r.AwaitedStanding)
	return &c
}
