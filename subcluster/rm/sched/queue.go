// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/intrusive"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/leases"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
	"github.com/creelrm/creel/subcluster/rm/sched/runtimes"
)

// tree is the live queue tree.
type tree struct {
	spec   *queues.Spec
	root   *Queue
	byPath map[creel.QueuePath]*Queue
	all    []*Queue          // parents before children, in configured order
	names  map[string]*Queue // leaf name -> queue, nil if ambiguous

	stale    bool      // the cluster changed size: amounts must be recomputed
	version  int64     // rises when amounts must be recomputed
	sharesAt int64     // time of FairScheduler's shares for decisions; 0 = stale
	actives  uint64    // rises when a leaf gets its first application or loses its last
	toldAt   [2]uint64 // version and actives at the computation of the shares in views
}

// Queue is one live queue. Amounts refer to the whole cluster. The fields that every decision below it uses come
// first.
type Queue struct {
	s                          *Scheduler
	parent                     *Queue
	leaf                       *leafState
	version                    int64   // of guaranteed to weight; see sized
	promised                   float64 // dominant share of entitled
	pendingCount               int64
	containers, heldContainers int32
	slot                       int32
	parkedBelow                int32 // parked children
	// outside its parent's heap although something waits: only a change of its own limits can help
	parked bool
	// this queue's limits have stopped something below since they last loosened
	limited     bool
	bounded     bool // most can apply before the parent's limit does
	queuedRetry bool // in retries.due
	outranked   bool // in Scheduler.outranked
	watched     bool // in retries.watched
	tally

	used, pending amounts.Vec
	most          amounts.Vec // limit before until: max, or its cap if that is smaller; see limit
	until         int64       // ns since epoch
	least         amounts.Vec // at most the smallest waiting need below; amounts.Unlimited if none

	// These fields order the waiting queues. A parent's heap has its children, a leaf's its users, in both cases only
	// those with something waiting.
	rank     rank
	absCap   float64 // of the cluster, as absMax
	serial   int     // index in configured order, over the whole tree
	weight   float64
	ready    intrusive.Heap[*Queue]
	users    intrusive.Heap[*user]
	ordering *ordering     // order of service below it
	orderBy  queues.Policy // as configured or inherited
	nodes    queues.NodeOrder
	// sizeWeight: in an order by use, large applications may use more
	sizeWeight bool
	spec       *queues.Queue

	guaranteed, max  amounts.Vec
	entitled         amounts.Vec // guarantee, or the capacity by the federation's plan; see planned.go
	planShare        float64     // entitled as a fraction of the cluster
	cap              *leases.Cap // nil: no federation-wide maximum
	held             amounts.Vec // reserved
	blocker          *Ask        // the ask that waits for max; see retries.go
	minimum          amounts.Vec
	absMax           float64
	capFrac, maxFrac float64 // of the parent

	path       creel.QueuePath
	name       string
	children   []*Queue
	state      creel.QueueState
	dynamic    bool        // created on demand
	removed    bool        // removed from the tree
	weights    float64     // sum of the children's
	fixed      amounts.Vec // sum of the children's absolute capacities
	largest    amounts.Vec // container
	maxAM      float64
	shares     [shareSets]fairShares // for FairScheduler
	running    int                   // activated applications, here and below
	maxRunning int                   // 0 = no limit, negative = none
	// inLine is the sum of the AMs whose applications are in line, in this partition
	inLine      amounts.Vec
	inLineCount int32
	idleTimer   *timer

	vectorsOf int64 // tree version at which the children were sized; see sizeVectors

	// Ended counts the applications of the queue and its descendants, UAMs the proxies' unmanaged AMs among them. The
	// owner maintains them: the scheduler does not use them.
	Ended, UAMs AppCounts

	// Lost counts the containers preempted from the queue and its descendants. The owner maintains it too.
	Lost LossCounts
}

// tally counts the containers of a queue itself since the start, and those of its former descendants.
type tally struct {
	granted, released int64
	near              [places.NumDistances]int64 // of the granted ones, by the distance from the named places
}

func (t *tally) add(o *tally) {
	t.granted += o.granted
	t.released += o.released
	for i, n := range o.near {
		t.near[i] += n
	}
}

// counts returns the tally of a queue with its descendants.
func (q *Queue) counts() tally {
	t := q.tally
	for _, c := range q.children {
		below := c.counts()
		t.add(&below)
	}
	return t
}

// LossCounts counts preempted containers.
type LossCounts struct {
	Containers int64
	Amount     amounts.Vec
	OverTime   amounts.Vec // times the milliseconds of their runs
}

// AppCounts counts applications by outcome.
type AppCounts struct{ Submitted, Completed, Failed, Killed int64 }

