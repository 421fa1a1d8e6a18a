// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/intrusive"
	"github.com/creelrm/creel/internal/waitstats"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
	"github.com/creelrm/creel/subcluster/rm/sched/leases"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
	"github.com/creelrm/creel/subcluster/rm/sched/preempt"
	"github.com/creelrm/creel/subcluster/rm/sched/runtimes"
	"github.com/creelrm/creel/subcluster/rm/sched/topology"
)

// This is the data of the scheduler, from the queues down to one claim of preemption: which object points at which.
// parts.go has the parts that work on it.

// Queue is one live queue. Amounts refer to the whole cluster. The fields that every decision below it uses come
// first. Parts of it with rules of their own are on the page before this one, queue_parts.go.
type Queue struct {
	part         *partition
	parent       *Queue
	leaf         *leafState
	version      int64 // of the tree, when bounds and capacity were computed; see sized
	pendingCount int64
	containers   int32
	slot         int32
	outranked    bool // in walk.outranked
	stopped      stops
	reserved     reserved
	used         amounts.Vec
	bounds       queueBounds
	pending      amounts.Vec
	least        amounts.Vec // at most the smallest waiting need below; amounts.Unlimited if none
	tally

	// These fields order the waiting queues. A parent's heap has its children, a leaf's its users, in both cases only
	// those with something waiting.
	rank     rank
	serial   int // index in configured order, over the whole tree
	ready    intrusive.Heap[*Queue]
	users    intrusive.Heap[*user]
	ordering *ordering // order of service below it
	settings settings
	capacity capacity

	path     creel.QueuePath
	name     string
	children []*Queue
	spec     *queues.Queue
	lifetime lifetime
	apps     appCounts
	shares   [shareSets]fairShares // for FairScheduler

	QueueCounts
}

// stops says how limits have stopped asks below a queue. Only retries changes it.
type stops struct {
	below   int32 // parked children
	parked  bool  // outside its parent's heap although something waits: only a change of its own limits can help
	limited bool  // its limits have stopped something below since they last loosened
	queued  bool  // in retries.due
	watched bool  // in retries.watched
	blocker *Ask  // the ask that waits for the maximum
}

// lifetime is how long a queue stays in the tree.
type lifetime struct {
	state   creel.QueueState
	dynamic bool   // created on demand
	removed bool   // removed from the tree
	idle    *timer // removes an empty queue that was created on demand
}

// QueueCounts are counts of a queue. The owner maintains them: the scheduler does not use them.
type QueueCounts struct {
	// Ended counts the applications of the queue and its descendants, UAMs the proxies' unmanaged AMs among them.
	Ended, UAMs AppCounts
	// Lost counts the containers preempted from the queue and its descendants.
	Lost LossCounts
	// Waits counts the containers granted to a leaf by the time from ask to grant, without AMs' containers.
	Waits waitstats.Histogram
}

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
	runtimes             *runtimes.Histogram   // nil before the first end; see preempt_runtimes.go
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

// App is the scheduler's part of an application: its asks, its use, its queue and user. Its owner's type embeds it.
// The fields that every decision uses come first.
type App struct {
	queue        *Queue
	user         *user
	asks         []*Ask // by priority, allocation request id, execution type
	ratio        float64
	accrued      int64 // ms
	pendingCount int64 // int64, because each ask may be for MaxInt32
	containers   int32
	slot         int32 // in user.apps
	priority     int32
	waits        bool // it is in the order of service, or temporarily set aside
	activated    bool // its AM may run
	open         bool // its owner permits new containers
	changed      bool // in Changes.Apps

	used, pending, seconds amounts.Vec
	least                  amounts.Vec // smallest of its waiting asks
	black                  blacklist
	seq                    int64 // order of submission
	heldContainers         int32
	pendSlot               int32
	inQueue                bool
	begun                  bool          // it has had a container
	amSize                 *amounts.Size // of its AM; nil if the AM has no container
	am                     *AMAsk        // its AM's ask, made at activation
	held, amUsed           amounts.Vec

	id     creel.ApplicationID
	owner  any
	tagged constraints.App  // its identity among tagged containers; empty in parts
	wants  map[wantKey]*Ask // scheduling requests among asks; nil for most applications
	parts  []*App           // in other partitions, where it asks or has had containers
	main   *App             // the default partition's App, for a part; nil in the default partition
	amPart *App             // part whose partition its AM is asked for in, nil for the default partition
}

