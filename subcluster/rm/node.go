// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/intrusive"
	"github.com/creelrm/creel/subcluster/rm/nodeset"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// node is one NodeManager, in two cache lines of 64 bytes. Completions look at
// and change the first; grants read where it is from the second. Nodes lie side
// by side in slabs, so that tens of thousands of them stay near the processor.
// The rest is in its nodeInfo. BenchmarkChurn pays for the layout.
type node struct {
	live       []*container // with holes: a container keeps its place
	hole       int32        // place in live that was left last, plus 1; 0 = none known
	count      int32        // containers
	sched.Node              // what the scheduler knows of it: first what is free

	at *Place
	*nodeInfo
	heartbeat int64
	state     nodeState
}

// nodeInfo is what is looked at when a node is told of, or speaks.
type nodeInfo struct {
	answer        *NodeAnswer
	heartbeatLink intrusive.Link[*node]
	responseID    int32
	registrations uint32
	override      bool // its size was set here, not by itself
	recovered     bool // it came with containers of an earlier epoch: they are not ours to refuse
	tellSize      bool

	ended   []creel.ApplicationID // to be told of at its next heartbeat, as are these:
	updates []Grant
	signals []Signal

	version      string
	physical     creel.Resource
	use          NodeUse
	health       string
	healthTime   time.Time
	decommission *timer
	leaveBy      int64
}

// put gives a container a place on the node: the one left last, or any other
// hole when there are many, or a new one.
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
	n := m.nodePool.New()
	n.nodeInfo = &nodeInfo{}
	m.sched.AddNode(&n.Node, id, rack)
	m.nodes[id] = n
	m.nodeList = append(m.nodeList, n)
	m.commands.AddNode()
	return n
}

// nodeState is creel.NodeState with the questions asked here.
type nodeState uint8

// use is what the scheduler may use a node in this state for.
func (s nodeState) use() sched.Use {
	switch {
	case s == nodeRunning:
		return sched.Open
	case creel.NodeState(s).Usable():
		return sched.Draining
	}
	return sched.Off
}

// runs reports whether its containers live.
func (s nodeState) runs() bool { return creel.NodeState(s).Usable() }

func (s nodeState) String() string { return creel.NodeState(s).String() }

const (
	nodeRunning  = nodeState(creel.NodeRunning)
	nodeDraining = nodeState(creel.NodeDecommissioning)
)

// listens reports whether the node may send a heartbeat again and then hear what
// is kept for it.
func (n *node) listens() bool {
	return n.state.runs() || n.state == nodeState(creel.NodeUnhealthy) || n.state == 0
}

// RegisterNode is registerNodeManager: a new node, one that comes back, or one
// that was told to resync.
func (m *Machine) RegisterNode(now time.Time, r *RegisterNode) (NodeRegistered, error) {
	m.at(now)
	if r.ID.Host == "" || r.ID.Port < 0 {
		return NodeRegistered{}, invalid("invalid node id "+r.ID.String(), "it needs a host and a port", "")
	}
	v := m.sizes.Vec(r.Resource)
	n := m.nodes[r.ID]
	for i := 0; i < m.sizes.N; i++ {
		if v.At(i) < 0 || i < m.sizes.Check && v.At(i) < m.sizes.Least.At(i) {
			return NodeRegistered{
				Action: NodeStop,
				Diagnostics: fmt.Sprintf(
					"NodeManager from  %s doesn't satisfy minimum allocations, Sending SHUTDOWN signal to the NodeManager. Node capabilities are %s; minimums are %s",
					r.ID.Host,
					r.Resource,
					m.cfg.MinAllocation,
				),
			}, nil
		}
	}
	if n != nil && n.state == nodeState(creel.NodeDecommissioned) {
		return NodeRegistered{
			Action:      NodeStop,
			Diagnostics: "Disallowed NodeManager from  " + r.ID.Host + ", Sending SHUTDOWN signal to the NodeManager.",
		}, nil
	}
	if n == nil {
		n = m.newNode(r.ID, r.Rack)
	} else {
		m.sched.SetRack(&n.Node, r.Rack)
	}
	if n.registrations++; n.registrations > 1 {
		m.voidTokens(n)
	}
	if http := r.ID.Host + ":" + strconv.Itoa(int(r.HTTPPort)); n.at == nil || n.at.HTTPAddress != http {
		n.at = &Place{r.ID, http}
	}
	n.version, n.physical, n.health, n.healthTime = r.Version, r.Physical, r.HealthReport, now
	n.responseID, n.answer = 0, nil
	m.commands.Drop(n.Serial())
	n.updates, n.signals = nil, nil
	wasDraining := n.state == nodeDraining
	m.setNodeState(n, nodeState(0)) // out of the sums while its containers are sorted out
	out := NodeRegistered{}
	if n.override {
		total := n.Total()
		out.Resource, out.Override = m.sizes.Resource(&total), true
	} else {
		m.sched.SetTotal(&n.Node, &v)
	}
	m.sortContainers(n, r)
	m.amsMissing(n)
	for _, id := range r.Applications {
		switch a := m.apps[id]; {
		case a == nil || a.state.ended():
			n.appEnded(id)
		case a.current != nil:
			a.current.nodeSets.Add(nodeset.Ran, n.Serial())
		}
	}
	state := nodeRunning
	if wasDraining {
		state = nodeDraining
	}
	if r.Unhealthy {
		state = nodeState(creel.NodeUnhealthy)
	}
	m.setNodeState(n, state)
	m.nodeAlive(n)
	m.settle()
	return out, nil
}

