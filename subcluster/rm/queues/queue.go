// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"time"

	"github.com/creelrm/creel"
)

// Queue is one queue as configured. Zero values mean "not given": the default
// in brackets holds, which for some is the parent's value.
type Queue struct {
	Name     string
	Children []Queue // in the order written; a queue with children takes no applications itself

	Capacity    Amount // guaranteed share [CapacityScheduler: none; FairScheduler: WeightOf(1)]
	MaxCapacity Amount // hard bound [the parent's]
	Minimum     Amount // FairScheduler minResources [zero]
	MaxChild    Amount // FairScheduler maxChildResources, for children without their own bound

	State      creel.QueueState // [running]
	Submit     ACL              // submit_applications; a right at an ancestor holds below
	Admin      ACL              // administer_queue; the same
	Priority   int32            // order between queues (PriorityUtilization)
	Policy     Policy
	PolicyName string // as written, for reports
	NodeOrder  NodeOrder
	// Between applications ordered by use, one that wants more may have more: use is divided
	// by the binary logarithm of one more than the MiB that it has and wants.
	SizeWeight bool

	MinUserPercent float64 // minimum-user-limit-percent, above 0, at most 100 [100]
	UserFactor     float64 // user-limit-factor [1]; -1 = no bound but the queue's maximum
	UserWeights    []UserLimit
	// share 0..1 of the queue's limit that AMs may use [parent's; 0.1 in CapacityScheduler, 0.5 in
	// FairScheduler]; -1 = no bound
	MaxAMPercent    float64
	MaxApps         int // pending and running; beyond it submissions are refused [share of MaxApplications]
	MaxParallelApps int // running at once; beyond it applications wait [no bound]

	MaxAllocation   creel.Resource // largest container [Config.MaxAllocation]
	DefaultPriority int32          // of applications that give none
	// Of a leaf, the lowest maximum first; while ACLs are on.
	PriorityLimits  []PriorityLimit
	PriorityACL     string        // as written, for reports
	MaxLifetime     time.Duration // maximum-application-lifetime [no bound]
	DefaultLifetime time.Duration // default-application-lifetime [MaxLifetime]

	AutoCreate *AutoCreate // leaf queues made on demand below this one

	// Preemption; Spec.Preemption enables it.
	PreemptionDisabled      bool          // nothing is taken from the queue for others
	IntraPreemptionDisabled bool          // nothing within the leaf
	MinSharePreemption      time.Duration // below its minimum for so long, it may take [the parent's; never]
	FairSharePreemption     time.Duration // the same for its fair share
	FairSharePreemptionAt   float64       // below this share of its fair share [the parent's; 0.5]
	Victims                 Victims       // order in which the queue loses containers [the parent's; Newest]

	// Node labels; see labels.go.
	Labels       []string     // accessible-node-labels; empty, not nil: none [the parent's; the root: every label]
	Shares       []LabelShare // of the partitions of labels, by label
	DefaultLabel string       // of asks that name none [the parent's]

	// Settings keeps the keys of this queue that have no field here, for reports.
	Settings []Setting
}

// Setting is one configuration key with its value as written.
type Setting struct{ Key, Value string }

// AutoCreate lets placement make leaf queues (and, with Depth above 1, parents)
// below a queue that does not list them.
type AutoCreate struct {
	Leaf   Queue       // template; Name and Children are ignored
	Parent Queue       // template of parents made on the way
	Depth  int         // levels that may be made [1]
	Max    int         // queues that may exist below [1000]
	Below  *AutoCreate // of queues below a parent made on the way [this one]
	// Managed: by auto-create-child-queue, not auto-queue-creation-v2.
	Managed bool
	// Settings of both kinds, of leaves alone and of parents alone, for reports.
	Any, OfLeaves, OfParents []Setting
	KeepIdle                 time.Duration // an empty made queue goes after this long [300 s]; negative = never
}

// IsLeaf reports whether a configured queue takes applications.
func (q *Queue) IsLeaf() bool { return len(q.Children) == 0 && q.AutoCreate == nil }
