// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// containerState is YARN's RMContainerState.
type containerState uint8

const (
	cNew containerState = iota
	cReserved
	cAllocated
	cAcquired
	cRunning
	cCompleted
	cExpired
	cReleased
	cKilled
)

var containerStateNames = [...]string{
	"NEW",
	"RESERVED",
	"ALLOCATED",
	"ACQUIRED",
	"RUNNING",
	"COMPLETED",
	"EXPIRED",
	"RELEASED",
	"KILLED",
}

func (s containerState) String() string { return containerStateNames[s] }

func (s containerState) public() creel.ContainerState {
	switch {
	case s < cRunning:
		return creel.ContainerNew
	case s == cRunning:
		return creel.ContainerRunning
	}
	return creel.ContainerComplete
}

// container is one live container; the memory of ended ones is reused. It fits one cache line. Its completion touches
// no other container, because it stores its positions in the lists of its node, of its attempt, and of containers not
// seen running.
type container struct {
	seq       int64    // ContainerID.ID
	origin    *attempt // attempt whose number is part of its id
	node      *node
	wait      int64 // its number among the containers not seen running; 0 = seen
	created   int64 // ms
	extra     *containerExtra
	slot      int32 // its index in node.live
	priority  int32
	size      amounts.SizeNumber
	execution uint8 // creel.ExecutionType, with charged or instead
	state     containerState
	reason    sched.Reason
	am        bool // it runs its attempt's AM
}

// containerExtra holds fields that few containers need.
type containerExtra struct {
	owner            *attempt // recipient of its completion, if not origin: a later attempt that retained it
	alloc            int64    // allocation request id
	version          int32
	tags             []string
	sched.GrantExtra               // of its ask; after a restart only the label
	from             *amounts.Size // size before an increase that its node has not applied yet
	timer            *timer
	queued           int64   // ms since which it waits in its node's queue; 0: it does not
	growing          *growth // an increase that waits for free resources

	victim     *sched.Victim // it is under notice; see preempt.go
	victimSlot int32         // its index in attempt.victims
}

// more returns its extra for writing.
func (c *container) more() *containerExtra {
	if c.extra == nil {
		c.extra = &containerExtra{}
	}
	return c.extra
}

var noExtra containerExtra

// rare returns its extra for reading.
func (c *container) rare() *containerExtra {
	if c.extra == nil {
		return &noExtra
	}
	return c.extra
}

// owner is the attempt that receives its completion.
func (c *container) owner() *attempt {
	if x := c.extra; x != nil && x.owner != nil {
		return x.owner
	}
	return c.origin
}

// Marks of container.execution, beside the execution type as its token has it.
const (
	// charged marks an opportunistic container that counts like a guaranteed one: after a demotion or a recovery
	// without opportunistic allocation.
	charged = 0x80
	// instead marks a guaranteed container that was granted for an opportunistic ask, without opportunistic allocation.
	instead = 0x40
	// lent marks an opportunistic container that was granted for a guaranteed ask; see lender.
	lent = 0x20
)

// uncharged reports whether a container is opportunistic and counts against no queue and no node.
func (c *container) uncharged() bool { return c.execution&^lent == uint8(creel.Opportunistic) }

// executionType is the execution type as its token has it.
func (c *container) executionType() creel.ExecutionType {
	return creel.ExecutionType(c.execution &^ (charged | instead | lent))
}

// askedType is the execution type of its ask.
func (c *container) askedType() creel.ExecutionType {
	switch {
	case c.execution&instead != 0:
		return creel.Opportunistic
	case c.execution&lent != 0:
		return creel.Guaranteed
	}
	return c.executionType()
}

// setExecution sets the execution type of a container that the scheduler charges for, or will.
func (c *container) setExecution(t creel.ExecutionType) {
	if c.execution = uint8(t); t == creel.Opportunistic {
		c.execution |= charged
	}
}

func (m *Machine) sizeOf(c *container) *amounts.Size { return m.sizes.At(c.size) }

func (c *container) id() creel.ContainerID {
	return creel.ContainerID{Attempt: c.origin.id, ID: c.seq}
}

