// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// AppView is an application as reports show it.
type AppView struct {
	ID          creel.ApplicationID
	User        string
	Name        string
	Type        string
	Tags        []string
	Queue       creel.QueuePath
	Priority    int32
	State       creel.ApplicationState
	Internal    string // RMAppState: finer, KILLING and FINAL_SAVING besides
	Final       creel.FinalStatus
	Diagnostics string
	Progress    float32
	Unmanaged   bool
	Submitted   time.Time
	Launched    time.Time // first launch of a master; zero before
	Finished    time.Time // zero while it runs
	Deadline    time.Time // lifetime; zero = unlimited
	Label       string
	Placed      string // rule that chose the queue

	Attempt     creel.AttemptID // current; zero before the first
	Host        string          // the master's, "" unknown
	Port        int32
	TrackingURL string
	Token       bool // unmanaged, LAUNCHED and not yet registered: its AMRMToken may be shown
	KillDone    bool // a kill has reached the final state
	Over        bool // nothing of it will change any more

	InScheduler      bool // the current attempt holds or may get resources
	Partitioned      bool // its use is told by partition (CapacityScheduler)
	Containers       int32
	Reserved         int32
	Used             creel.Resource
	ReservedRes      creel.Resource
	Pending          creel.Resource
	PendingCount     int32
	AMUsed           creel.Resource
	QueueShare       float64      // percent of the queue's guaranteed capacity in use by it
	ClusterShare     float64      // percent of the cluster
	ResourceSeconds  []TypeAmount // per type in MiB*s, vcore*s, ...
	PreemptedSeconds []TypeAmount
	Context          any
}

// TypeAmount is an amount of one resource type.
type TypeAmount struct {
	Type  string
	Value int64
}

// AttemptInternal is the ResourceManager's own state of an attempt, finer than
// creel.AttemptState; String gives YARN's RMAppAttemptState name.
type AttemptInternal uint8

// AttemptView is an attempt as reports show it.
type AttemptView struct {
	ID          creel.AttemptID
	State       creel.AttemptState
	Internal    string // RMAppAttemptState
	Host        string
	Port        int32
	TrackingURL string
	Diagnostics string
	Master      creel.ContainerID // zero for unmanaged
	MasterNode  creel.NodeID
	MasterHTTP  string
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
	Master              bool
	Tags                []string
	Reason              Reason
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
	LastBeat       time.Time
	Total, Used    creel.Resource
	Physical       creel.Resource
	Containers     int32
	Reserved       creel.ContainerID // zero = not reserved; otherwise the application's attempt and sequence 0
	Utilization    NodeUse
	DecommissionBy time.Time
}

// QueueView is a queue with what it may use and does use.
type QueueView struct {
	Path     creel.QueuePath
	Parent   creel.QueuePath // "" for the root
	Leaf     bool
	Children []creel.QueuePath // in configured order
	Dynamic  bool              // made on demand
	State    creel.QueueState
	Spec     queues.Queue // as configured, without Children

	Guaranteed, Max                                      creel.Resource // of the cluster as it is now
	Minimum                                              creel.Resource // FairScheduler: minResources
	Used, Reserved                                       creel.Resource
	Pending                                              creel.Resource
	Demand                                               creel.Resource // used and pending
	FairShare                                            creel.Resource // FairScheduler: instantaneous
	SteadyShare                                          creel.Resource // FairScheduler: if every queue were active
	Capacity                                             float64        // 0..1 of the parent
	MaxCapacity                                          float64        // 0..1 of the parent
	AbsCapacity                                          float64        // 0..1 of the cluster
	AbsMaxCapacity                                       float64
	UsedCapacity                                         float64 // used over guaranteed
	AbsUsed                                              float64 // used over the cluster
	NormalizedWeight                                     float64
	Containers                                           int32
	ReservedContainers                                   int32
	PendingContainers                                    int32
	Apps, PendingApps, ActiveApps                        int32
	MaxApps, MaxAppsPerUser                              int
	AMLimit, UserAMLimit, AMUsed                         creel.Resource
	MaxAllocation                                        creel.Resource
	MinUserPercent                                       int
	UserFactor                                           float64
	MaxAMPercent                                         float64
	Users                                                []UserView // of a leaf, by name
	AppsSubmitted, AppsCompleted, AppsFailed, AppsKilled int64
	ContainersAllocated, ContainersReleased              int64
}

// UserView is a user within a leaf queue.
type UserView struct {
	Name             string
	Used, AMUsed     creel.Resource
	Limit            creel.Resource
	Active           bool
	Pending, Running int32 // applications
	Weight           float64
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
}

// ClusterView is the whole subcluster in numbers.
type ClusterView struct {
	AppsSubmitted, AppsCompleted, AppsPending, AppsRunning, AppsFailed, AppsKilled int64
	Total, Used, Reserved, Available, Pending                                      creel.Resource
	Containers, ReservedContainers, PendingContainers                              int32
	Nodes                                                                          map[creel.NodeState]int // by state
	Granted, Released                                                              int64                   // containers, since the start
}

// Limit names what holds an application back.
type Limit uint8

// Limits, in the order they are looked at.
const (
	LimitNone         Limit = iota // nothing: it waits for nothing
	LimitSaving                    // not durable yet
	LimitQueueStopped              // its queue is stopped
	LimitParallelApps              // applications running at once in a queue, or of a user
	LimitAM                        // resources that masters of the queue may use
	LimitUserAM                    // the same for one user
	LimitMaster                    // the master is being started or has not registered
	LimitQueue                     // maximum of a queue on the path
	LimitUser                      // user limit within the leaf
	LimitNoNode                    // no node is large enough, even when empty
	LimitRoom                      // no node has room now
	LimitLocality                  // delay scheduling waits for a local node, or locality is strict
	LimitBlacklist                 // all nodes with room are on the blacklist
	LimitReservation               // a node is reserved for it and fills up
	LimitLabel                     // no node has the label
)

var limits = [...]string{
	"nothing",
	"saving",
	"queue stopped",
	"parallel applications",
	"AM limit",
	"user AM limit",
	"master not registered",
	"queue limit",
	"user limit",
	"no node large enough",
	"no node has room",
	"locality",
	"blacklist",
	"reservation",
	"label",
}

func (l Limit) String() string { return limits[l] }

// Why is what holds one application now, with the numbers.
type Why struct {
	App        creel.ApplicationID
	State      creel.ApplicationState
	Limit      Limit
	Where      creel.QueuePath // the queue whose limit it is
	User       string          // whose limit it is
	Used       creel.Resource  // measured against the limit
	Bound      creel.Resource  // the limit
	Need       creel.Resource  // of the ask looked at
	Count, Max int             // for limits in numbers of applications; nodes looked at for LimitRoom
	Ask        AskView
	Waiting    int32  // containers asked for and not given
	Text       string // one sentence
	Try        string // what would have to change
}
