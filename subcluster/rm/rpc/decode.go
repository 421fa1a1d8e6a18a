// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// What YARN limits in a submission.
const (
	maxTags           = 10
	maxTagLength      = 100
	maxTypeLength     = 20
	maxTokensConf     = 12800 // yarn.resourcemanager.delegation-token.max-conf-size-bytes
	maxContextBytes   = 32 << 20
	anyPlace          = "*"
	defaultRack       = "/default-rack"
	unlimitedLifetime = "UNLIMITED"
)

func invalid(format string, args ...any) error {
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: fmt.Sprintf(format, args...)}
}

// submission checks a submission message and makes the machine's event of it.
// The message itself travels along as Context.
func submission(c *pb.ApplicationSubmissionContextProto, user string, groups []string) (rm.Submission, error) {
	s := rm.Submission{
		ID:             pb.ToApplicationID(c.GetApplicationId()),
		User:           user,
		Groups:         groups,
		Name:           c.GetApplicationName(),
		Type:           c.GetApplicationType(),
		Tags:           c.GetApplicationTags(),
		Queue:          c.GetQueue(),
		Unmanaged:      c.GetUnmanagedAm(),
		KeepContainers: c.GetKeepContainersAcrossApplicationAttempts(),
		MaxAttempts:    int(c.GetMaxAppAttempts()),
		Label:          c.GetNodeLabelExpression(),
		Context:        c,
	}
	if c.GetApplicationId() == nil || s.ID.IsZero() {
		return s, &creel.Error{
			Kind: errNoApplicationID,
			What: "ApplicationId is not provided in the submission context",
		}
	}
	if s.Queue == "" {
		s.Queue = "default"
	}
	if s.Type == "" {
		s.Type = "YARN"
	}
	if len(s.Type) > maxTypeLength {
		s.Type = s.Type[:maxTypeLength]
	}
	if c.GetAmContainerSpec() == nil {
		return s, invalid(
			"the submission of %s has no am_container_spec; send an empty one for an unmanaged master",
			s.ID,
		)
	}
	if n := len(c.GetAmContainerSpec().GetTokensConf()); n > maxTokensConf {
		return s, invalid(
			"Exceed yarn.resourcemanager.delegation-token.max-conf-size-bytes: %d bytes of configuration, the limit is %d",
			n,
			maxTokensConf,
		)
	}
	if len(s.Tags) > maxTags {
		return s, invalid("Too many applicationTags, a maximum of only %d are allowed!", maxTags)
	}
	for _, tag := range s.Tags {
		if len(tag) > maxTagLength {
			return s, invalid("Tag %s is too long, maximum allowed length of a tag is %d", tag, maxTagLength)
		}
		for i := range len(tag) {
			if tag[i] < 0x20 || tag[i] > 0x7e {
				return s, invalid("A tag can only have ASCII characters! Invalid tag - %s", tag)
			}
		}
	}
	if p := c.GetPriority(); p != nil {
		s.Priority, s.HasPriority = p.GetPriority(), true
	}
	if v := c.GetAttemptFailuresValidityInterval(); v > 0 {
		s.FailuresValidity = milliseconds(v)
	}
	for _, t := range c.GetApplicationTimeouts() {
		if t.GetApplicationTimeoutType() != pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME {
			continue
		}
		if t.GetTimeout() <= 0 {
			return s, invalid("Invalid application timeout, value=%d for type=LIFETIME", t.GetTimeout())
		}
		s.Lifetime = milliseconds(min(t.GetTimeout(), 1<<40) * 1000)
	}
	if s.Unmanaged {
		return s, nil
	}
	return s, masterAsks(c, &s)
}

