// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// UserCaps is this subcluster's part of the limits of each user of a leaf in the whole federation. It applies beside
// the leaf's own user limits; for a label see QueueCap.
type UserCaps struct {
	Queue creel.QueuePath
	Label string
	Limit creel.Resource // of the federation; applies to memory, vcores and the other types that it names
	Each  UserCap        // for users that are not in Users
	Users map[string]UserCap
}

// UserCap is the cap of one user.
type UserCap struct {
	Cap    creel.Resource
	Until  time.Time      // by the scheduler's time: after it no more is allocated
	Short  creel.Resource // requested and not granted yet, for Why
	Reason string         // why it is not granted, for Why
}

// userCaps are the caps in force in a leaf.
type userCaps struct {
	UserCaps
	each  userCap
	users map[string]userCap
}

type userCap struct {
	amount amounts.Vec
	until  int64
}

// SetUserCaps sets caps of a queue's users, even for a queue that does not exist yet. Containers above them keep
// running. Schedule is due.
func (s *Scheduler) SetUserCaps(c UserCaps) {
	k := &userCaps{UserCaps: c, each: s.userCapOf(&c.Limit, c.Each), users: make(map[string]userCap, len(c.Users))}
	for name, u := range c.Users {
		k.users[name] = s.userCapOf(&c.Limit, u)
	}
	of := capKey{c.Queue, c.Label}
	old := s.userCaps[of]
	s.userCaps[of] = k
	if p := s.partition(c.Label); p != nil {
		p.userCapsChanged(c.Queue, old, k)
	}
}

// ClearUserCaps removes them: the queue's users have no federation-wide limit on nodes of the label any more.
func (s *Scheduler) ClearUserCaps(q creel.QueuePath, label string) {
	of := capKey{q, label}
	if old := s.userCaps[of]; old != nil {
		delete(s.userCaps, of)
		if p := s.partition(label); p != nil {
			p.userCapsChanged(q, old, nil)
		}
	}
}

func (s *Scheduler) userCapOf(limit *creel.Resource, c UserCap) userCap {
	k := userCap{amount: s.sizes.Vec(c.Cap)}
	if !c.Until.IsZero() {
		k.until = c.Until.UnixNano()
	}
	for i := 2; i < s.sizes.N; i++ {
		if limit.Get(s.sizes.Names[i]) == 0 {
			k.amount.Set(i, amounts.Unbounded)
		}
	}
	return k
}

// userCapsChanged retries the users that the old caps stopped.
func (s *Scheduler) userCapsChanged(path creel.QueuePath, old, to *userCaps) {
	q := s.tree.byPath[path]
	if q == nil || q.leaf == nil {
		return
	}
	q.leaf.caps = to
	for _, u := range q.leaf.userList {
		if !u.limited {
			continue
		}
		was, had := old.of(u.name)
		is, has := to.of(u.name)
		if had != has || has && (s.now >= was.until || !was.amount.Is(&is.amount)) {
			s.touch(q)
			s.unlimit(u)
		}
	}
	s.lendAgain()
}

// of returns a user's cap; false if there is none.
func (c *userCaps) of(name string) (userCap, bool) {
	if c == nil {
		return userCap{}, false
	}
	if k, ok := c.users[name]; ok {
		return k, true
	}
	return c.each, true
}

// underCap reports whether a user's cap permits need more. It is inlined: without caps, a grant pays for one
// comparison.
func (u *user) underCap(need *amounts.Vec) bool {
	return u.q.leaf.caps == nil || u.capAdmits(need)
}

func (u *user) capAdmits(need *amounts.Vec) bool {
	s := u.q.s
	k, has := u.q.leaf.caps.of(u.name)
	return !has || s.now < k.until && s.sizes.FitsPlus(&u.used, need, &k.amount)
}

// cap returns a user's limit by the cap; false if there is none.
func (u *user) cap() (amounts.Vec, bool) {
	k, has := u.q.leaf.caps.of(u.name)
	if has && u.q.s.now >= k.until {
		return amounts.Vec{}, true
	}
	return k.amount, has
}
