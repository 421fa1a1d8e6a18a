// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Answer is the answer to one AllocateRequest. The machine owns it and its slices, and the attempt's next Allocate
// overwrites them.
type Answer struct {
	ResponseID   int32
	Duplicate    bool // the request was a repeat: this is the last answer again
	Granted      []Grant
	Completed    []Completion
	Updated      []ContainerUpdate
	UpdateErrors []UpdateError
	FromPrevious []Grant // retained containers of earlier attempts that were recovered after the registration
	Rejected     []Rejection
	UpdatedNodes []NodeUpdate
	NMTokens     []*Place // nodes that this attempt needs a token for
	Headroom     creel.Resource
	Nodes        int32 // active nodes
	Priority     int32 // the application's priority
	// PendingContainers and ActiveCores fill EnhancedHeadroom.
	PendingContainers int32
	ActiveCores       int32
	// Preempt lists, by id, its containers that will soon be preempted; each answer has all of them. With Negotiable,
	// it may release others instead.
	Preempt    []creel.ContainerID
	Negotiable *NegotiableContract
}

// NegotiableContract offers an AM to release other containers than the named ones, as long as they add up to this:
// CapacityScheduler then takes the newest.
type NegotiableContract struct {
	Each  creel.Resource // the smallest container
	Count int32          // of them
}

// Grant is a container granted to an attempt, with all data for a ContainerProto and its token.
type Grant struct {
	ID creel.ContainerID
	*Place
	*amounts.Shape
	AllocationRequestID int64
	Created             int64 // ms since epoch
	Priority            int32
	ExecutionType       creel.ExecutionType
	Version             int32
	AM                  bool // it holds the attempt's AM
	Reason              sched.Reason
	Tags                []string
}

// Place is the place of one node's containers, which share it. It is immutable: a node that registers with another
// address gets a new Place.
type Place struct {
	Node        creel.NodeID
	HTTPAddress string
}

// Completion is one finished container, reported to its AM once.
type Completion struct {
	ID creel.ContainerID
	*amounts.Shape
	ExitStatus  int32
	Execution   creel.ExecutionType
	node        int32 // its node's serial number
	Diagnostics string
	Message     any // the node's message, nil if the machine ended the container
}

// nowhere is the serial number of no node.
const nowhere = -1

// ContainerUpdate is one applied container update; the server mints a new token.
type ContainerUpdate struct {
	Kind  UpdateKind
	Grant Grant // with the new version
}

// UpdateError is one rejected update. Its reason is one of YARN's: INCORRECT_CONTAINER_VERSION_ERROR,
// INVALID_CONTAINER_ID, RESOURCE_OUTSIDE_ALLOWED_RANGE, UPDATE_OUTSTANDING_ERROR.
type UpdateError struct {
	Reason  string
	Version int32
	Update  Update
}

// NodeUpdate reports a change of a node's state to AMs (NodeUpdateTypeProto).
type NodeUpdate struct {
	ID   creel.NodeID
	Kind int32 // 0 usable, 1 unusable, 2 decommissioning
}

// AMRegistration is the answer to RegisterAM.
type AMRegistration struct {
	Queue         creel.QueuePath
	MaxAllocation creel.Resource
	Previous      []Grant  // running containers of earlier attempts, if they are retained
	NMTokens      []*Place // the nodes of these containers
	MemoryOnly    bool     // only memory is checked (scheduler_resource_types)
}

// SchedulingTerms are the data with which a NodeManager places containers of an attempt.
type SchedulingTerms struct {
	Least, Most, Step creel.Resource // sizes are rounded as the machine rounds them
	TokenLife         time.Duration
	IDStart           int64 // its ids count down from the one below
	Nodes             []LoadedNode
}

// LoadedNode is a node for opportunistic containers.
type LoadedNode struct {
	*Place
	Rack, Label string
}

// NodeAction is NodeActionProto.
type NodeAction int32

// Orders to a node.
const (
	NodeNormal NodeAction = iota
	NodeResync
	NodeStop // SHUTDOWN
)

// Rejection is a scheduling request that the machine gave up, with the number of containers that were not placed.
type Rejection struct {
	Ask     SchedulingAsk
	Count   int32
	NoPlace bool // no node with enough free resources satisfied its constraint
}

// NodeRegistration is the answer to RegisterNode.
type NodeRegistration struct {
	Action      NodeAction
	Diagnostics string
	Resource    creel.Resource // set when it overrides the node's own
	Override    bool
	Taken       ReportAcceptance
}

