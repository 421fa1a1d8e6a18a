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
	outranked   bool // in walk.outranked
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

// shareSum is a sum of dominant shares, in units that add without rounding, so that the order of addition does not
// matter.
type shareSum int64

// shareSet is one computation of the shares of all queues.
type shareSet uint8

const (
	// inDecisions limits the AMs of a queue. It may be half a second old, because applications come and go faster
	// than a large tree can be divided.
	inDecisions shareSet = iota
	// inViews is the set for views: current, and separate, so that a view changes no decision.
	inViews
	shareSets
)

// fairShares are a queue's shares in one computation.
type fairShares struct{ share, steady amounts.Vec }

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

// SetState starts, stops or drains the queue. A stopped queue with applications drains until they have ended.
func (q *Queue) SetState(to creel.QueueState) {
	q.state = to
	if to == creel.QueueStopped && q.appsBelow() > 0 {
		q.state = creel.QueueDraining
	}
}

// appsBelow is the number of applications in the queue and its descendants.
func (q *Queue) appsBelow() int {
	if q.leaf != nil {
		return q.leaf.apps
	}
	n := 0
	for _, c := range q.children {
		n += c.appsBelow()
	}
	return n
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
