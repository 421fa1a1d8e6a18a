// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// QueueView is a queue with its limits and use.
type QueueView struct {
	Path     creel.QueuePath
	Parent   creel.QueuePath // "" for the root
	Leaf     bool
	Children []creel.QueuePath // in configured order
	Dynamic  bool              // created on demand
	Makes    bool              // creates queues below it on demand
	State    creel.QueueState
	Spec     queues.Queue // as configured, without Children

	QueueShare
	QueueUse
	QueueApps
	QueueContainers
	MaxAllocation creel.Resource
	// No container is preempted from it for other queues, or between its users and applications; also true if
	// preemption is off.
	PreemptionDisabled, IntraPreemptionDisabled bool

	Labels       []string        // labels that asks in the queue may name
	DefaultLabel string          // label of asks that name none
	Partitions   []PartitionView // of existing labels, by label; without the default one
	Absent       []PartitionView // of labels that queues list and the cluster lacks, by label
}

// QueueShare is the part of the cluster that a queue has and may have.
type QueueShare struct {
	Guaranteed, Max  creel.Resource // of the present cluster
	Planned          *PlannedView   // a plan's capacity that replaces Guaranteed
	Minimum          creel.Resource // FairScheduler: minResources
	FairShare        creel.Resource // FairScheduler: instantaneous
	SteadyShare      creel.Resource // FairScheduler: if every queue were active
	Capacity         float64        // 0..1 of the parent
	MaxCapacity      float64        // 0..1 of the parent
	AbsCapacity      float64        // 0..1 of the cluster
	AbsMaxCapacity   float64
	NormalizedWeight float64
	Vectors          bool // capacities are configured per type (Spec.Vectors)
	MemoryOnly       bool // the calculator compares only memory
}

// QueueUse is the use and demand of a queue.
type QueueUse struct {
	Used, Reserved     creel.Resource
	Pending            creel.Resource
	Demand             creel.Resource // used and pending
	UsedCapacity       float64        // used over guaranteed
	AbsUsed            float64        // used over the cluster
	Containers         int32
	ReservedContainers int32
	PendingContainers  int32
	AllContainers      int32 // of all partitions
	// InLine is the sum of the AMs of applications that wait to start. Pending, the sum of outstanding asks, does not
	// include it.
	InLine           creel.Resource
	InLineContainers int32
}

// QueueApps are the applications and users of a queue, and the limits on them.
type QueueApps struct {
	Apps, PendingApps, ActiveApps int32
	MaxApps, MaxAppsPerUser       int
	AMLimit, UserAMLimit, AMUsed  creel.Resource
	MinUserPercent                float64
	UserFactor                    float64
	MaxAMPercent                  float64
	Users                         []UserView // of a leaf, by name
}

// QueueContainers counts the containers of a queue since the start. Containers from before are in no count.
type QueueContainers struct {
	ContainersAllocated, ContainersReleased int64
	// Of the allocated ones, by the place that the ask named. An ask without places is off-switch.
	NodeLocal, RackLocal, OffSwitch int64
	ContainersPreempted             int64
	Preempted                       creel.Resource // the resources of these
	PreemptedSeconds                creel.Resource // times the seconds of their runs
}

// PartitionView is a queue's limits and use on the nodes of a label.
type PartitionView struct {
	Label      string
	Accessible bool // asks in the queue may name it
	QueueView
}

// PartitionUse is an application's use and asks on the nodes of a label.
type PartitionUse struct {
	Label                           string
	Used, Reserved, Pending, AMUsed creel.Resource
}

// UserView is a user within a leaf queue.
type UserView struct {
	Name             string
	Used             creel.Resource // of all partitions
	Here             creel.Resource // of this partition
	AMUsed           creel.Resource
	Limit            creel.Resource
	AMLimit          creel.Resource
	Active           bool  // wants a container, or has another application in line
	Pending, Running int32 // applications
	Weight           float64

	PendingUAMs, RunningUAMs int32 // included, as set by the owner
}

// Totals has the amounts and numbers of the whole cluster.
type Totals struct {
	Total, Used, Reserved, Available, Pending amounts.Vec
	InLine                                    amounts.Vec // sum of the AMs in line
	InLineContainers                          int32
	PendingContainers                         int32
	ReservedNodes                             int // each for one container
	Waiting                                   int // applications in line to be activated
	Activated                                 int // activated applications

	AllTotal, AllUsed, AllReserved amounts.Vec // of all partitions
}

// PlannedView is the part of a plan in force for a queue.
type PlannedView struct {
	Label   string  // of its nodes
	Share   float64 // fraction of these nodes
	Amount  creel.Resource
	Version int64 // of the plan
	Until   time.Time
}

// AskView is an outstanding ask.
type AskView struct {
	Priority            int32
	AllocationRequestID int64
	ExecutionType       creel.ExecutionType
	ResourceName        string
	Resource            creel.Resource
	Count               int32
	Relax               bool
	Label               string   // of the partition of the ask
	Tags                []string // of a scheduling request
	Constraint          string   // as text
}
