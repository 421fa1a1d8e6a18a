// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

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
		Label:               labelExpression(r.NodeLabelExpression),
	}
}

// Allocate returns an AM's heartbeat in the machine's form.
func Allocate(r *pb.AllocateRequestProto) *rm.AllocateRequest {
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
			Constraint:          constraint(s.GetPlacementConstraint()),
			Label:               partitionOf(s.GetPlacementConstraint()),
			Message:             s,
		})
	}
	return out
}

// ConvertUnits is pb.ConvertUnits of the sizes in an AM's heartbeat.
func ConvertUnits(r *pb.AllocateRequestProto, types []creel.ResourceType) error {
	for _, a := range r.GetAsk() {
		if err := pb.ConvertUnits(a.GetCapability(), types); err != nil {
			return err
		}
	}
	for _, u := range r.GetUpdateRequests() {
		if err := pb.ConvertUnits(u.GetCapability(), types); err != nil {
			return err
		}
	}
	for _, s := range r.GetSchedulingRequests() {
		if err := pb.ConvertUnits(s.GetResourceSizing().GetResources(), types); err != nil {
			return err
		}
	}
	return nil
}

// labelExpression parses an optional label expression.
func labelExpression(text *string) rm.LabelExpression {
	if text == nil {
		return rm.LabelExpression{}
	}
	return rm.LabelExpression{Text: *text, Given: true}
}
