// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"math"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// tree is the live queue tree.
type tree struct {
	spec   *queues.Spec
	root   *queue
	byPath map[creel.QueuePath]*queue
	all    []*queue          // parents before children, in configured order
	names  map[string]*queue // leaf name -> queue, nil when ambiguous

	stale    bool      // the cluster changed size: amounts are to be computed anew
	version  int64     // rises when amounts are to be computed anew
	watched  []*queue  // those that limits stop or that have applications in line
	sharesAt int64     // when FairScheduler's shares were computed for decisions; 0 = they are out of date
	actives  uint64    // rises when a leaf gets its first application or loses its last
	toldAt   [2]uint64 // version and actives that the shares in views are of
}

// queue is one live queue. Amounts are of this machine's whole cluster. What
// every decision below it touches comes first.
type queue struct {
	m                                        *Machine
	parent                                   *queue
	leaf                                     *leafState
	version                                  int64   // of guaranteed to weight; see sized
	promised                                 float64 // dominant share of guaranteed
	containers, heldContainers, pendingCount int32
	slot                                     int32
	parkedBelow                              int  // children parked
	parked                                   bool // out of its parent's heap, although something waits: only a limit of its own can help
	limited                                  bool // something below was stopped by this queue's limits since they last loosened
	bounded                                  bool // max can bind before the parent's does
	hierarchical                             bool // its children are ordered by hierarchical DRF
	byUse                                    bool // its applications are ordered by what they use
	queuedRetry                              bool
	outranked                                bool // in Machine.outranked
	watched                                  bool // in tree.watched
	granted, released                        int64

	used, pending vec
	least         vec // at most the smallest need waiting below; vecMax when none

	// The order between those that wait. A parent's heap has its children, a
	// leaf's its users; only those with something waiting are in one.
	rank   rank
	absCap float64 // of the cluster, as absMax
	serial int     // place in configured order, over the whole tree
	weight float64
	ready  heap[*queue]
	users  heap[*user]
	policy queues.Policy
	order  queues.NodeOrder
	spec   *queues.Queue

	guaranteed, max  vec
	cap              *queueCap // nil: no federation-wide maximum
	held             vec       // reserved
	blocker          *want     // that waits for max; see passing.go
	minimum          vec
	absMax           float64
	capFrac, maxFrac float64 // of the parent

	path                                 creel.QueuePath
	name                                 string
	children                             []*queue
	depth                                int
	state                                creel.QueueState
	dynamic                              bool
	removed                              bool
	weights                              float64 // sum of the children's
	fixed                                vec     // sum of the children's absolute capacities
	largest                              vec
	maxAM                                float64
	shares                               [shareSets]fairShares // FairScheduler's
	running                              int                   // applications activated, here and below
	maxRunning                           int                   // 0 = no bound
	submitted, completed, failed, killed int64
	idleTimer                            *timer
}

// leafState is what only leaves have.
type leafState struct {
	usedByActive         vec
	sure                 vec     // what a user of weight 1 may use at least; see userAdmits
	active               int     // users with applications that wait for containers
	weights              float64 // sum of their weights
	allWeights           float64 // sum of all users'
	percent, factor      float64 // minimum percent, of one, and factor of the limit of one user
	limitedUsers         int
	pendingApps          int
	queuedActivate       bool
	byName               map[string]*user
	userList             []*user
	amUsed               vec
	apps                 int         // pending and running
	pending              heap[*user] // users with applications not activated yet
	maxApps, maxUserApps int
}

// user is one user of one leaf.
type user struct {
	used           vec
	q              *queue
	weight         float64
	waitingApps    int // applications with asks outstanding: the user is active
	slot           int32
	limited        bool
	apps           heap[*app] // waiting for containers
	name           string
	amUsed         vec
	pending        heap[*app] // not activated
	total, running int
	pendSlot       int32
}

