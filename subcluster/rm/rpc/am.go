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

// amHandler is ApplicationMasterProtocol. Only the connection's AMRM token identifies the caller.
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
	registered := h.s.RegisterAM(h.registration(ctx, req))
	encode := func(r codec.AMRegistration) *pb.RegisterApplicationMasterResponseProto {
		return h.registered(tokenOf(ctx).Attempt, &r)
	}
	return later(ctx, h.s, server.Then(registered, encode))
}

// registration decodes an AM's registration.
func (h *amHandler) registration(ctx context.Context, req *pb.RegisterApplicationMasterRequestProto) *rm.RegisterAM {
	r := codec.RegisterAM(tokenOf(ctx).Attempt, req)
	if at := hrpc.CallFrom(ctx).Remote.Addr(); at.IsValid() {
		r.Remote = at.String()
	}
	return r
}

// registered encodes the answer to an AM's registration.
func (h *amHandler) registered(
	id creel.AttemptID,
	r *codec.AMRegistration,
) *pb.RegisterApplicationMasterResponseProto {
	t, finish := h.s.Mint(id.Application)
	defer finish()
	answer := codec.RegisterAMResponse(r, id, t, resourceTypes(h.s))
	answer.ClientToAmTokenMasterKey = server.Clients{Server: h.s}.Key(id)
	yarnrpc.SetTrace(answer, yarnrpc.TraceOf(codec.ContextOf(r.App.Context)))
	return answer
}

func (h *amHandler) FinishApplicationMaster(
	ctx context.Context,
	req *pb.FinishApplicationMasterRequestProto,
) (*pb.FinishApplicationMasterResponseProto, error) {
	finish := h.s.FinishAM(codec.FinishAM(tokenOf(ctx).Attempt, req))
	return later(ctx, h.s, server.Then(finish, codec.FinishAMResponse))
}

func (h *amHandler) Allocate(ctx context.Context, req *pb.AllocateRequestProto) (*pb.AllocateResponseProto, error) {
	if err := codec.ConvertUnits(req, h.s.ResourceTypes()); err != nil {
		return nil, err
	}
	who, reply := tokenOf(ctx), hrpc.LaterSending(ctx)
	h.s.Allocate(who.Attempt, codec.Allocate(req), func(a *codec.AllocateAnswer, err error) {
		if err != nil {
			reply(nil, err)
			return
		}
		reply(encodeAllocated(h.s, who, a), nil)
	})
	return nil, hrpc.ErrLater
}

func encodeAllocated(s *server.Server, who token.AMRM, a *codec.AllocateAnswer) *pb.AllocateResponseProto {
	t, finish := s.Mint(who.Attempt.Application)
	defer finish()
	return codec.AllocateResponse(a, who.Attempt, t, s.NewerAMRMToken(who))
}
