// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/policies/rebalancer/invariants"
	"github.com/creelrm/creel/subcluster/rm"
)

// limitUse is the sum of all ResourceManagers' grants of a queue with a federation-wide limit. Each event updates
// only the part of the changed member.
type limitUse struct {
	*rebalancer.Queue
	all           creel.Resource            // including reservations
	parts         []creel.Resource          // of it, by member
	users         map[string]creel.Resource // use per user, without reservations
	opportunistic []int64                   // containers, by member
	opportuneOf   []map[string]int64        // containers per user, by member
	has           [][]userUse               // of it, by member
}

type userUse struct {
	user string
	has  creel.Resource
}

// limits are computed at the first event, when the tree's amounts are known.
func (a *auditor) limits() []limitUse {
	if tree := a.w.cfg.Tree; a.limited == nil && tree != nil {
		for i := range tree.Queues {
			q := &tree.Queues[i]
			if q.Bounded() || q.UserLimited() || q.MostOpportunistic+q.UserLimitOpportunistic > 0 {
				n := len(a.w.cfg.Members)
				a.limited = append(a.limited, limitUse{
					Queue:         q,
					parts:         make([]creel.Resource, n),
					users:         map[string]creel.Resource{},
					has:           make([][]userUse, n),
					opportunistic: make([]int64, n),
					opportuneOf:   make([]map[string]int64, n),
				})
			}
		}
	}
	return a.limited
}

// bounded checks maxima and user limits against the grants of all ResourceManagers together, after each event. A
// ResourceManager that is down counts with its last grants, because its containers keep running. One that was
// replaced does not count. (rm.Auditor checks that queues sum up to their parents.)
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
		if q.MostOpportunistic > 0 {
			mostOpportunistic(a, c, q)
		}
		if q.UserLimitOpportunistic > 0 {
			userOpportunistic(a, c, q)
		}
	}
}

func mostOpportunistic(a *auditor, c *cluster, q *limitUse) {
	q.opportunistic[c.index], _ = rm.OpportunisticUse(c.m, q.Path)
	sum := int64(0)
	for _, n := range q.opportunistic {
		sum += n
	}
	a.fullest = max(a.fullest, float64(sum)/float64(q.MostOpportunistic))
	a.holds(invariants.GlobalMaximum, string(q.Path)+", opportunistic containers",
		invariants.Within(escrow.Containers(sum), escrow.Containers(q.MostOpportunistic)))
}

func userOpportunistic(a *auditor, c *cluster, q *limitUse) {
	now := map[string]int64{}
	for _, u := range rm.OpportunisticUsers(c.m, q.Path) {
		now[u.User] = u.Uses
	}
	q.opportuneOf[c.index] = now
	for user := range now {
		sum := int64(0)
		for _, of := range q.opportuneOf {
			sum += of[user]
		}
		a.fullest = max(a.fullest, float64(sum)/float64(q.UserLimitOpportunistic))
		a.holds(invariants.UserLimits, string(q.Path)+", opportunistic containers of user "+user,
			invariants.Within(escrow.Containers(sum), escrow.Containers(q.UserLimitOpportunistic)))
	}
}

func (a *auditor) maximum(c *cluster, q *limitUse) {
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

// reserved is the sum of reservations for a queue in all members except one. Reservations are not grants yet, and may
// exceed the members' parts of a maximum: the queue may get another container first.
func (a *auditor) reserved(q *limitUse, but *cluster) (sum creel.Resource) {
	for _, o := range a.w.clusters {
		if o != but {
			v, _ := o.m.Queue(string(q.Path))
			sum = sum.Add(v.Reserved)
		}
	}
	return sum
}

func (a *auditor) userLimit(c *cluster, q *limitUse) {
	before := q.has[c.index]
	now := make([]userUse, 0, len(before)+1)
	same := true
	for _, u := range c.m.UserUses(q.Path, "") {
		if !u.Uses.IsZero() {
			n := len(now)
			now = append(now, userUse{u.User, u.Uses})
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

// roomTold checks the headroom reported to an AM against the resources that its queue may still use at that moment.
// It checks each queue up to the root here, with reservations counted as used, and the federation's maxima and user
// limits over all members.
func (a *auditor) roomTold(c *cluster, queue creel.QueuePath, user string, told creel.Resource) {
	told = c.counted(told)
	for path := queue; path != ""; path = path.Parent() {
		v, ok := c.m.Queue(string(path))
		if !ok {
			return // the queue was deleted, and the application ends
		}
		has := v.Max.Sub(v.Used).Sub(v.Reserved)
		a.holds(invariants.TrueHeadroom, string(path)+" in "+string(c.id), invariants.Room(told, has))
	}
	limits := a.limits()
	a.bounded(c) // including this turn's grants so far
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

// grantable is a queue's use plus demand, within its federation-wide user limits, summed over users; limited is false
// if there are no limits. Applications that wait for their AM have no demand yet.
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
