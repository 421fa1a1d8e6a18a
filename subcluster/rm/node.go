// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/intrusive"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// node is one NodeManager, in two cache lines of 64 bytes. Completions read and change the first; grants read the
// node's place from the second. Nodes lie side by side in slabs, so that tens of thousands of them stay in the
// processor's caches. Other fields are in its nodeInfo. BenchmarkChurn justifies the layout.
type node struct {
	live       []*container // with holes, because containers keep their index
	hole       int32        // index in live that was freed last, plus 1; 0 = none known
	count      int32        // containers
	sched.Node              // the scheduler's part: first the free resources

	at *Place
	*nodeInfo
	heartbeat int64
	state     nodeState
}

// nodeInfo holds the fields used for reports and heartbeats.
type nodeInfo struct {
	answer        *NodeAnswer
	heartbeatLink intrusive.Link[*node]
	responseID    int32
	registrations uint32
	override      bool // its size was set by an administrator
	recovered     bool // it registered with containers of an earlier epoch, which must be accepted
	tellSize      bool

	ended   []creel.ApplicationID // for its next heartbeat, as are these:
	updates []Grant
	signals []Signal

	version      string
	physical     creel.Resource
	use          NodeUse
	offer        Overallocation // zero: it lends nothing
	health       string
	healthTime   time.Time
	decommission *timer
	leaveBy      int64
	leaveAfter   time.Duration

	untracked bool   // its host is on neither list, see SetTracked
	forget    *timer // armed while it is untracked and gone
	forgotten bool   // it is one of Machine.formerNodes
}

// put assigns a container an index on the node: the last freed one, any other hole if there are many, or a new one.
func (n *node) put(c *container) {
	at := int(n.hole) - 1
	switch {
	case at >= 0:
		n.hole = 0
	case len(n.live) <= int(n.count+n.count/4+4):
		at = len(n.live)
		n.live = append(n.live, nil)
	default:
		at = slices.Index(n.live, nil)
	}
	n.live[at] = c
	c.node, c.slot = n, int32(at)
	n.count++
}

func (n *node) take(c *container) {
	n.live[c.slot] = nil
	n.hole = c.slot + 1
	n.count--
}

func (m *Machine) newNode(id creel.NodeID, rack string) *node {
	if n := m.formerNodes[id]; n != nil { // its serial number is permanent
		delete(m.formerNodes, id)
		n.forgotten = false
		m.nodes[id] = n
		m.sched.SetRack(&n.Node, rack)
		return n
	}
	n := m.nodePool.New()
	n.nodeInfo = &nodeInfo{}
	m.sched.AddNode(&n.Node, id, rack)
	m.nodes[id] = n
	m.nodeList = append(m.nodeList, n)
	m.commands.AddNode()
	m.labelNode(n)
	return n
}

// nodeState is creel.NodeState with methods for its consequences.
type nodeState uint8

// use returns the scheduler's permitted use of a node in this state.
func (s nodeState) use() sched.Use {
	switch {
	case s == nodeRunning:
		return sched.Open
	case creel.NodeState(s).Usable():
		return sched.Draining
	}
	return sched.Off
}

// runs reports whether its containers run.
func (s nodeState) runs() bool { return creel.NodeState(s).Usable() }

func (s nodeState) String() string { return creel.NodeState(s).String() }

const (
	nodeRunning  = nodeState(creel.NodeRunning)
	nodeDraining = nodeState(creel.NodeDecommissioning)
)

// gone reports whether the node is out of service until it registers again.
func (s nodeState) gone() bool {
	switch creel.NodeState(s) {
	case creel.NodeDecommissioned, creel.NodeShutdown, creel.NodeLost, creel.NodeRebooted:
		return true
	}
	return false
}

// listens reports whether the node may send another heartbeat, whose answer has the pending commands.
func (n *node) listens() bool {
	return n.state.runs() || n.state == nodeState(creel.NodeUnhealthy) || n.state == 0
}

// nodeAlive restarts the timeout of a silent node.
func (m *Machine) nodeAlive(n *node) {
	n.heartbeat = m.now
	m.nodeHeartbeats.Append(n)
}

// setNodeState moves a node between states and notifies the scheduler and AMs.
func (m *Machine) setNodeState(n *node, s nodeState) {
	was := n.state
	if was == s {
		return
	}
	n.state = s
	m.commands.Open(n.Serial(), n.listens())
	m.sched.SetUse(&n.Node, s.use())
	if s != nodeDraining {
		m.stop(&n.decommission)
		n.leaveBy = 0
	}
	m.forgetLater(n)
	if s == 0 {
		return
	}
	kind := int32(1)
	switch {
	case s == nodeRunning:
		kind = 0
	case s == nodeDraining:
		kind = 2
	}
	if was != 0 || kind != 0 {
		m.tellAMs(NodeUpdate{ID: n.ID(), Kind: kind}, n)
	}
}

// tellAMs notifies the AMs that have containers on the node.
func (m *Machine) tellAMs(u NodeUpdate, n *node) {
	var last *attempt
	for _, c := range n.live {
		if c == nil {
			continue
		}
		if t := c.owner(); t != last && t.registered && !slices.Contains(t.nodes, u) {
			t.nodes = append(t.nodes, u)
			last = t
		}
	}
}

// endAll ends all containers on a node.
func (m *Machine) endAll(n *node, why string) {
	for i := 0; i < len(n.live); i++ { // an end may cause others
		c := n.live[i]
		if c == nil {
			continue
		}
		id := c.id()
		m.complete(c, cKilled, creel.ExitAborted, why, nil)
		m.commands.Kill(n.Serial(), id)
	}
}

// nodeLost runs when a node's heartbeat has expired.
func (m *Machine) nodeLost(n *node) { m.nodeGone(n, nodeState(creel.NodeLost)) }

// nodeGone removes a node and all its containers.
func (m *Machine) nodeGone(n *node, s nodeState) {
	m.nodeHeartbeats.Remove(n)
	m.setNodeState(n, s)
	m.endAll(n, "Container released on a *lost* node")
	n.ended, n.updates, n.signals = nil, nil, nil
}

func (n *node) appEnded(id creel.ApplicationID) {
	if n.listens() {
		if k := len(n.ended); k == 0 || n.ended[k-1] != id {
			n.ended = append(n.ended, id)
		}
	}
}
