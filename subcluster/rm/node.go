// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/intrusive"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
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
	forgotten bool   // it is one of nodeLife.former
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

func (l *nodeLife) add(id creel.NodeID, rack string) *node {
	m := l.m
	if n := l.former[id]; n != nil { // its serial number is permanent
		delete(l.former, id)
		n.forgotten = false
		l.byID[id] = n
		m.sched.SetRack(&n.Node, rack)
		return n
	}
	n := l.pool.New()
	n.nodeInfo = &nodeInfo{}
	m.sched.AddNode(&n.Node, id, rack)
	l.byID[id] = n
	l.list = append(l.list, n)
	l.commands.AddNode()
	m.labels.apply(n)
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

// alive restarts the timeout of a silent node.
func (l *nodeLife) alive(n *node) {
	n.heartbeat = l.m.now
	l.heartbeats.Append(n)
}

// set moves a node between states and notifies the scheduler and AMs.
func (l *nodeLife) set(n *node, s nodeState) {
	m := l.m
	was := n.state
	if was == s {
		return
	}
	n.state = s
	l.commands.Open(n.Serial(), n.listens())
	m.sched.SetUse(&n.Node, s.use())
	if s != nodeDraining {
		m.timers.stop(&n.decommission)
		n.leaveBy = 0
	}
	l.forgetLater(n)
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
		l.notifyAMs(NodeUpdate{ID: n.ID(), Kind: kind}, n)
	}
}

// notifyAMs notifies the AMs that have containers on the node.
func (l *nodeLife) notifyAMs(u NodeUpdate, n *node) {
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
func (l *nodeLife) endAll(n *node, why string) {
	for i := 0; i < len(n.live); i++ { // an end may cause others
		c := n.live[i]
		if c == nil {
			continue
		}
		id := c.id()
		l.m.containers.complete(c, cKilled, creel.ExitAborted, why, nil)
		l.commands.Kill(n.Serial(), id)
	}
}

// lost runs when a node's heartbeat has expired.
func (l *nodeLife) lost(n *node) { l.gone(n, nodeState(creel.NodeLost)) }

// gone removes a node and all its containers.
func (l *nodeLife) gone(n *node, s nodeState) {
	l.heartbeats.Remove(n)
	l.set(n, s)
	l.endAll(n, onLostNode)
	n.ended, n.updates, n.signals = nil, nil, nil
}

func (n *node) appEnded(id creel.ApplicationID) {
	if n.listens() {
		if k := len(n.ended); k == 0 || n.ended[k-1] != id {
			n.ended = append(n.ended, id)
		}
	}
}

// MostOfNode limits a node's memory, in MiB, and its vcores. Sums over millions of nodes of that size fit an int64.
// One node of nearly MaxInt64 would make the cluster's total negative, and with it every share that the scheduler
// computes.
const MostOfNode = 1 << 40

// mostOfType limits a further type on a node. A size with a unit, such as 2 T of disk, counts in bytes. Sums over
// eight thousand nodes of that size fit an int64.
const mostOfType = 1 << 50

// impossible returns the first type in which v exceeds the maximum of a node, and that maximum; "" for none.
func (l *nodeLife) impossible(v *amounts.Vec) (name string, most int64) {
	m := l.m
	for i := 0; i < m.sizes.N; i++ {
		if most = MostOfNode; i > 1 { // after memory and vcores
			most = mostOfType
		}
		if v.At(i) > most {
			return m.sizes.Names[i], most
		}
	}
	return "", 0
}