// Ask is one scheduler key of an application: its outstanding asks at one priority, allocation request id and
// execution type. The "*" entry determines count and size; places name hosts and racks.
type Ask struct {
	app       *App
	want      *constraints.Want // of a scheduling request: its tags and constraint; nil for other asks
	size      *amounts.Size     // of "*"; nil before that entry
	stops     *Queue            // queue with the maximum it waits for; no later ask may pass it
	hold      *reservation
	priority  int32
	count     int32 // of "*": containers still wanted
	alloc     int64
	execution creel.ExecutionType
	strict    bool              // of "*": only listed places
	am        bool              // the AM's own container
	enforced  bool              // of "*": no opportunistic container instead
	level     places.Distance   // largest distance from the listed places that it may use now
	named     places.List[Node] // its places

	// Delay scheduling, besides level.
	since   int64 // opportunities at the start of the wait; -1 = not waiting
	relaxAt int64 // opportunities at which the level rises
	serial  int64
	slot    int32
	wake    *timer

	asked int64 // mean time at which its containers were asked for (waitstats.Since); ns
}

// Node is the scheduler's part of a node: its size and its free resources. It is one cache line of 64 bytes; its
// owner's type embeds it. Releases read and change its first half; grants read its location from the second.
// BenchmarkChurn of subcluster/rm needs this layout.
type Node struct {
	free    amounts.Vec // its size minus its containers
	serial  int32       // in nodes
	use     Use
	dirty   bool // in nodes.dirty
	held    bool // reserved: hold or kept is set
	changed bool // in Changes.Nodes

	rack *topology.Rack
	host *topology.Host[Node]
	hold *reservation
	*nodeRest
}

// nodeRest holds fields that few decisions need.
type nodeRest struct {
	id        creel.NodeID
	total     amounts.Vec
	increases []*Increase // of containers here, waiting for free resources
	kept      []*claim    // preemption's claims on free resources: the node is held
	of        *partition  // its partition
}

// A reservation collects the resources that become free on one node, for a container that is too big for the node
// now. Without reservations a big ask starves among small ones; with too many the cluster is idle. So only the first
// ask in order may reserve, when too little becomes free for it. It may reserve one node for each scheduler key, and
// only a share of the nodes may be reserved. A reservation moves to a node that is nearer to having enough. A
// reservation waits only for the containers of one node and holds nothing that another reservation waits for, so
// reservations cannot deadlock.
type reservation struct {
	ask  *Ask
	node *Node
	size *amounts.Size
	at   places.Distance
}

// Increase is a requested increase of a container on its node, or the promotion of one that is not charged for. The
// owner sets the fields, and must not change them while it waits.
type Increase struct {
	App      *App
	Node     *Node
	From, To *amounts.Size // From is nil for a promotion
	Owner    any           // for the owner
}

// Grant is a container that an application gets on a node, or an increase of one there. The amounts are booked; the
// owner does the rest.
type Grant struct {
	App                 *App
	Node                *Node
	Size                *amounts.Size
	Increase            *Increase // an increase of a container: the fields below are not set
	AllocationRequestID int64
	Priority            int32
	ExecutionType       creel.ExecutionType
	Reason              Reason
	Waited              time.Duration // since the ask
	AM                  bool          // it is for the application's AM
	Rare                *GrantExtra   // nil for most
}

