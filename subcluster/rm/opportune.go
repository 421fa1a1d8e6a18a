// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/levels"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// An opportunistic container waits in its node's queue until the node has free resources. Package opportunistic
// chooses its node. It counts against no queue, user or node of the scheduler, so it is never preempted, and headroom
// does not contain it. The machine sums such containers separately, by node and by application.

// registered records a node that registered.
func (o *opportunities) registered(n *node) {
	if o == nil {
		return
	}
	name := n.ID().Host
	if o.m.cfg.PortInNames {
		name = n.ID().String()
	}
	o.nodes.Add(n.Serial(), name, n.Rack())
}

// heard applies a node's heartbeat, after the container statuses in it.
func (o *opportunities) heard(n *node) {
	if o == nil {
		return
	}
	o.nodes.Report(n.Serial(), &opportunistic.Report{
		Label:  n.Label(),
		Length: n.use.QueueLength, Wait: n.use.QueueWaitMS, Capacity: n.use.QueueCapacity,
		Total: n.Total(), Guaranteed: n.Used(),
	}, o.m.now)
	o.limitChanged()
}

// ask applies one entry of an attempt's asks. An entry without a label has that of the AM's ask, as in Hadoop.
func (o *opportunities) ask(t *attempt, k *Ask, label string, v *amounts.Vec) {
	if t.opportunistic == nil {
		t.opportunistic = &opportunistic.Asks{}
	}
	if !k.Label.Given {
		label = t.app.amLabel
	}
	name := k.ResourceName
	if name == sched.AnyPlace {
		name = ""
	}
	t.opportunistic.Set(&opportunistic.Request{
		Priority: k.Priority, AllocationRequestID: k.AllocationRequestID, Size: o.m.sizes.Of(*v), Name: name,
		Count: k.Count, Strict: k.StrictLocality, Label: label,
	}, o.m.now)
}

// serve grants an attempt the opportunistic containers that its asks can get; the next answer has them.
func (o *opportunities) serve(t *attempt) {
	if t.opportunistic == nil || !t.app.mayGet() {
		return
	}
	room, _ := o.room(t.app)
	if room == 0 {
		return
	}
	o.placed = o.nodes.Allocate(t.opportunistic, &opportunistic.Call{
		Now: o.m.now, Draw: o.draw, Most: room,
		Suits: func(serial int32, label string) bool {
			n := &o.m.nodes.list[serial].Node
			return n.Label() == label && !t.app.Avoids(n)
		},
	}, o.placed[:0])
	for i := range o.placed {
		o.grant(t, &o.placed[i])
	}
}

// draw returns a random number below n. Equal machines draw equal numbers (SplitMix64).
func (o *opportunities) draw(n int) int {
	o.draws++
	z := o.draws * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(n))
}

var reasonOf = [levels.Levels]sched.Reason{
	levels.OnHost:   sched.NodeLocal,
	levels.OnRack:   sched.RackLocal,
	levels.Anywhere: sched.OffSwitch,
}

// grant makes a container that was placed, and is booked on its node already.
func (o *opportunities) grant(t *attempt, p *opportunistic.Placement) {
	c := o.made(t, p.Size.Number, p.Priority, p.AllocationRequestID)
	c.execution, c.reason = uint8(creel.Opportunistic), reasonOf[p.Level]
	if p.Label != "" {
		c.more().Label = p.Label
	}
	o.m.nodes.list[p.Node].put(c)
	o.charge(c, 1)
	o.counts.Granted++
	o.counts.Waits.Add(p.Waited)
	o.counts.near(c.reason)
	t.fresh = append(t.fresh, c)
}

// made returns a new container of an attempt, not yet on a node.
func (o *opportunities) made(t *attempt, size amounts.SizeNumber, priority int32, alloc int64) *container {
	m := o.m
	t.lastSeq++
	c := m.containers.blank()
	c.seq = creel.NewContainerID(t.id, m.cfg.Epoch, t.lastSeq).ID
	c.origin, c.size, c.state = t, size, cAllocated
	c.created, c.priority = m.ms(), priority
	if alloc != 0 {
		c.more().alloc = alloc
	}
	t.live.Put(c.seq, c)
	m.containers.serial++
	c.wait = m.containers.serial
	m.containers.unlaunched.Put(c.wait, c)
	return c
}

// near counts a grant by the reason for its node.
func (n *OpportunisticCounts) near(r sched.Reason) {
	switch r {
	case sched.NodeLocal:
		n.NodeLocal++
	case sched.RackLocal:
		n.OnRack++
	default:
		n.Elsewhere++
	}
}

// resize changes a container's size, which needs no free resources.
func (o *opportunities) resize(c *container, to *amounts.Size) {
	o.detach(c)
	o.m.containers.setSize(c, to)
	o.attach(c)
}

// promote makes a container guaranteed, for which the scheduler has charged.
func (o *opportunities) promote(c *container) {
	o.waits(c, false)
	o.detach(c)
	o.counts.Promoted++
	c.setExecution(creel.Guaranteed)
	o.m.count.containers++
	o.m.count.granted++
}

// demote makes a guaranteed container opportunistic, and gives its resources back to the scheduler.
func (o *opportunities) demote(c *container) {
	m, t := o.m, c.owner()
	m.sched.Release(&t.app.App, &c.node.Node, m.sizeOf(c))
	if v := c.rare().victim; v != nil {
		m.victims.pardon(c)
		m.sched.Preemption().Lost(v)
	}
	m.count.containers--
	m.count.released++
	c.execution = uint8(creel.Opportunistic)
	o.attach(c)
	o.counts.Demoted++
}

// asksOf returns an attempt's outstanding asks for opportunistic containers.
func (o *opportunities) asksOf(t *attempt) (out []explain.AskView) {
	if o == nil || t == nil || t.opportunistic == nil {
		return nil
	}
	for r := range t.opportunistic.Each {
		name := r.Name
		if name == "" {
			name = sched.AnyPlace
		}
		out = append(out, explain.AskView{
			Priority: r.Priority, AllocationRequestID: r.AllocationRequestID, ExecutionType: creel.Opportunistic,
			ResourceName: name, Resource: r.Size.Resource, Count: r.Count, Relax: !r.Strict, Label: r.Label,
		})
	}
	return out
}

// Opportunistic returns the totals of opportunistic containers; false if they are not allocated.
func (r Reader) Opportunistic() (OpportunisticCounts, bool) {
	o := r.m.opportunistic
	if o == nil {
		return OpportunisticCounts{}, false
	}
	v := o.counts
	v.Limit = *o.limit
	return v, true
}