// masterAsks reads the size of the master's container: one request for any
// place, and perhaps more that name hosts and racks. YARN forces all of them to
// one size, priority 0 and one container.
func masterAsks(c *pb.ApplicationSubmissionContextProto, s *rm.Submission) error {
	requests := c.GetAmContainerResourceRequest()
	if len(requests) == 0 {
		if c.GetResource() == nil {
			return &creel.Error{
				Kind: creel.ErrInvalidResource,
				What: "Invalid resource request, no resources requested",
			}
		}
		s.Master = rm.Ask{
			ResourceName:        anyPlace,
			Resource:            pb.ToResource(c.GetResource()),
			Count:               1,
			ExecutionType:       creel.Guaranteed,
			AllocationRequestID: -1,
		}
		return nil
	}
	found := 0
	for _, r := range requests {
		ask := decodeAsk(r)
		ask.Priority, ask.Count, ask.ExecutionType = 0, 1, creel.Guaranteed
		if ask.ResourceName == anyPlace {
			s.Master = ask
			found++
			continue
		}
		s.MasterPlaces = append(s.MasterPlaces, ask)
	}
	if found != 1 {
		return &creel.Error{
			Kind: creel.ErrInvalidResource,
			What: "Invalid resource request, no resource request specified with *",
			Why:  fmt.Sprintf("%d entries name any place, one must", found),
		}
	}
	for i := range s.MasterPlaces {
		s.MasterPlaces[i].Resource = s.Master.Resource
	}
	return nil
}

func milliseconds(ms int64) time.Duration {
	return time.Duration(min(ms, int64(1<<62)/int64(time.Millisecond))) * time.Millisecond
}

// at reads a time in ms since the epoch; 0 is no time.
func at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// millis writes a time in ms since the epoch, 0 for none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func decodeAsk(r *pb.ResourceRequestProto) rm.Ask {
	return rm.Ask{
		Priority:            r.GetPriority().GetPriority(),
		AllocationRequestID: r.GetAllocationRequestId(),
		ResourceName:        r.GetResourceName(),
		Resource:            pb.ToResource(r.GetCapability()),
		Count:               r.GetNumContainers(),
		StrictLocality:      !r.GetRelaxLocality(),
		ExecutionType:       creel.ExecutionType(r.GetExecutionTypeRequest().GetExecutionType()),
		EnforceExecution:    r.GetExecutionTypeRequest().GetEnforceExecutionType(),
		Label:               r.GetNodeLabelExpression(),
	}
}

// decodeAllocate makes the machine's request of a master's heartbeat.
func decodeAllocate(r *pb.AllocateRequestProto) *rm.AllocateRequest {
	out := &rm.AllocateRequest{
		ResponseID:      r.GetResponseId(),
		BlacklistAdd:    r.GetBlacklistRequest().GetBlacklistAdditions(),
		BlacklistRemove: r.GetBlacklistRequest().GetBlacklistRemovals(),
		Progress:        r.GetProgress(),
		TrackingURL:     r.GetTrackingUrl(),
	}
	if n := len(r.GetAsk()); n > 0 {
		out.Asks = make([]rm.Ask, n)
		for i, a := range r.GetAsk() {
			out.Asks[i] = decodeAsk(a)
		}
	}
	if n := len(r.GetRelease()); n > 0 {
		out.Release = make([]creel.ContainerID, n)
		for i, c := range r.GetRelease() {
			out.Release[i] = pb.ToContainerID(c)
		}
	}
	for _, u := range r.GetUpdateRequests() {
		out.Updates = append(out.Updates, rm.Update{
			Container: pb.ToContainerID(u.GetContainerId()),
			Version:   u.GetContainerVersion(),
			Kind:      rm.UpdateKind(u.GetUpdateType()),
			Resource:  pb.ToResource(u.GetCapability()),
			Execution: creel.ExecutionType(u.GetExecutionType()),
			Message:   u,
		})
	}
	for _, s := range r.GetSchedulingRequests() {
		out.Scheduling = append(out.Scheduling, rm.SchedulingAsk{
			Priority:            s.GetPriority().GetPriority(),
			AllocationRequestID: s.GetAllocationRequestId(),
			ExecutionType:       creel.ExecutionType(s.GetExecutionType().GetExecutionType()),
			Tags:                s.GetAllocationTags(),
			Count:               s.GetResourceSizing().GetNumAllocations(),
			Resource:            pb.ToResource(s.GetResourceSizing().GetResources()),
			Constrained:         s.GetPlacementConstraint() != nil,
			Message:             s,
		})
	}
	return out
}

