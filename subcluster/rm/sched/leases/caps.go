// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// QueueCap is this subcluster's part of a queue's federation-wide maximum. It applies beside the queue's own maximum.
// When its lease expires, no more is allocated in the queue. With a label it limits the queue's whole use of nodes
// with that label, including borrowed resources.
type QueueCap struct {
	Queue   creel.QueuePath
	Label   string         // "" for nodes without one
	Cap     creel.Resource // applies to memory and vcores, and to other types that Maximum names
	Until   time.Time      // by the scheduler's time
	Version int64          // a version older than the current one is ignored
	Maximum creel.Resource // of the federation, for Why
	Short   creel.Resource // requested and not granted yet, for Why
	Reason  string         // why it is not granted, for Why
}

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

// Lease is an amount until a time, in ns since the epoch.
type Lease struct {
	Amount amounts.Vec
	Until  int64
}

// Expired reports whether the lease has ended.
func (l *Lease) Expired(now int64) bool { return now >= l.Until }

// Admits reports whether have and need together are within the lease.
func (l *Lease) Admits(sizes *amounts.Sizes, now int64, have, need *amounts.Vec) bool {
	return now < l.Until && sizes.FitsPlus(have, need, &l.Amount)
}

// Left reduces an amount to the lease; to zero after its end.
func (l *Lease) Left(now int64, v *amounts.Vec) {
	if l.Expired(now) {
		*v = amounts.Vec{}
		return
	}
	v.Min(&l.Amount)
}

// Same reports whether to continues l: the same amount, and l has not ended.
func (l *Lease) Same(to *Lease, now int64) bool { return now < l.Until && l.Amount.Is(&to.Amount) }

// Cap is the cap of a queue on nodes of a label.
type Cap struct {
	QueueCap
	Lease Lease
}

// Users are the caps of a leaf's users on nodes of a label.
type Users struct {
	UserCaps
	each  Lease
	users map[string]Lease
}

// Of returns a user's cap; false if there is none.
func (c *Users) Of(name string) (Lease, bool) {
	if c == nil {
		return Lease{}, false
	}
	if l, ok := c.users[name]; ok {
		return l, true
	}
	return c.each, true
}

// Named reports whether a user has a cap of its own.
func (c *Users) Named(name string) bool {
	if c == nil {
		return false
	}
	_, has := c.users[name]
	return has
}

// key identifies a lease.
type key struct {
	queue creel.QueuePath
	label string
}

// Book has the leases of all queues and labels.
type Book struct {
	sizes   *amounts.Sizes
	caps    map[key]*Cap
	users   map[key]*Users
	budgets map[key]*Budget
}

// NewBook makes a book without leases.
func NewBook(sizes *amounts.Sizes) *Book {
	return &Book{sizes: sizes, caps: map[key]*Cap{}, users: map[key]*Users{}, budgets: map[key]*Budget{}}
}

// NoCaps reports whether there is no cap of a queue or a user.
func (b *Book) NoCaps() bool { return len(b.caps)+len(b.users) == 0 }

// Cap returns the cap of a queue on nodes of a label, nil for none.
func (b *Book) Cap(q creel.QueuePath, label string) *Cap { return b.caps[key{q, label}] }

// SetCap replaces the cap of a queue. It returns the old one, nil for none, and the new one, nil if an older version
// was ignored.
func (b *Book) SetCap(c QueueCap) (old, to *Cap) {
	of := key{c.Queue, c.Label}
	old = b.caps[of]
	if old != nil && c.Version < old.Version {
		return old, nil
	}
	to = &Cap{c, b.lease(&c.Cap, &c.Maximum, c.Until)}
	b.caps[of] = to
	return old, to
}

// ClearCap removes the cap of a queue. It returns the old one, nil for none.
func (b *Book) ClearCap(q creel.QueuePath, label string) (old *Cap) {
	old = b.caps[key{q, label}]
	delete(b.caps, key{q, label})
	return old
}

// Users returns the caps of a leaf's users on nodes of a label, nil for none.
func (b *Book) Users(q creel.QueuePath, label string) *Users { return b.users[key{q, label}] }

// SetUsers replaces the caps of a leaf's users. It returns the old ones, nil for none, and the new ones.
func (b *Book) SetUsers(c UserCaps) (old, to *Users) {
	to = &Users{c, b.lease(&c.Each.Cap, &c.Limit, c.Each.Until), make(map[string]Lease, len(c.Users))}
	for name, u := range c.Users {
		to.users[name] = b.lease(&u.Cap, &c.Limit, u.Until)
	}
	of := key{c.Queue, c.Label}
	old = b.users[of]
	b.users[of] = to
	return old, to
}

// ClearUsers removes the caps of a leaf's users. It returns the old ones, nil for none.
func (b *Book) ClearUsers(q creel.QueuePath, label string) (old *Users) {
	old = b.users[key{q, label}]
	delete(b.users, key{q, label})
	return old
}

// lease converts a part of a limit. Types beyond memory and vcores that the limit does not name are unbounded.
func (b *Book) lease(part, limit *creel.Resource, until time.Time) Lease {
	l := Lease{Amount: b.sizes.Vec(*part)}
	if !until.IsZero() {
		l.Until = until.UnixNano()
	}
	for i := 2; i < b.sizes.N; i++ {
		if limit.Get(b.sizes.Names[i]) == 0 {
			l.Amount.Set(i, amounts.Unbounded)
		}
	}
	return l
}