func (l *containerLife) grantOf(c *container) Grant {
	g := Grant{
		ID: c.id(), Place: c.node.at, Shape: &l.m.sizeOf(c).Shape, Priority: c.priority,
		ExecutionType: c.executionType(), Created: c.created, AM: c.am, Reason: c.reason,
	}
	if x := c.extra; x != nil {
		g.AllocationRequestID, g.Version, g.Tags = x.alloc, x.version, x.tags
	}
	return g
}

func (l *containerLife) blank() *container {
	if k := len(l.spare); k > 0 {
		c := l.spare[k-1]
		l.spare = l.spare[:k-1]
		return c
	}
	return l.pool.New()
}

// book makes the containers that the scheduler granted.
func (l *containerLife) book(grants []sched.Grant) {
	for len(grants) > 0 {
		k := min(len(grants), sched.Prefetched)
		l.prefetchGrants(grants[:k])
		for i := range grants[:k] {
			if g := &grants[i]; g.Increase != nil {
				l.grown(g.Increase.Owner.(*growth))
			} else {
				l.granted(g)
			}
		}
		grants = grants[k:]
	}
}

// granted makes the container of one grant.
func (l *containerLife) granted(g *sched.Grant) {
	m := l.m
	a := ofSched(g.App)
	t := a.current
	t.lastSeq++
	c := l.blank()
	c.seq = creel.NewContainerID(t.id, m.cfg.Epoch, t.lastSeq).ID
	c.origin, c.size = t, g.Size.Number
	c.created, c.priority = m.ms(), g.Priority
	if c.execution = uint8(creel.Guaranteed); g.ExecutionType == creel.Opportunistic {
		c.execution |= instead
	}
	c.state, c.reason, c.am = cAllocated, g.Reason, g.AM
	if g.AllocationRequestID != 0 {
		c.more().alloc = g.AllocationRequestID
	}
	if g.Rare != nil {
		x := c.more()
		if x.GrantExtra = *g.Rare; x.Want != nil {
			x.tags = x.Want.Tags
		}
	}
	l.attach(c, m.nodes.list[g.Node.Serial()])
	l.serial++
	c.wait = l.serial
	l.unlaunched.Put(c.wait, c)
	if m.activities != nil {
		m.noteGrant(c, g)
	}
	if c.am {
		m.attempts.allocated(t, c)
		return
	}
	m.count.waits.Add(g.Waited)
	g.App.Queue().Waits.Add(g.Waited)
	t.fresh = append(t.fresh, c)
	m.attempts.news(t)
}

// attach adds a container to a node and to its attempt.
func (l *containerLife) attach(c *container, n *node) {
	m := l.m
	n.put(c)
	c.origin.live.Put(c.seq, c)
	if c.uncharged() {
		m.opportunistic.attach(c)
		return
	}
	m.count.containers++
	m.count.granted++
}

// charge adds (sign 1) a container to the use of its application, or subtracts it (-1).
func (o *opportunities) charge(c *container, sign int64) {
	o.counts.Containers += int32(sign)
	a := c.origin.app
	if a.opportunistic == nil {
		a.opportunistic = &opportunisticUse{}
	}
	*a.opportunistic = a.opportunisticUse(o.m.ms())
	a.opportunistic.accrued = o.m.ms()
	a.opportunistic.containers += int32(sign)
	a.opportunistic.used.AddTimes(&o.m.sizeOf(c).V, sign)
	if c.execution&lent != 0 {
		a.opportunistic.lent += int32(sign)
		return
	}
	o.counted(a, int32(sign))
}

// attach books a container on its node and for its application.
func (o *opportunities) attach(c *container) {
	o.nodes.Put(c.node.Serial(), &o.m.sizeOf(c).V, c.state == cRunning)
	o.charge(c, 1)
}

// detach is the opposite of attach.
func (o *opportunities) detach(c *container) {
	o.nodes.Take(c.node.Serial(), &o.m.sizeOf(c).V, c.state == cRunning)
	o.charge(c, -1)
}

// waits records whether a container waits in its node's queue.
func (o *opportunities) waits(c *container, waiting bool) {
	if since := c.rare().queued; waiting && since == 0 {
		c.more().queued = o.m.ms()
		o.counts.Waiting++
	} else if !waiting && since > 0 {
		c.extra.queued = 0
		o.counts.Waiting--
	}
}

// ended counts a container that ended.
func (o *opportunities) ended(exit int32, diagnostics string) {
	o.counts.Released++
	if exit == opportunistic.ExitKilled {
		o.counts.Killed[opportunistic.KillOf(diagnostics)]++
	}
}