func decodeRegisterNode(r *pb.RegisterNodeManagerRequestProto, rack string) rm.RegisterNode {
	out := rm.RegisterNode{
		ID:           pb.ToNodeID(r.GetNodeId()),
		HTTPPort:     r.GetHttpPort(),
		Rack:         rack,
		Resource:     pb.ToResource(r.GetResource()),
		Physical:     pb.ToResource(r.GetPhysicalResource()),
		Version:      r.GetNmVersion(),
		HealthReport: r.GetNodeStatus().GetNodeHealthStatus().GetHealthReport(),
	}
	if h := r.GetNodeStatus().GetNodeHealthStatus(); h != nil && h.IsNodeHealthy != nil {
		out.Unhealthy = !h.GetIsNodeHealthy()
	}
	for _, c := range r.GetContainerStatuses() {
		out.Containers = append(out.Containers, rm.NodeContainer{
			ID:                  pb.ToContainerID(c.GetContainerId()),
			State:               creel.ContainerState(c.GetContainerState()),
			Resource:            pb.ToResource(c.GetResource()),
			Priority:            c.GetPriority().GetPriority(),
			AllocationRequestID: c.GetAllocationRequestId(),
			ExecutionType:       creel.ExecutionType(c.GetExecutionType()),
			Version:             c.GetVersion(),
			Created:             at(c.GetCreationTime()),
			ExitStatus:          c.GetContainerExitStatus(),
			Diagnostics:         c.GetDiagnostics(),
			Tags:                c.GetAllocationTags(),
		})
	}
	for _, a := range r.GetRunningApplications() {
		out.Applications = append(out.Applications, pb.ToApplicationID(a))
	}
	return out
}

// decodeReport makes the machine's event of a node's heartbeat, in memory that
// may have been used before.
func decodeReport(r *pb.NodeHeartbeatRequestProto, out *rm.NodeReport, use *rm.NodeUse) {
	s := r.GetNodeStatus()
	h := s.GetNodeHealthStatus()
	*out = rm.NodeReport{
		ID:           pb.ToNodeID(s.GetNodeId()),
		ResponseID:   s.GetResponseId(),
		HealthReport: h.GetHealthReport(),
		HealthTime:   at(h.GetLastHealthReportTime()),
		Containers:   slices.Grow(out.Containers[:0], len(s.GetContainersStatuses())),
	}
	if h != nil && h.IsNodeHealthy != nil {
		out.Unhealthy = !h.GetIsNodeHealthy()
	}
	for _, c := range s.GetContainersStatuses() {
		told := rm.ContainerStatus{ID: pb.ToContainerID(c.GetContainerId()), State: creel.ContainerState(c.GetState())}
		if told.State == creel.ContainerComplete { // of others the rest says nothing to the machine
			told.ExitStatus, told.Diagnostics, told.Message = c.GetExitStatus(), c.GetDiagnostics(), c
		}
		out.Containers = append(out.Containers, told)
	}
	for _, a := range s.GetKeepAliveApplications() {
		out.KeepAlive = append(out.KeepAlive, pb.ToApplicationID(a))
	}
	for _, c := range s.GetIncreasedContainers() {
		out.Increased = append(out.Increased, pb.ToContainerID(c.GetId()))
	}
	if u, all := s.GetContainersUtilization(), s.GetNodeUtilization(); u != nil || all != nil {
		o := s.GetOpportunisticContainersStatus()
		*use = rm.NodeUse{
			NodePhysicalMB: all.GetPmem(), NodeVirtualMB: all.GetVmem(), NodeCPU: all.GetCpu(),
			ContainersPhysicalMB: u.GetPmem(), ContainersVirtualMB: u.GetVmem(), ContainersCPU: u.GetCpu(),
			OpportunisticRunning: o.GetRunningOpportContainers(), OpportunisticQueued: o.GetQueuedOpportContainers(),
			OpportunisticMB: o.GetOpportMemoryUsed(), OpportunisticVCores: o.GetOpportCoresUsed(),
		}
		out.Utilization = use
	}
}
