// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/nodeset"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Recover restores applications after a restart, before any other event. Ended ones become history; for the others
// the machine waits until their AMs register again and nodes report their containers. The full timeouts for that
// start now, whenever an application was submitted.
func (m *Machine) Recover(now time.Time, r *Recover) error {
	m.at(now)
	m.recovery.at = m.now
	if m.cfg.Labels != LabelsOff {
		m.labels.set.put(&r.Labels)
		m.labels.put(&r.Labels)
	}
	m.attributes.set.put(r.Attributes)
	for i := range r.Attributes {
		m.attributes.apply(ReplaceAttributes, AttributesByCall, &r.Attributes[i])
	}
	for i := range r.Apps {
		if err := m.recovery.app(&r.Apps[i]); err != nil {
			return err
		}
	}
	for _, d := range r.Disowned {
		m.disowned.put(d.App, d.Claim)
	}
	slices.SortStableFunc(m.apps.ended, func(a, b *app) int { return cmp.Compare(a.finished, b.finished) })
	m.apps.keepEnded(min(m.cfg.MaxCompletedApps, max(m.cfg.RecoveredCompleted, 0)))
	m.settle()
	return nil
}

func (x *recovery) app(r *AppRecord) error {
	m := x.m
	s := r.Submission
	if s.ID.IsZero() || m.apps.byID[s.ID] != nil {
		return invalid(
			"cannot recover application "+s.ID.String(),
			"it has no id or is here already",
			"recover into a new machine",
		)
	}
	a := &app{
		id:        s.ID,
		sub:       &s,
		path:      r.Queue,
		final:     r.Final,
		diag:      r.Diagnostics,
		released:  r.Released,
		moved:     r.Moved,
		submitted: nanos(r.Submitted),
		launched:  nanos(r.Started),
		finished:  nanos(r.Finished),
	}
	d := admission{s: &s, priority: s.Priority}
	if !s.Unmanaged {
		v, err := m.sizes.Normalize(s.AM.Resource, &m.sizes.Most)
		if err != nil {
			v = m.sizes.Vec(s.AM.Resource)
		}
		d.am = m.sizes.Of(v)
	}
	d.enlist(m, a)
	a.App.SetUsedOverTime(m.sizes.Vec(r.Usage.OverTime))
	a.lost = losses{
		amount: m.sizes.Vec(r.Usage.Lost), overTime: m.sizes.Vec(r.Usage.LostOverTime),
		containers: r.Usage.Containers, ams: r.Usage.AMs,
	}
	submitted := func(c *sched.AppCounts) { c.Submitted++ }
	if a.isUAM() && !r.State.Ended() {
		m.apps.uams[a] = struct{}{}
	}
	for i := range r.Attempts {
		k := &r.Attempts[i]
		if !s.Unmanaged && !k.State.Ended() && k.AM.ID == 0 {
			break // it waited for a container, and the attempt was never reported: start it again
		}
		a.current = recoveredAttempt(a, k)
		a.attempts = append(a.attempts, a.current)
	}
	if r.State.Ended() {
		a.state = map[creel.ApplicationState]appState{
			creel.AppFinished: appFinished,
			creel.AppFailed:   appFailed,
			creel.AppKilled:   appKilled,
		}[r.State]
		// Only an application that its queue rejected failed without an attempt.
		if a.refused = a.state == appFailed && len(r.Attempts) == 0; !a.refused {
			m.apps.counted(a, nil, submitted) // queues count applications that arrived or ended since the start
			m.apps.counted(a, nil, endedAs(a.state))
		}
		m.apps.ended = append(m.apps.ended, a)
		return nil
	}
	if len(r.Signals) > 0 {
		m.signals.waiting[a.id] = slices.Clone(r.Signals)
	}
	if !r.Lifetime.IsZero() {
		m.apps.armLifetime(a, nanos(r.Lifetime))
	}
	q := m.sched.Tree().Find(string(a.path))
	if q == nil {
		q = m.sched.CreateQueue(a.path)
	}
	m.apps.counted(a, q, submitted)
	if q == nil || !q.IsLeaf() {
		a.state = appSubmitted
		m.apps.accept(a) // fails it, with the reason
		return nil
	}
	m.apps.enter(a, q)
	a.state = appAccepted
	x.resume(a, r.Hold)
	return nil
}