// sortContainers compares what a registering node runs with what is known:
// lost ones end, reported ends are taken over, unknown ones of living
// applications are recovered and all others killed.
func (m *Machine) sortContainers(n *node, r *RegisterNode) {
	reported := make(map[creel.ContainerID]bool, len(r.Containers))
	for i := range r.Containers {
		reported[r.Containers[i].ID] = true
	}
	for _, c := range n.live { // an end may cause others, of an attempt's: they leave holes
		if c != nil && c.node == n && !reported[c.id()] && c.state >= cRunning {
			m.complete(c, cKilled, creel.ExitAborted, "Container released on a *lost* node", nil)
		}
	}
	for i := range r.Containers {
		k := &r.Containers[i]
		c := m.container(k.ID)
		switch {
		case c != nil && c.node != n:
			m.commands.Kill(n.Serial(), k.ID)
		case c != nil && k.State == creel.ContainerComplete:
			m.complete(c, cCompleted, k.ExitStatus, k.Diagnostics, nil)
		case c != nil:
			m.seenRunning(c)
		case k.State == creel.ContainerComplete:
			m.recoverEnd(n, k)
		case !m.recover(n, k):
			m.commands.Kill(n.Serial(), k.ID)
		}
	}
}

// nodeAlive restarts the wait for a silent node.
func (m *Machine) nodeAlive(n *node) {
	n.heartbeat = m.now
	m.nodeHeartbeats.Append(n)
}

// setNodeState moves a node between states and tells the scheduler and AMs.
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

// tellAMs lets AMs that have something on the node know.
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

