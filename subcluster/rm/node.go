// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// node is one NodeManager, in two cache lines of 64 bytes. Ends look at and
// change the first; grants read where it is from the second. Nodes lie side by
// side in slabs, so that tens of thousands of them stay near the processor. The
// rest is in its nodeInfo.
type node struct {
	free    vec          // its size less what its containers hold
	live    []*container // with holes: a container keeps its place
	hole    int32        // place in live that was left last, plus 1; 0 = none known
	count   int32        // containers
	serial  int32        // its place in Machine.nodeList
	state   nodeState
	dirty   bool
	held    bool // it is reserved: hold is set
	changed bool // since the auditor looked

	rack *rack
	host *host
	at   *Place
	*nodeInfo
	hold     *reservation
	beat     int64
	beatLink link[*node]
}

// nodeInfo is what is looked at when a node is told of, or speaks.
type nodeInfo struct {
	id            creel.NodeID
	answer        *NodeAnswer
	responseID    int32
	total         vec
	registrations uint32
	override      bool // its size was set here, not by itself
	recovered     bool // it came with containers of an earlier life: they are not ours to refuse
	tellSize      bool

	ended   []creel.ApplicationID // to be told of at its next heartbeat, as are these:
	updates []Grant
	signals []Signal

	rackSlot     int
	version      string
	physical     creel.Resource
	use          NodeUse
	health       string
	healthTime   time.Time
	decommission *timer
	leaveBy      int64
}