// recoveredAttempt makes an attempt from its record. It adds a failure that counts to its application.
func recoveredAttempt(a *app, k *AttemptRecord) *attempt {
	t := &attempt{
		id:         k.ID,
		app:        a,
		started:    nanos(k.Started),
		finished:   nanos(k.Finished),
		final:      k.Final,
		url:        k.TrackingURL,
		exit:       k.ExitStatus,
		am:         k.AM,
		amNode:     k.Node,
		responseID: -1,
		recovered:  true,
	}
	t.diag.add(k.Diagnostics, math.MaxInt) // limited when it was saved
	switch k.State {
	case creel.AttemptFinished:
		t.state = tFinished
	case creel.AttemptFailed:
		t.state = tFailed
		if t.exit != creel.ExitPreempted && t.exit != creel.ExitAborted && t.exit != creel.ExitDisksFailed &&
			t.exit != creel.ExitKilledByRM {
			a.failures = append(a.failures, t.finished)
		}
	case creel.AttemptKilled:
		t.state = tKilled
	default:
		t.state = tLaunched
	}
	return t
}

// resume continues a recovered application in its queue from the state of its last attempt.
func (x *recovery) resume(a *app, hold Hold) {
	m := x.m
	t := a.current
	switch {
	case t == nil:
		m.attempts.start(a)
		if a.hold = hold; a.hold.Claim > 0 {
			m.apps.withhold(a)
		}
	case t.state == tLaunched:
		if !a.sub.Unmanaged && t.amNode != (creel.NodeID{}) {
			if x.awaited == nil {
				x.awaited = map[creel.NodeID][]*attempt{}
			}
			x.awaited[t.amNode] = append(x.awaited[t.amNode], t)
		}
		m.apps.stateChanged(a)
		if !a.sub.Unmanaged {
			label, _ := m.labels.ofAM(a.sub, a.Queue().Path()) // if the label is invalid now, the AM keeps running
			a.amLabel = label
			m.sched.Line().SetAMLabel(&a.App, label)
		}
		m.sched.Line().Activate(&a.App)
		m.attempts.alive(t)
	case t.state == tFinished:
		// It had unregistered; only the application's own end was not durable.
		m.apps.finish(a, appFinished, t.final, t.diag.String())
	case t.state == tFailed && !a.sub.Unmanaged && len(a.failures) < m.attempts.most(a):
		m.attempts.start(a)
	default:
		m.apps.finish(a, appFailed, creel.FinalFailed, t.diag.String())
	}
}

// amsMissing ends attempts of an earlier epoch whose AMs should run on a node that has registered without them.
// Either the AMs were never started there, or their completions are lost. Otherwise their silence would be noticed
// only ten minutes later.
func (x *recovery) amsMissing(n *node) {
	m := x.m
	waiting := x.awaited[n.ID()]
	delete(x.awaited, n.ID())
	for _, t := range waiting {
		if t.state == tLaunched && m.apps.container(t.am) == nil {
			m.attempts.amEnded(
				t,
				creel.ExitAborted,
				"node "+n.ID().
					String()+
					" registered without the AM's container after a restart of the ResourceManager",
			)
		}
	}
}

// container adopts a running container that a node reports and this epoch does not know. Its application must be alive
// and its id from an earlier epoch, so that a container with a reported completion cannot come back.
func (x *recovery) container(n *node, k *NodeContainer) bool {
	m := x.m
	owner := x.mayRun(k.ID)
	if owner == nil {
		return false
	}
	t := m.apps.attempt(k.ID.Attempt)
	a := t.app
	v := m.sizes.Vec(k.Resource)
	for i := 0; i < m.sizes.N; i++ {
		if v.At(i) < 0 {
			return false
		}
	}
	if name, _ := m.nodes.impossible(&v); name != "" {
		x.refuse(n, *k, name)
		return false
	}
	c := m.containers.blank()
	size := m.sizes.Of(v)
	c.seq, c.origin, c.size = k.ID.ID, t, size.Number
	c.created, c.priority = x.createdAt(k), k.Priority
	if c.setExecution(k.ExecutionType); c.execution == 0 {
		c.execution = uint8(creel.Guaranteed)
	}
	if k.ExecutionType == creel.Opportunistic && m.opportunistic != nil {
		c.execution = uint8(creel.Opportunistic)
	}
	if owner != t || k.AllocationRequestID != 0 || k.Version != 0 || len(k.Tags) > 0 || k.Label != "" {
		c.extra = &containerExtra{
			owner: owner, alloc: k.AllocationRequestID, version: k.Version, tags: k.Tags,
			GrantExtra: sched.GrantExtra{Label: k.Label},
		}
	}
	n.recovered = true
	c.state, c.reason = cRunning, sched.Recovered
	c.am = k.ID == t.am
	if t.endedBefore == nil {
		t.endedBefore = map[int64]struct{}{}
	}
	t.endedBefore[k.ID.ID] = struct{}{} // it cannot be recovered twice
	if !c.uncharged() {
		m.sched.Charge(&a.App, &n.Node, size)
	}
	m.sched.Tags().Count(&a.App, &n.Node, k.Tags, 1)
	m.containers.attach(c, n)
	owner.nodeSets.Add(nodeset.Ran, n.Serial())
	m.logs.ran(a, n)
	if !c.am {
		owner.previous = append(owner.previous, c.id())
	} else {
		t.amHTTP = n.at.HTTPAddress
	}
	if _, released := t.released[c.seq]; released {
		delete(t.released, c.seq)
		m.containers.release(c)
	}
	return true
}

