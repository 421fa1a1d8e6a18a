// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
)

func noNode(id creel.NodeID) error {
	return refusal(creel.ErrNodeNotFound, nodeUnknown, id)
}

// SetNodeResource changes a node's size. If it shrinks below the used resources, no container is ended: the node gets
// new containers once enough have ended by themselves.
func (m *Machine) SetNodeResource(now time.Time, id creel.NodeID, r creel.Resource) error {
	m.at(now)
	n := m.nodes.byID[id]
	if n == nil {
		return noNode(id)
	}
	v := m.sizes.Vec(r)
	for i := 0; i < m.sizes.N; i++ {
		if v.At(i) < 0 {
			return invalid("invalid resource of "+id.String(), m.sizes.Names[i]+" is negative", "")
		}
	}
	if name, most := m.nodes.impossible(&v); name != "" {
		return invalid(
			"invalid resource of "+id.String(),
			r.String()+" is more "+name+" than a node can have",
			fmt.Sprintf("give at most %d", most),
		)
	}
	m.sched.SetTotal(&n.Node, &v)
	n.override, n.tellSize = true, true
	m.settle()
	return nil
}

// Decommission removes a node, at once or when its containers have ended.
func (m *Machine) Decommission(now time.Time, r *Decommission) error {
	m.at(now)
	n := m.nodes.byID[r.ID]
	if n == nil {
		return noNode(r.ID)
	}
	if !r.Graceful || !n.state.runs() {
		switch {
		case !n.untracked:
			m.nodes.gone(n, nodeState(creel.NodeDecommissioned))
		case !n.state.gone(): // otherwise the state stays
			m.nodes.gone(n, nodeState(creel.NodeShutdown))
		}
		m.settle()
		return nil
	}
	d := r.Timeout
	if d == 0 {
		d = m.cfg.DecommissionAfter
	}
	if n.state == nodeDraining && n.leaveAfter == d {
		return nil // another refresh: the timeout continues, as in Hadoop
	}
	m.timers.stop(&n.decommission)
	m.nodes.set(n, nodeDraining)
	n.leaveBy, n.leaveAfter = 0, d
	if d > 0 {
		n.leaveBy = m.now + int64(d)
		n.decommission = m.timers.arm(n.leaveBy, func() {
			n.decommission = nil
			m.nodes.gone(n, nodeState(creel.NodeDecommissioned))
		})
	}
	m.settle()
	return nil
}

// Recommission undoes a decommission: a draining node serves again; a decommissioned one may register again.
func (m *Machine) Recommission(now time.Time, id creel.NodeID) error {
	m.at(now)
	n := m.nodes.byID[id]
	if n == nil {
		return noNode(id)
	}
	switch creel.NodeState(n.state) {
	case creel.NodeDecommissioning:
		m.nodes.set(n, nodeRunning)
	case creel.NodeDecommissioned:
		m.nodes.set(n, nodeState(creel.NodeShutdown))
	}
	m.settle()
	return nil
}

// SetTracked sets whether a node's host is on the include or exclude list. A lost node that is on neither list is
// forgotten after Config.ForgetUntracked, if that is above 0, as in Hadoop's NodesListManager.
func (m *Machine) SetTracked(now time.Time, id creel.NodeID, tracked bool) error {
	m.at(now)
	n := m.nodes.byID[id]
	if n == nil {
		return noNode(id)
	}
	n.untracked = !tracked
	m.nodes.forgetLater(n)
	return nil
}

// forgetLater starts, continues or stops the timeout of an untracked node that is gone.
func (l *nodeLife) forgetLater(n *node) {
	m := l.m
	if !n.untracked || !n.state.gone() {
		m.timers.stop(&n.forget)
		return
	}
	if d := m.cfg.ForgetUntracked; d > 0 && n.forget == nil {
		n.forget = m.timers.arm(m.now+int64(d), func() {
			n.forget, n.forgotten = nil, true
			l.former[n.ID()] = n
			delete(l.byID, n.ID())
		})
	}
}

// remembered yields all nodes except forgotten ones, in order of first registration.
func (l *nodeLife) remembered(yield func(*node) bool) {
	for _, n := range l.list {
		if !n.forgotten && !yield(n) {
			return
		}
	}
}

// NodeLoad is the load of a node that an administrator would take out.
type NodeLoad struct {
	ID           creel.NodeID
	State        creel.NodeState
	Containers   int       // that run or are to start there
	AMs          int       // among them
	Applications []AppLoad // by their number of containers, the most first
	LeaveBy      time.Time // when a draining node leaves with its containers; zero for never
}

// AppLoad is the number of an application's containers on a node.
type AppLoad struct {
	ID         creel.ApplicationID
	Containers int
	AM         bool // its AM is among them
}

// HostLoad returns the nodes of some hosts with their load, by port. It looks at each node once.
func HostLoad(m *Machine, of func(host string) bool) (list []NodeLoad) {
	for n := range m.nodes.remembered {
		if of(n.ID().Host) {
			list = append(list, loadOf(n))
		}
	}
	slices.SortFunc(list, func(a, b NodeLoad) int { return cmp.Compare(a.ID.Port, b.ID.Port) })
	return list
}

func loadOf(n *node) NodeLoad {
	l := NodeLoad{ID: n.ID(), State: creel.NodeState(n.state), LeaveBy: instant(n.leaveBy)}
	at := map[creel.ApplicationID]int{}
	for _, c := range n.live {
		if c == nil {
			continue
		}
		id := c.owner().id.Application
		i, known := at[id]
		if !known {
			i = len(l.Applications)
			at[id] = i
			l.Applications = append(l.Applications, AppLoad{ID: id})
		}
		l.Containers++
		l.Applications[i].Containers++
		if c.am {
			l.AMs++
			l.Applications[i].AM = true
		}
	}
	slices.SortFunc(l.Applications, func(a, b AppLoad) int {
		return cmp.Or(cmp.Compare(b.Containers, a.Containers), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	return l
}
