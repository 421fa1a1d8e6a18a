// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/amounts"

// underCaps reports whether the caps of a queue and its ancestors permit need more. Borrowing asks (lend.go) are
// subject only to these.
func (q *Queue) underCaps(need *amounts.Vec) bool {
	for ; q != nil; q = q.parent {
		if q.sized().bounds.cap == nil {
			continue
		}
		have := q.reserved.and(&q.used)
		if !q.bounds.cap.Lease.Admits(&q.part.sizes, q.part.now, &have, need) {
			return false
		}
	}
	return true
}

// underCap reports whether a user's cap permits need more. It is inlined: without caps, a grant pays for one
// comparison.
func (u *user) underCap(need *amounts.Vec) bool {
	return u.q.leaf.caps == nil || u.capAdmits(need)
}

func (u *user) capAdmits(need *amounts.Vec) bool {
	p := u.q.part
	k, has := u.q.leaf.caps.Of(u.name)
	return !has || k.Admits(&p.sizes, p.now, &u.used, need)
}

// cap returns a user's limit by the cap; false if there is none.
func (u *user) cap() (amounts.Vec, bool) {
	k, has := u.q.leaf.caps.Of(u.name)
	if has && k.Expired(u.q.part.now) {
		return amounts.Vec{}, true
	}
	return k.Amount, has
}
