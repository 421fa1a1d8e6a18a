// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"

	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// distributedHandler is DistributedSchedulingAMProtocol, on the port of AMs: NodeManagers that place opportunistic
// containers call it with the AMs' tokens.
type distributedHandler struct{ amHandler }

func distributedService(s *server.Server) hrpc.Service {
	return yarnrpc.Inline(yarnrpc.DistributedSchedulingAMProtocolService(&distributedHandler{amHandler{s: s}}),
		"registerApplicationMasterForDistributedScheduling", "finishApplicationMaster",
		"allocateForDistributedScheduling")
}

func (h *distributedHandler) RegisterApplicationMasterForDistributedScheduling(
	ctx context.Context,
	req *pb.RegisterApplicationMasterRequestProto,
) (*pb.RegisterDistributedSchedulingAMResponseProto, error) {
	registered := server.Distributed{Server: h.s}.RegisterAM(h.registration(ctx, req))
	encode := func(r codec.DistributedAM) *pb.RegisterDistributedSchedulingAMResponseProto {
		return codec.RegisterDistributedResponse(&r.Terms, h.registered(tokenOf(ctx).Attempt, &r.AMRegistration))
	}
	return later(ctx, h.s, server.Then(registered, encode))
}

func (h *distributedHandler) AllocateForDistributedScheduling(
	ctx context.Context,
	req *pb.DistributedSchedulingAllocateRequestProto,
) (*pb.DistributedSchedulingAllocateResponseProto, error) {
	inner := req.GetAllocateRequest()
	if err := codec.ConvertUnits(inner, h.s.ResourceTypes()); err != nil {
		return nil, err
	}
	call := codec.Allocate(inner)
	call.Placed = server.Distributed{Server: h.s}.Placed(req.GetAllocatedContainers())
	call.Unplaced = pb.Unplaced(req)
	who, reply := tokenOf(ctx), hrpc.LaterSending(ctx)
	server.Distributed{Server: h.s}.Allocate(who.Attempt, call, func(a *codec.AllocateAnswer, err error) {
		if err != nil {
			reply(nil, err)
			return
		}
		reply(codec.AllocateDistributedResponse(a.LeastLoaded, encodeAllocated(h.s, who, a)), nil)
	})
	return nil, hrpc.ErrLater
}
