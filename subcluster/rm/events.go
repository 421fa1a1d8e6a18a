// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
)

// Submission asks for an application (submitApplication).
type Submission struct {
	ID       creel.ApplicationID
	User     string
	RealUser string   // the user that acted for User, or ""
	Caller   []byte   // the client's caller context, an encoded RPCCallerContextProto; nil: none
	Groups   []string // primary first
	Name     string
	Type     string
	Tags     []string
	Queue    string // as submitted: path, leaf name, or "" for placement to decide
	AM       Ask    // the AM's container: ResourceName "*" (or a relaxed host), Count 1; ignored when Unmanaged
	AMPlaces []Ask  // further entries of am_container_resource_request (hosts, racks)

	Priority    int32
	HasPriority bool // false: the queue's default priority applies

	Claim int64 // under which a router forwarded it, 0 without a router
	// Since and Left are for an application that a router moves here. Since is its submission time at its first home,
	// by that home's clock. Left is the rest of its lifetime. They are zero for all others.
	Since            time.Time
	Left             time.Duration
	Unmanaged        bool
	After            int32           // the ended attempt of a UAM that this submission follows; 0: none
	KeepContainers   bool            // keep_containers_across_application_attempts
	MaxAttempts      int             // 0 = Config.MaxAttempts; Config.GlobalMaxAttempts caps it
	FailuresValidity time.Duration   // attempt_failures_validity_interval; <= 0 = every failure counts
	Lifetime         time.Duration   // APP_TIMEOUT_LIFETIME; 0 = the queue's default
	Label            LabelExpression // of asks without a label expression

	// Context is the server's submission message. The machine returns it unchanged in actions and views.
	Context any
}

// Signal forwards a signal to a container through its node's next heartbeat.
type Signal struct {
	Container creel.ContainerID
	Command   int32 // SignalContainerCommandProto
}

// RegisterAM is registerApplicationMaster.
type RegisterAM struct {
	Attempt     creel.AttemptID
	Host        string
	Port        int32
	TrackingURL string
	Remote      string          // address of the caller, "" unknown; unlike Host, an AM cannot choose it
	Constraints []TagConstraint // of all its scheduling requests with a tag
}

// AllocateRequest is one heartbeat of an AM.
type AllocateRequest struct {
	ResponseID      int32
	Asks            []Ask
	Release         []creel.ContainerID
	BlacklistAdd    []string
	BlacklistRemove []string
	Updates         []Update
	Scheduling      []SchedulingAsk
	Placed          []PlacedContainer // by the AM's NodeManager; see distributed.go
	Unplaced        int32             // containers that the AM's proxy has to place, and has found no node for
	Progress        float32
	TrackingURL     string
}

// Ask is one ResourceRequest: the absolute number of containers still wanted
// for (Priority, AllocationRequestID, ExecutionType, ResourceName).
type Ask struct {
	Priority            int32
	AllocationRequestID int64
	ResourceName        string // host, rack or "*"
	Resource            creel.Resource
	Count               int32
	StrictLocality      bool // relax_locality = false
	ExecutionType       creel.ExecutionType
	EnforceExecution    bool
	Label               LabelExpression
}

// PlacedContainer is a container that an AM's NodeManager placed, as its token describes it.
type PlacedContainer struct {
	ID                  creel.ContainerID
	Node                creel.NodeID
	Resource            creel.Resource
	Priority            int32
	AllocationRequestID int64
	Invalid             string // why its token is not accepted, "" if it is
}

// TagConstraint is a placement constraint for scheduling requests with a tag. Hadoop accepts only constraints of a
// single tag.
type TagConstraint struct {
	Tags       []string
	Constraint *constraints.Constraint
}

// SchedulingAsk is one SchedulingRequest.
type SchedulingAsk struct {
	Priority            int32
	AllocationRequestID int64
	ExecutionType       creel.ExecutionType
	Tags                []string
	Count               int32
	Resource            creel.Resource
	Constraint          *constraints.Constraint // nil for none
	Label               string                  // the label that the constraint names
	Message             any                     // the server's message, returned with a rejection
}

// UpdateKind is ContainerUpdateTypeProto.
type UpdateKind int32

// Kinds of container update, numbered as in the protocol.
const (
	Increase UpdateKind = iota
	Decrease
	Promote
	Demote
)

// Update is one UpdateContainerRequest.
type Update struct {
	Container creel.ContainerID
	Version   int32
	Kind      UpdateKind
	Resource  creel.Resource // target of Increase and Decrease
	Execution creel.ExecutionType
	Message   any // the server's message, returned with an error
}

// FinishAM is finishApplicationMaster.
type FinishAM struct {
	Attempt     creel.AttemptID
	Status      creel.FinalStatus
	Diagnostics string
	TrackingURL string
}

// RegisterNode is registerNodeManager.
type RegisterNode struct {
	ID             creel.NodeID
	HTTPPort       int32
	Rack           string // resolved by the handler; "" = /default-rack
	Untracked      bool   // its host is on neither list; see Machine.SetTracked
	Resource       creel.Resource
	Physical       creel.Resource
	Version        string
	Unhealthy      bool // from nodeStatus
	HealthReport   string
	Containers     []NodeContainer       // live and recently ended ones
	Applications   []creel.ApplicationID // with state on the node
	Logs           []LogReport           // including applications that ended recently
	Reported       NodeProperties
	Overallocation Overallocation
}

