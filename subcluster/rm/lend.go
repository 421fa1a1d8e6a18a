// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// lend is the second pass on a node.
func (o *opportunities) lend(n *node) {
	if o == nil || o.lender == nil || n.offer == (Overallocation{}) || n.state != nodeRunning {
		return
	}
	l, most := o.lender, 1<<20
	_, _, unseen := o.nodes.Booked(n.Serial())
	if n.use.QueueCapacity > 0 { // a longer queue rejects
		most = int(n.use.QueueCapacity - n.use.QueueLength - unseen)
	}
	room := l.room(n)
	if room.Memory <= 0 || room.VCores <= 0 || most <= 0 || l.m.sched.Waiting() == 0 {
		return
	}
	l.recount()
	pass := sched.SecondPass{Node: &n.Node, Room: room, Most: most, Lent: func(q *sched.Queue) amounts.Vec {
		if v := l.sums[lentIn{q.Path(), n.Label()}]; v != nil {
			return *v
		}
		return amounts.Vec{}
	}}
	for _, g := range pass.Run() {
		l.granted(&g)
	}
}

// room is the size of the containers that a node may still lend to.
func (l *lender) room(n *node) amounts.Vec {
	o := l.m.opportunistic
	u := opportunistic.NodeUse{
		Total: n.Total(), Free: n.Free(), Memory: n.offer.Memory, CPU: n.offer.CPU,
		MostLent: l.m.cfg.Opportunistic.MostLent,
		MemoryMB: float64(max(n.use.ContainersPhysicalMB, n.use.PeakMB)),
		VCores:   float64(max(n.use.ContainersCPU, n.use.PeakCPU)),
	}
	u.Opportunistic, _, _ = o.nodes.Booked(n.Serial())
	for _, c := range n.live {
		if c != nil && (c.state < cRunning || c.rare().queued > 0) {
			u.Pending.Add(&l.m.sizeOf(c).V)
		}
	}
	return opportunistic.Room(&u)
}

// recount sums the lent containers by queue, at most once a second. Grants in between are added.
func (l *lender) recount() {
	if l.sums != nil && l.m.now-l.at < int64(time.Second) {
		return
	}
	l.sums, l.at = map[lentIn]*amounts.Vec{}, l.m.now
	for _, n := range l.m.nodes.list {
		for _, c := range n.live {
			if c != nil && c.execution&lent != 0 {
				l.count(c)
			}
		}
	}
}

func (l *lender) count(c *container) {
	for q := c.owner().app.Queue(); q != nil; q = q.Parent() {
		in := lentIn{q.Path(), c.node.Label()}
		if l.sums[in] == nil {
			l.sums[in] = &amounts.Vec{}
		}
		l.sums[in].Add(&l.m.sizeOf(c).V)
	}
}

// granted makes the container of a grant of the second pass.
func (l *lender) granted(g *sched.Grant) {
	o, t := l.m.opportunistic, ofSched(g.App).current
	c := o.made(t, g.Size.Number, g.Priority, g.AllocationRequestID)
	c.execution, c.reason = uint8(creel.Opportunistic)|lent, g.Reason
	if g.Rare != nil {
		c.more().GrantExtra = *g.Rare
	}
	n := l.m.nodes.list[g.Node.Serial()]
	n.put(c)
	o.attach(c)
	o.counts.Granted++
	o.counts.Lent++
	o.counts.Waits.Add(g.Waited)
	o.counts.near(g.Reason)
	l.count(c)
	t.fresh = append(t.fresh, c)
	l.m.attempts.news(t)
}

// seen records that a node has reported an opportunistic container for the first time. A lent one may then become
// guaranteed: its node would not know an earlier promotion.
func (o *opportunities) seen(c *container) {
	o.nodes.Seen(c.node.Serial())
	if c.execution&lent != 0 && o.lender != nil {
		o.lender.promises(c)
	}
}

// promises promotes a lent container, now or when its node has free resources. If its AM has asked for the promotion
// already, that one waits.
func (l *lender) promises(c *container) {
	if c.rare().growing != nil {
		return
	}
	t := c.owner()
	x := &growth{c: c, attempt: t, lent: true}
	x.App, x.Node, x.To, x.Owner = &t.app.App, &c.node.Node, l.m.sizeOf(c), x
	if l.m.sched.Increase(&x.Increase) {
		l.m.containers.grown(x)
		return
	}
	c.more().growing = x
}

// registeredAs sends a promotion again to a node that registers without having applied it: the answer with it was lost.
func (o *opportunities) registeredAs(c *container, k *NodeContainer) {
	if o != nil && o.lender != nil && k.Version < c.rare().version && k.ExecutionType != c.executionType() {
		c.node.updates = append(c.node.updates, o.m.containers.grantOf(c))
	}
}
