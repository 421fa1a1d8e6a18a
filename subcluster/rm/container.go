// SPDX-License-Identifier: Apache-2.0

package rm

import "github.com/creelrm/creel"

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

// container is one live container; ended ones are reused. It is one cache line,
// and its end touches no other container: where it stands among those of its
// node, of its attempt and of those not seen running are places in arrays.
type container struct {
	seq       int64    // ContainerID.ID
	origin    *attempt // whose number is in its id
	node      *node
	wait      int64 // its number among those not seen running; 0 = it was seen
	created   int64 // ms
	extra     *containerExtra
	slot      int32 // its place in node.live
	priority  int32
	size      sizeNumber
	execution uint8 // creel.ExecutionType
	state     containerState
	reason    Reason
	master    bool
}

// containerExtra is what few containers have.
type containerExtra struct {
	owner   *attempt // who is told of its end, if not origin: a later attempt that kept it
	alloc   int64    // allocation request id
	version int32
	tags    []string
	from    *size // size before an increase that its node has not taken over
	timer   *timer
}

// more gives its extra, to be changed.
func (c *container) more() *containerExtra {
	if c.extra == nil {
		c.extra = &containerExtra{}
	}
	return c.extra
}

var noExtra containerExtra

// rare gives its extra, to be read.
func (c *container) rare() *containerExtra {
	if c.extra == nil {
		return &noExtra
	}
	return c.extra
}

// owner is the attempt that is told of its end.
func (c *container) owner() *attempt {
	if x := c.extra; x != nil && x.owner != nil {
		return x.owner
	}
	return c.origin
}

func (c *container) id() creel.ContainerID {
	return creel.ContainerID{Attempt: c.origin.id, ID: c.seq}
}

func (m *Machine) grantOf(c *container) Grant {
	g := Grant{
		ID: c.id(), Place: c.node.at, Shape: &m.sizeOf(c).Shape, Priority: c.priority,
		ExecutionType: creel.ExecutionType(c.execution), Created: c.created, Master: c.master, Reason: c.reason,
	}
	if x := c.extra; x != nil {
		g.AllocationRequestID, g.Version, g.Tags = x.alloc, x.version, x.tags
	}
	return g
}

// slab is how many containers are made at once: more than 32 KB, so that they
// begin on a page. Go puts a word before smaller arrays with pointers, and each
// container would lie across two cache lines.
const slab = 1024

func (m *Machine) newContainer() *container {
	if k := len(m.spare); k > 0 {
		c := m.spare[k-1]
		m.spare = m.spare[:k-1]
		return c
	}
	if len(m.pool) == 0 {
		m.pool = make([]container, slab)
	}
	c := &m.pool[0]
	m.pool = m.pool[1:]
	return c
}

// grant makes the container that w gets on n.
func (m *Machine) grant(w *want, n *node, at level3, reason Reason) {
	a := w.attempt
	if h := w.hold; h != nil && (h.node == n || w.count == 1) {
		m.unreserve(h)
	}
	a.lastSeq++
	c := m.newContainer()
	c.seq = creel.NewContainerID(a.id, m.cfg.Epoch, a.lastSeq).ID
	c.origin, c.size = a, w.size.number
	c.created, c.priority, c.execution = m.ms(), w.priority, uint8(w.execution)
	c.state, c.reason, c.master = cAllocated, reason, w.master
	if w.alloc != 0 {
		c.more().alloc = w.alloc
	}
	m.attach(c, n)
	m.count.granted++
	a.app.queue.granted++
	m.served(w, n, at)
	m.waitSerial++
	c.wait = m.waitSerial
	m.unlaunched.put(c.wait, c)
	if w.master {
		m.forgetIfEmpty(w)
		m.enroll(a.app)
		m.masterAllocated(a, c)
		return
	}
	a.fresh = append(a.fresh, c)
	if w.count == 0 {
		m.forgetIfEmpty(w)
	}
	m.news(a)
}

// attach puts a container on a node and among its owner's, and charges for it.
func (m *Machine) attach(c *container, n *node) {
	n.put(c)
	c.origin.live.put(c.seq, c)
	s := m.sizeOf(c)
	n.free.addTimes(&s.v, -1)
	m.placeInIndex(n)
	m.count.containers++
	m.charge(c.owner().app, s, 1)
}

// end ends a container, once: its room and its share come back, and its owner
// is told, unless nobody is left to tell.
func (m *Machine) end(c *container, s containerState, exit int32, diagnostics string, message any) {
	n, a, size := c.node, c.owner(), m.sizeOf(c)
	m.seen(c)
	if c.extra != nil {
		m.stop(&c.extra.timer)
	}
	n.take(c)
	c.origin.live.drop(c.seq)
	n.free.addTimes(&size.v, 1)
	m.placeInIndex(n)
	m.roomOn(n)
	m.count.containers--
	m.count.released++
	a.app.queue.released++
	m.charge(a.app, size, -1)
	if c.state == cAllocated {
		a.unfresh(c)
	}
	id, master, was, priority := c.id(), c.master, c.state, c.priority
	alloc := int64(0)
	if was == cAllocated {
		alloc = c.rare().alloc
	}
	done := Completed{
		ID:          id,
		ExitStatus:  exit,
		Diagnostics: diagnostics,
		Shape:       &size.Shape,
		Execution:   creel.ExecutionType(c.execution),
		Message:     message,
		node:        n.serial,
	}
	*c = container{state: s}
	m.spare = append(m.spare, c)
	switch {
	case was == cAllocated && !master && !a.over():
		// Its master never heard of it: the ask stands again.
		m.restore(a, &done, priority, alloc)
	case master:
		m.masterEnded(a, exit, diagnostics)
	case !a.over():
		a.done = append(a.done, done)
		m.news(a)
	}
}