// complete ends a container, once: its node and queue get its resources back, and its owner, if any, gets the
// completion.
func (l *containerLife) complete(c *container, s containerState, exit int32, diagnostics string, message any) {
	m := l.m
	n, t, size := c.node, c.owner(), m.sizeOf(c)
	if m.sched.Preemption().Learns() && (s == cCompleted || s == cReleased && c.state == cRunning) && !c.am &&
		!c.uncharged() {
		m.sched.Preemption().Ended(&t.app.App, &n.Node, m.ms()-c.created)
	}
	l.dropUnlaunched(c)
	if x := c.extra; x != nil {
		m.timers.stop(&x.timer)
		if x.growing != nil {
			l.withdraw(x.growing)
		}
	}
	n.take(c)
	c.origin.live.Drop(c.seq)
	if x := c.extra; x != nil {
		m.sched.Tags().Count(&t.app.App, &n.Node, x.tags, -1)
	}
	if c.uncharged() {
		m.opportunistic.waits(c, false)
		m.opportunistic.detach(c)
		m.opportunistic.ended(exit, diagnostics)
	} else {
		m.sched.Release(&t.app.App, &n.Node, size)
		m.count.containers--
		m.count.released++
	}
	if x := c.extra; x != nil && x.victim != nil {
		v := x.victim
		m.victims.pardon(c)
		m.sched.Preemption().Lost(v)
	}
	if c.state == cAllocated {
		t.unfresh(c)
	}
	id, am, was, priority, asked := c.id(), c.am, c.state, c.priority, c.askedType()
	m.signals.containerOver(id)
	x := c.extra
	done := Completion{
		ID:          id,
		ExitStatus:  exit,
		Diagnostics: diagnostics,
		Shape:       &size.Shape,
		Execution:   c.executionType(),
		Message:     message,
		node:        n.Serial(),
	}
	*c = container{state: s}
	l.spare = append(l.spare, c)
	switch {
	case was == cAllocated && !am && !t.over():
		// Its AM never received it: ask again.
		if t.schedulable() {
			if x == nil {
				x = &noExtra
			}
			m.sched.Restore(&t.app.App, &n.Node, size, priority, x.alloc, asked, &x.GrantExtra)
			m.attempts.placeAgain(t, x.Want)
		}
	case am:
		m.attempts.amEnded(t, exit, diagnostics)
	case t.wantsCompletions():
		t.done = append(t.done, done)
		if !t.over() {
			m.attempts.news(t)
		}
	}
}

// dropUnlaunched removes a container from those not seen running.
func (l *containerLife) dropUnlaunched(c *container) {
	if c.wait != 0 {
		l.unlaunched.Drop(c.wait)
		c.wait = 0
	}
}

func (a *attempt) unfresh(c *container) {
	for i, f := range a.fresh {
		if f == c {
			a.fresh = append(a.fresh[:i], a.fresh[i+1:]...)
			return
		}
	}
}

// expired ends a container that was never seen running.
func (l *containerLife) expired(c *container) {
	id, n := c.id(), c.node
	l.complete(c, cExpired, creel.ExitAborted, containerUnused, nil)
	l.m.nodes.commands.Kill(n.Serial(), id)
}

// release ends a container at its AM's request.
func (l *containerLife) release(c *container) {
	id, n := c.id(), c.node
	l.complete(c, cReleased, creel.ExitAborted, containerReleased, nil)
	l.m.nodes.commands.Kill(n.Serial(), id)
}

// releaseOf releases the containers among these ids that belong to an attempt.
func (l *containerLife) releaseOf(t *attempt, ids []creel.ContainerID) {
	m := l.m
	var list [sched.Prefetched]*container
	n := 0
	for i := range ids {
		c := t.live.Get(ids[i].ID)
		if ids[i].Attempt != t.id {
			c = m.apps.container(ids[i]) // retained from an earlier attempt
		}
		if c != nil {
			list[n] = c
			n++
		} else {
			m.recovery.releaseLater(t, ids[i])
		}
	}
	l.prefetchCompletions(list[:n])
	for _, c := range list[:n] {
		if c.owner() == t && !c.am { // an id that occurs twice has no owner the second time
			l.release(c)
		}
	}
}