// createdAt returns the creation time of a recovered container, in ms since the epoch: now, if the node's report has
// no past time. Ages and use over time are computed from it.
func (x *recovery) createdAt(k *NodeContainer) int64 {
	m := x.m
	if ms := k.Created.UnixMilli(); ms > 0 && ms <= m.ms() {
		return ms
	}
	return m.ms()
}

// refuse ends a container that its node reports with more of a type than a node can have. The container
// would make the sums of its queue and node negative. Its AM receives the reason, because it cannot find it by
// itself.
func (x *recovery) refuse(n *node, k NodeContainer, name string) {
	k.ExitStatus = creel.ExitAborted
	k.Diagnostics = fmt.Sprintf(
		"%s was not recovered after the restart of the ResourceManager: node %s reports %s for it,"+
			" more %s than a node can have; request another, and check that NodeManager",
		k.ID, n.ID(), k.Resource, name,
	)
	x.ended(n, &k)
}

// mayRun returns the attempt of a container of an earlier epoch, if a node may still run the container, else nil.
func (x *recovery) mayRun(id creel.ContainerID) (owner *attempt) {
	m := x.m
	t := m.apps.attempt(id.Attempt)
	if t == nil || !t.app.InQueue() || id.Epoch() >= m.cfg.Epoch || id.Sequence() <= 0 {
		return nil
	}
	if _, ended := t.endedBefore[id.ID]; ended {
		return nil
	}
	return x.ownerOf(t)
}

// ownerOf returns the attempt that owns an attempt's containers and receives their completions: the current one. It
// retains earlier attempts' containers only if the application requests that. It returns nil if the containers have
// no owner any more.
func (x *recovery) ownerOf(t *attempt) *attempt {
	if t == nil {
		return nil
	}
	owner := t.app.current
	if owner == nil || !owner.wantsCompletions() || owner != t && !t.app.sub.KeepContainers {
		return nil
	}
	return owner
}

// ended applies the end of a container that this epoch does not know.
func (x *recovery) ended(n *node, k *NodeContainer) {
	m := x.m
	m.signals.containerOver(k.ID)
	t := m.apps.attempt(k.ID.Attempt)
	owner := x.ownerOf(t)
	if owner == nil || t.app.state.ended() || owner != t && k.ID == t.am {
		m.nodes.commands.Forget(n.Serial(), k.ID)
		return
	}
	if _, known := t.endedBefore[k.ID.ID]; known || k.ID.Epoch() >= m.cfg.Epoch {
		// It has already completed here. Its node must store the completion until its AM has received it: after the
		// next restart, no other copy exists.
		if !m.apps.owed(k.ID) {
			m.nodes.commands.Forget(n.Serial(), k.ID)
		}
		return
	}
	if t.endedBefore == nil {
		t.endedBefore = map[int64]struct{}{}
	}
	t.endedBefore[k.ID.ID] = struct{}{}
	delete(t.released, k.ID.ID)
	if k.ID == t.am {
		m.nodes.commands.Forget(n.Serial(), k.ID)
		m.attempts.amEnded(t, k.ExitStatus, k.Diagnostics)
		return
	}
	owner.done = append(
		owner.done,
		Completion{
			ID:          k.ID,
			ExitStatus:  k.ExitStatus,
			Diagnostics: k.Diagnostics,
			Shape:       &amounts.Shape{Resource: k.Resource},
			Execution:   k.ExecutionType,
			node:        n.Serial(),
		},
	)
}

// mostReleased limits the stored releases of earlier epochs' containers whose nodes have not registered yet.
const mostReleased = 10_000

// releaseLater records the release of a container of an earlier epoch whose node has not registered yet. It is
// released when the node reports it. Hadoop's scheduler stores such releases too
// (SchedulerApplicationAttempt.getPendingRelease).
func (x *recovery) releaseLater(t *attempt, id creel.ContainerID) {
	of := x.m.apps.attempt(id.Attempt)
	if of == nil || of.app != t.app || !of.recovered || id == of.am || id.Epoch() >= x.m.cfg.Epoch ||
		len(of.released) >= mostReleased {
		return
	}
	if _, known := of.endedBefore[id.ID]; known {
		return
	}
	if of.released == nil {
		of.released = map[int64]struct{}{}
	}
	of.released[id.ID] = struct{}{}
}
