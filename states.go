// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"fmt"
	"slices"
	"strings"
)

// The numbers of all states below equal those of YARN's protobuf enums; 0 is "not set" where the protocol has no 0.
// String returns YARN's Java constant name, which is also the text in REST documents and the command line.

// ApplicationState is an application's state for clients (YarnApplicationStateProto).
type ApplicationState int32

// Application states, in the order of an application's life.
const (
	AppNew ApplicationState = iota + 1
	AppNewSaving
	AppSubmitted
	AppAccepted
	AppRunning
	AppFinished
	AppFailed
	AppKilled
)

var appStates = names{
	1: "NEW",
	2: "NEW_SAVING",
	3: "SUBMITTED",
	4: "ACCEPTED",
	5: "RUNNING",
	6: "FINISHED",
	7: "FAILED",
	8: "KILLED",
}

func (s ApplicationState) String() string { return appStates.of(int32(s)) }

// Ended reports whether the state is final.
func (s ApplicationState) Ended() bool { return s == AppFinished || s == AppFailed || s == AppKilled }

// ParseApplicationState reads YARN's name, in any case.
func ParseApplicationState(s string) (ApplicationState, error) {
	v, err := appStates.parse("application state", s)
	return ApplicationState(v), err
}

// AttemptState is an application attempt's state for clients (YarnApplicationAttemptStateProto, which prefixes its
// names with APP_ATTEMPT_).
type AttemptState int32

// Attempt states.
const (
	AttemptNew AttemptState = iota + 1
	AttemptSubmitted
	AttemptScheduled
	AttemptAllocatedSaving
	AttemptAllocated
	AttemptLaunched
	AttemptFailed
	AttemptRunning
	AttemptFinishing
	AttemptFinished
	AttemptKilled
)

var attemptStates = names{
	1:  "NEW",
	2:  "SUBMITTED",
	3:  "SCHEDULED",
	4:  "ALLOCATED_SAVING",
	5:  "ALLOCATED",
	6:  "LAUNCHED",
	7:  "FAILED",
	8:  "RUNNING",
	9:  "FINISHING",
	10: "FINISHED",
	11: "KILLED",
}

func (s AttemptState) String() string { return attemptStates.of(int32(s)) }

// Ended reports whether the state is final.
func (s AttemptState) Ended() bool {
	return s == AttemptFailed || s == AttemptFinished || s == AttemptKilled
}

// ContainerState is the state of a container in the protocols
// (ContainerStateProto, which prefixes its names with C_).
type ContainerState int32

// Container states.
const (
	ContainerNew ContainerState = iota + 1
	ContainerRunning
	ContainerComplete
)

var containerStates = names{1: "NEW", 2: "RUNNING", 3: "COMPLETE"}

func (s ContainerState) String() string { return containerStates.of(int32(s)) }

// NodeState is a NodeManager's state at its ResourceManager (NodeStateProto, which prefixes its names with NS_).
type NodeState int32

// Node states.
const (
	NodeNew NodeState = iota + 1
	NodeRunning
	NodeUnhealthy
	NodeDecommissioned
	NodeLost
	NodeRebooted
	NodeDecommissioning
	NodeShutdown
)

var nodeStates = names{
	1: "NEW",
	2: "RUNNING",
	3: "UNHEALTHY",
	4: "DECOMMISSIONED",
	5: "LOST",
	6: "REBOOTED",
	7: "DECOMMISSIONING",
	8: "SHUTDOWN",
}

func (s NodeState) String() string { return nodeStates.of(int32(s)) }

// Usable reports whether a node in this state runs containers.
func (s NodeState) Usable() bool { return s == NodeRunning || s == NodeDecommissioning }

// ParseNodeState reads YARN's name, in any case.
func ParseNodeState(s string) (NodeState, error) {
	v, err := nodeStates.parse("node state", s)
	return NodeState(v), err
}

// FinalStatus is an application's outcome, reported by its AM or inferred without it (FinalApplicationStatusProto,
// prefix APP_).
type FinalStatus int32

// Final statuses. Undefined applies until the application ends.
const (
	FinalUndefined FinalStatus = iota
	FinalSucceeded
	FinalFailed
	FinalKilled
	FinalEnded
)

var finalStatuses = names{0: "UNDEFINED", 1: "SUCCEEDED", 2: "FAILED", 3: "KILLED", 4: "ENDED"}

func (s FinalStatus) String() string { return finalStatuses.of(int32(s)) }

