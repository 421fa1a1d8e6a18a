// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// machineContainers shows the machine's containers to the scheduler's preemption; see sched.Containers.
type machineContainers struct{ m *Machine }

// Apps calls yield for every application in order of submission.
func (k machineContainers) Apps(yield func(*sched.App) bool) {
	for _, a := range k.m.apps.list {
		if k.m.apps.byID[a.id] == a && a.InQueue() && !yield(&a.App) {
			return
		}
	}
}

// Newest appends the live containers of an application that are not under notice,
// the newest first.
func (k machineContainers) Newest(a *sched.App, out []sched.Container) []sched.Container {
	begin := len(out)
	for _, t := range ofSched(a).attempts {
		for c := range t.live.All() {
			if c.rare().victim == nil && c.rare().growing == nil && !c.uncharged() {
				out = append(out, sched.Container{
					Owner: c, Node: &c.node.Node, Size: k.m.sizeOf(c), Created: c.created, AM: c.am,
					Lent: c.node.Lends() && c.rare().Label == "",
				})
			}
		}
	}
	slices.Reverse(out[begin:])
	return out
}

// Weight is the weight of an application's work in the choice of victims with the least loss. It doubles if the
// application declares that its containers outlive its AM: then their state is not in them alone. It doubles if there
// is only one attempt.
func (k machineContainers) Weight(a *sched.App) float64 {
	w, s := 1.0, ofSched(a).sub
	if s.KeepContainers {
		w *= 2
	}
	if s.MaxAttempts == 1 {
		w *= 2
	}
	return w
}

// apply applies the scheduler's decisions about victims.
func (l *victimLife) apply() {
	m := l.m
	for _, o := range m.sched.Preemption().Orders() {
		c, _ := o.Victim.Owner.(*container)
		if c == nil {
			continue // it ended after the order
		}
		switch o.Kind {
		case sched.Notice:
			l.notice(c, o.Victim)
		case sched.Pardon:
			m.out.act(l.preempted(c, Pardoned))
			l.pardon(c)
		case sched.Kill:
			l.takeBack(c)
		}
	}
}

// notice puts a container under notice: the next answer to its AM lists it.
func (l *victimLife) notice(c *container, v *sched.Victim) {
	m := l.m
	t := c.owner()
	x := c.more()
	x.victim, x.victimSlot = v, int32(len(t.victims))
	t.victims = append(t.victims, c)
	m.out.act(l.preempted(c, Noticed))
	if !c.am {
		m.attempts.news(t)
	}
}

// pardon ends a container's notice.
func (l *victimLife) pardon(c *container) {
	x, t := c.extra, c.owner()
	last := len(t.victims) - 1
	t.victims[x.victimSlot] = t.victims[last]
	t.victims[x.victimSlot].extra.victimSlot = x.victimSlot
	t.victims[last] = nil
	t.victims = t.victims[:last]
	x.victim = nil
}

// takeBack kills a container whose notice has expired, and counts the loss.
func (l *victimLife) takeBack(c *container) {
	m := l.m
	a, v := c.owner().app, &m.sizeOf(c).V
	what := l.preempted(c, TakenBack)
	m.out.act(what)
	a.lost.count(v, m.ms()-c.created, c.am)
	for q := a.Queue(); q != nil; q = q.Parent() {
		q.Lost.Containers++
		q.Lost.Amount.Add(v)
		q.Lost.OverTime.AddTimes(v, m.ms()-c.created)
	}
	a.lastLoss = fmt.Sprintf("Queue %s had less than its %s: container %s of %s was taken back for %s.",
		what.ForQueue, what.Rule, what.Container, what.Resource, what.For)
	id, n := c.id(), c.node
	m.containers.complete(c, cKilled, creel.ExitPreempted, containerPreempted, nil)
	m.nodes.commands.Kill(n.Serial(), id)
}

func (l *victimLife) preempted(c *container, what VictimOutcome) Preempted {
	return l.describe(c, c.extra.victim, what)
}

func (l *victimLife) describe(c *container, v *sched.Victim, what VictimOutcome) Preempted {
	m := l.m
	a := c.owner().app
	return Preempted{
		What: what, Container: c.id(), Node: c.node.ID(), Resource: m.sizeOf(c).Resource, Queue: a.path,
		User: a.sub.User, Rule: v.Rule, For: v.For.ID(), ForQueue: v.ForQueue(), AM: c.am,
		Age: time.Duration(m.ms()-c.created) * time.Millisecond, By: instant(v.By),
		Why: v.Why(),
	}
}

// underNotice adds an AM's containers under notice to each of its answers.
func (l *victimLife) underNotice(t *attempt, out *Answer) {
	m := l.m
	var sum amounts.Vec
	for _, c := range t.victims {
		out.Preempt = append(out.Preempt, c.id())
		sum.Add(&m.sizeOf(c).V)
	}
	slices.SortFunc(out.Preempt, func(a, b creel.ContainerID) int { return a.Compare(b) })
	if !m.sched.Preemption().Negotiates() {
		return
	}
	least := m.sizes.Least
	n := int64(1)
	for i := 0; i < m.sizes.Check; i++ {
		if x := least.At(i); x > 0 {
			n = max(n, (sum.At(i)+x-1)/x)
		}
	}
	out.Negotiable = &NegotiableContract{Each: m.sizes.Resource(&least), Count: int32(min(n, 1<<31-1))}
}

// setSize changes a container's size, and the size that a victim counts with.
func (l *containerLife) setSize(c *container, to *amounts.Size) {
	c.size = to.Number
	if v := c.rare().victim; v != nil {
		v.Size = to
	}
}

// Plan is the preemption for a queue in the next round.
type Plan struct {
	On      bool // preemption is on; if not, the plan shows the effect of its settings
	Victims []PlannedVictim
}

// PlannedVictim is one victim of a plan.
type PlannedVictim struct {
	Preempted
	UnderNotice bool // its AM has been notified already
}

// PlanPreemption returns the next round's preemption for a queue and its descendants: victims, beneficiaries, and
// times. It changes nothing. It returns ErrQueueNotFound for an unknown queue.
func (r Reader) PlanPreemption(queue string) (Plan, error) {
	m := r.m
	q := m.sched.Tree().Find(queue)
	if q == nil {
		return Plan{}, noQueue(queue)
	}
	p := m.sched.Preemption().Plan(q)
	out := Plan{On: p.On, Victims: []PlannedVictim{}}
	for i, v := range p.Victims {
		if c, live := v.Owner.(*container); live {
			out.Victims = append(out.Victims, PlannedVictim{m.victims.describe(c, v, Noticed), i < p.Under})
		}
	}
	return out, nil
}
