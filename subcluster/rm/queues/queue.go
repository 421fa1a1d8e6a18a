// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
)

// Queue is one queue as configured. Zero values mean "not given": the default in brackets applies, which may be the
// parent's value.
type Queue struct {
	Name     string
	Children []Queue // in written order; a queue with children accepts no applications itself

	Capacity Amount // guaranteed share [CapacityScheduler: none; FairScheduler: WeightOf(1)]
	// Written is the configured capacity, absent or 0 percent, that Capacity replaces by 0 in the siblings' unit; nil
	// for others. It is for reports.
	Written     *Amount
	MaxCapacity Amount // hard limit [the parent's]
	Minimum     Amount // FairScheduler minResources [zero]
	MaxChild    Amount // FairScheduler maxChildResources, for children without a separate limit

	State      creel.QueueState // [running]
	Submit     ACL              // submit_applications; a right at an ancestor applies below it
	Admin      ACL              // administer_queue; the same
	Priority   int32            // for the order between queues (PriorityUtilization)
	Policy     Policy
	PolicyName string // as written, for reports
	NodeOrder  NodeOrder
	// NoOversubscription keeps the asks of the queue and its descendants from resources that others have allocated and
	// do not use.
	NoOversubscription bool
	// In an order by use, applications that want more may have more. Their use is divided by the binary logarithm of
	// one plus the MiB that they have and want.
	SizeWeight bool

	MinUserPercent float64 // minimum-user-limit-percent, above 0, at most 100 [100]
	UserFactor     float64 // user-limit-factor [1]; -1 = only the queue's maximum
	UserWeights    []UserLimit
	// MaxAMPercent is the share 0..1 of the queue's limit that AMs may use [parent's; 0.1 in CapacityScheduler, 0.5
	// in FairScheduler]; -1 = no limit
	MaxAMPercent    float64
	MaxApps         int // pending and running; submissions above it are rejected [share of MaxApplications]
	MaxParallelApps int // running concurrently; applications above it wait [no limit]; negative, NoApps = none runs

	MaxAllocation   creel.Resource // largest container [Config.MaxAllocation]
	DefaultPriority int32          // of applications that request none
	// Priority limits of a leaf, lowest maximum first; used if ACLs are on.
	PriorityLimits  []PriorityLimit
	PriorityACL     string        // as written, for reports
	MaxLifetime     time.Duration // maximum-application-lifetime [no limit]; NoLifetime if 0 is configured
	DefaultLifetime time.Duration // default-application-lifetime [MaxLifetime]

	Opportunistic OpportunisticMaxima // of the queue with its descendants

	AutoCreate *AutoCreate // leaf queues created on demand below this queue

	// Preemption; Spec.Preemption enables it.
	PreemptionDisabled      bool          // no preemption from the queue for others
	IntraPreemptionDisabled bool          // no preemption within the leaf
	MinSharePreemption      time.Duration // after this time below its minimum, it may preempt [the parent's; never]
	FairSharePreemption     time.Duration // the same for its fair share
	FairSharePreemptionAt   float64       // below this share of its fair share [the parent's; 0.5]
	Victims                 Victims       // order in which the queue loses containers [the parent's; Newest]

	// Node labels; see labels.go.
	Labels       []string     // accessible-node-labels; empty, not nil: none [the parent's; at the root every label]
	Shares       []LabelShare // of the partitions of labels, by label
	DefaultLabel string       // for asks that name none [the parent's]

	// Settings are the queue's keys without a field here, for reports.
	Settings []Setting
}

// NoApps is a configured limit of 0 running applications.
const NoApps = math.MinInt32

// ParallelLimit returns the configured limit of running applications, as documents show it.
func (q *Queue) ParallelLimit() int {
	switch q.MaxParallelApps {
	case 0:
		return math.MaxInt32
	case NoApps:
		return 0
	}
	return min(q.MaxParallelApps, math.MaxInt32)
}

// OpportunisticMaxima are the maxima of a queue's opportunistic containers, of all and of those of each user.
type OpportunisticMaxima struct{ All, EachUser Maximum }

// Maximum is a configured number of containers at a time. The zero value is no maximum.
type Maximum struct {
	Set  bool
	Most int
}

// NoLifetime is a configured lifetime of 0: no limit, whatever the parent has.
const NoLifetime time.Duration = -1

// Setting is one configuration key with its value as written.
type Setting struct{ Key, Value string }

// AutoCreate lets placement create leaf queues (and, with Depth above 1, their parents) below a queue that does not
// list them.
type AutoCreate struct {
	Leaf   Queue          // template; Name and Children are ignored
	Parent Queue          // template of created parents
	Depth  int            // levels that may be created [1]
	Max    int            // queues that may exist below [1000]
	Below  *AutoCreate    // for queues below a created parent [this one]
	Named  []CreatedQueue // queues with settings of their own, by name
	// Managed: auto-create-child-queue, not auto-queue-creation-v2.
	Managed bool
	// Settings for both kinds, for leaves only and for parents only, for reports.
	Any, OfLeaves, OfParents []Setting
	KeepIdle                 time.Duration // of an empty created queue before its removal [300 s]; negative = unlimited
}

// CreatedQueue replaces the templates for one queue whose own settings the configuration has.
type CreatedQueue struct {
	Name         string
	Leaf, Parent Queue
	Below        *AutoCreate
}

// For returns the specification of a queue to be created: its template, and the rule for queues below it if it is a
// parent.
func (a *AutoCreate) For(name string, leaf bool) Queue {
	q, parent, below := a.Leaf, a.Parent, cmp.Or(a.Below, a)
	if i, found := slices.BinarySearchFunc(a.Named, name, byName); found {
		n := &a.Named[i]
		q, parent, below = n.Leaf, n.Parent, cmp.Or(n.Below, below)
	}
	if !leaf {
		q = parent
		q.AutoCreate = below
	}
	q.Name, q.Children = name, nil
	return q
}

func byName(q CreatedQueue, name string) int { return strings.Compare(q.Name, name) }

// IsLeaf reports whether a configured queue accepts applications.
func (q *Queue) IsLeaf() bool { return len(q.Children) == 0 && q.AutoCreate == nil }

// UserPercent returns the minimum user limit in percent; 100 if none is configured.
func (q *Queue) UserPercent() float64 {
	if q.MinUserPercent <= 0 || q.MinUserPercent > 100 {
		return 100
	}
	return q.MinUserPercent
}

// Factor returns the user limit factor; 1 if none is configured.
func (q *Queue) Factor() float64 {
	if q.UserFactor == 0 {
		return 1
	}
	return q.UserFactor
}
