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
// escrow.Opportunistic. Only the use and the cap in its ResourceManager differ.

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