// ReportAcceptance reports whether a node's reported labels and attributes are accepted.
type ReportAcceptance struct{ Labels, Attributes bool }

// NodeAnswer is the answer to a NodeReport. The machine owns it, and the node's next report overwrites it.
type NodeAnswer struct {
	ResponseID  int32
	Action      NodeAction
	Diagnostics string
	Duplicate   bool
	Cleanup     []creel.ContainerID   // kill these
	Apps        []creel.ApplicationID // ended: stop their containers, aggregate logs
	Forget      []creel.ContainerID   // completions that the node may delete
	Update      []Grant               // changed size or execution type, with a new version
	Signals     []Signal
	Resource    creel.Resource // set with Override: the node's new size
	Override    bool
	Taken       ReportAcceptance
	Limit       *QueueLimit // nil: none
}

// QueueLimit limits the queue of opportunistic containers on every node; -1: no limit. It is immutable.
type QueueLimit struct{ Length, WaitMS int32 }

// Action is one action for the caller. It has exactly the types below.
type Action interface{ action() }

// SaveApp makes a record durable, in place of the application's previous record; then Saved(Seq) is due. Deleted:
// delete the record; no Saved is due.
type SaveApp struct {
	Seq     uint64
	Record  AppRecord
	Deleted bool
}

// SaveAttempt makes one attempt's record durable; then Saved(Seq) is due.
type SaveAttempt struct {
	Seq    uint64
	Record AttemptRecord
}

// SaveDisowned makes a disowned application durable; then Saved(Seq) is due. Deleted: delete the record; no Saved is
// due.
type SaveDisowned struct {
	Seq      uint64
	Disowned DisownedClaim
	Deleted  bool
}

// SaveLabels makes the labels of the cluster and of nodes durable, in place of the previous ones; then Saved(Seq) is
// due.
type SaveLabels struct {
	Seq    uint64
	Labels Labels
}

// SaveAttributes makes the attributes that administrators set on hosts durable, in place of the previous ones; then
// Saved(Seq) is due.
type SaveAttributes struct {
	Seq   uint64
	Hosts []HostAttributes
}

// LaunchAM starts an AM in its container; AMLaunched or AMLaunchFailed is due. For an unmanaged AM (Unmanaged) it
// starts nothing: the AM's token may now be issued.
type LaunchAM struct {
	Attempt   creel.AttemptID
	Container Grant
	User      string
	Submitted time.Time
	Unmanaged bool
	Context   any // Submission.Context
}

// StopAM ends an AM's container after its attempt has ended.
type StopAM struct {
	Attempt   creel.AttemptID
	Container creel.ContainerID
	Node      creel.NodeID
}

// AppEnded reports that an application reached its final state; its tokens and files may be deleted.
type AppEnded struct {
	App   creel.ApplicationID
	State creel.ApplicationState
	Final creel.FinalStatus
}

// LogsChanged reports a new log aggregation status of an application.
type LogsChanged struct{ App creel.ApplicationID }

// AttemptEnded reports that an attempt's tokens are invalid.
type AttemptEnded struct {
	Attempt  creel.AttemptID
	Finished bool // its AM unregistered
}

// News reports that an attempt has something to fetch that its own call did not cause: completions, or containers
// granted when resources became free. It is sent once until the next Allocate; it is a hint for simulators and
// waiting servers.
type News struct{ Attempt creel.AttemptID }

// VictimOutcome is the outcome for a victim.
type VictimOutcome string

// Outcomes for victims.
const (
	Noticed   VictimOutcome = "notice"
	Pardoned  VictimOutcome = "pardon"
	TakenBack VictimOutcome = "kill"
)

// Preempted reports a victim for the audit log, after the fact.
type Preempted struct {
	What      VictimOutcome
	Container creel.ContainerID
	Node      creel.NodeID
	Resource  creel.Resource
	Queue     creel.QueuePath // that loses it
	User      string
	Rule      sched.Rule
	For       creel.ApplicationID // application whose ask gets the resources
	ForQueue  creel.QueuePath
	AM        bool
	Age       time.Duration
	By        time.Time // when it is killed
	Why       string    // why this container was chosen
}

func (SaveApp) action()        {}
func (SaveAttempt) action()    {}
func (SaveDisowned) action()   {}
func (SaveLabels) action()     {}
func (SaveAttributes) action() {}
func (LaunchAM) action()       {}
func (StopAM) action()         {}
func (AppEnded) action()       {}
func (LogsChanged) action()    {}
func (AttemptEnded) action()   {}
func (News) action()           {}
func (Preempted) action()      {}