func (q *queue) user(name string) *user {
	l := q.leaf
	if u := l.byName[name]; u != nil {
		return u
	}
	u := &user{name: name, q: q, weight: 1}
	for _, w := range q.spec.UserWeights {
		if w.User == name && w.Weight > 0 {
			u.weight = w.Weight
		}
	}
	u.apps = heap[*app]{less: q.appOrder(), slot: func(a *app) *int32 { return &a.slot }}
	u.pending = heap[*app]{less: fifoApps, slot: func(a *app) *int32 { return &a.pendSlot }}
	l.byName[name] = u
	l.allWeights += u.weight
	l.userList = append(l.userList, u)
	return u
}

// forget drops a user that has no applications left.
func (q *queue) forget(u *user) {
	if u.total > 0 || !u.used.isZero() {
		return
	}
	l := q.leaf
	if u.limited {
		l.limitedUsers--
	}
	delete(l.byName, u.name)
	if l.allWeights -= u.weight; len(l.byName) == 0 {
		l.allWeights = 0
	}
	for i, x := range l.userList {
		if x == u {
			l.userList = append(l.userList[:i], l.userList[i+1:]...)
			return
		}
	}
}

// buildTree makes the live tree of a checked specification.
func (m *Machine) buildTree(spec *queues.Spec) error {
	t := tree{spec: spec, byPath: map[creel.QueuePath]*queue{}, names: map[string]*queue{}}
	m.tree = t
	m.tree.version = 1
	m.tree.root = m.addQueue(&spec.Root, nil)
	return nil
}

// addQueue makes a queue and those below it.
func (m *Machine) addQueue(spec *queues.Queue, parent *queue) *queue {
	q := &queue{m: m, spec: spec, name: spec.Name, parent: parent, least: vecMax}
	q.path = creel.QueuePath(spec.Name)
	if parent != nil {
		q.path, q.depth = parent.path.Child(spec.Name), parent.depth+1
	}
	m.tree.byPath[q.path] = q
	q.serial = len(m.tree.all)
	m.tree.all = append(m.tree.all, q)
	q.configure()
	for i := range spec.Children {
		q.children = append(q.children, m.addQueue(&spec.Children[i], q))
	}
	q.sum()
	if len(q.children) == 0 && spec.AutoCreate == nil {
		q.becomeLeaf()
	}
	return q
}

func (q *queue) becomeLeaf() {
	q.leaf = &leafState{byName: map[string]*user{}}
	q.leaf.pending = heap[*user]{
		less: func(a, b *user) bool { return fifoApps(a.pending.top(), b.pending.top()) },
		slot: func(u *user) *int32 { return &u.pendSlot },
	}
	less := q.appOrder()
	q.users = heap[*user]{
		less: func(a, b *user) bool { return less(a.apps.top(), b.apps.top()) },
		slot: func(u *user) *int32 { return &u.slot },
	}
	if old, taken := q.m.tree.names[q.name]; taken && old != q {
		q.m.tree.names[q.name] = nil
	} else {
		q.m.tree.names[q.name] = q
	}
}