// leafState has the fields of leaves.
type leafState struct {
	usedByActive         amounts.Vec
	shares               shareSum    // of all users except unmeasured ones; see usedByUsers
	unmeasured           []*user     // use changed since the measurement
	bound                float64     // dominant share below which limits do not apply, up to rounding; see wellWithin
	assured              amounts.Vec // minimum limit of a user of weight 1; see userAdmits
	active               int         // users with applications waiting for containers
	weights              float64     // sum of their weights
	allWeights           float64     // sum of all users'
	inLine               int         // users with applications in line and none activated
	percent, factor      float64     // minimum percent, as a fraction, and factor of one user's limit
	limitedUsers         int
	pendingApps          int
	queuedActivate       bool
	heldAMs              bool   // it is in Line.held
	heldAt               int64  // since when, ns of the scheduler's time
	unmanaged            []*App // in line, with an AM that needs no container
	byName               map[string]*user
	caps                 *leases.Users // users' caps in the federation; nil without any
	userList             []*user
	amUsed               amounts.Vec
	apps                 int                   // pending and running
	begun                int32                 // of those, applications that have had a container
	pending              intrusive.Heap[*user] // users with applications that are not activated
	maxApps, maxUserApps int                   // -1 = no bound
	runtimes             *runtimes.Histogram   // nil before the first end; see preempt_least.go
}

// user is one user of one leaf.
type user struct {
	used           amounts.Vec
	q              *Queue
	weight         float64
	waitingApps    int // applications with outstanding asks; above 0 the user is active
	slot           int32
	limited        bool
	unmeasured     bool
	share          shareSum
	apps           intrusive.Heap[*App] // waiting for containers
	name           string
	amUsed         amounts.Vec
	pending        intrusive.Heap[*App] // not activated yet
	total, running int
	pendSlot       int32
	inLine         bool // no application is activated and one is in line
}

func (q *Queue) user(name string) *user {
	l := q.leaf
	if u := l.byName[name]; u != nil {
		return u
	}
	u := &user{name: name, q: q, weight: q.weightOf(name)}
	u.apps = intrusive.Heap[*App]{Less: q.ordering.apps, Slot: func(a *App) *int32 { return &a.slot }}
	u.pending = intrusive.Heap[*App]{Less: fifoApps, Slot: func(a *App) *int32 { return &a.pendSlot }}
	l.byName[name] = u
	l.allWeights += u.weight
	l.userList = append(l.userList, u)
	return u
}

// weightOf is the configured weight of a user.
func (q *Queue) weightOf(name string) float64 {
	weight := 1.0
	for _, w := range q.spec.UserWeights {
		if w.User == name && w.Weight > 0 {
			weight = w.Weight
		}
	}
	return weight
}

