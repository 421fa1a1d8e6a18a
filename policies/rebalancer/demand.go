// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// MemberLoad is a queue's load in a member, nil if the member lacks the queue, and the member's size.
type MemberLoad struct {
	*subcluster.QueueLoad
	Size creel.Resource
}

// Demand is the part of a leaf's pending asks that its limits allow to be granted eventually.
type Demand struct {
	All  creel.Resource   // in the federation
	Here []creel.Resource // in each member that they wait in
}

// DemandOf computes the demand of a leaf. q has its settings in the queue tree and may be nil. Waiting asks may run
// in any member that has the queue. So a user's asks count up to the user limit in the federation, and up to the sum
// of the user's limits in all members. Asks of all users together count up to the sum of the queue's maxima in the
// members. Members that do not report limits count as if they had none. A user that a member does not list is assumed
// to use nothing there.
func DemandOf(q *Queue, in []MemberLoad) Demand {
	out := Demand{Here: make([]creel.Resource, len(in))}
	var names []string
	bounded := false
	for i := range in {
		x := &in[i]
		if x.QueueLoad == nil {
			continue
		}
		out.Here[i], out.All = x.Pending, out.All.Add(x.Pending)
		bounded = bounded || x.Most != nil
		for u := range x.Users {
			names = append(names, x.Users[u].User)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		out.All = out.All.Sub(heldBack(q, in, name, out.Here))
	}
	if !bounded {
		return out
	}
	var left creel.Resource
	for i := range in {
		if x := &in[i]; x.QueueLoad != nil {
			room := leftOf(x.most(), x.Used, out.All)
			left, out.Here[i] = left.Add(room), out.Here[i].Min(room)
		}
	}
	out.All = out.All.Min(left)
	return out
}

// heldBack returns the part of a user's pending asks that exceeds the user limit in the federation, or the sum of the
// user's limits in all members. It subtracts each member's excess from here.
func heldBack(q *Queue, in []MemberLoad, name string, here []creel.Resource) creel.Resource {
	var pending, used creel.Resource
	for i := range in {
		if u := in[i].user(name); u != nil {
			pending, used = pending.Add(u.Pending), used.Add(u.Used)
		}
	}
	var left creel.Resource
	for i := range in {
		switch x := &in[i]; {
		case x.QueueLoad == nil:
		case x.user(name) != nil:
			u := x.user(name)
			left = left.Add(leftOf(u.Most, u.Used, pending))
		case x.EachUser != nil:
			left = left.Add(leftOf(*x.EachUser, creel.Resource{}, pending))
		default:
			left = left.Add(leftOf(x.most(), creel.Resource{}, pending))
		}
	}
	if q != nil && q.UserLimited() {
		left = left.Min(leftOf(q.UserLimit, used, pending))
	}
	for i := range in {
		if u := in[i].user(name); u != nil {
			held := u.Pending.Sub(u.Granted().Min(left))
			here[i] = here[i].Sub(held).Max(creel.Resource{})
		}
	}
	return pending.Sub(pending.Min(left))
}

// leftOf returns a limit less the use, for a user with pending asks. Types beyond memory and vcores that the limit
// does not name are unlimited.
func leftOf(limit, used, pending creel.Resource) creel.Resource {
	for _, x := range pending.Others {
		if limit.Get(x.Name) == 0 {
			limit = limit.With(x.Name, Unbounded)
		}
	}
	return limit.Sub(used).Max(creel.Resource{})
}

// most returns the most that the queue may use in the member.
func (l *MemberLoad) most() creel.Resource {
	if l.Most != nil {
		return *l.Most
	}
	return l.Size
}

// user finds a user that the member lists, nil for none.
func (l *MemberLoad) user(name string) *subcluster.UserLoad {
	if l.QueueLoad == nil {
		return nil
	}
	for i := range l.Users {
		if l.Users[i].User == name {
			return &l.Users[i]
		}
	}
	return nil
}
