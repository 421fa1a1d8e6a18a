// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"math"
	"slices"

	"github.com/creelrm/creel/internal/intrusive"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// user returns a leaf's user of a name, and adds the user the first time.
func (q *Queue) user(name string) *user {
	l := q.leaf
	if u := l.byName[name]; u != nil {
		return u
	}
	u := &user{name: name, q: q, weight: q.weightOf(name)}
	u.apps = intrusive.Heap[*App]{Less: q.ordering.apps, Slot: func(a *App) *int32 { return &a.slot }}
	u.pending = intrusive.Heap[*App]{Less: fifoApps, Slot: func(a *App) *int32 { return &a.pendSlot }}
	l.byName[name] = u
	l.allWeights += u.weight
	l.userList = append(l.userList, u)
	return u
}

// weightOf is the configured weight of a user.
func (q *Queue) weightOf(name string) float64 {
	weight := 1.0
	for _, w := range q.spec.UserWeights {
		if w.User == name && w.Weight > 0 {
			weight = w.Weight
		}
	}
	return weight
}

// forget removes a user without applications.
func (q *Queue) forget(u *user) {
	if u.total > 0 || !u.used.IsZero() {
		return
	}
	l := q.leaf
	u.unlimit()
	l.unmeasure(u)
	delete(l.byName, u.name)
	if l.allWeights -= u.weight; len(l.byName) == 0 {
		l.allWeights = 0
	}
	for i, x := range l.userList {
		if x == u {
			l.userList = append(l.userList[:i], l.userList[i+1:]...)
			return
		}
	}
}

// uses adds v, multiplied by times, to a user's use.
func (u *user) uses(v *amounts.Vec, times int64) {
	u.used.AddTimes(v, times)
	l := u.q.leaf
	if u.waitingApps > 0 {
		l.usedByActive.AddTimes(v, times)
	}
	if !u.unmeasured {
		l.measureLater(u)
	}
}

func (l *leafState) measureLater(u *user) {
	u.unmeasured = true
	l.unmeasured = append(l.unmeasured, u)
}

// wholeShare is the shareSum of the whole cluster.
const wholeShare = 1 << 40

// usedByUsers is the part of the cluster equal to the sum of the dominant shares of a leaf's users, which may exceed
// the cluster.
func (q *Queue) usedByUsers() (v amounts.Vec) {
	p, l := q.part, q.leaf
	for _, u := range l.unmeasured {
		l.shares -= u.share
		u.share = shareSum(p.sizes.Dominant(&u.used, &p.total) * wholeShare)
		l.shares += u.share
		u.unmeasured = false
	}
	l.unmeasured = l.unmeasured[:0]
	for i := 0; i < p.sizes.N; i++ {
		x := int64(math.Ceil(float64(p.total.At(i))*(float64(l.shares)/wholeShare) - 1e-6))
		st := max(p.sizes.Step.At(i), 1)
		v.Set(i, (x+st-1)/st*st)
	}
	return v
}

// measureUsers recomputes the shares of all users after a change of the cluster.
func (l *leafState) measureUsers() {
	clear(l.unmeasured)
	l.unmeasured = append(l.unmeasured[:0], l.userList...)
	for _, u := range l.userList {
		u.unmeasured = true
	}
}

// unmeasure removes the share of a user that leaves and uses nothing.
func (l *leafState) unmeasure(u *user) {
	l.shares -= u.share
	if i := slices.Index(l.unmeasured, u); i >= 0 {
		l.unmeasured = slices.Delete(l.unmeasured, i, i+1)
	}
}
