// SPDX-License-Identifier: Apache-2.0

package nm

import (
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/nm/queue"
)

// State of a container on its node, by YARN's names.
type State int8

// Container states in their usual order.
const (
	Localizing State = iota
	Scheduled
	Running
	Pausing
	Paused
	Resuming
	Relaunching
	Killing
	Done
)

var stateNames = [...]string{
	"LOCALIZING", "SCHEDULED", "RUNNING", "PAUSING", "PAUSED", "RESUMING", "RELAUNCHING", "KILLING", "DONE",
}

func (s State) String() string { return stateNames[s] }

// Exit codes of containers that did not exit by themselves, as in YARN's ContainerExitStatus.
const (
	ExitInvalid           = -1000 // not finished
	ExitAborted           = -100  // released, or lost with its node
	ExitPreempted         = -102  // the executor could not pause it
	ExitKilledByAM        = -105
	ExitKilledByRM        = -106
	ExitKilledAfterAppEnd = -107
	ExitKilledByScheduler = -108 // an opportunistic container without a place
	ExitForceKilled       = 137  // SIGKILL
	ExitTerminated        = 143  // SIGTERM
)

// Container is the state of one container on its node. Outside the machine its fields are read-only.
type Container struct {
	ID         creel.ContainerID
	User       string
	Resource   creel.Resource
	Priority   int32
	Version    int32
	Execution  creel.ExecutionType
	AM         bool // the container of an application master
	RequestID  int64
	Created    time.Time // time of the ResourceManager's grant
	State      State
	ExitCode   int32
	Diagnostic string

	launch   *pb.ContainerLaunchContextProto // until it runs; longer if it may be relaunched
	killCode int32                           // exit code to report for a kill, 0 without a kill
	deadline time.Time                       // of SIGKILL or of a relaunch
	retries  int32
	failures []time.Time // within the retry policy's window
	reported bool        // its completion was sent at least once
	status   *pb.ContainerStatusProto
	place    *queue.Item // nil until it is localized, and on a node without a scheduler
}

// retryPolicy returns the launch context's retry policy, nil without a relaunch.
func retryPolicy(l *pb.ContainerLaunchContextProto) *pb.ContainerRetryContextProto {
	r := l.GetContainerRetryContext()
	if r.GetRetryPolicy() == pb.ContainerRetryPolicyProto_NEVER_RETRY {
		return nil
	}
	return r
}

// retry decides whether and when a container that exited by itself is relaunched.
func (c *Container) retry(now time.Time, code int32) (at time.Time, again bool) {
	r := retryPolicy(c.launch)
	if r == nil || c.pauses() || code == 0 || code == ExitForceKilled || code == ExitTerminated {
		return time.Time{}, false
	}
	if r.GetRetryPolicy() == pb.ContainerRetryPolicyProto_RETRY_ON_SPECIFIC_ERROR_CODES &&
		!slices.Contains(r.GetErrorCodes(), code) {
		return time.Time{}, false
	}
	if window := r.GetFailuresValidityInterval(); window > 0 {
		c.failures = slices.DeleteFunc(c.failures, func(t time.Time) bool {
			return now.Sub(t).Milliseconds() > window
		})
		c.failures = append(c.failures, now)
		c.retries = int32(len(c.failures)) - 1
	}
	if limit := r.GetMaxRetries(); limit != -1 && c.retries >= limit {
		return time.Time{}, false
	}
	c.retries++
	return now.Add(time.Duration(max(r.GetRetryInterval(), 0)) * time.Millisecond), true
}

// pauses reports whether the container's process is paused, or is about to pause or to resume.
func (c *Container) pauses() bool {
	return c.State == Pausing || c.State == Paused || c.State == Resuming
}

// hasProcess reports whether the container's process has started, or is about to.
func (c *Container) hasProcess() bool {
	switch c.State {
	case Localizing, Relaunching, Done:
		return false
	case Scheduled:
		return c.place == nil || !c.place.Waiting()
	}
	return true
}

// wire is the container's state in the protocols.
func (c *Container) wire() pb.ContainerStateProto {
	if c.State == Done {
		return pb.ContainerStateProto_C_COMPLETE
	}
	return pb.ContainerStateProto_C_RUNNING
}

func (c *Container) subState() pb.ContainerSubStateProto {
	switch c.State {
	case Running, Pausing:
		return pb.ContainerSubStateProto_CSS_RUNNING
	case Paused, Resuming:
		return pb.ContainerSubStateProto_CSS_PAUSED
	case Killing:
		return pb.ContainerSubStateProto_CSS_COMPLETING
	case Done:
		return pb.ContainerSubStateProto_CSS_DONE
	}
	return pb.ContainerSubStateProto_CSS_SCHEDULED
}

// changed drops the cached message of the former state.
func (c *Container) changed() { c.status = nil }

// statusProto returns the container as in a heartbeat or in an answer to its AM. The message is immutable; a change
// of the container makes a new one.
func (c *Container) statusProto() *pb.ContainerStatusProto {
	if c.status == nil {
		code, state, sub := int32(ExitInvalid), c.wire(), c.subState()
		if c.State == Done {
			code = c.ExitCode
		}
		diagnostic, execution := c.Diagnostic, pb.ExecutionTypeProto(c.Execution)
		c.status = &pb.ContainerStatusProto{
			ContainerId:       pb.FromContainerID(c.ID),
			State:             &state,
			Diagnostics:       &diagnostic,
			ExitStatus:        &code,
			Capability:        pb.FromResource(c.Resource),
			ExecutionType:     &execution,
			ContainerSubState: &sub,
		}
	}
	return c.status
}

// registerProto returns the container in the form for a node's registration.
func (c *Container) registerProto() *pb.NMContainerStatusProto {
	code, state := int32(ExitInvalid), c.wire()
	if c.State == Done {
		code = c.ExitCode
	}
	diagnostic, execution, version := c.Diagnostic, pb.ExecutionTypeProto(c.Execution), c.Version
	created, request := c.Created.UnixMilli(), c.RequestID
	return &pb.NMContainerStatusProto{
		ContainerId:         pb.FromContainerID(c.ID),
		ContainerState:      &state,
		Resource:            pb.FromResource(c.Resource),
		Priority:            pb.FromPriority(c.Priority),
		Diagnostics:         &diagnostic,
		ContainerExitStatus: &code,
		CreationTime:        &created,
		Version:             &version,
		ExecutionType:       &execution,
		AllocationRequestId: &request,
	}
}

// grownProto acknowledges the container's increase.
func (c *Container) grownProto() *pb.ContainerProto {
	execution, version := pb.ExecutionTypeProto(c.Execution), c.Version
	return &pb.ContainerProto{
		Id: pb.FromContainerID(c.ID), Resource: pb.FromResource(c.Resource),
		ExecutionType: &execution, Version: &version,
	}
}

// killText returns the text of an exit code for reports.
func killText(code int32) string {
	switch code {
	case ExitKilledByAM:
		return "Container killed by the ApplicationMaster.\n"
	case ExitKilledByRM:
		return "Container killed by the ResourceManager.\n"
	case ExitKilledAfterAppEnd:
		return "Container killed after its application ended.\n"
	}
	return fmt.Sprintf("Container killed on request. Exit code is %d\n", code)
}
