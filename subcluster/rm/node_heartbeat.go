// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
)

// NodeHeartbeat is one heartbeat of a node. It orders an unknown or out-of-step node to resync, an excluded one to
// stop.
func (m *Machine) NodeHeartbeat(now time.Time, r *NodeReport) *NodeAnswer {
	m.at(now)
	n := m.nodes.byID[r.ID]
	if n == nil {
		return &NodeAnswer{Action: NodeResync, Diagnostics: fmt.Sprintf(nodeResyncs, r.ID)}
	}
	switch {
	case n.state == nodeState(creel.NodeDecommissioned), n.untracked && n.state.gone():
		return &NodeAnswer{
			Action:      NodeStop,
			Diagnostics: fmt.Sprintf(nodeDisallowed, r.ID, r.ID.Host),
		}
	case n.state.gone():
		return &NodeAnswer{Action: NodeResync, Diagnostics: fmt.Sprintf(nodeResyncs, r.ID)}
	}
	m.nodes.alive(n)
	switch {
	case r.ResponseID == n.responseID:
		m.signals.taken(n)
	case n.answer != nil && (r.ResponseID+1)&0x7fffffff == n.responseID:
		n.answer.Duplicate = true
		return n.answer
	default:
		why := fmt.Sprintf(nodeTooFarBehind, n.responseID, r.ResponseID)
		m.nodes.gone(n, nodeState(creel.NodeRebooted))
		m.settle()
		return &NodeAnswer{Action: NodeResync, Diagnostics: why}
	}
	if r.Unhealthy != (n.state == nodeState(creel.NodeUnhealthy)) || r.HealthReport != n.health {
		m.nodes.health(n, r)
	}
	if r.Utilization != nil {
		n.use = *r.Utilization
	}
	for i := range r.Containers {
		m.nodes.reported(n, &r.Containers[i])
	}
	for i := range r.Increased {
		if c := m.apps.container(r.Increased[i].ID); c != nil && c.node == n {
			m.containers.increased(c, m.sizes.Vec(r.Increased[i].Resource))
		}
	}
	m.opportunistic.heard(n)
	m.logs.reported(n, r.Logs)
	if n.state == nodeDraining && n.count == 0 {
		m.nodes.gone(n, nodeState(creel.NodeDecommissioned))
		m.settle()
		return &NodeAnswer{
			Action:      NodeStop,
			Diagnostics: fmt.Sprintf(nodeMayLeave, r.ID),
		}
	}
	m.sched.Heartbeat(&n.Node)
	if !r.Reported.HasLabels && !r.Reported.HasAttributes {
		m.settle()
		m.opportunistic.lend(n)
		if m.activities != nil {
			m.considered(n)
		}
		return m.nodes.answer(n)
	}
	taken, why := m.nodes.says(r.ID, &r.Reported)
	m.settle()
	m.opportunistic.lend(n)
	if m.activities != nil {
		m.considered(n)
	}
	out := m.nodes.answer(n)
	out.Taken, out.Diagnostics = taken, why
	return out
}

// says applies a node's reported labels and attributes, and returns the errors in them.
func (l *nodeLife) says(id creel.NodeID, r *NodeProperties) (taken ReportAcceptance, wrong string) {
	m := l.m
	if r.HasLabels && m.cfg.Labels == LabelsByNode {
		err := m.labels.reported(id, r.Labels)
		if taken.Labels = err == nil; err != nil {
			wrong = err.Error()
		}
	}
	if r.HasAttributes {
		err := m.attributes.reported(id, r.Attributes)
		if taken.Attributes = err == nil; err != nil {
			wrong = join(wrong, err.Error())
		}
	}
	return taken, wrong
}

func (l *nodeLife) answer(n *node) *NodeAnswer {
	m := l.m
	out := n.answer
	if out == nil {
		out = &NodeAnswer{}
		n.answer = out
	}
	n.responseID = (n.responseID + 1) & 0x7fffffff
	limit := m.opportunistic.queueLimit(n)
	if len(out.Cleanup)+len(out.Apps)+len(out.Forget)+len(out.Update)+len(out.Signals) == 0 &&
		len(n.ended)+len(n.updates)+len(n.signals) == 0 &&
		l.commands.None(n.Serial()) && !n.tellSize {
		*out = NodeAnswer{ResponseID: n.responseID, Limit: limit}
		return out
	}
	*out = NodeAnswer{
		ResponseID: n.responseID, Apps: n.ended, Update: n.updates, Signals: n.signals, Limit: limit,
	}
	out.Cleanup, out.Forget = l.commands.Take(n.Serial())
	n.ended, n.updates, n.signals = nil, nil, nil
	if n.tellSize {
		total := n.Total()
		out.Resource, out.Override, n.tellSize = m.sizes.Resource(&total), true, false
	}
	return out
}

// health applies a node's health report; containers on an unhealthy node end.
func (l *nodeLife) health(n *node, r *NodeReport) {
	n.health, n.healthTime = r.HealthReport, r.HealthTime
	switch {
	case r.Unhealthy && n.state.runs():
		l.set(n, nodeState(creel.NodeUnhealthy))
		l.endAll(n, onUnhealthyNode)
	case !r.Unhealthy && n.state == nodeState(creel.NodeUnhealthy):
		l.set(n, nodeRunning)
	}
}

// reported applies one container status of a heartbeat.
func (l *nodeLife) reported(n *node, s *ContainerStatus) {
	m := l.m
	c := m.apps.container(s.ID)
	switch {
	case c == nil || c.node != n:
		switch {
		case s.State != creel.ContainerComplete:
			l.commands.Kill(n.Serial(), s.ID)
		case !m.apps.owed(s.ID):
			l.commands.Forget(n.Serial(), s.ID) // already ended here
		}
	case s.State == creel.ContainerComplete:
		m.logs.ran(c.origin.app, n)
		told := c.owner().wantsCompletions() && !c.am
		m.containers.complete(c, cCompleted, s.ExitStatus, s.Diagnostics, s.Message)
		if !told {
			l.commands.Forget(n.Serial(), s.ID)
		}
	default:
		m.containers.running(c)
		if c.uncharged() {
			m.opportunistic.waits(c, s.Waiting)
		}
	}
}

// owed reports whether a container's completion may not have reached its AM. Then its node must not delete the
// completion: after a restart, no other copy exists.
func (l *appLife) owed(id creel.ContainerID) bool {
	t := l.attempt(id.Attempt)
	return t != nil && (t.owes(id) || t.app.current != t && t.app.current.owes(id))
}

func (t *attempt) owes(id creel.ContainerID) bool {
	for i := range t.done {
		if t.done[i].ID == id {
			return true
		}
	}
	return slices.ContainsFunc(t.unacknowledged(), func(c Completion) bool { return c.ID == id })
}

func (l *containerLife) running(c *container) {
	m := l.m
	if c.state < cRunning && c.state != cAllocated || c.state == cAllocated && c.am {
		c.state = cRunning
		l.dropUnlaunched(c)
		if c.uncharged() {
			m.opportunistic.seen(c)
		}
		m.logs.ran(c.origin.app, c.node)
	}
}
