// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/intrusive"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
	"github.com/creelrm/creel/subcluster/rm/sched/leases"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
	"github.com/creelrm/creel/subcluster/rm/sched/preempt"
	"github.com/creelrm/creel/subcluster/rm/sched/topology"
)

// These are the parts of the scheduler, each with its own state. Their methods are in the files that their comments or
// names say. data.go has what they work on.

// Scheduler allocates containers in the partitions of a cluster. It has one owner; see the package documentation for
// the owner's duties. Decisions are made in a partition; the Scheduler has only state and decisions about several.
type Scheduler struct {
	main     partition    // of the nodes without a label: the default one
	labelled []*partition // by label; see partition.go
	absents  absentLabels

	line    Line
	lending lending
	timers  timers
	seq     int64 // applications so far
}

// partition has the nodes of one label, or those without a label, and allocates their resources among the queues.
type partition struct {
	sizes  amounts.Sizes
	policy policy
	now    int64 // ns since epoch, of the latest event

	cluster   *Scheduler
	label     string // "" for nodes without one
	exclusive bool
	stinted   bool // a cap prevented borrowing here; see lending

	// Free resources.
	nodes        nodes
	reservations reservations
	increases    increases
	total        amounts.Vec // of nodes that run containers
	active       int         // of those nodes

	// Demand.
	tree    Tree
	walk    walk
	delays  delays
	tags    Tags
	planned *capacities  // of the federation; nil: configured capacities apply
	leases  *leases.Book // of all partitions, which share it
	waiting int          // applications with outstanding asks that may be granted containers

	// Work for the cycle.
	resizeDue bool    // the cluster or a plan changed: see resize
	retries   retries // where limits loosened
	grants    []Grant // of the current cycle

	preempt Preemption

	// Reused memory.
	places     places.Pool[Node]
	prefetched int32 // sum of prefetched values, so that the compiler retains the reads
	changes    *Changes
}

// Tree has the queues of a partition, by path and by leaf name. It finds them, and adds, replaces and removes them
// (tree_add.go, tree_reload.go, tree_made.go). It knows nothing of deadlines and other partitions: reload.go applies
// each change to these, and sizes the queues after it.
type Tree struct {
	part   *partition // of the partition, to which the queues refer
	spec   *queues.Spec
	root   *Queue
	byPath map[creel.QueuePath]*Queue
	all    []*Queue          // parents before children, in configured order
	names  map[string]*Queue // leaf name -> queue, nil if ambiguous

	version  int64     // rises when amounts must be recomputed
	sharesAt int64     // time of FairScheduler's shares for decisions; 0 = stale
	actives  uint64    // rises when a leaf gets its first application or loses its last
	toldAt   [2]uint64 // version and actives at the computation of the shares in views
}

// Line has the applications that wait for their activation, in each leaf by user and by priority, and the leaves that
// are due for a try. The leaves are those of the partition without a label.
type Line struct {
	s       *Scheduler
	running map[string]*int // activated applications by user
	due     []*Queue        // leaves with applications that may be activated
	held    []*Queue        // leaves with applications that limits stopped; the oldest last try first
	heldDue int             // number of them to try again
	tries   int             // of these, in the current Schedule
}

// walk goes through the waiting asks of a partition in the order of service: by queue, user, application and priority.
type walk struct {
	part      *partition // the partition
	outranked []*Queue   // with changed use since the order was last read

	// Set aside by the walk, so that it does not visit them again; reused memory.
	queues []*Queue
	users  []*user
	apps   []*App
}

// retries has the queues to try again and the stops. An ask stopped by a limit costs nothing until that limit loosens:
// queues and users record that they stopped an ask. They are retried when something below them is released, a user
// stops waiting, or the cluster changes. The zero value is ready.
type retries struct {
	due     []*Queue // where limits loosened
	watched []*Queue // stopped by limits, or with applications in line
	blocked int      // blocked queues
}

// nodes are the nodes of a partition, by host, rack and free resources. For serial numbers of other partitions' nodes
// there are gaps.
type nodes struct {
	topology.Map[Node]
	part        *partition // the partition
	portInNames bool       // asks name a node by host:port, not by host
	dirty       []*Node    // with more free resources than when last offered
}

// reservations are the reserved nodes of a partition.
type reservations struct {
	part  *partition // the partition
	share float64    // 0..1 of nodes that may be reserved at once, at least one node
	count int
}

// delays are the waits of a partition's asks for their preferred nodes.
type delays struct {
	part    *partition // the partition
	waiting intrusive.Heap[*Ask]
	count   int64 // skipped opportunities, over all asks
	serial  int64 // of the last ask that waited
}

// increases try larger sizes of containers on the nodes of a partition.
type increases struct {
	part    *partition // the partition
	waiting int        // for free resources
}

// timers are the deadlines of all partitions, which share them. Deadlines of one time fire in the order of their start.
type timers struct {
	heap intrusive.Heap[*timer]
	seq  int64
}

// Tags has the scheduling requests of a partition: asks with tags, or with a constraint on the tags and attributes of
// nodes. Scheduler.Tags returns those of the partition without a label, which the owner calls.
type Tags struct {
	part    *partition
	counts  *constraints.Tags // and attributes of all nodes, which all partitions share
	waiting []*Ask            // with a constraint, for a node that satisfies it
	changed bool              // counts or attributes, since the last try of waiting asks
}

// lending has the idle resources of shared partitions, and the asks that may borrow them.
type lending struct {
	s         *Scheduler
	shared    int     // number of partitions that are not exclusive
	nodes     []*Node // of shared ones, with resources left by their own asks
	borrowers []*App  // with new asks, waiting
}

// capacities are the capacities in force.
type capacities struct {
	Capacities
	byPath map[creel.QueuePath]float64
	ends   *timer
}

// absentLabels are partitions without nodes for labels of queues that the cluster lacks. As in Hadoop they appear in
// documents and count for the number of applications, and in no decision.
type absentLabels struct {
	of    *queues.Spec // the tree that parts belong to
	parts []*partition
}

// Preemption takes containers back for those that wait below their share: preempt.go says how.
type Preemption struct {
	part   *partition
	on     bool
	cfg    queues.Preemption
	from   Containers // nil: never on
	timer  *timer
	claims []*claim // oldest first
	orders []Order  // since the last Orders
	short  map[*Queue]*preempt.Shortage
	last   RoundResult
	memory roundMemory
}

// Changes are the nodes and applications whose amounts changed, for an audit at the cost of each event's changes. The
// reader empties the lists (Done).
type Changes struct {
	Nodes []*Node
	Apps  []*App
	used  map[*Queue]amounts.Vec // at the last audit, for queues with a maximum
}
