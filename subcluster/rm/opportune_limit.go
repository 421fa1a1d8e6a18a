// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"math"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// A queue may limit its opportunistic containers, and those of each of its users. A limit holds new grants back: the
// machine's own, and those of NodeManagers and proxies that place containers. Containers that a move, a demotion or a
// lower limit brings above it keep running. Containers on lent resources serve asks for guaranteed ones, so they do not
// count.

// OpportunisticLimit is the maximum of a queue, or of each of its users.
type OpportunisticLimit struct {
	Queue creel.QueuePath
	User  string // "" for all users together
	Most  int
	// Federation is the federation-wide maximum of which Most is this subcluster's part; 0: the limit is the queue's.
	Federation int
}

// String returns a clause, such as "queue root.a has its maximum of 5".
func (l *OpportunisticLimit) String() string {
	switch {
	case l.Federation > 0 && l.User != "":
		return fmt.Sprintf("user %s has its part of %d here of the federation's maximum of %d in queue %s",
			l.User, l.Most, l.Federation, l.Queue)
	case l.Federation > 0:
		return fmt.Sprintf("queue %s has its part of %d here of the federation's maximum of %d",
			l.Queue, l.Most, l.Federation)
	case l.User != "":
		return fmt.Sprintf("user %s has the maximum of %d in queue %s", l.User, l.Most, l.Queue)
	}
	return fmt.Sprintf("queue %s has its maximum of %d", l.Queue, l.Most)
}

// room returns the number of containers that an application may still get by the limits of its queue and the queues
// above, and the limit that leaves the fewest; nil without limits.
func (o *opportunities) room(a *app) (room int, by *OpportunisticLimit) {
	room = math.MaxInt
	if o == nil || !a.InQueue() {
		return room, nil
	}
	for q := a.Queue(); q != nil; q = q.Parent() {
		spec := q.Spec()
		cap, capped := o.caps[q.Path()]
		userCaps, userCapped := o.userCaps[q.Path()]
		if !spec.Opportunistic.All.Set && !spec.Opportunistic.EachUser.Set && !capped && !userCapped {
			continue
		}
		n, ofUser := int32(0), int32(0)
		if t := o.tally(q); t != nil {
			n, ofUser = t.containers, t.users[a.sub.User]
		}
		lower := func(m queues.Maximum, has int32, user string) {
			if left := max(m.Most-int(has), 0); m.Set && left < room {
				room, by = left, &OpportunisticLimit{Queue: q.Path(), User: user, Most: m.Most}
			}
		}
		lower(spec.Opportunistic.All, n, "")
		lower(spec.Opportunistic.EachUser, ofUser, a.sub.User)
		within := func(c OpportunisticCap, has int32, user string) {
			if most := c.inForce(o.m.now); max(most-int(has), 0) < room {
				room = max(most-int(has), 0)
				by = &OpportunisticLimit{Queue: q.Path(), User: user, Most: most, Federation: c.Most}
			}
		}
		if capped {
			within(cap, n, "")
		}
		if userCapped {
			within(userCaps.of(a.sub.User), ofUser, a.sub.User)
		}
	}
	return room, by
}

// tally returns the counts of a queue, nil without containers.
func (o *opportunities) tally(q *sched.Queue) *tally {
	if o.tallies == nil {
		o.tallies = o.tallied()
	}
	return o.tallies[q]
}

// tallied counts the containers of all queues.
func (o *opportunities) tallied() map[*sched.Queue]*tally {
	all := map[*sched.Queue]*tally{}
	for _, a := range o.m.apps.byID {
		if u := a.opportunisticUse(0); u.containers > u.lent && a.InQueue() {
			tallyOf(all, a, u.containers-u.lent)
		}
	}
	return all
}

// tallyOf adds containers of an application to its queue and the queues above.
func tallyOf(all map[*sched.Queue]*tally, a *app, n int32) {
	for q := a.Queue(); q != nil; q = q.Parent() {
		t := all[q]
		if t == nil {
			t = &tally{users: map[string]int32{}}
			all[q] = t
		}
		t.containers += n
		if t.users[a.sub.User] += n; t.users[a.sub.User] == 0 {
			delete(t.users, a.sub.User)
		}
		if t.containers == 0 {
			delete(all, q)
		}
	}
}

// counted adds one container to the tallies, or subtracts it.
func (o *opportunities) counted(a *app, sign int32) {
	switch {
	case o.tallies == nil:
	case !a.InQueue():
		o.tallies = nil
	default:
		tallyOf(o.tallies, a, sign)
	}
}

// requeued forgets the tallies: applications or queues have moved. The next question counts again.
func (o *opportunities) requeued() {
	if o != nil {
		o.tallies = nil
	}
}
