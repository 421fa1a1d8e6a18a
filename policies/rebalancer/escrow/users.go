// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
)

// A user limit is a maximum for each user of a queue. A queue may have tens of thousands of users. With a record for
// each user, members would constantly write records for users with two containers. So a queue has one document,
// UsersRecord, with two kinds of records:
//
//   - Each divides the limit evenly among members. In a member every user that is not hot may use the member's part.
//     The parts sum to the limit, so no user exceeds it.
//   - A user that wants more than that part in some member is hot. A hot user has a record like a queue's, whose
//     maximum is the whole limit. It replaces the parts of Each in all members. Every member with a part of Each may
//     let the user use it, so the record grants nothing more until all these members have asked (Record.Awaited).
//
// When no member has a part of a hot user's record, the user runs no containers. Then the record is deleted, and the
// parts of Each apply to the user again.
//
// Both kinds are in one document, written by one compare-and-set, so that a member that renews its part of Each reads
// all hot users. A member that has not read a hot user's record loses its part of Each when its lease expires. The
// hot user's record waits for that.

// MostHot is the most users of a queue that have records at once. Further users stay at the parts of Each.
const MostHot = 100

// UsersRecord divides the limit of each user of a queue.
type UsersRecord struct {
	Each *Record   `json:"each"`
	Hot  []HotUser `json:"hot,omitempty"` // by name
}

// HotUser is a user with a record.
type HotUser struct {
	User string `json:"user"`
	*Record
}

// HoldsBack reports whether some user wants more than the limit, by the members' last requests. The amount beyond it
// is unknown: a member requests no more than the size of its nodes.
func (r *UsersRecord) HoldsBack() bool {
	for _, u := range r.Hot {
		var needs creel.Resource
		for i := range u.Holders {
			needs = needs.Add(u.Holders[i].Needs)
		}
		if !needs.Fits(u.Maximum) {
			return true
		}
	}
	return false
}

// UsersRequest is a member's request for the users of a queue.
type UsersRequest struct {
	Each  Request
	Users []UserRequest // by name
}

// UserRequest is the request for a hot user.
type UserRequest struct {
	User string
	Request
	First bool // the member's cap is its part of Each
}

// UsersGrant is the answer to a UsersRequest.
type UsersGrant struct {
	Each   Grant
	Users  []UserGrant // the requested users that have a record
	Hot    []string    // the users with a record now
	Source string      // of the store
}

// UserGrant is the grant for a hot user.
type UserGrant struct {
	User string
	Grant
}

// NewUsersRecord makes the first record of a queue's users.
func NewUsersRecord(q creel.QueuePath, limit creel.Resource, tree int64) *UsersRecord {
	return &UsersRecord{Each: NewRecord(q, limit, tree)}
}

// Adopt calls Record.Adopt for all records. Members running Hadoop's ResourceManager do not enforce user limits.
func (r *UsersRecord) Adopt(now time.Time, source string, members []creel.SubclusterID, t Terms) {
	r.Each.Adopt(now, source, members, nil, t)
	for i := range r.Hot {
		r.Hot[i].Adopt(now, source, members, nil, t)
	}
}

// Limit calls Record.Limit for all records.
func (r *UsersRecord) Limit(limit creel.Resource, tree int64) {
	r.Each.Limit(limit, tree)
	for i := range r.Hot {
		r.Hot[i].Limit(limit, tree)
	}
}

// Ask answers a request and changes the record accordingly. now is by the store's clock. A request of an earlier
// epoch is rejected with creel.ErrStale.
func (r *UsersRecord) Ask(now time.Time, q *UsersRequest, t Terms) (g UsersGrant, err error) {
	if g.Each, err = r.Each.Ask(now, q.Each, t); err != nil {
		return g, err
	}
	g.Source = r.Each.Source
	for i := range q.Users {
		u := &q.Users[i]
		x := r.hot(now, u, t)
		if x == nil {
			continue
		}
		request := u.Request
		if u.Recovering && slices.Contains(x.Awaited, u.Member) {
			// Containers that the user runs there under the part of Each may not be found yet, and this record does
			// not count them.
			for j := range r.Each.Holders {
				if h := &r.Each.Holders[j]; h.Member == u.Member {
					request.Else = request.Else.Max(h.Cap.Add(h.Over))
				}
			}
		}
		grant, err := x.Ask(now, request, t)
		if err != nil {
			return g, err
		}
		g.Users = append(g.Users, UserGrant{u.User, grant})
		if u.Leaves {
			x.Holders = slices.DeleteFunc(x.Holders, func(h Holder) bool {
				return h.Member == u.Member && h.Cap.IsZero() && h.Over.IsZero()
			})
		}
	}
	r.Hot = slices.DeleteFunc(r.Hot, func(u HotUser) bool {
		u.expire(now, t)
		return len(u.Holders) == 0 && u.settled(now)
	})
	for _, u := range r.Hot {
		g.Hot = append(g.Hot, u.User)
	}
	return g, nil
}

// hot returns the record of a user, and makes it if needed. It returns nil if there are too many records.
func (r *UsersRecord) hot(now time.Time, q *UserRequest, t Terms) *Record {
	i, known := slices.BinarySearchFunc(r.Hot, q.User, func(u HotUser, name string) int {
		return strings.Compare(u.User, name)
	})
	if !known {
		if q.First && len(r.Hot) >= MostHot {
			return nil
		}
		x := NewRecord(r.Each.Queue, r.Each.Maximum, r.Each.Tree)
		x.Label = r.Each.Label
		members := slices.Clone(r.Each.Awaited)
		for j := range r.Each.Holders {
			members = append(members, r.Each.Holders[j].Member)
		}
		x.Adopt(now, r.Each.Source, members, nil, t)
		r.Hot = slices.Insert(r.Hot, i, HotUser{q.User, x})
	}
	return r.Hot[i].Record
}

