// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// RegisterAM returns an AM's registration in the machine's form. The token identifies the attempt.
func RegisterAM(attempt creel.AttemptID, r *pb.RegisterApplicationMasterRequestProto) *rm.RegisterAM {
	return &rm.RegisterAM{
		Attempt:     attempt,
		Host:        r.GetHost(),
		Port:        r.GetRpcPort(),
		TrackingURL: r.GetTrackingUrl(),
		Constraints: tagConstraints(r.GetPlacementConstraints()),
	}
}

// AMRegistration is the answer to an AM's registration.
type AMRegistration struct {
	rm.AMRegistration
	App rm.AppView
}

// RegisterAMResponse encodes the answer to a registration and mints its tokens. types are the ResourceManager's
// resource types.
func RegisterAMResponse(
	r *AMRegistration,
	attempt creel.AttemptID,
	t *Mint,
	types []*pb.ResourceTypeInfoProto,
) *pb.RegisterApplicationMasterResponseProto {
	out := &pb.RegisterApplicationMasterResponseProto{
		MaximumCapability:      pb.FromResource(r.MaxAllocation),
		Queue:                  new(string(r.Queue)),
		SchedulerResourceTypes: []pb.SchedulerResourceTypes{pb.SchedulerResourceTypes_MEMORY},
		Application_ACLs:       ContextOf(r.App.Context).GetAmContainerSpec().GetApplication_ACLs(),
		ResourceTypes:          types,
	}
	if !r.MemoryOnly {
		out.SchedulerResourceTypes = append(out.SchedulerResourceTypes, pb.SchedulerResourceTypes_CPU)
	}
	if !ContextOf(r.App.Context).GetKeepContainersAcrossApplicationAttempts() {
		pb.Encoded(out, pb.AppendNumber(nil, pb.FieldEnds, 1))
	}
	for i := range r.Previous {
		out.ContainersFromPreviousAttempts = append(out.ContainersFromPreviousAttempts, t.granted(&r.Previous[i]))
	}
	for _, at := range r.NMTokens {
		out.NmTokensFromPreviousAttempts = append(out.NmTokensFromPreviousAttempts, t.nmToken(attempt, at.Node))
	}
	return out
}

// FinishAM returns an AM's last call in the machine's form.
func FinishAM(attempt creel.AttemptID, r *pb.FinishApplicationMasterRequestProto) *rm.FinishAM {
	return &rm.FinishAM{
		Attempt:     attempt,
		Status:      creel.FinalStatus(r.GetFinalApplicationStatus()),
		Diagnostics: r.GetDiagnostics(),
		TrackingURL: r.GetTrackingUrl(),
	}
}

// FinishAMResponse encodes the answer to an AM's last call, which the AM repeats until it is unregistered.
func FinishAMResponse(unregistered bool) *pb.FinishApplicationMasterResponseProto {
	return &pb.FinishApplicationMasterResponseProto{IsUnregistered: &unregistered}
}