// configure takes over what the specification says, with inheritance.
func (q *queue) configure() {
	s := q.spec
	q.weight = 1
	if s.Capacity.Unit == queues.Weight {
		q.weight = s.Capacity.Value
	}
	if s.State != 0 || q.state == 0 {
		q.state = s.State
	}
	if q.state == 0 {
		q.state = creel.QueueRunning
	}
	q.policy, q.order, q.maxAM = s.Policy, s.NodeOrder, s.MaxAMPercent
	q.largest = q.m.most
	if q.parent != nil {
		q.largest = q.parent.largest
		if q.order == queues.NodeOrderDefault {
			q.order = q.parent.order
		}
		if q.policy == queues.PolicyDefault && q.m.tree.spec.Scheduler == queues.FairScheduler {
			q.policy = q.parent.policy
		}
		if q.maxAM == 0 {
			q.maxAM = q.parent.maxAM
		}
	}
	if q.order == queues.NodeOrderDefault {
		q.order = queues.Spread
	}
	if q.maxAM == 0 {
		q.maxAM = 0.1
		if q.m.tree.spec.Scheduler == queues.FairScheduler {
			q.maxAM = 0.5
		}
	}
	if !s.MaxAllocation.IsZero() {
		v := q.m.t.vec(s.MaxAllocation)
		for i := 0; i < q.m.t.n; i++ {
			if v.at(i) > 0 {
				q.largest.set(i, min(v.at(i), q.m.most.at(i)))
			}
		}
	}
	q.maxRunning = s.MaxParallelApps
	q.hierarchical = q.effective() == queues.HDRF
	switch q.effective() {
	case queues.FairShare, queues.DRF, queues.HDRF, queues.PriorityFirst:
		q.byUse = true
	default:
		q.byUse = false
	}
	q.ready = heap[*queue]{items: q.ready.items, less: q.queueOrder(), slot: func(c *queue) *int32 { return &c.slot }}
}

// resize is due when the cluster or the configuration changed. What queues are
// guaranteed and may have is computed when next looked at (sized), so idle
// queues cost nothing; those that wait are put in order anew, and those that a
// limit had stopped are tried again.
func (m *Machine) resize() {
	m.tree.version++
	m.tree.sharesAt = 0
	if m.waiting > 0 {
		m.tree.root.reorder()
	}
	m.loosen()
}

// reorder ranks anew all that waits below q.
func (q *queue) reorder() {
	for _, c := range q.ready.items {
		c.rank = c.ranked()
		c.reorder()
	}
	q.ready.rebuild()
	for _, u := range q.users.items {
		for _, a := range u.apps.items {
			a.ratio = a.share()
		}
		u.apps.rebuild()
	}
	q.users.rebuild()
}

// sized brings a queue's amounts up to date, those above it first.
func (q *queue) sized() *queue {
	if q.version != q.m.tree.version {
		q.resize()
	}
	return q
}

func (q *queue) resize() {
	m := q.m
	q.version = m.tree.version
	if q.parent == nil {
		q.guaranteed, q.max, q.absCap, q.absMax, q.capFrac, q.maxFrac = m.total, m.total, 1, 1, 1, 1
	} else {
		q.parent.sized()
		if m.tree.spec.Scheduler == queues.FairScheduler {
			m.sizeFair(q)
		} else {
			m.sizeCapacity(q)
		}
	}
	if q.cap = m.caps[q.path]; q.cap != nil {
		q.bounded = true
	}
	q.promised = m.t.dominant(&q.guaranteed, &m.total)
	if q.leaf != nil {
		m.sizeLeaf(q)
	}
}

// sum adds up what the children of q are promised.
func (q *queue) sum() {
	q.weights, q.fixed = 0, vec{}
	for _, c := range q.children {
		switch c.spec.Capacity.Unit {
		case queues.Weight:
			q.weights += c.weight
		case queues.Absolute:
			v := q.m.t.vec(c.spec.Capacity.Resource)
			q.fixed.add(&v)
		}
	}
}