// NodeHeartbeat is one heartbeat of a node. A node that is unknown, or out of step,
// is told to resync; one that may not be here, to stop.
func (m *Machine) NodeHeartbeat(now time.Time, r *NodeReport) *NodeAnswer {
	m.at(now)
	n := m.nodes[r.ID]
	if n == nil {
		return &NodeAnswer{Action: NodeResync, Diagnostics: "Node not found resyncing " + r.ID.String()}
	}
	switch creel.NodeState(n.state) {
	case creel.NodeDecommissioned:
		return &NodeAnswer{
			Action:      NodeStop,
			Diagnostics: "Disallowed NodeManager nodeId: " + r.ID.String() + " hostname:" + r.ID.Host,
		}
	case creel.NodeLost, creel.NodeShutdown, creel.NodeRebooted:
		return &NodeAnswer{Action: NodeResync, Diagnostics: "Node not found resyncing " + r.ID.String()}
	}
	m.nodeAlive(n)
	switch {
	case r.ResponseID == n.responseID:
	case n.answer != nil && (r.ResponseID+1)&0x7fffffff == n.responseID:
		n.answer.Duplicate = true
		return n.answer
	default:
		why := fmt.Sprintf("Too far behind rm response id:%d nm response id:%d", n.responseID, r.ResponseID)
		m.nodeGone(n, nodeState(creel.NodeRebooted))
		m.settle()
		return &NodeAnswer{Action: NodeResync, Diagnostics: why}
	}
	if r.Unhealthy != (n.state == nodeState(creel.NodeUnhealthy)) || r.HealthReport != n.health {
		m.health(n, r)
	}
	if r.Utilization != nil {
		n.use = *r.Utilization
	}
	for i := range r.Containers {
		m.reported(n, &r.Containers[i])
	}
	for _, id := range r.Increased {
		if c := m.container(id); c != nil && c.node == n {
			m.increased(c)
		}
	}
	if n.state == nodeDraining && n.count == 0 {
		m.nodeGone(n, nodeState(creel.NodeDecommissioned))
		m.settle()
		return &NodeAnswer{
			Action:      NodeStop,
			Diagnostics: "DECOMMISSIONING " + r.ID.String() + " is ready to be decommissioned",
		}
	}
	m.sched.Heartbeat(&n.Node)
	m.settle()
	return m.answerNode(n)
}

func (m *Machine) answerNode(n *node) *NodeAnswer {
	out := n.answer
	if out == nil {
		out = &NodeAnswer{}
		n.answer = out
	}
	n.responseID = (n.responseID + 1) & 0x7fffffff
	if len(out.Cleanup)+len(out.Apps)+len(out.Forget)+len(out.Update)+len(out.Signals) == 0 &&
		len(n.ended)+len(n.updates)+len(n.signals) == 0 &&
		m.commands.None(n.Serial()) && !n.tellSize {
		*out = NodeAnswer{ResponseID: n.responseID}
		return out
	}
	*out = NodeAnswer{ResponseID: n.responseID, Apps: n.ended, Update: n.updates, Signals: n.signals}
	out.Cleanup, out.Forget = m.commands.Take(n.Serial())
	n.ended, n.updates, n.signals = nil, nil, nil
	if n.tellSize {
		total := n.Total()
		out.Resource, out.Override, n.tellSize = m.sizes.Resource(&total), true, false
	}
	return out
}

// health takes what a node says of itself; an unhealthy one keeps no containers.
func (m *Machine) health(n *node, r *NodeReport) {
	n.health, n.healthTime = r.HealthReport, r.HealthTime
	switch {
	case r.Unhealthy && n.state.runs():
		m.setNodeState(n, nodeState(creel.NodeUnhealthy))
		m.endAll(n, "Container released on an *unhealthy* node")
	case !r.Unhealthy && n.state == nodeState(creel.NodeUnhealthy):
		m.setNodeState(n, nodeRunning)
	}
}

// endAll ends everything on a node.
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

// reported takes one container status of a heartbeat.
func (m *Machine) reported(n *node, s *ContainerStatus) {
	c := m.container(s.ID)
	switch {
	case c == nil || c.node != n:
		switch {
		case s.State != creel.ContainerComplete:
			m.commands.Kill(n.Serial(), s.ID)
		case !m.owed(s.ID):
			m.commands.Forget(n.Serial(), s.ID) // ended here already
		}
	case s.State == creel.ContainerComplete:
		over := c.owner().over() || c.am
		m.complete(c, cCompleted, s.ExitStatus, s.Diagnostics, s.Message)
		if over {
			m.commands.Forget(n.Serial(), s.ID)
		}
	default:
		m.seenRunning(c)
	}
}

// owed reports whether the container's completion may not have come to its AM. Its node must
// not forget it: after a restart it is the only one that knows.
func (m *Machine) owed(id creel.ContainerID) bool {
	t := m.attempt(id.Attempt)
	return t != nil && (t.owes(id) || t.app.current != t && t.app.current.owes(id))
}

func (t *attempt) owes(id creel.ContainerID) bool {
	for i := range t.done {
		if t.done[i].ID == id {
			return true
		}
	}
	return slices.ContainsFunc(t.told(), func(c Completed) bool { return c.ID == id })
}

