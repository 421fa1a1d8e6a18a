// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/invariants"
)

// limited is what all ResourceManagers together granted of a queue with a federation-wide
// limit, kept up to date at the cost of what an event touched: one member's part.
type limited struct {
	*rebalancer.Queue
	all   creel.Resource            // with what is reserved
	parts []creel.Resource          // of it, of each member
	users map[string]creel.Resource // what each user has, without what is reserved
	has   [][]userHas               // of it, of each member
}

type userHas struct {
	user string
	has  creel.Resource
}

// limits are made at the first event: then the tree's amounts are known.
func (a *auditor) limits() []limited {
	if tree := a.w.cfg.Tree; a.limited == nil && tree != nil {
		for i := range tree.Queues {
			if q := &tree.Queues[i]; q.Bounded() || q.UserLimited() {
				n := len(a.w.cfg.Members)
				a.limited = append(a.limited, limited{
					Queue: q,
					parts: make([]creel.Resource, n),
					users: map[string]creel.Resource{},
					has:   make([][]userHas, n),
				})
			}
		}
	}
	return a.limited
}

// bounded holds maxima and user limits over what all ResourceManagers together granted,
// after each event. A ResourceManager that is down counts with what it had granted: that
// runs on. One that was taken over counts no more. (That queues sum to those above them is
// rm.Auditor's to see.)
func (a *auditor) bounded(c *cluster) {
	if len(a.w.clusters) < len(a.w.cfg.Members) || a.w.clusters[c.index] != c {
		return
	}
	limits := a.limits()
	for i := range limits {
		q := &limits[i]
		if q.Bounded() {
			a.maximum(c, q)
		}
		if q.UserLimited() {
			a.userLimit(c, q)
		}
	}
}

func (a *auditor) maximum(c *cluster, q *limited) {
	part, _, _ := c.m.QueueUse(q.Path, "")
	if part.Equal(q.parts[c.index]) {
		return
	}
	q.all = q.all.Sub(q.parts[c.index]).Add(part)
	q.parts[c.index] = part
	sum := q.all
	if !sum.Fits(q.Maximum) {
		sum = sum.Sub(a.reserved(q, nil))
	}
	a.fullest = max(a.fullest, float64(sum.MemoryMB)/float64(q.Maximum.MemoryMB))
	a.holds(invariants.GlobalMaximum, string(q.Path), invariants.Within(c.counted(sum), q.Maximum))
}

// reserved is what all members but one have reserved for a queue. It is not granted yet, and
// may be beyond their parts of a maximum: who has reserved a container may get another first.
func (a *auditor) reserved(q *limited, but *cluster) (sum creel.Resource) {
	for _, o := range a.w.clusters {
		if o != but {
			v, _ := o.m.Queue(string(q.Path))
			sum = sum.Add(v.Reserved)
		}
	}
	return sum
}

func (a *auditor) userLimit(c *cluster, q *limited) {
	before := q.has[c.index]
	now := make([]userHas, 0, len(before)+1)
	same := true
	for _, u := range c.m.UserUses(q.Path, "") {
		if !u.Uses.IsZero() {
			n := len(now)
			now = append(now, userHas{u.User, u.Uses})
			same = same && n < len(before) && before[n].user == u.User && before[n].has.Equal(u.Uses)
		}
	}
	if same && len(now) == len(before) {
		return
	}
	for _, u := range before {
		q.users[u.user] = q.users[u.user].Sub(u.has)
	}
	for _, u := range now {
		q.users[u.user] = q.users[u.user].Add(u.has)
	}
	q.has[c.index] = now
	for _, u := range now {
		of := string(q.Path) + ", user " + u.user
		a.holds(invariants.UserLimits, of, invariants.Within(c.counted(q.users[u.user]), q.UserLimit))
	}
}

// roomTold holds what an AM is told as headroom against what its queue may still use, at
// the moment in which it is told: in each queue up to the root here, what is reserved
// counted as used, and of the federation's maxima and user limits in all members together.
func (a *auditor) roomTold(c *cluster, queue creel.QueuePath, user string, told creel.Resource) {
	told = c.counted(told)
	for path := queue; path != ""; path = path.Parent() {
		v, ok := c.m.Queue(string(path))
		if !ok {
			return // it was deleted, and the application goes
		}
		has := v.Max.Sub(v.Used).Sub(v.Reserved)
		a.holds(invariants.TrueHeadroom, string(path)+" in "+string(c.id), invariants.Room(told, has))
	}
	limits := a.limits()
	a.bounded(c) // with what this turn granted until now
	for i := range limits {
		q := &limits[i]
		if q.Bounded() && (q.Path == queue || q.Path.IsAncestorOf(queue)) {
			has := q.Maximum.Sub(q.all)
			if invariants.Room(told, has) != nil {
				has = has.Add(a.reserved(q, c))
			}
			a.holds(invariants.TrueHeadroom, string(q.Path), invariants.Room(told, has))
		}
		if q.UserLimited() && q.Path == queue {
			of := string(q.Path) + ", user " + user
			a.holds(invariants.TrueHeadroom, of, invariants.Room(told, q.UserLimit.Sub(q.users[user])))
		}
	}
}

// grantable is what a queue has and asks for as far as its users' limits in the federation allow
// each of them, summed; false if they have none. What AMs need whose applications are in line is
// not asked for yet.
func (a *auditor) grantable(queue creel.QueuePath) (out creel.Resource, limited bool) {
	limits := a.limits()
	for i := range limits {
		if q := &limits[i]; q.Path == queue && q.UserLimited() {
			needs := map[string]creel.Resource{}
			for _, c := range a.w.clusters {
				if !c.up {
					continue
				}
				for v := range c.m.Apps {
					if v.Queue == queue && !v.Over {
						needs[v.User] = needs[v.User].Add(c.counted(v.Used)).Add(c.counted(v.Pending))
					}
				}
			}
			return q.WithinLimit(needs), true
		}
	}
	return out, false
}

func (a *auditor) holds(i invariants.Invariant, of string, breach error) {
	a.tally.Check(i, of, breach)
	a.check(breach == nil, "%s of %s: %v", i, of, breach)
}