// used is what its containers hold.
func (n *node) used() vec {
	v := n.total
	v.sub(&n.free)
	return v
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

// nodeSlab is how many nodes are made at once; see slab.
const nodeSlab = 512

func (m *Machine) newNode(id creel.NodeID) *node {
	if len(m.nodePool) == 0 {
		m.nodePool = make([]node, nodeSlab)
	}
	n := &m.nodePool[0]
	m.nodePool = m.nodePool[1:]
	n.nodeInfo, n.host, n.serial = &nodeInfo{id: id}, m.host(id.Host), int32(len(m.nodeList))
	n.host.nodes = append(n.host.nodes, n)
	m.nodeList = append(m.nodeList, n)
	m.inAll, m.inRack, m.room = append(m.inAll, links{}), append(m.inRack, links{}), append(m.room, -1)
	m.notes.heads = append(m.notes.heads, 0)
	return n
}

// nodeState is creel.NodeState with the questions the scheduler asks.
type nodeState uint8

// takes: it gets new containers.
func (s nodeState) takes() bool { return creel.NodeState(s) == creel.NodeRunning }

// runs: its containers live.
func (s nodeState) runs() bool { return creel.NodeState(s).Usable() }

func (s nodeState) String() string { return creel.NodeState(s).String() }

const (
	nodeRunning  = nodeState(creel.NodeRunning)
	nodeDraining = nodeState(creel.NodeDecommissioning)
)

// host is the nodes of one host: one, but where several are run for a test.
type host struct {
	name  string
	nodes []*node
	one   [1]*node // where nodes begins
}

func (m *Machine) host(name string) *host {
	h := m.hosts[name]
	if h == nil {
		h = &host{name: name}
		h.nodes = h.one[:0]
		m.hosts[name] = h
	}
	return h
}

// rack is the nodes of one rack. A large one has an index of its own; a small
// one is looked through.
type rack struct {
	name  string
	nodes []int32 // by serial number
	ix    *index
}

// bigRack is the number of nodes from which a rack has its own index.
const bigRack = 64

func (r *rack) find(m *Machine, w *want) *node {
	if len(m.rackList) == 1 {
		return m.ix.find(&m.t, &w.size.v, w.attempt.app.queue.order, &w.attempt.black)
	}
	if r.ix != nil {
		return r.ix.find(&m.t, &w.size.v, w.attempt.app.queue.order, &w.attempt.black)
	}
	var best *node
	need, pack := w.size.v.mem, w.attempt.app.queue.order == queues.Pack
	room := int64(0) // of best
	for _, serial := range r.nodes {
		has := m.room[serial]
		if has < need || best != nil && (pack && has >= room || !pack && has <= room) {
			continue
		}
		if n := m.nodeList[serial]; m.t.fits(&w.size.v, &n.free) && !w.attempt.black.bars(n) {
			best, room = n, has
		}
	}
	return best
}

func (r *rack) add(m *Machine, n *node) {
	n.rackSlot = len(r.nodes)
	r.nodes = append(r.nodes, n.serial)
	if r.ix == nil && len(r.nodes) >= bigRack && len(m.rackList) > 1 {
		r.makeIndex(m)
	}
}

func (r *rack) makeIndex(m *Machine) {
	m.bigRacks++
	r.ix = &index{
		all:      &m.nodeList,
		links:    &m.inRack,
		steps:    m.ix.steps,
		shift:    m.ix.shift,
		checkAll: m.ix.checkAll,
		needMem:  m.ix.needMem,
		needCPU:  m.ix.needCPU,
	}
	for _, serial := range r.nodes {
		x := m.nodeList[serial]
		r.ix.update(x, m.roomy(x))
	}
}

func (r *rack) remove(m *Machine, n *node) {
	if r.ix != nil {
		r.ix.update(n, false)
	}
	last := r.nodes[len(r.nodes)-1]
	r.nodes[n.rackSlot] = last
	m.nodeList[last].rackSlot = n.rackSlot
	r.nodes = r.nodes[:len(r.nodes)-1]
}

// roomy: the node may be looked at for new containers.
func (m *Machine) roomy(n *node) bool { return n.state.takes() && !n.held }

// placeInIndex moves a node to where its room belongs.
func (m *Machine) placeInIndex(n *node) {
	m.nodeChanged(n)
	in := m.roomy(n)
	if m.room[n.serial] = -1; in {
		m.room[n.serial] = n.free.mem
	}
	m.ix.update(n, in)
	if m.bigRacks > 0 && n.rack.ix != nil {
		n.rack.ix.update(n, in)
	}
}

// setTotal changes a node's size; what its containers hold stays.
func (n *node) setTotal(v *vec) {
	n.free.add(v)
	n.free.sub(&n.total)
	n.total = *v
}

const defaultRack = "/default-rack"

func (m *Machine) rack(name string) *rack {
	if name == "" {
		name = defaultRack
	}
	r := m.racks[name]
	if r == nil {
		r = &rack{name: name}
		m.racks[name] = r
		m.rackList = append(m.rackList, r)
		if len(m.rackList) == 2 && len(m.rackList[0].nodes) >= bigRack {
			m.rackList[0].makeIndex(m)
		}
	}
	return r
}

// RegisterNode is registerNodeManager: a new node, one that comes back, or one
// that was told to resync.
func (m *Machine) RegisterNode(now time.Time, r *RegisterNode) (NodeRegistered, error) {
	m.at(now)
	if r.ID.Host == "" || r.ID.Port < 0 {
		return NodeRegistered{}, invalid("invalid node id "+r.ID.String(), "it needs a host and a port", "")
	}
	v := m.t.vec(r.Resource)
	n := m.nodes[r.ID]
	for i := 0; i < m.t.n; i++ {
		if v.at(i) < 0 || i < m.t.check && v.at(i) < m.least.at(i) {
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
		n = m.newNode(r.ID)
		m.nodes[r.ID] = n
		n.rack = m.rack(r.Rack)
		n.rack.add(m, n)
	} else if name := m.rack(r.Rack); name != n.rack {
		n.rack.remove(m, n)
		n.rack = name
		n.rack.add(m, n)
	}
	if n.registrations++; n.registrations > 1 {
		m.voidTokens(n)
	}
	if http := r.ID.Host + ":" + strconv.Itoa(int(r.HTTPPort)); n.at == nil || n.at.HTTPAddress != http {
		n.at = &Place{n.id, http}
	}
	n.version, n.physical, n.health, n.healthTime = r.Version, r.Physical, r.HealthReport, now
	n.responseID, n.answer = 0, nil
	m.notes.drop(n.serial)
	n.updates, n.signals = nil, nil
	wasDraining := n.state == nodeDraining
	m.setNodeState(n, nodeState(0)) // out of the sums while its containers are sorted out
	out := NodeRegistered{}
	if n.override {
		out.Resource, out.Override = m.t.resource(&n.total), true
	} else {
		n.setTotal(&v)
	}
	m.sortContainers(n, r)
	m.mastersMissing(n)
	for _, id := range r.Applications {
		switch a := m.apps[id]; {
		case a == nil || a.state.ended():
			n.appEnded(id)
		case a.current != nil:
			a.current.marks.set(ran, n.serial)
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
	m.alivenode(n)
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
			m.end(c, cKilled, creel.ExitAborted, "Container released on a *lost* node", nil)
		}
	}
	for i := range r.Containers {
		k := &r.Containers[i]
		c := m.container(k.ID)
		switch {
		case c != nil && c.node != n:
			m.tellKill(n.serial, k.ID)
		case c != nil && k.State == creel.ContainerComplete:
			m.end(c, cCompleted, k.ExitStatus, k.Diagnostics, nil)
		case c != nil:
			m.seenRunning(c)
		case k.State == creel.ContainerComplete:
			m.recoverEnd(n, k)
		case !m.recover(n, k):
			m.tellKill(n.serial, k.ID)
		}
	}
}

func (m *Machine) alivenode(n *node) {
	n.beat = m.now
	m.nodeBeats.append(n)
}

// setNodeState moves a node between states and keeps the cluster's sums.
func (m *Machine) setNodeState(n *node, s nodeState) {
	was := n.state
	if was == s {
		return
	}
	n.state = s
	m.notes.listen(n.serial, n.listens())
	changed := false
	if was.runs() && !s.runs() {
		m.active--
		m.total.sub(&n.total)
		changed = true
	}
	if !was.runs() && s.runs() {
		m.active++
		m.total.add(&n.total)
		changed = true
	}
	if !s.takes() && n.hold != nil {
		m.unreserve(n.hold)
	}
	m.placeInIndex(n)
	if s.takes() {
		m.roomOn(n)
	}
	if s != nodeDraining {
		m.stop(&n.decommission)
		n.leaveBy = 0
	}
	if changed {
		m.tree.stale = true
	}
	if s == 0 {
		return
	}
	kind := int32(1)
	switch {
	case s.takes():
		kind = 0
	case s == nodeDraining:
		kind = 2
	}
	if was != 0 || kind != 0 {
		m.tellMasters(NodeUpdate{ID: n.id, Kind: kind}, n)
	}
}

// tellMasters lets masters that have something on the node know.
func (m *Machine) tellMasters(u NodeUpdate, n *node) {
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
			Diagnostics: "Disallowed NodeManager nodeId: " + r.ID.String() + " hostname:" + n.host.name,
		}
	case creel.NodeLost, creel.NodeShutdown, creel.NodeRebooted:
		return &NodeAnswer{Action: NodeResync, Diagnostics: "Node not found resyncing " + r.ID.String()}
	}
	m.alivenode(n)
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
	if m.delayed.len() > 0 && m.roomy(n) && m.t.fits(&m.least, &n.free) {
		m.opportunity()
	}
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
	if len(
		out.Cleanup,
	)+len(
		out.Apps,
	)+len(
		out.Forget,
	)+len(
		out.Update,
	)+len(
		out.Signals,
	)+len(
		n.ended,
	)+len(
		n.updates,
	)+len(
		n.signals,
	) == 0 &&
		m.notes.none(n.serial) &&
		!n.tellSize {
		*out = NodeAnswer{ResponseID: n.responseID}
		return out
	}
	*out = NodeAnswer{ResponseID: n.responseID, Apps: n.ended, Update: n.updates, Signals: n.signals}
	out.Cleanup, out.Forget = m.takeNotes(n)
	n.ended, n.updates, n.signals = nil, nil, nil
	if n.tellSize {
		out.Resource, out.Override, n.tellSize = m.t.resource(&n.total), true, false
	}
	return out
}