// NodeProperties is a node's report of its labels and its host's attributes, if it has them.
type NodeProperties struct {
	Labels        []string
	Attributes    []Attribute
	HasLabels     bool
	HasAttributes bool
}

// NodeContainer is one container as a registering node reports it (NMContainerStatus).
type NodeContainer struct {
	ID                  creel.ContainerID
	State               creel.ContainerState
	Resource            creel.Resource
	Priority            int32
	AllocationRequestID int64
	ExecutionType       creel.ExecutionType
	Version             int32
	Created             time.Time
	ExitStatus          int32
	Diagnostics         string
	Tags                []string
	Label               string // of its ask
}

// NodeReport is one heartbeat of a node.
type NodeReport struct {
	ID           creel.NodeID
	ResponseID   int32
	Unhealthy    bool
	HealthReport string
	HealthTime   time.Time
	Containers   []ContainerStatus // live ones, and finished ones not yet acknowledged
	KeepAlive    []creel.ApplicationID
	Increased    []ContainerSize // acknowledged increases
	Logs         []LogReport     // not sent before by the node
	Reported     NodeProperties
	// Utilization as measured by the node; nil = not in this report.
	Utilization *NodeUse
}

// ContainerSize is the size that a node has given to a container.
type ContainerSize struct {
	ID       creel.ContainerID
	Resource creel.Resource
}

// LogReport is a node's progress with the logs of an application.
type LogReport struct {
	App     creel.ApplicationID
	Status  creel.LogAggregationStatus
	Message string
}

// ContainerStatus is one container in a node's heartbeat. The fields after the state are only used for ended
// containers.
type ContainerStatus struct {
	ID          creel.ContainerID
	State       creel.ContainerState
	ExitStatus  int32
	Diagnostics string
	Message     any // the server's message, passed on with the completion
	// Waiting is set for an opportunistic container that waits in its node's queue, or is paused.
	Waiting bool
}

// NodeUse is a node's measured use: ResourceUtilizationProto and the state of opportunistic containers.
type NodeUse struct {
	NodePhysicalMB, NodeVirtualMB             int32
	NodeCPU                                   float32 // vcores
	ContainersPhysicalMB, ContainersVirtualMB int32
	ContainersCPU                             float32
	OpportunisticRunning, OpportunisticQueued int32
	OpportunisticMB                           int64
	OpportunisticVCores                       int32
	QueueLength                               int32 // containers of both execution types that wait
	QueueWaitMS                               int32 // estimate for the next one
	QueueCapacity                             int32 // for opportunistic containers
	// The predicted peak of the containers' use; 0: the node predicts nothing.
	PeakMB  int32
	PeakCPU float32
}

// Overallocation is a node's offer to lend what its containers were allocated and do not use: up to these parts of its
// memory and vcores in use.
type Overallocation struct{ Memory, CPU float64 }

// Decommission removes a node: at once, or gracefully when its containers have ended, after Timeout at the latest (0
// = Config.DecommissionAfter, negative = no limit).
type Decommission struct {
	ID       creel.NodeID
	Graceful bool
	Timeout  time.Duration
}

// Recover is the content of a journal, to restore before any other event.
type Recover struct {
	Apps     []AppRecord
	Disowned []DisownedClaim // oldest first
	Labels   Labels
	// Attributes are those that administrators set on hosts.
	Attributes []HostAttributes
}

// DisownedClaim is an application that a ResourceManager lacks and rejects for ever under claims up to a number.
type DisownedClaim struct {
	App   creel.ApplicationID
	Claim int64
}

// AppRecord is the durable state of an application: the content of Save actions, and of Recover.
type AppRecord struct {
	Submission        Submission
	Submitted         time.Time
	Queue             creel.QueuePath        // chosen by placement
	State             creel.ApplicationState // AppNew, or a final state
	Final             creel.FinalStatus
	Diagnostics       string
	Started, Finished time.Time
	Lifetime          time.Time // deadline; zero = none
	Hold              Hold
	Released          int64 // holds up to this claim number have ended
	Moved             bool  // to another queue than the requested one
	Usage             Usage
	Attempts          []AttemptRecord
	Signals           []Signal // not yet received by nodes
}

// Hold is the reason why a schedulable application is not scheduled: a router moves it to another subcluster
// (docs/adr/0021-moving-waiting-applications.md).
type Hold struct {
	Claim  int64  // number of the claim under which it is held; 0: not held
	Why    string // destination and reason: "sc-2, because sc-1 is drained"
	Newest int64  // in views: the highest claim known of the application; 0: it came without a router
}

// Usage is an application's use and its losses to preemption up to the write of its record, for reports.
type Usage struct {
	OverTime     creel.Resource // times milliseconds
	Lost         creel.Resource
	LostOverTime creel.Resource // times milliseconds
	Containers   int32          // lost containers
	AMs          int32          // lost AMs
}

// AttemptRecord is the durable state of an attempt.
type AttemptRecord struct {
	ID          creel.AttemptID
	AM          creel.ContainerID // zero for an unmanaged one
	Node        creel.NodeID
	Started     time.Time
	State       creel.AttemptState // AttemptNew while it runs, or a final state
	Final       creel.FinalStatus
	Diagnostics string
	TrackingURL string
	ExitStatus  int32
	Finished    time.Time
}