// EachUser is the name, in lists of records, of the record of all users without a record.
const EachUser = "*"

// All yields the records, with their users: EachUser first.
func (r *UsersRecord) All(yield func(user string, of *Record) bool) {
	if !yield(EachUser, r.Each) {
		return
	}
	for _, h := range r.Hot {
		if !yield(h.User, h.Record) {
			return
		}
	}
}

// Strange reports whether the record has hot users that are missing in a member's state.
func (r *UsersRecord) Strange(u *Users) bool {
	return slices.ContainsFunc(r.Hot, func(h HotUser) bool { return u.hot[h.User] == nil })
}

// UserUse is a user's use and demand in a member.
type UserUse struct {
	User        string
	Uses, Needs creel.Resource // Needs: includes pending asks
}

// Users is a subcluster's side for the users of one queue, as Member is for the queue. It allows nothing before the
// first grant.
type Users struct {
	ID      creel.SubclusterID
	Epoch   int64
	Terms   Terms
	Recover time.Time

	each   Member
	source string // of the store, at the last answer
	hot    map[string]*hotUser
}

// hotUser is a user that has a record, or will get one with the next request.
type hotUser struct {
	Member
	first  bool // no answer yet: the cap is the part of Each
	again  bool // another request is needed though the user wants nothing
	gone   bool // the member has no part, and the record shows that
	leaves bool // the request under way releases everything
}

// Ask makes a request from the users' present use and demand, sorted by name.
func (u *Users) Ask(now time.Time, uses []UserUse) *UsersRequest {
	part, apart := u.each.Cap(now), creel.Resource{}
	of := map[string]UserUse{}
	for _, x := range uses {
		if of[x.User] = x; u.hot[x.User] != nil {
			continue
		}
		if now.Before(u.each.ends) && !x.Needs.Fits(part) {
			u.begin(x.User).first = true
		} else {
			apart = apart.Max(x.Uses)
		}
	}
	q := &UsersRequest{}
	for _, name := range slices.Sorted(maps.Keys(u.hot)) {
		h, x := u.hot[name], of[name]
		idle := x.Uses.IsZero() && x.Needs.IsZero()
		if idle && h.gone && !h.again {
			continue
		}
		r := UserRequest{name, h.Ask(now, x.Uses, x.Needs), h.first}
		h.leaves = idle && !r.Recovering // the user's containers may not be found yet
		r.Leaves = h.leaves
		q.Users = append(q.Users, r)
	}
	u.each.ID, u.each.Epoch, u.each.Terms, u.each.Recover = u.ID, u.Epoch, u.Terms, u.Recover
	q.Each = u.each.Ask(now, creel.Resource{}, creel.Resource{})
	q.Each.Else = apart
	return q
}

// begin makes a user hot, starting with this member's part of Each.
func (u *Users) begin(name string) *hotUser {
	h := &hotUser{Member: Member{
		ID: u.ID, Epoch: u.Epoch, Terms: u.Terms, Recover: u.Recover, held: u.each.held, ends: u.each.ends,
	}}
	if u.hot == nil {
		u.hot = map[string]*hotUser{}
	}
	u.hot[name] = h
	return h
}

// Granted applies the answer to the request made at sent. It is called only after the record has been written. again
// reports that another request is needed at once.
func (u *Users) Granted(sent time.Time, g UsersGrant) (again bool) {
	for _, name := range g.Hot {
		if u.hot[name] == nil {
			u.begin(name).again = true
		}
	}
	for i := range g.Users {
		x := &g.Users[i]
		h := u.hot[x.User]
		h.gone = h.leaves && h.Cap(sent).IsZero() && x.Cap.IsZero()
		h.Granted(sent, x.Grant)
		h.first, h.again = false, false
	}
	for name, h := range u.hot {
		if !slices.Contains(g.Hot, name) {
			if g.Source == u.source {
				delete(u.hot, name) // the user runs no containers anywhere, or there are too many hot users
			} else {
				h.again = true // the store may have lost the record
			}
		}
		again = again || h.again
	}
	u.source = g.Source
	u.each.Granted(sent, g.Each)
	return again
}

// Cap returns the most that a user may use here at the given time, and the end of its lease.
func (u *Users) Cap(now time.Time, user string) (creel.Resource, time.Time) {
	if h := u.hot[user]; h != nil {
		return h.Cap(now), h.ends
	}
	return u.each.Cap(now), u.each.ends
}

// Lack is the part of a member's need that was not granted, and the reason.
type Lack struct {
	Needs  creel.Resource
	Reason string
}

// Hot yields the users with records, and the needs not granted at the last request.
func (u *Users) Hot(yield func(user string, lack Lack) bool) {
	for name, h := range u.hot {
		if !yield(name, Lack{h.short, h.reason}) {
			return
		}
	}
}

// Each returns the most that every other user may use here at the given time, and the end of its lease.
func (u *Users) Each(now time.Time) (creel.Resource, time.Time) {
	return u.each.Cap(now), u.each.ends
}