// health notes what a node says of itself; an unhealthy one keeps no containers.
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
		m.end(c, cKilled, creel.ExitAborted, why, nil)
		m.tellKill(n.serial, id)
	}
}

// reported takes one container status of a heartbeat.
func (m *Machine) reported(n *node, s *ContainerStatus) {
	c := m.container(s.ID)
	switch {
	case c == nil || c.node != n:
		switch {
		case s.State != creel.ContainerComplete:
			m.tellKill(n.serial, s.ID)
		case !m.owed(s.ID):
			m.tellForget(n.serial, s.ID) // ended here already
		}
	case s.State == creel.ContainerComplete:
		over := c.owner().over() || c.master
		m.end(c, cCompleted, s.ExitStatus, s.Diagnostics, s.Message)
		if over {
			m.tellForget(n.serial, s.ID)
		}
	default:
		m.seenRunning(c)
	}
}

// owed: the container's end has not come to its master for sure. Its node must
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
	if c.state < cRunning && c.state != cAllocated || c.state == cAllocated && c.master {
		c.state = cRunning
		m.seen(c)
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
	m.nodeBeats.remove(n)
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
	v := m.t.vec(r)
	for i := 0; i < m.t.n; i++ {
		if v.at(i) < 0 {
			return invalid("invalid resource of "+id.String(), m.t.names[i]+" is negative", "")
		}
	}
	if n.state.runs() {
		m.total.sub(&n.total)
		m.total.add(&v)
	}
	n.setTotal(&v)
	n.override, n.tellSize = true, true
	if n.hold != nil && !m.t.fits(&n.hold.size.v, &v) {
		m.unreserve(n.hold)
	}
	m.placeInIndex(n)
	m.roomOn(n)
	m.tree.stale = true
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