// forget removes a user without applications.
func (q *Queue) forget(u *user) {
	if u.total > 0 || !u.used.IsZero() {
		return
	}
	l := q.leaf
	u.unlimit()
	l.unmeasure(u)
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

// addQueue makes a queue and its descendants.
func (s *Scheduler) addQueue(spec *queues.Queue, parent *Queue) *Queue {
	q := &Queue{s: s, spec: spec, name: spec.Name, parent: parent, least: amounts.Unlimited}
	q.path = creel.QueuePath(spec.Name)
	if parent != nil {
		q.path = parent.path.Child(spec.Name)
	}
	s.tree.byPath[q.path] = q
	q.serial = len(s.tree.all)
	s.tree.all = append(s.tree.all, q)
	q.configure()
	for i := range spec.Children {
		q.children = append(q.children, s.addQueue(&spec.Children[i], q))
	}
	q.sum()
	if spec.IsLeaf() {
		q.becomeLeaf()
	}
	return q
}

func (q *Queue) becomeLeaf() {
	q.leaf = &leafState{byName: map[string]*user{}}
	q.order()
	q.leaf.pending = intrusive.Heap[*user]{
		Less: func(a, b *user) bool { return fifoApps(a.pending.Top(), b.pending.Top()) },
		Slot: func(u *user) *int32 { return &u.pendSlot },
	}
	less := q.ordering.apps
	q.users = intrusive.Heap[*user]{
		Less: func(a, b *user) bool { return less(a.apps.Top(), b.apps.Top()) },
		Slot: func(u *user) *int32 { return &u.slot },
	}
	q.label()
}

// label makes a leaf addressable by its last name, unless another leaf has the same.
func (q *Queue) label() {
	if old, taken := q.s.tree.names[q.name]; taken && old != q {
		q.s.tree.names[q.name] = nil
	} else {
		q.s.tree.names[q.name] = q
	}
}

// configure applies the specification, with inheritance.
func (q *Queue) configure() {
	spec, s := q.spec, q.s
	q.weight = 1
	if spec.Capacity.Unit == queues.Weight {
		q.weight = spec.Capacity.Value
	}
	if spec.State != 0 || q.state == 0 {
		q.state = spec.State
	}
	if q.state == 0 {
		q.state = creel.QueueRunning
	}
	q.orderBy, q.nodes, q.maxAM = spec.Policy, spec.NodeOrder, spec.MaxAMPercent
	q.largest = s.sizes.Most
	if q.parent != nil {
		q.largest = q.parent.largest
		if q.nodes == queues.NodeOrderDefault {
			q.nodes = q.parent.nodes
		}
		if q.orderBy == queues.PolicyDefault && s.policy.inheritsOrder {
			q.orderBy = q.parent.orderBy
		}
		if q.maxAM == 0 {
			q.maxAM = q.parent.maxAM
		}
	}
	if q.nodes == queues.NodeOrderDefault {
		q.nodes = queues.Spread
	}
	if q.maxAM == 0 {
		q.maxAM = s.policy.amShare
	}
	if !spec.MaxAllocation.IsZero() {
		v := s.sizes.Vec(spec.MaxAllocation)
		for i := 0; i < s.sizes.N; i++ {
			if v.At(i) > 0 {
				q.largest.Set(i, min(v.At(i), s.sizes.Most.At(i)))
			}
		}
	}
	q.maxRunning = spec.MaxParallelApps
	q.sizeWeight = spec.SizeWeight || s.tree.spec.SizeWeight
	q.order()
}

// order sets the order of service below the queue. The default differs between leaves and parents.
func (q *Queue) order() {
	by := q.orderBy
	if by == queues.PolicyDefault {
		by = q.s.policy.defaultOrder(q)
	}
	q.ordering = orderings[by]
	q.ready = intrusive.Heap[*Queue]{
		Items: q.ready.Items,
		Less:  q.ordering.children,
		Slot:  func(c *Queue) *int32 { return &c.slot },
	}
}

// StateNow is the queue's state including its ancestors': a stopped parent stops all below.
func (q *Queue) StateNow() creel.QueueState {
	for p := q; p != nil; p = p.parent {
		if p.state != creel.QueueRunning {
			return p.state
		}
	}
	return creel.QueueRunning
}

// Find returns the queue of a path, or of a unique leaf name; nil for none.
func (s *Scheduler) Find(name string) *Queue {
	t := &s.tree
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

// FindOn returns the queue with exactly this path, in the partition of a label; nil if there is no such queue, or no
// such label.
func (s *Scheduler) FindOn(path creel.QueuePath, label string) *Queue {
	p := s.partition(label)
	if p == nil {
		return nil
	}
	if q := p.tree.byPath[path]; q != nil && !q.removed {
		return q
	}
	return nil
}

// Leaf returns the live leaf with exactly this path, nil for none.
func (s *Scheduler) Leaf(path creel.QueuePath) *Queue {
	if q := s.tree.byPath[path]; q != nil && q.leaf != nil && !q.removed {
		return q
	}
	return nil
}

// Queues returns all queues, parents before children, in configured order. The list is read-only.
func (s *Scheduler) Queues() []*Queue { return s.tree.all }

// Root is the root queue.
func (s *Scheduler) Root() *Queue { return s.tree.root }

// Spec is the specification of the tree. It must not be changed.
func (s *Scheduler) Spec() *queues.Spec { return s.tree.spec }

// Path is the queue's full name.
func (q *Queue) Path() creel.QueuePath { return q.path }

// Parent is the parent queue, nil for the root.
func (q *Queue) Parent() *Queue { return q.parent }

// Spec returns the queue's configuration, read-only.
func (q *Queue) Spec() *queues.Queue { return q.spec }

// IsLeaf reports whether it is a leaf, which applications may enter.
func (q *Queue) IsLeaf() bool { return q.leaf != nil }

// Largest is the largest container that applications may ask for here.
func (q *Queue) Largest() *amounts.Vec { return &q.largest }

// Used returns the sum of the queue's containers.
func (q *Queue) Used() amounts.Vec { return q.used }

// Max returns the queue's maximum; false if only the cluster limits it.
func (q *Queue) Max() (amounts.Vec, bool) {
	q.sized()
	return q.max, q.bounded
}

// isAbove reports whether x is q or below it.
func (q *Queue) isAbove(x *Queue) bool {
	for ; x != nil; x = x.parent {
		if x == q {
			return true
		}
	}
	return false
}

// losesLeast reports whether the nearest queue with a setting has LeastWork.
func (q *Queue) losesLeast() bool {
	for ; q != nil; q = q.parent {
		if v := q.spec.Victims; v != queues.VictimsDefault {
			return v == queues.LeastWork
		}
	}
	return false
}