// sizeCapacity gives a queue its part of its parent's, CapacityScheduler's way.
func (m *Machine) sizeCapacity(c *queue) {
	q := c.parent
	a := &c.spec.Capacity
	switch a.Unit {
	case queues.Weight:
		c.capFrac = 0
		if q.weights > 0 {
			c.capFrac = c.weight / q.weights
		}
		c.guaranteed = m.portion(q, &q.guaranteed, q.absCap, c.capFrac)
	case queues.Absolute:
		c.guaranteed = m.t.vec(a.Resource)
		for i := 0; i < m.t.n; i++ {
			// More promised than there is: everybody gets less in proportion.
			if q.fixed.at(i) > q.guaranteed.at(i) && q.fixed.at(i) > 0 {
				c.guaranteed.set(
					i,
					int64(float64(c.guaranteed.at(i))*float64(q.guaranteed.at(i))/float64(q.fixed.at(i))),
				)
			}
		}
		c.capFrac = m.t.dominant(&c.guaranteed, &q.guaranteed)
		if math.IsInf(c.capFrac, 1) {
			c.capFrac = 0
		}
	case queues.PerType:
		c.guaranteed = m.partByType(&q.guaranteed, a.Types)
		c.capFrac = m.t.dominant(&c.guaranteed, &q.guaranteed)
	default:
		c.capFrac = a.Value / 100
		c.guaranteed = m.portion(q, &q.guaranteed, q.absCap, c.capFrac)
	}
	c.absCap = q.absCap * c.capFrac
	if a.Unit == queues.Absolute {
		c.absCap = finite(m.t.dominant(&c.guaranteed, &m.total))
	}
	b := &c.spec.MaxCapacity
	c.bounded = true
	switch b.Unit {
	case queues.Percent:
		c.maxFrac = b.Value / 100
		c.max = m.portion(q, &q.max, q.absMax, c.maxFrac)
		c.bounded = b.Value < 100
	case queues.Absolute:
		c.max = m.t.vec(b.Resource)
		for i := 0; i < m.t.n; i++ {
			if c.max.at(i) == 0 {
				c.max.set(i, q.max.at(i))
			}
		}
		c.max.min(&q.max)
		c.maxFrac = finite(m.t.dominant(&c.max, &q.max))
	case queues.PerType:
		c.max = m.partByType(&q.max, b.Types)
		c.maxFrac = finite(m.t.dominant(&c.max, &q.max))
	default:
		c.max, c.maxFrac, c.bounded = q.max, 1, false
	}
	c.absMax = q.absMax * c.maxFrac
	if b.Unit == queues.Absolute {
		c.absMax = finite(m.t.dominant(&c.max, &m.total))
	}
}

func finite(f float64) float64 {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return 0
	}
	return f
}

// portion is what a child gets of a parent's amount, f of it, rounded down once:
// where the parent's amount is itself a fraction (abs) of the cluster, the
// child's is the product's, as in Hadoop, so that depth adds no rounding.
func (m *Machine) portion(parent *queue, of *vec, abs, f float64) vec {
	if f == 1 {
		return *of
	}
	if parent.spec.Capacity.Unit != queues.Absolute && parent.spec.MaxCapacity.Unit != queues.Absolute {
		of, f = &m.total, abs*f
	}
	var v vec
	for i := 0; i < m.t.n; i++ {
		v.set(i, int64(float64(of.at(i))*f+1e-6))
	}
	return v
}

// part is a fraction of an amount, rounded down to whole steps as Hadoop does.
func (m *Machine) part(of *vec, f float64) vec {
	if f == 1 {
		return *of
	}
	var v vec
	for i := 0; i < m.t.n; i++ {
		x := int64(float64(of.at(i))*f + 1e-6)
		if s := m.step.at(i); s > 1 && i != cpu {
			x = x / s * s
		}
		v.set(i, x)
	}
	return v
}

func (m *Machine) partByType(of *vec, types []queues.TypePercent) vec {
	v := *of
	for _, tp := range types {
		for i, name := range m.t.names {
			if name == tp.Type {
				v.set(i, int64(float64(of.at(i))*tp.Percent/100+1e-6))
			}
		}
	}
	return v
}

