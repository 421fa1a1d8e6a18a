// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/internal/intrusive"

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
