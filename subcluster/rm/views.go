// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/waitstats"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// AppView is an application as reports show it.
type AppView struct {
	ID          creel.ApplicationID
	User        string
	Name        string
	Type        string
	AMLabel     string                 // of the AM's ask
	Partitions  []explain.PartitionUse // use and pending asks by label, none first; while in its queue
	Tags        []string
	Queue       creel.QueuePath
	Priority    int32
	State       creel.ApplicationState
	Internal    string // RMAppState, which has more states: KILLING, FINAL_SAVING
	Final       creel.FinalStatus
	Diagnostics string
	// Waits is the reason why its AM has not started. In lists it is set only while the application waits for
	// activation, because checking all nodes for each application would take too long.
	Waits      string
	Held       Hold
	Progress   float32
	Unmanaged  bool
	Submitted  time.Time
	Launched   time.Time // first launch of an AM; zero before
	Finished   time.Time // zero while it runs
	Deadline   time.Time // lifetime; zero = unlimited
	Label      string
	LabelGiven bool   // with the application, perhaps as ""
	Placed     string // rule that chose the queue

	Attempt     creel.AttemptID // current; zero before the first
	Host        string          // the AM's, "" unknown
	Port        int32
	TrackingURL string
	Token       bool // unmanaged, LAUNCHED and not yet registered: its AMRMToken may be returned
	KillDone    bool // a kill has reached the final state
	Over        bool // nothing but Logs will change any more
	Ending      bool // ending or ended: a kill changes nothing

	InScheduler      bool // the current attempt holds or may get resources
	Partitioned      bool // its use is reported by partition (CapacityScheduler)
	Containers       int32
	Reserved         int32
	Used             creel.Resource
	ReservedRes      creel.Resource
	Pending          creel.Resource
	InLine           creel.Resource // AM resources of an application in line
	PendingCount     int32
	AMUsed           creel.Resource
	QueueShare       float64      // percent of the queue's guaranteed capacity in use by it
	ClusterShare     float64      // percent of the cluster
	ResourceSeconds  []TypeAmount // per type in MiB*s, vcore*s, ...
	PreemptedSeconds []TypeAmount
	Preempted        creel.Resource // of containers preempted from it
	// PreemptedContainers and PreemptedAMs count preempted containers without and with an AM.
	PreemptedContainers, PreemptedAMs int32
	Context                           any

	Logs     creel.LogAggregationStatus
	LogsLeft bool // a node has not aggregated them yet, or failed to
}

// UAM reports whether it is the unmanaged AM of a proxy: a part of an application with another ResourceManager as
// home.
func (a *AppView) UAM() bool { return creel.IsUAM(a.Unmanaged, a.Name, a.Tags) }

// Joins reports whether it is a UAM that lists include whatever their filter: it runs, or a node has not finished its
// log aggregation.
func (a *AppView) Joins() bool { return a.UAM() && (!a.State.Ended() || a.LogsLeft) }

// TypeAmount is an amount of one resource type.
type TypeAmount struct {
	Type  string
	Value int64
}

// AttemptInternal is the ResourceManager's internal state of an attempt, with more values than creel.AttemptState;
// String returns YARN's RMAppAttemptState name.
type AttemptInternal uint8

// AttemptView is an attempt as reports show it.
type AttemptView struct {
	ID          creel.AttemptID
	State       creel.AttemptState
	Internal    string // RMAppAttemptState
	Host        string
	Port        int32
	TrackingURL string
	Remote      string // address from which the AM registered, "" unknown
	Diagnostics string
	AM          creel.ContainerID // zero for unmanaged
	AMNode      creel.NodeID
	AMHTTP      string
	Started     time.Time
	Finished    time.Time
	Final       creel.FinalStatus
	ExitStatus  int32
	Blacklist   []string
}

// ContainerView is a live container.
type ContainerView struct {
	ID                  creel.ContainerID
	State               creel.ContainerState
	Internal            string // RMContainerState: ALLOCATED, ACQUIRED, RUNNING, ...
	Node                creel.NodeID
	HTTPAddress         string
	Resource            creel.Resource
	Priority            int32
	AllocationRequestID int64
	ExecutionType       creel.ExecutionType
	Version             int32
	Created             time.Time
	Queued              time.Time // since when it waits in its node's queue; zero if it does not
	AM                  bool
	Tags                []string
	Reason              sched.Reason
}

// NodeView is a node.
type NodeView struct {
	ID             creel.NodeID
	HTTPAddress    string
	Rack           string
	State          creel.NodeState
	Version        string
	HealthReport   string
	HealthTime     time.Time
	LastHeartbeat  time.Time
	Total, Used    creel.Resource
	Physical       creel.Resource
	Containers     int32
	Reserved       creel.ContainerID // zero = not reserved; otherwise the application's attempt and sequence 0
	Utilization    NodeUse
	Overallocation Overallocation // zero if it lends nothing
	DecommissionBy time.Time
	Label          string                 // "" for none
	Attributes     []Attribute            // of its host; must not be changed
	Tags           []constraints.TagCount // allocation tags of its containers
}

// QueueView is the scheduler's view of a queue, with counts of its applications.
type QueueView struct {
	explain.QueueView
	// Opportunistic containers of its applications count in no other field.
	OpportunisticContainers                              int32
	Opportunistic                                        creel.Resource
	AppsSubmitted, AppsCompleted, AppsFailed, AppsKilled int64
	UAMs                                                 sched.AppCounts      // among them
	Waits                                                *waitstats.Histogram // of a leaf, read-only
}

// ClusterView has the numbers of the whole subcluster.
type ClusterView struct {
	AppsSubmitted, AppsCompleted, AppsPending, AppsRunning, AppsFailed, AppsKilled int64
	// Of nodes without a label, and of all nodes.
	Total, Used, Reserved, Available, Pending creel.Resource
	InLine                                    creel.Resource // AM resources of applications in line
	InLineContainers                          int32
	AllTotal, AllUsed, AllReserved            creel.Resource

	Containers, ReservedContainers, PendingContainers int32
	Nodes                                             map[creel.NodeState]int // by state
	// containers, since the start
	Granted, Released int64
	Preempted         int64               // of them, preempted
	Waits             waitstats.Histogram // from ask to grant, without AMs' containers
	// Attempts' steps: to the AM's container, from there to the AM's launch, and from the launch to its registration.
	AMAllocation, AMLaunch, AMRegister Delay
}

// Why is the present reason why one application waits, with the numbers.
type Why struct {
	App     creel.ApplicationID
	State   creel.ApplicationState
	Waiting int32 // containers asked for and not granted
	explain.Why
}