// sizeFair sets the bounds of a queue, FairScheduler's way. Shares of the
// moment are computed when asked for (fairshare.go).
func (m *Machine) sizeFair(c *queue) {
	q := c.parent
	amount := func(a *queues.Amount, none vec) (vec, bool) {
		switch a.Unit {
		case queues.Absolute:
			v := m.t.vec(a.Resource)
			for i := 2; i < m.t.n; i++ {
				if v.at(i) == 0 {
					v.set(i, none.at(i))
				}
			}
			return v, true
		case queues.Percent:
			return m.part(&m.total, a.Value/100), true
		case queues.PerType:
			return m.partByType(&m.total, a.Types), true
		}
		return none, false
	}
	c.minimum, _ = amount(&c.spec.Minimum, vec{})
	c.max, c.bounded = amount(&c.spec.MaxCapacity, vecMax)
	if !c.bounded {
		c.max, c.bounded = amount(&q.spec.MaxChild, vecMax)
	}
	c.maxFrac, c.absMax = 1, 1
	if c.bounded {
		c.absMax = min(1, finite(m.t.dominant(&c.max, &m.total)))
	}
}

// sizeLeaf sets the limits on applications of a leaf.
func (m *Machine) sizeLeaf(q *queue) {
	l := q.leaf
	l.sure = q.guaranteed
	l.sure.max(&m.least)
	l.percent, l.factor = float64(q.minUserPercent())/100, q.factor()
	part := l.percent
	if l.factor >= 0 {
		part = min(part, l.factor)
	} else {
		l.sure.min(&q.max)
	}
	for i := 0; i < m.t.n; i++ {
		l.sure.set(i, int64(float64(l.sure.at(i))*part))
	}
	l.maxApps = q.spec.MaxApps
	if l.maxApps == 0 && m.tree.spec.MaxApplications > 0 {
		l.maxApps = m.tree.spec.MaxApplications
		if m.tree.spec.Scheduler == queues.CapacityScheduler {
			l.maxApps = int(float64(m.tree.spec.MaxApplications) * q.absCap)
			if q.dynamic || l.maxApps == 0 {
				l.maxApps = max(l.maxApps, 1)
			}
		}
	}
	l.maxUserApps = l.maxApps
	if m.tree.spec.Scheduler == queues.CapacityScheduler && q.factor() > 0 {
		l.maxUserApps = min(l.maxApps, int(float64(l.maxApps)*float64(q.minUserPercent())/100*q.factor()))
	}
}

func (q *queue) minUserPercent() int {
	if q.spec.MinUserPercent <= 0 || q.spec.MinUserPercent > 100 {
		return 100
	}
	return q.spec.MinUserPercent
}

func (q *queue) factor() float64 {
	if q.spec.UserFactor == 0 {
		return 1
	}
	return q.spec.UserFactor
}

// stateNow is the queue's own state under its ancestors': a stopped parent
// stops all below.
func (q *queue) stateNow() creel.QueueState {
	for p := q; p != nil; p = p.parent {
		if p.state != creel.QueueRunning {
			return p.state
		}
	}
	return creel.QueueRunning
}

// find gives the leaf of a path, or of a leaf name that only one queue has.
func (t *tree) find(name string) *queue {
	if q := t.byPath[creel.QueuePath(name)]; q != nil && !q.removed {
		return q
	}
	if q := t.names[name]; q != nil && !q.removed {
		return q
	}
	if !creel.QueuePath(name).IsFull() {
		if q := t.byPath[creel.RootQueue.Child(name)]; q != nil && !q.removed {
			return q
		}
	}
	return nil
}

// MaySubmit reports whether the ACLs let a user submit to a queue: a right at
// an ancestor holds below, and administrators may.
func (m *Machine) MaySubmit(queue string, user string, groups []string) bool {
	q := m.tree.find(queue)
	for ; q != nil; q = q.parent {
		if q.spec.Submit.Allows(user, groups) || q.spec.Admin.Allows(user, groups) {
			return true
		}
	}
	return false
}

// MayAdminister reports the same for administering a queue.
func (m *Machine) MayAdminister(queue string, user string, groups []string) bool {
	q := m.tree.find(queue)
	for ; q != nil; q = q.parent {
		if q.spec.Admin.Allows(user, groups) {
			return true
		}
	}
	return false
}
