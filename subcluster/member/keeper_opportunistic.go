// SPDX-License-Identifier: Apache-2.0

package member

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
)

// A queue with a maximum of opportunistic containers is kept like one with a maximum of resources, under the label
// escrow.Opportunistic. A limit of each user's opportunistic containers is kept like a user limit, under the same
// label. Only the use and the cap in the ResourceManager differ.

// readOpportunistic updates the queues with a maximum of opportunistic containers from the tree. Members running
// Hadoop's ResourceManager are left out: it has no such limit.
func (k *Keeper) readOpportunistic(tree *rebalancer.Tree) error {
	for i := range tree.Queues {
		q := &tree.Queues[i]
		if q.MostOpportunistic == 0 || k.Settings != nil {
			continue
		}
		most := escrow.Containers(q.MostOpportunistic)
		x, err := k.keep(subcluster.QueueOn{Queue: q.Path, Label: escrow.Opportunistic}, most, tree.Version)
		if err != nil {
			return err
		}
		x.maximum, x.tree, x.seen = most, tree.Version, true
	}
	return nil
}

// useOf returns the use and the need of a queue in the machine; ok is false if it cannot have any.
func useOf(m *rm.Machine, of subcluster.QueueOn) (uses, needs creel.Resource, ok bool) {
	if of.Label != escrow.Opportunistic {
		return m.QueueUse(of.Queue, of.Label)
	}
	has, ok := rm.OpportunisticUse(m, of.Queue)
	return escrow.Containers(has), escrow.Containers(has + rm.OpportunisticDemand(m, of.Queue)), ok
}

// setCap sends a cap to the machine.
func setCap(m *rm.Machine, now time.Time, c rm.QueueCap) {
	if c.Label != escrow.Opportunistic {
		m.SetQueueCap(now, c)
		return
	}
	rm.SetOpportunisticCap(m, now, rm.OpportunisticCap{
		Queue: c.Queue, Cap: int(c.Cap.Get(escrow.OpportunisticType)),
		Most: int(c.Maximum.Get(escrow.OpportunisticType)), Until: c.Until,
	})
}

// clearCap removes a queue's cap: it has no maximum any more.
func clearCap(m *rm.Machine, now time.Time, of subcluster.QueueOn) {
	if of.Label != escrow.Opportunistic {
		m.ClearQueueCap(now, of.Queue, of.Label)
		return
	}
	rm.ClearOpportunisticCap(m, now, of.Queue)
}

// readOpportunisticUsers updates the queues with a limit of each user's opportunistic containers from the tree.
func (k *Keeper) readOpportunisticUsers(tree *rebalancer.Tree) {
	for i := range tree.Queues {
		if q := &tree.Queues[i]; q.UserLimitOpportunistic > 0 && k.Settings == nil {
			of := subcluster.QueueOn{Queue: q.Path, Label: escrow.Opportunistic}
			k.keepUsers(of, escrow.Containers(q.UserLimitOpportunistic), tree.Version)
		}
	}
}

// userUsesOf lists the users of a queue with their use and need in the machine.
func userUsesOf(m *rm.Machine, of subcluster.QueueOn) (out []escrow.UserUse) {
	if of.Label != escrow.Opportunistic {
		for _, u := range m.UserUses(of.Queue, of.Label) {
			out = append(out, escrow.UserUse(u))
		}
		return out
	}
	for _, u := range rm.OpportunisticUsers(m, of.Queue) {
		out = append(out, escrow.UserUse{
			User: u.User, Uses: escrow.Containers(u.Uses), Needs: escrow.Containers(u.Needs),
		})
	}
	return out
}

// setUserCaps sends the caps of a queue's users to the machine.
func setUserCaps(m *rm.Machine, now time.Time, c *rm.UserCaps) {
	if c.Label != escrow.Opportunistic {
		m.SetUserCaps(now, *c)
		return
	}
	of := func(u rm.UserCap) rm.OpportunisticCap {
		return rm.OpportunisticCap{
			Queue: c.Queue, Cap: int(u.Cap.Get(escrow.OpportunisticType)),
			Most: int(c.Limit.Get(escrow.OpportunisticType)), Until: u.Until,
		}
	}
	caps := rm.OpportunisticUserCaps{Each: of(c.Each), Users: map[string]rm.OpportunisticCap{}}
	for user, u := range c.Users {
		caps.Users[user] = of(u)
	}
	rm.SetOpportunisticUserCaps(m, now, caps)
}

// clearUserCaps removes the caps of a queue's users.
func clearUserCaps(m *rm.Machine, now time.Time, of subcluster.QueueOn) {
	if of.Label != escrow.Opportunistic {
		m.ClearUserCaps(now, of.Queue, of.Label)
		return
	}
	rm.ClearOpportunisticUserCaps(m, now, of.Queue)
}
