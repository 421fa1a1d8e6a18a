// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
)

// Terms of all leases of a federation.
type Terms struct {
	Lease  time.Duration // of a cap, from the moment of the request
	Linger time.Duration // a cap counts for so long after its lease is over
	Margin time.Duration // a member's lease ends this much earlier for itself: clocks differ in speed
}

// DefaultTerms returns the terms by the settings' defaults.
func DefaultTerms() Terms {
	return Terms{Lease: 15 * time.Second, Linger: 10 * time.Minute, Margin: 500 * time.Millisecond}
}

// Record shares out the maximum of one queue, on the nodes of a label if it has one. Times are the store's.
type Record struct {
	Queue   creel.QueuePath `json:"queue"`
	Label   string          `json:"label,omitempty"`
	Maximum creel.Resource  `json:"maximum"`
	Tree    int64           `json:"tree"`             // version of the federation's queue tree that it is from
	Source  string          `json:"source,omitempty"` // of the store that it was written in
	// Awaited are the members that may hold caps unknown to this record. Until each of them has asked, but at most
	// until Settled, when all such caps are over, no member is granted more than it reports to hold.
	Awaited []creel.SubclusterID `json:"awaited,omitempty"`
	Settled time.Time            `json:"settled"`
	// AwaitedStanding are the awaited members whose caps do not expire: they are awaited however long that takes.
	AwaitedStanding []creel.SubclusterID `json:"awaited_standing,omitempty"`
	Holders         []Holder             `json:"holders,omitempty"` // by member
}

// Holder is one member's part.
type Holder struct {
	Member  creel.SubclusterID `json:"member"`
	Epoch   int64              `json:"epoch"`
	Cap     creel.Resource     `json:"cap"`            // counts against the maximum
	Over    creel.Resource     `json:"over,omitempty"` // use beyond the cap, from before the cap or under a higher one
	Needs   creel.Resource     `json:"needs"`          // use and pending when it last asked
	Share   creel.Resource     `json:"share,omitzero"` // the rebalancer's, zero for an even split
	Lease   time.Duration      `json:"lease"`
	Ends    time.Time          `json:"ends"`
	Version int64              `json:"version"` // rises with each answer
	// Standing caps count until the member reports otherwise or leaves the federation; Fixed ones cannot be changed
	// (Standing).
	Standing bool `json:"standing,omitempty"`
	Fixed    bool `json:"fixed,omitempty"`
}

// Lasts returns a text for how long the holder's cap stays its own if that does not depend on a lease; "" if it does.
func (h *Holder) Lasts() string {
	switch {
	case h.Fixed:
		return "its own maximum counts: calls cannot change it"
	case h.Standing:
		return "as its maximum-capacity is set"
	}
	return ""
}

// Request is a member's request. Amounts are totals, not differences, so that a repeated request is the same request.
type Request struct {
	Member creel.SubclusterID
	Epoch  int64
	Holds  creel.Resource // the cap in force at the member
	Uses   creel.Resource // containers and reservations
	Needs  creel.Resource // use and pending asks
	// Recovering says that containers of the previous epoch may not be counted in Uses yet: the cap is not lowered.
	Recovering bool
	// Else counts against the maximum as Uses does, and is no reason to have more: see Users.
	Else creel.Resource
	// Leaves: it wants nothing, and releases its part even if no other member is short.
	Leaves bool
	// Standing: the setting in force there stays so without a lease. Fixed: it cannot be changed.
	Standing, Fixed bool
}

// Grant is the answer.
type Grant struct {
	Cap     creel.Resource
	Lease   time.Duration
	Version int64
	Short   creel.Resource // needs that the cap does not cover
	Reason  string
}

// NewRecord makes the record of a queue that has none. Members may hold caps
// that an emptied store has lost, so it waits for all of them first.
func NewRecord(q creel.QueuePath, maximum creel.Resource, tree int64) *Record {
	return &Record{Queue: q, Maximum: maximum, Tree: tree}
}

// Adopt prepares a record that was read from a store with the given source. A store that may have lost writes may
// have older leases and lower caps than members have. members are all members of the federation, standing those whose
// caps have no lease.
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