// warmed is how much is read ahead at once.
const warmed = 16

// warm reads what the ends of containers will change. Containers that end
// together lie anywhere among gigabytes; read one after the other by what
// happens to each, every line of memory is waited for alone. These loops do
// nothing with what they read but depend on little, so the processor has many
// lines on their way at once: ends wait less.
func (m *Machine) warm(list []*container) {
	sum := int32(0)
	for _, c := range list {
		sum += c.slot
	}
	for _, c := range list {
		if n := c.node; n != nil {
			sum += n.count + m.inAll[n.serial].key + m.notes.heads[n.serial] + int32(m.room[n.serial])
		}
	}
	for _, c := range list {
		if n := c.node; n != nil && n.live[c.slot] == c {
			at := m.inAll[n.serial]
			if at.prev != 0 {
				sum += m.inAll[at.prev-1].next
			}
			if at.next != 0 {
				sum += m.inAll[at.next-1].prev
			}
			if c.wait != 0 && m.unlaunched.get(c.wait) == c {
				sum++
			}
		}
	}
	m.warmth = sum
}

// warmApp reads what a call with asks will change of its application, as warm
// does: no more of each list than a common call has.
func (m *Machine) warmApp(a *app, asks []Ask) {
	q, u, t := a.queue, a.user, a.current
	sum := a.used.mem + a.pending.mem + a.least.mem + a.seconds.mem + int64(a.priority)
	sum += q.used.mem + q.pending.mem + q.least.mem + q.max.mem + q.guaranteed.mem + int64(
		q.slot,
	) + int64(
		q.serial,
	) + q.granted
	sum += u.used.mem + int64(u.slot) + int64(len(u.apps.items)) + q.leaf.usedByActive.mem + int64(q.leaf.active)
	wants := t.wants[:min(len(t.wants), warmed)]
	for _, w := range wants {
		sum += int64(w.count) + int64(len(w.hosts)+len(w.racks))
	}
	for _, w := range wants {
		if w.count == 0 && w.priority != asks[0].Priority {
			continue // it is not spoken of
		}
		for _, p := range w.hosts[:min(len(w.hosts), warmed)] {
			sum += int64(p.count)
		}
		for _, p := range w.racks[:min(len(w.racks), warmed)] {
			sum += int64(p.count)
		}
	}
	if k := len(t.live.pages); k > 0 && t.live.pages[k-1].n > 0 {
		p := t.live.pages[k-1]
		if p.list[t.lastSeq&(1<<pageBits-1)] != nil {
			sum++
		}
	}
	m.warmth += int32(sum)
}

// warmNodes reads what grants for w will change, as warm does: of the nodes on
// the hosts it names, or of those that a search through the cluster gives first.
func (m *Machine) warmNodes(w *want) {
	if w.count < 2 || w.size == nil {
		return
	}
	var list [warmed]*node
	k := 0
	if w.placed() {
		for _, p := range w.hosts[:min(len(w.hosts), warmed)] {
			if p.host != nil && len(p.host.nodes) > 0 {
				list[k] = p.host.nodes[0]
				k++
			}
		}
	} else {
		k = m.ix.ahead(&w.size.v, w.attempt.app.queue.order, list[:min(int(w.count), warmed)])
	}
	sum := int32(0)
	for _, n := range list[:k] {
		sum += n.count
		if n.at != nil {
			sum++
		}
	}
	for _, n := range list[:k] {
		if at := int(n.hole) - 1; at >= 0 && n.live[at] == nil {
			sum++
		}
		if prev := m.inAll[n.serial].prev; prev != 0 {
			sum += m.inAll[prev-1].next
		}
	}
	m.warmth = sum
}

// warmCall reads ahead what else a call with asks will touch: the names in it,
// and where its answer goes.
func (m *Machine) warmCall(t *attempt, asks []Ask) {
	sum := int64(0)
	for i := range asks[:min(len(asks), warmed)] {
		if s := asks[i].ResourceName; s != "" {
			sum += int64(s[0])
		}
	}
	if last := t.answer; last != nil {
		for i := range last.Granted[:min(len(last.Granted), warmed)] {
			sum += last.Granted[i].Created
		}
	}
	m.warmth += int32(sum)
}

// seen takes a container from those not seen running.
func (m *Machine) seen(c *container) {
	if c.wait != 0 {
		m.unlaunched.drop(c.wait)
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

// container gives a live container, nil if there is none.
func (m *Machine) container(id creel.ContainerID) *container {
	a := m.attempt(id.Attempt)
	if a == nil {
		return nil
	}
	return a.live.get(id.ID)
}

// containerExpired ends a container that was never seen running.
func (m *Machine) containerExpired(c *container) {
	id, n := c.id(), c.node
	m.end(c, cExpired, creel.ExitAborted, "Container expired since it was unused", nil)
	m.tellKill(n.serial, id)
}

// release gives a container back at its master's wish.
func (m *Machine) release(c *container) {
	id, n := c.id(), c.node
	m.end(c, cReleased, creel.ExitAborted, "Container released by application", nil)
	m.tellKill(n.serial, id)
}