// GrantExtra holds fields that few grants need.
type GrantExtra struct {
	Want    *constraints.Want // of a scheduling request; nil for other asks
	Label   string            // of the ask; "" also for containers on resources lent by a shared partition
	Insists NamedPlaces
}

// timer is a deadline: of an ask's wait for a local node, of an empty queue created on demand, of a plan, or of the
// next round of preemption.
type timer struct {
	at, seq int64
	slot    int32
	fire    func()
}

// claim is an amount on one node that is taken back for one ask. Freed resources are reserved until the round after the
// next. They are reserved for the ask's application first, then for its queue. So the losing application cannot get
// them back in the meantime.
type claim struct {
	queue     *Queue
	app       *App
	ask       *Ask
	size      *amounts.Size
	node      *Node
	count     int32     // containers of the ask
	victims   []*Victim // victims still running
	rule      Rule
	until     int64              // time of the kill
	freed     bool               // a victim has ended: the node is held
	keepUntil int64              // ns; for a claim without victims left
	spent     []*leases.Spending // budgets charged for its victims
}

// ordering is an order of service, among the applications of a leaf and among the children of a parent. Each ordering
// policy is one value in a separate file (order_*.go); a queue gets one at its creation. To add one, name it in
// queues/policy.go, write its file, and list it in order_list.go.
type ordering struct {
	// apps orders the applications of a leaf. use is the compared value of their use, recomputed after each change;
	// nil if use is not compared.
	apps func(a, b *App) bool
	use  func(a *App) float64

	// children orders the children of a parent. rank is the compared value, recomputed when the use of a waiting
	// child changes; an idle queue costs nothing. rank is nil if only configuration is compared.
	children func(a, b *Queue) bool
	rank     func(q *Queue) rank

	// relative: a child's rank depends on its siblings and on the rest of the cluster, so all children are ranked
	// again before each decision.
	relative bool

	// sharesUsers: preemption within a leaf goes by the use of users, not only of applications.
	sharesUsers bool

	// priorities: preemption between children goes by their priorities, beyond their guarantees.
	priorities bool

	// byType: FairScheduler divides each type among the children, not only the memory.
	byType bool
}

// Victim is a container that preemption will take back. Its AM is notified at the latest in its next response.
type Victim struct {
	App     *App
	Node    *Node
	Size    *amounts.Size // the owner replaces it when the container is resized
	Owner   any           // from Containers; nil when the container has ended
	Created int64         // ms since the epoch
	AM      bool
	For     *App // application whose ask gets the resources
	Rule    Rule
	Since   int64 // ns since the epoch
	By      int64 // time of the kill, ns since the epoch
	claim   *claim
	choice  preempt.Choice
}

// Containers is the owner's side of preemption: the scheduler records containers only as amounts.
type Containers interface {
	// Apps calls yield for every application, always in the same order.
	Apps(yield func(*App) bool)
	// Newest appends the live containers of an application, newest first. It omits victims.
	Newest(a *App, out []Container) []Container
	// Weight is the declared relative weight of an application's work; 1 for most.
	Weight(a *App) float64
}

// Container is a container that preemption may take.
type Container struct {
	Owner   any // the owner's own value
	Node    *Node
	Size    *amounts.Size
	Created int64 // ms since the epoch
	AM      bool
	Lent    bool // it is in a shared partition whose label its ask did not name
}

// Order is an order to the owner about a victim.
type Order struct {
	Kind   OrderKind
	Victim *Victim
}

// OrderKind is the kind of an Order.
type OrderKind uint8

// Orders about victims: a Kill or a Pardon follows every Notice, unless the container ends before.
const (
	Notice OrderKind = iota // notify its AM
	Pardon                  // no longer needed
	Kill
)

// verdict is the obstacle to an ask, if any. It is cheap, so every check makes one.
type verdict struct {
	limit explain.Limit
	where *Queue
}

// blacklist has the hosts and racks that an application avoids.
type blacklist struct{ names map[string]struct{} }
