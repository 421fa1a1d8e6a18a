// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/nodeset"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// RegisterNode is registerNodeManager: for a new node, a returning one, or one that was ordered to resync.
func (m *Machine) RegisterNode(now time.Time, r *RegisterNode) (NodeRegistration, error) {
	m.at(now)
	if r.ID.Host == "" || r.ID.Port < 0 {
		return NodeRegistration{}, invalid("invalid node id "+r.ID.String(), "it needs a host and a port", "")
	}
	if least := m.cfg.MinNodeVersion; least != "" && olderVersion(r.Version, least) {
		return NodeRegistration{
			Action:      NodeStop,
			Diagnostics: fmt.Sprintf(versionDisallowed, r.Version, least),
		}, nil
	}
	v := m.sizes.Vec(r.Resource)
	n := m.nodes.byID[r.ID]
	if why := m.nodes.refuses(r, &v); why != "" {
		return NodeRegistration{Action: NodeStop, Diagnostics: why}, nil
	}
	if n != nil && n.state == nodeState(creel.NodeDecommissioned) {
		return NodeRegistration{
			Action:      NodeStop,
			Diagnostics: fmt.Sprintf(hostDisallowed, r.ID.Host),
		}, nil
	}
	if n == nil {
		n = m.nodes.add(r.ID, r.Rack)
	} else {
		m.sched.SetRack(&n.Node, r.Rack)
	}
	m.opportunistic.registered(n)
	n.untracked = r.Untracked
	out := NodeRegistration{}
	// Hadoop's NodeManagers log the diagnostics and continue.
	out.Taken, out.Diagnostics = m.nodes.says(r.ID, &r.Reported)
	if n.registrations++; n.registrations > 1 {
		m.attempts.voidTokens(n)
	}
	if http := r.ID.Host + ":" + strconv.Itoa(int(r.HTTPPort)); n.at == nil || n.at.HTTPAddress != http {
		n.at = &Place{r.ID, http}
	}
	n.offer = r.Overallocation
	n.version, n.physical, n.health, n.healthTime = r.Version, r.Physical, r.HealthReport, now
	n.responseID, n.answer = 0, nil
	m.nodes.commands.Drop(n.Serial())
	n.updates, n.signals = nil, nil
	wasDraining := n.state == nodeDraining
	m.nodes.set(n, nodeState(0)) // excluded from the sums while its containers are compared
	if n.override {
		total := n.Total()
		out.Resource, out.Override = m.sizes.Resource(&total), true
	} else {
		m.sched.SetTotal(&n.Node, &v)
	}
	m.nodes.compare(n, r)
	m.signals.again(n)
	m.recovery.amsMissing(n)
	for _, id := range r.Applications {
		switch a := m.apps.byID[id]; {
		case a == nil || a.state.ended():
			n.appEnded(id)
		case a.current != nil:
			a.current.nodeSets.Add(nodeset.Ran, n.Serial())
			m.logs.ran(a, n)
		}
	}
	m.logs.reported(n, r.Logs)
	state := nodeRunning
	if wasDraining {
		state = nodeDraining
	}
	if r.Unhealthy {
		state = nodeState(creel.NodeUnhealthy)
	}
	m.nodes.set(n, state)
	m.nodes.alive(n)
	m.settle()
	return out, nil
}

// refuses returns the reason why a node of this size cannot serve, "" if it can.
func (l *nodeLife) refuses(r *RegisterNode, v *amounts.Vec) string {
	m := l.m
	if name, most := l.impossible(v); name != "" {
		return fmt.Sprintf(nodeTooLarge, r.ID, r.Resource, name, most)
	}
	for i := 0; i < m.sizes.N; i++ {
		// As in Hadoop, other types have no minimum here: most nodes have none of them.
		if v.At(i) < 0 || i < 2 && v.At(i) < m.sizes.Least.At(i) {
			return fmt.Sprintf(nodeTooSmall, r.ID.Host, r.Resource, m.cfg.MinAllocation)
		}
	}
	return ""
}

// compare compares a registering node's containers with the known ones. Missing ones end, reported completions
// are applied, unknown containers of live applications are recovered, and all others are killed. A container whose
// start may still be in progress also counts as missing. If the node started it before its restart and the response
// was lost, a retry would run the container twice. If the restarted node receives the start later, it reports an
// unknown container, which is killed at the next heartbeat.
func (l *nodeLife) compare(n *node, r *RegisterNode) {
	m := l.m
	reported := make(map[creel.ContainerID]bool, len(r.Containers))
	for i := range r.Containers {
		reported[r.Containers[i].ID] = true
	}
	for _, c := range n.live { // one end may cause others of the same attempt, which leave holes
		if c != nil && c.node == n && !reported[c.id()] && c.state >= cAcquired {
			m.containers.complete(c, cKilled, creel.ExitAborted, onLostNode, nil)
		}
	}
	for i := range r.Containers {
		k := &r.Containers[i]
		c := m.apps.container(k.ID)
		switch {
		case c != nil && c.node != n:
			l.commands.Kill(n.Serial(), k.ID)
		case c != nil && k.State == creel.ContainerComplete:
			m.containers.complete(c, cCompleted, k.ExitStatus, k.Diagnostics, nil)
		case c != nil:
			m.containers.running(c)
			m.opportunistic.registeredAs(c, k)
		case k.State == creel.ContainerComplete:
			m.recovery.ended(n, k)
		case !m.recovery.container(n, k):
			l.commands.Kill(n.Serial(), k.ID)
		}
	}
}

// UnregisterNode is a node's orderly stop.
func (m *Machine) UnregisterNode(now time.Time, id creel.NodeID) {
	m.at(now)
	if n := m.nodes.byID[id]; n != nil && (n.state.runs() || n.state == nodeState(creel.NodeUnhealthy)) {
		m.nodes.gone(n, nodeState(creel.NodeShutdown))
	}
	m.settle()
}

// olderVersion compares versions number by number, such as 3.4.2 or 3.5.0-SNAPSHOT, which is older than 3.5.0. A part
// that is no number is older than a number.
func olderVersion(a, b string) bool {
	parse := func(text string) (out [4]int) {
		numbers, suffix, _ := strings.Cut(text, "-")
		for i, part := range strings.SplitN(numbers, ".", 4) {
			n, err := strconv.Atoi(part)
			if err != nil {
				n = -1
			}
			if i < 3 {
				out[i] = n
			}
		}
		if suffix != "" {
			out[3] = -1
		}
		return out
	}
	x, y := parse(a), parse(b)
	return slices.Compare(x[:], y[:]) < 0
}
