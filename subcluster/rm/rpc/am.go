// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// amHandler is ApplicationMasterProtocol. Who calls is told by the AMRM token
// of the connection and by nothing else.
type amHandler struct{ s *server.Server }

func amService(s *server.Server) hrpc.Service {
	return yarnrpc.Inline(yarnrpc.ApplicationMasterProtocolService(&amHandler{s: s}),
		"registerApplicationMaster", "finishApplicationMaster", "allocate")
}

// tokenOf returns the token with which an AM logged in.
func tokenOf(ctx context.Context) token.AMRM {
	id, _ := hrpc.CallFrom(ctx).Identity.Value.(token.AMRM)
	return id
}

func (h *amHandler) RegisterApplicationMaster(
	ctx context.Context,
	req *pb.RegisterApplicationMasterRequestProto,
) (*pb.RegisterApplicationMasterResponseProto, error) {
	id := tokenOf(ctx).Attempt
	registered := h.s.RegisterAM(&rm.RegisterAM{
		Attempt:     id,
		Host:        req.GetHost(),
		Port:        req.GetRpcPort(),
		TrackingURL: req.GetTrackingUrl(),
		Constraints: len(req.GetPlacementConstraints()) > 0,
	})
	return later(
		ctx,
		h.s,
		server.Then(registered, func(r server.RegisteredAM) *pb.RegisterApplicationMasterResponseProto {
			out := &pb.RegisterApplicationMasterResponseProto{
				MaximumCapability:      pb.FromResource(r.MaxAllocation),
				Queue:                  new(string(r.Queue)),
				SchedulerResourceTypes: []pb.SchedulerResourceTypes{pb.SchedulerResourceTypes_MEMORY},
				Application_ACLs:       codec.ContextOf(r.App.Context).GetAmContainerSpec().GetApplication_ACLs(),
				ResourceTypes:          resourceTypes(h.s),
			}
			if !r.MemoryOnly {
				out.SchedulerResourceTypes = append(out.SchedulerResourceTypes, pb.SchedulerResourceTypes_CPU)
			}
			t, finish := newTokens(h.s, id.Application)
			defer finish()
			for i := range r.Previous {
				out.ContainersFromPreviousAttempts = append(
					out.ContainersFromPreviousAttempts,
					t.container(&r.Previous[i]),
				)
			}
			for _, at := range r.NMTokens {
				out.NmTokensFromPreviousAttempts = append(out.NmTokensFromPreviousAttempts, t.nm(id, at.Node))
			}
			return out
		}),
	)
}

func (h *amHandler) FinishApplicationMaster(
	ctx context.Context,
	req *pb.FinishApplicationMasterRequestProto,
) (*pb.FinishApplicationMasterResponseProto, error) {
	finish := h.s.FinishAM(&rm.FinishAM{
		Attempt:     tokenOf(ctx).Attempt,
		Status:      creel.FinalStatus(req.GetFinalApplicationStatus()),
		Diagnostics: req.GetDiagnostics(),
		TrackingURL: req.GetTrackingUrl(),
	})
	return later(ctx, h.s, server.Then(finish, func(unregistered bool) *pb.FinishApplicationMasterResponseProto {
		return &pb.FinishApplicationMasterResponseProto{IsUnregistered: &unregistered}
	}))
}

func (h *amHandler) Allocate(ctx context.Context, req *pb.AllocateRequestProto) (*pb.AllocateResponseProto, error) {
	who, reply := tokenOf(ctx), hrpc.LaterSending(ctx)
	h.s.Allocate(who.Attempt, codec.Allocate(req), func(a *server.Allocated, err error) {
		if err != nil {
			reply(nil, err)
			return
		}
		reply(encodeAllocated(h.s, who, a), nil)
	})
	return nil, hrpc.ErrLater
}
