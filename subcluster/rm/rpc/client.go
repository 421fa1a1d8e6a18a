// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/server"
	"google.golang.org/protobuf/proto"
)

// clientHandler is ApplicationClientProtocol. Methods that it lacks are answered as not enabled.
type clientHandler struct {
	yarnrpc.UnimplementedApplicationClientProtocol
	s *server.Server
}

func clientService(s *server.Server) hrpc.Service {
	return yarnrpc.Inline(
		withIDs(yarnrpc.ApplicationClientProtocolService(&clientHandler{s: s})),
		"getNewApplication",
		"getApplicationReport",
		"submitApplication",
		"forceKillApplication",
		"getClusterMetrics",
		"getApplications",
		"getClusterNodes",
		"getApplicationAttemptReport",
		"getApplicationAttempts",
		"getContainerReport",
		"getContainers",
	)
}

// withIDs rejects requests without the id of their subject, which would otherwise be 0.
func withIDs(service hrpc.Service) hrpc.Service {
	for name, m := range service.Methods {
		serve := m.Serve
		m.Serve = func(ctx context.Context, req proto.Message) (proto.Message, error) {
			if path := pb.MissingID(req); path == "application_id" || path == "applicationId" {
				return nil, &creel.Error{Kind: codec.ErrNoApplicationID, What: "Invalid application id: null"}
			} else if path != "" {
				return nil, codec.Invalid("the request has no %s", path)
			}
			return serve(ctx, req)
		}
		service.Methods[name] = m
	}
	return service
}

// GetNewApplication returns one id, or a block of ids to a creel router.
func (c *clientHandler) GetNewApplication(
	_ context.Context,
	req *pb.GetNewApplicationRequestProto,
) (*pb.GetNewApplicationResponseProto, error) {
	n := yarnrpc.BlockWanted(req)
	id, err := c.s.NewApplicationIDs(n)
	if err != nil {
		return nil, err
	}
	answer := &pb.GetNewApplicationResponseProto{
		ApplicationId:     pb.FromApplicationID(id),
		MaximumCapability: pb.FromResource(c.s.MachineConfig().MaxAllocation),
	}
	yarnrpc.SetBlock(answer, n)
	return answer, nil
}

func (c *clientHandler) SubmitApplication(
	ctx context.Context,
	req *pb.SubmitApplicationRequestProto,
) (*pb.SubmitApplicationResponseProto, error) {
	from := server.Forwarding{Claim: yarnrpc.ClaimOf(req)}
	from.Since, from.Left = yarnrpc.CarriedOf(req)
	c.s.KeepTrace(ctx, req.GetApplicationSubmissionContext())
	op := c.s.Submit(callerOf(ctx), req.GetApplicationSubmissionContext(), from)
	return later(ctx, c.s, empty[pb.SubmitApplicationResponseProto](op))
}

// empty answers an Op with an empty message.
func empty[M any](op server.Op[struct{}]) server.Op[*M] {
	return server.Then(op, func(struct{}) *M { return new(M) })
}

func (c *clientHandler) ForceKillApplication(
	ctx context.Context,
	req *pb.KillApplicationRequestProto,
) (*pb.KillApplicationResponseProto, error) {
	op := c.s.Kill(callerOf(ctx), pb.ToApplicationID(req.GetApplicationId()), req.GetDiagnostics())
	return later(ctx, c.s, server.Then(op, func(completed bool) *pb.KillApplicationResponseProto {
		return &pb.KillApplicationResponseProto{IsKillCompleted: &completed}
	}))
}

func (c *clientHandler) FailApplicationAttempt(
	ctx context.Context,
	req *pb.FailApplicationAttemptRequestProto,
) (*pb.FailApplicationAttemptResponseProto, error) {
	op := c.s.FailAttempt(callerOf(ctx), pb.ToAttemptID(req.GetApplicationAttemptId()))
	return later(ctx, c.s, empty[pb.FailApplicationAttemptResponseProto](op))
}

func (c *clientHandler) MoveApplicationAcrossQueues(
	ctx context.Context,
	req *pb.MoveApplicationAcrossQueuesRequestProto,
) (*pb.MoveApplicationAcrossQueuesResponseProto, error) {
	op := c.s.Move(callerOf(ctx), pb.ToApplicationID(req.GetApplicationId()), req.GetTargetQueue())
	return later(ctx, c.s, empty[pb.MoveApplicationAcrossQueuesResponseProto](op))
}

func (c *clientHandler) UpdateApplicationPriority(
	ctx context.Context,
	req *pb.UpdateApplicationPriorityRequestProto,
) (*pb.UpdateApplicationPriorityResponseProto, error) {
	id, priority := pb.ToApplicationID(req.GetApplicationId()), req.GetApplicationPriority().GetPriority()
	op := c.s.SetPriority(callerOf(ctx), id, priority)
	return later(ctx, c.s, server.Then(op, func(holds int32) *pb.UpdateApplicationPriorityResponseProto {
		return &pb.UpdateApplicationPriorityResponseProto{ApplicationPriority: pb.FromPriority(holds)}
	}))
}

func (c *clientHandler) UpdateApplicationTimeouts(
	ctx context.Context,
	req *pb.UpdateApplicationTimeoutsRequestProto,
) (*pb.UpdateApplicationTimeoutsResponseProto, error) {
	var expiries []string
	for _, t := range req.GetApplicationTimeouts() {
		expiries = append(expiries, t.GetExpireTime())
	}
	op := c.s.SetLifetimes(callerOf(ctx), pb.ToApplicationID(req.GetApplicationId()), expiries)
	return later(ctx, c.s, server.Then(op, func(struct{}) *pb.UpdateApplicationTimeoutsResponseProto {
		return &pb.UpdateApplicationTimeoutsResponseProto{ApplicationTimeouts: req.GetApplicationTimeouts()}
	}))
}

func (c *clientHandler) SignalToContainer(
	ctx context.Context,
	req *pb.SignalContainerRequestProto,
) (*pb.SignalContainerResponseProto, error) {
	op := c.s.Signal(callerOf(ctx), pb.ToContainerID(req.GetContainerId()), int32(req.GetCommand()))
	return later(ctx, c.s, empty[pb.SignalContainerResponseProto](op))
}
