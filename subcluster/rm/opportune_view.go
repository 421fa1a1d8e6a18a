// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// OpportunisticView is an application's opportunistic containers.
type OpportunisticView struct {
	Containers int32
	Resource   creel.Resource
	Asked      int32               // containers asked for and not granted
	Waiting    int32               // of Containers, those in queues of nodes
	Nodes      []NodeWait          // with waiting containers, the longest wait first
	Held       *OpportunisticLimit // the application may get no more; nil: it may
}

// NodeWait is a node with waiting containers of an application.
type NodeWait struct {
	Node       creel.NodeID
	Containers int32
	Since      time.Time // of the longest wait
}

// OpportunisticOf returns an application's opportunistic containers; nil if it has none and asks for none.
func OpportunisticOf(m *Machine, id creel.ApplicationID) *OpportunisticView {
	a := m.apps.byID[id]
	if a == nil || m.opportunistic == nil {
		return nil
	}
	use := a.opportunisticUse(0)
	v := &OpportunisticView{
		Containers: use.containers, Resource: m.sizes.Resource(&use.used), Asked: m.opportunistic.asked(a.current),
	}
	if v.Containers == 0 && v.Asked == 0 {
		return nil
	}
	if room, by := m.opportunistic.room(a); room == 0 {
		v.Held = by
	}
	at := map[*node]int{}
	for _, t := range a.attempts {
		for c := range t.live.All() {
			since := c.rare().queued
			if since == 0 {
				continue
			}
			i, known := at[c.node]
			if !known {
				i = len(v.Nodes)
				at[c.node], v.Nodes = i, append(v.Nodes, NodeWait{Node: c.node.ID(), Since: instant(since * 1e6)})
			}
			n := &v.Nodes[i]
			n.Containers++
			if since := instant(since * 1e6); since.Before(n.Since) {
				n.Since = since
			}
			v.Waiting++
		}
	}
	slices.SortFunc(v.Nodes, func(a, b NodeWait) int {
		return cmp.Or(a.Since.Compare(b.Since), a.Node.Compare(b.Node))
	})
	return v
}

// asked counts an attempt's outstanding asks, with those that its proxy has to place.
func (o *opportunities) asked(t *attempt) (n int32) {
	if o != nil && t != nil && t.state == tRunning {
		n = t.unplaced
	}
	for _, k := range o.asksOf(t) {
		if k.ResourceName == sched.AnyPlace {
			n += k.Count
		}
	}
	return n
}

// NodeQueues returns the lengths of the queues on the least loaded nodes without a label, for at most a number of
// nodes. It is nil if no opportunistic containers are allocated, and empty if all queues are full.
func NodeQueues(m *Machine, most int) []int32 {
	if m.opportunistic == nil {
		return nil
	}
	out := []int32{}
	for serial := range m.opportunistic.nodes.Least {
		if n := m.nodes.list[serial]; n.Label() == "" && len(out) < most {
			out = append(out, m.opportunistic.nodes.Queued(serial))
		}
	}
	return out
}

// SetOpportunisticCap sets a cap, even for a queue that does not exist yet. Containers above it keep running.
func SetOpportunisticCap(m *Machine, now time.Time, c OpportunisticCap) {
	m.at(now)
	o := m.opportunistic
	if o == nil {
		return
	}
	if o.caps == nil {
		o.caps = map[creel.QueuePath]OpportunisticCap{}
	}
	o.caps[c.Queue] = c
}

// ClearOpportunisticCap removes a queue's cap: it has no federation-wide maximum any more.
func ClearOpportunisticCap(m *Machine, now time.Time, q creel.QueuePath) {
	m.at(now)
	if o := m.opportunistic; o != nil {
		delete(o.caps, q)
	}
}

// OpportunisticUse returns the number of opportunistic containers of a queue that limits count. ok is false if there is
// no such queue, or if none are allocated.
func OpportunisticUse(m *Machine, path creel.QueuePath) (uses int64, ok bool) {
	q, o := m.sched.Tree().FindOn(path, ""), m.opportunistic
	if q == nil || o == nil {
		return 0, false
	}
	if t := o.tally(q); t != nil {
		uses = int64(t.containers)
	}
	return uses, true
}

// OpportunisticDemand returns the number of opportunistic containers that the applications of a queue ask for.
func OpportunisticDemand(m *Machine, path creel.QueuePath) (n int64) {
	q, o := m.sched.Tree().FindOn(path, ""), m.opportunistic
	if q == nil || o == nil {
		return 0
	}
	o.demand(q, func(_ *app, asked int32) { n += int64(asked) })
	return n
}

// demand calls f for each application of a queue, or of one below it, that asks for opportunistic containers.
func (o *opportunities) demand(q *sched.Queue, f func(a *app, asked int32)) {
	for _, a := range o.m.apps.byID {
		if !a.InQueue() {
			continue
		}
		asked := o.asked(a.current)
		for at := a.Queue(); asked > 0 && at != nil; at = at.Parent() {
			if at == q {
				f(a, asked)
			}
		}
	}
}

// SetOpportunisticUserCaps sets the caps of a queue's users, as SetOpportunisticCap. They also limit the users of the
// queues below it.
func SetOpportunisticUserCaps(m *Machine, now time.Time, c OpportunisticUserCaps) {
	m.at(now)
	o := m.opportunistic
	if o == nil {
		return
	}
	if o.userCaps == nil {
		o.userCaps = map[creel.QueuePath]OpportunisticUserCaps{}
	}
	o.userCaps[c.Each.Queue] = c
}

// ClearOpportunisticUserCaps removes them.
func ClearOpportunisticUserCaps(m *Machine, now time.Time, q creel.QueuePath) {
	m.at(now)
	if o := m.opportunistic; o != nil {
		delete(o.userCaps, q)
	}
}

// UserContainers are a user's opportunistic containers that limits count; Needs also counts those asked for.
type UserContainers struct {
	User        string
	Uses, Needs int64
}

// OpportunisticUsers lists, by name, the users of a queue with opportunistic containers or asks for them.
func OpportunisticUsers(m *Machine, path creel.QueuePath) (out []UserContainers) {
	q, o := m.sched.Tree().FindOn(path, ""), m.opportunistic
	if q == nil || o == nil {
		return nil
	}
	asked := map[string]int64{}
	o.demand(q, func(a *app, n int32) { asked[a.sub.User] += int64(n) })
	if t := o.tally(q); t != nil {
		for user, n := range t.users {
			out = append(out, UserContainers{user, int64(n), int64(n) + asked[user]})
			delete(asked, user)
		}
	}
	for user, n := range asked {
		if n > 0 {
			out = append(out, UserContainers{user, 0, n})
		}
	}
	slices.SortFunc(out, func(a, b UserContainers) int { return cmp.Compare(a.User, b.User) })
	return out
}