func (m *Machine) seenRunning(c *container) {
	if c.state < cRunning && c.state != cAllocated || c.state == cAllocated && c.am {
		c.state = cRunning
		m.dropUnlaunched(c)
	}
}

func (n *node) appEnded(id creel.ApplicationID) {
	if n.listens() {
		if k := len(n.ended); k == 0 || n.ended[k-1] != id {
			n.ended = append(n.ended, id)
		}
	}
}

// nodeLost: no heartbeat for too long.
func (m *Machine) nodeLost(n *node) { m.nodeGone(n, nodeState(creel.NodeLost)) }

// nodeGone takes a node out with all its containers.
func (m *Machine) nodeGone(n *node, s nodeState) {
	m.nodeHeartbeats.Remove(n)
	m.setNodeState(n, s)
	m.endAll(n, "Container released on a *lost* node")
	n.ended, n.updates, n.signals = nil, nil, nil
}

// UnregisterNode is a node's clean stop.
func (m *Machine) UnregisterNode(now time.Time, id creel.NodeID) {
	m.at(now)
	if n := m.nodes[id]; n != nil && (n.state.runs() || n.state == nodeState(creel.NodeUnhealthy)) {
		m.nodeGone(n, nodeState(creel.NodeShutdown))
	}
	m.settle()
}

func noNode(id creel.NodeID) error {
	return &creel.Error{Kind: creel.ErrNodeNotFound, What: "nodeId, " + id.String() + ", is not found"}
}

// SetNodeResource changes a node's size. If it shrinks below what is used, no
// container ends; the node gets new ones when enough have ended by themselves.
func (m *Machine) SetNodeResource(now time.Time, id creel.NodeID, r creel.Resource) error {
	m.at(now)
	n := m.nodes[id]
	if n == nil {
		return noNode(id)
	}
	v := m.sizes.Vec(r)
	for i := 0; i < m.sizes.N; i++ {
		if v.At(i) < 0 {
			return invalid("invalid resource of "+id.String(), m.sizes.Names[i]+" is negative", "")
		}
	}
	m.sched.SetTotal(&n.Node, &v)
	n.override, n.tellSize = true, true
	m.settle()
	return nil
}

// Decommission takes a node out, at once or when its containers have ended.
func (m *Machine) Decommission(now time.Time, r *Decommission) error {
	m.at(now)
	n := m.nodes[r.ID]
	if n == nil {
		return noNode(r.ID)
	}
	if !r.Graceful || !n.state.runs() {
		m.nodeGone(n, nodeState(creel.NodeDecommissioned))
		m.settle()
		return nil
	}
	m.stop(&n.decommission)
	m.setNodeState(n, nodeDraining)
	d := r.Timeout
	if d == 0 {
		d = m.cfg.DecommissionAfter
	}
	n.leaveBy = 0
	if d > 0 {
		n.leaveBy = m.now + int64(d)
		n.decommission = m.timer(n.leaveBy, func() {
			n.decommission = nil
			m.nodeGone(n, nodeState(creel.NodeDecommissioned))
		})
	}
	m.settle()
	return nil
}

// Recommission takes back a decommission: a draining node goes on; one that is
// out may register again.
func (m *Machine) Recommission(now time.Time, id creel.NodeID) error {
	m.at(now)
	n := m.nodes[id]
	if n == nil {
		return noNode(id)
	}
	switch creel.NodeState(n.state) {
	case creel.NodeDecommissioning:
		m.setNodeState(n, nodeRunning)
	case creel.NodeDecommissioned:
		m.setNodeState(n, nodeState(creel.NodeShutdown))
	}
	m.settle()
	return nil
}

// Signal forwards a signal through the node's next heartbeat.
func (m *Machine) Signal(now time.Time, s Signal) error {
	m.at(now)
	c := m.container(s.Container)
	if c == nil {
		return &creel.Error{
			Kind: creel.ErrContainerNotFound,
			What: "Container: " + s.Container.String() + " doesn't exist",
		}
	}
	c.node.signals = append(c.node.signals, s)
	return nil
}