// settled reports whether all caps that members may hold are known.
func (r *Record) settled(now time.Time) bool {
	return len(r.AwaitedStanding) == 0 && (len(r.Awaited) == 0 || !now.Before(r.Settled))
}

// Members yields the members that hold a part, or may, and whether they do so without a lease.
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

// Leave drops parts held without a lease by members that have left the federation: members are those still in it.
func (r *Record) Leave(members []creel.SubclusterID) {
	gone := func(id creel.SubclusterID) bool { return !slices.Contains(members, id) }
	r.Holders = slices.DeleteFunc(r.Holders, func(h Holder) bool { return h.Standing && gone(h.Member) })
	r.AwaitedStanding = slices.DeleteFunc(slices.Clone(r.AwaitedStanding), gone)
}

// Silent reports whether a member that holds without a lease, or is awaited without end, has made no request for the
// time of a lease: it may have left.
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

// Limit takes over the maximum of a newer version of the queue tree.
func (r *Record) Limit(maximum creel.Resource, tree int64) {
	if tree > r.Tree {
		r.Maximum, r.Tree = maximum, tree
	}
}

// Plan takes over the rebalancer's shares and reports whether that changed
// anything; members without one have an even split.
func (r *Record) Plan(shares map[creel.SubclusterID]creel.Resource) (changed bool) {
	for i := range r.Holders {
		h := &r.Holders[i]
		changed = changed || !h.Share.Equal(shares[h.Member])
		h.Share = shares[h.Member]
	}
	return changed
}

// Ask answers a request at a time of the store's clock and changes the record accordingly. A request of an earlier
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
		reason = "the rest of the maximum is held by others"
	}
	// The record counts the amount that the member has in force until it reports less: the answer may be lost.
	cap := give.Max(q.Holds)
	if q.Recovering {
		cap = cap.Max(h.Cap)
	}
	over := q.Uses.Max(q.Else)
	if q.Recovering { // containers that ran above its cap before may not be found yet
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

// expire drops parts that no member can hold any more.
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

// want returns the part that holder i should have if there is enough: its need and, as long as no other holder is
// short, its share beyond that, to save requests.
func (r *Record) want(now time.Time, i int, q *Request) (creel.Resource, string) {
	h := &r.Holders[i]
	needs := q.Needs.Max(q.Uses)
	share := r.share(i)
	holds := q.Holds.Max(q.Uses)
	if q.Recovering { // it has the amount it held, and not more before the others have asked
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
	case !short && q.Standing: // to change it costs its ResourceManager a new reading of all queues
		return needs.Max(share).Max(q.Holds), ""
	case !short:
		return needs.Max(share), ""
	case lack.IsZero():
		return needs, ""
	}
	// Beyond its share it keeps the rest after the others have theirs.
	keeps := positive(q.Holds.Max(q.Uses).Add(free).Sub(lack))
	return needs.Min(share.Max(keeps)), "others are short of their share"
}

// share of holder i: the plan's, or an even one.
func (r *Record) share(i int) creel.Resource {
	if s := r.Holders[i].Share; !s.IsZero() {
		return s.Min(r.Maximum)
	}
	return r.Maximum.Scale(1, int64(len(r.Holders)))
}

// lack reports whether another holder needs more than it has, how much the holders below their shares are short of in
// total, and how much is unheld. A holder with an expired lease asks for nothing.
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

// Counted is the sum of all that counts against the maximum.
func (r *Record) Counted() creel.Resource {
	var sum creel.Resource
	for i := range r.Holders {
		sum = sum.Add(r.Holders[i].Cap)
	}
	return sum
}

func positive(r creel.Resource) creel.Resource { return r.Max(creel.Resource{}) }

// Clone copies a record.
func (r *Record) Clone() *Record {
	c := *r
	c.Holders = slices.Clone(r.Holders)
	c.Awaited, c.AwaitedStanding = slices.Clone(r.Awaited), slices.Clone(r.AwaitedStanding)
	return &c
}