// ParseFinalStatus reads YARN's name, in any case.
func ParseFinalStatus(s string) (FinalStatus, error) {
	v, err := finalStatuses.parse("final status", s)
	return FinalStatus(v), err
}

// LogAggregationStatus is the progress of log aggregation of an application, for one node or for all nodes together
// (LogAggregationStatusProto, prefix LOG_).
type LogAggregationStatus int32

// Log aggregation statuses.
const (
	LogDisabled LogAggregationStatus = iota + 1
	LogNotStart
	LogRunning
	LogSucceeded
	LogFailed
	LogTimeOut
	LogRunningWithFailure
)

var logAggregationStatuses = names{
	1: "DISABLED",
	2: "NOT_START",
	3: "RUNNING",
	4: "SUCCEEDED",
	5: "FAILED",
	6: "TIME_OUT",
	7: "RUNNING_WITH_FAILURE",
}

func (s LogAggregationStatus) String() string { return logAggregationStatuses.of(int32(s)) }

// ParseLogAggregationStatus reads YARN's name, with or without the protocol's prefix; 0 is for any other text.
func ParseLogAggregationStatus(s string) LogAggregationStatus {
	return LogAggregationStatus(max(slices.Index(logAggregationStatuses, strings.TrimPrefix(s, "LOG_")), 0))
}

// Over reports whether log aggregation is finished.
func (s LogAggregationStatus) Over() bool {
	return s == LogSucceeded || s == LogFailed || s == LogTimeOut
}

// QueueState reports whether a queue accepts applications (QueueStateProto, prefix Q_).
type QueueState int32

// Queue states. A draining queue finishes its applications and accepts no new ones.
const (
	QueueStopped QueueState = iota + 1
	QueueRunning
	QueueDraining
)

var queueStates = names{1: "STOPPED", 2: "RUNNING", 3: "DRAINING"}

func (s QueueState) String() string { return queueStates.of(int32(s)) }

// ExecutionType separates containers with guaranteed resources from containers that wait at a node for idle resources
// (ExecutionTypeProto).
type ExecutionType int32

// Execution types. The zero value counts as Guaranteed, the protocol's default.
const (
	Guaranteed ExecutionType = iota + 1
	Opportunistic
)

var executionTypes = names{1: "GUARANTEED", 2: "OPPORTUNISTIC"}

func (t ExecutionType) String() string {
	if t == 0 {
		t = Guaranteed
	}
	return executionTypes.of(int32(t))
}

// Exit statuses of containers that YARN itself sets. Positive ones are the process's own
// (org.apache.hadoop.yarn.api.records.ContainerExitStatus).
const (
	ExitSuccess              int32 = 0
	ExitInvalid              int32 = -1000 // not finished
	ExitAborted              int32 = -100  // released by its AM, or lost with its node
	ExitDisksFailed          int32 = -101
	ExitPreempted            int32 = -102
	ExitOverVirtualMemory    int32 = -103
	ExitOverPhysicalMemory   int32 = -104
	ExitKilledByAM           int32 = -105
	ExitKilledByRM           int32 = -106
	ExitKilledAfterAppEnd    int32 = -107
	ExitKilledByContainerSch int32 = -108
	ExitKilledForExcessLogs  int32 = -109
	ExitForceKilled          int32 = 137
	ExitTerminated           int32 = 143
)

// names maps the numbers of one enum to its constants; index = number.
type names []string

func (n names) of(v int32) string {
	if v >= 0 && int(v) < len(n) && n[v] != "" {
		return n[v]
	}
	return fmt.Sprintf("UNKNOWN(%d)", v)
}

func (n names) parse(kind, s string) (int32, error) {
	for v, name := range n {
		if name != "" && strings.EqualFold(name, s) {
			return int32(v), nil
		}
	}
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	var known []string
	for _, name := range n {
		if name != "" {
			known = append(known, name)
		}
	}
	return 0, &Error{
		Kind: ErrInvalidRequest,
		What: fmt.Sprintf("invalid %s %q", kind, s),
		Try:  "one of " + strings.Join(known, ", "),
	}
}

// SignalCommands are the commands that YARN sends to containers, in the order of their numbers
// (SignalContainerCommandProto), the first of which is 1.
var SignalCommands = []string{"OUTPUT_THREAD_DUMP", "GRACEFUL_SHUTDOWN", "FORCEFUL_SHUTDOWN"}

// SignalCommand returns the number of a signal's command; ok is false for an unknown name.
func SignalCommand(name string) (number int32, ok bool) {
	i := slices.Index(SignalCommands, name)
	return int32(i + 1), i >= 0
}
