// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
)

// Scheduler names whose rules a queue tree follows.
type Scheduler uint8

// The two schedulers of Hadoop whose configuration creel reads.
const (
	Capacity Scheduler = iota // yarn.scheduler.capacity.*
	Fair                      // the allocation file of the FairScheduler
)

// Calculator says which resource types a scheduler compares and checks.
type Calculator uint8

// Hadoop's two resource calculators.
const (
	MemoryOnly Calculator = iota // DefaultResourceCalculator: memory alone
	Dominant                     // DominantResourceCalculator: every type
)

// Queues is a whole queue tree with the settings that hold for all of it: what
// capacity-scheduler.xml or fair-scheduler.xml says. It is data; New and
// ReloadQueues check it (Validate) and build the live tree from it.
type Queues struct {
	Scheduler  Scheduler
	Calculator Calculator
	Root       Queue // Name "root"

	// MaxApplications bounds pending and running applications of the whole
	// cluster (CapacityScheduler: maximum-applications, default 10000); each
	// leaf without its own bound gets its share by absolute capacity. 0 = none.
	MaxApplications int
	// Locality delays in missed opportunities: a chance to run on a node with
	// room that is not local. CapacityScheduler: node-locality-delay (default
	// 40; -1 = no wait) and rack-locality-additional-delay (-1 = in proportion
	// to the containers asked for).
	NodeLocalityDelay           int
	RackLocalityAdditionalDelay int
	// FairScheduler: yarn.scheduler.fair.locality.threshold.{node,rack}, the
	// share of the cluster's nodes to pass up; negative = do not wait.
	NodeLocalityThreshold, RackLocalityThreshold float64
	// Delays in time, which relax a wait even when no opportunity comes; 0 = none.
	NodeLocalityWait, RackLocalityWait time.Duration

	// UserMaxApps bounds the running applications of named users over the whole
	// cluster (max-parallel-apps of CapacityScheduler, maxRunningApps of
	// FairScheduler); UserMaxAppsDefault holds for all others. 0 = none;
	// -1 for a user = explicitly without bound.
	UserMaxApps        []UserLimit
	UserMaxAppsDefault int

	// MaxClusterPriority caps application priorities (yarn.cluster.max-application-priority).
	MaxClusterPriority int32
	// ReservationsOff forbids reserving a node for a container too big for it now.
	ReservationsOff bool
}

// UserLimit is a bound or weight for one user.
type UserLimit struct {
	User   string
	Max    int
	Weight float64 // user-settings.<user>.weight; 0 counts as 1
}

// Unit says how an Amount is written.
type Unit uint8

// Units of an Amount.
const (
	Unset     Unit = iota // not given: the default of the place holds
	Percent               // of the parent's capacity (CapacityScheduler) or of the cluster (FairScheduler)
	Weight                // in proportion to the siblings' weights
	Absolute              // resources
	PerType               // percent per resource type (FairScheduler "50.0% memory, 25.0% cpu", CapacityScheduler vectors)
	Unbounded             // FairScheduler without maxResources
)

// Amount is a capacity, minimum or maximum as configured.
type Amount struct {
	Unit     Unit
	Value    float64        // Percent 0..100, or the weight
	Resource creel.Resource // Absolute
	Types    []TypePercent  // PerType, in the order written
}

// TypePercent is a percentage of one resource type ("memory-mb", "vcores", ...).
type TypePercent struct {
	Type    string
	Percent float64
}

// PercentOf, WeightOf and AbsoluteOf make Amounts.
func PercentOf(p float64) Amount         { return Amount{Unit: Percent, Value: p} }
func WeightOf(w float64) Amount          { return Amount{Unit: Weight, Value: w} }
func AbsoluteOf(r creel.Resource) Amount { return Amount{Unit: Absolute, Resource: r} }

// Policy orders the applications of a leaf, or the children of a parent.
type Policy uint8

// Policies. Fifo, FairShare, DRF and PriorityFirst order applications of a
// leaf; Utilization, PriorityUtilization, FairShare, DRF and HDRF order the
// children of a parent.
const (
	PolicyDefault       Policy = iota // fifo in a CapacityScheduler leaf, utilization between its queues, fair in FairScheduler
	Fifo                              // by application priority, then by submission
	FairShare                         // least memory used over weight (and FairScheduler's minimum shares)
	DRF                               // least dominant share over weight
	PriorityFirst                     // by priority strictly, then by least use
	Utilization                       // used over guaranteed (CapacityScheduler)
	PriorityUtilization               // the same, queue priority first among those on one side of their guarantee
	HDRF                              // hierarchical DRF: shares rescaled from below, blocked children left out
)

// NodeOrder says which of the nodes with room a container goes to.
type NodeOrder uint8

// Node orders. NodeOrderDefault inherits, and is Spread at the root, as an
// idle YARN cluster fills node after node by heartbeat.
const (
	NodeOrderDefault NodeOrder = iota
	Spread                     // most room first
	Pack                       // least room that still fits first
)

// ACL says who may do something. The zero value allows nobody.
type ACL struct {
	All           bool
	Users, Groups []string
}

// Allows reports whether the user, or one of the groups, is named.
func (a ACL) Allows(user string, groups []string) bool {
	if a.All || slices.Contains(a.Users, user) {
		return true
	}
	return slices.ContainsFunc(a.Groups, func(g string) bool { return slices.Contains(groups, g) })
}

// Queue is one queue as configured. Zero values mean "not given": the default
// in brackets holds, which for some is the parent's value.
type Queue struct {
	Name     string
	Children []Queue // in the order written; a queue with children takes no applications itself

	Capacity    Amount // guaranteed share [CapacityScheduler: none; FairScheduler: WeightOf(1)]
	MaxCapacity Amount // hard bound [the parent's]
	Minimum     Amount // FairScheduler minResources [zero]
	MaxChild    Amount // FairScheduler maxChildResources, for children without their own bound

	State     creel.QueueState // [running]
	Submit    ACL              // submit_applications; a right at an ancestor holds below
	Admin     ACL              // administer_queue; the same
	Priority  int32            // order between queues (PriorityUtilization)
	Policy    Policy
	NodeOrder NodeOrder

	MinUserPercent  int     // minimum-user-limit-percent, 1..100 [100]
	UserFactor      float64 // user-limit-factor [1]; -1 = no bound but the queue's maximum
	UserWeights     []UserLimit
	MaxAMPercent    float64 // share 0..1 of the queue's limit that masters may use [parent's; 0.1 in CapacityScheduler, 0.5 in FairScheduler]; -1 = no bound
	MaxApps         int     // pending and running; beyond it submissions are refused [share of MaxApplications]
	MaxParallelApps int     // running at once; beyond it applications wait [no bound]

	MaxAllocation   creel.Resource // largest container [Config.MaxAllocation]
	DefaultPriority int32          // of applications that give none
	MaxLifetime     time.Duration  // maximum-application-lifetime [no bound]
	DefaultLifetime time.Duration  // default-application-lifetime [MaxLifetime]

	AutoCreate *AutoCreate // leaf queues made on demand below this one

	// Preemption has no room yet; these are kept for it and for reports.
	PreemptionDisabled      bool
	IntraPreemptionDisabled bool
	MinSharePreemption      time.Duration
	FairSharePreemption     time.Duration
	FairSharePreemptionAt   float64

	// Settings keeps the keys of this queue that have no field here, for reports.
	Settings []Setting
}

// Setting is one configuration key with its value as written.
type Setting struct{ Key, Value string }

// AutoCreate lets placement make leaf queues (and, with Depth above 1, parents)
// below a queue that does not list them.
type AutoCreate struct {
	Leaf     Queue         // template; Name and Children are ignored
	Parent   Queue         // template of parents made on the way
	Depth    int           // levels that may be made [1]
	Max      int           // queues that may exist below [1000]
	KeepIdle time.Duration // an empty made queue goes after this long [300 s]; negative = never
}
