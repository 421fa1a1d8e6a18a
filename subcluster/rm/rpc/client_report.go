// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"fmt"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/server"
)

func (c *clientHandler) GetApplicationReport(
	ctx context.Context,
	req *pb.GetApplicationReportRequestProto,
) (*pb.GetApplicationReportResponseProto, error) {
	type R = *pb.GetApplicationReportResponseProto
	s, id, who := c.s, pb.ToApplicationID(req.GetApplicationId()), callerOf(ctx)
	if claim := yarnrpc.DisownWanted(req); claim > 0 {
		return later(ctx, s, server.Then(s.Disown(who, id, claim), func(upTo int64) R {
			if upTo == 0 { // it is here
				return &pb.GetApplicationReportResponseProto{
					ApplicationReport: &pb.ApplicationReportProto{ApplicationId: pb.FromApplicationID(id)},
				}
			}
			return yarnrpc.DisownedAnswer(upTo)
		}))
	}
	if verb, claim, reason := yarnrpc.HoldWanted(req); verb != yarnrpc.NoHoldVerb {
		return later(ctx, s, server.Then(s.MoveAway(who, id, verb, claim, reason), func(c *yarnrpc.MovedApplication) R {
			return yarnrpc.HoldAnswer(verb, claim, c)
		}))
	}
	key := server.ReportKey{App: id, User: who.User}
	if body := s.KeptReport(key); body != nil {
		return pb.Encoded(&pb.GetApplicationReportResponseProto{}, body), nil
	}
	return later(ctx, s, server.Op[R]{Run: func(m *rm.Machine, now time.Time) func() (R, error) {
		moves := s.Moves()
		a, ok := m.App(id)
		if !ok {
			return server.Failed[R](server.NoSuchApplication(id))
		}
		viewable := s.MayView(m, who, &a)
		return func() (R, error) {
			r := s.Cluster().Report(&a, now, viewable)
			if a.Token && viewable && who.User == a.User {
				r.AmRmToken = s.AMRMToken(a.Attempt).Proto()
			}
			if viewable && a.State == creel.AppRunning {
				r.ClientToAmToken = server.Clients{Server: s}.Token(a.Attempt, who.User)
			}
			out := &pb.GetApplicationReportResponseProto{ApplicationReport: r}
			if r.AmRmToken != nil || r.ClientToAmToken != nil || s.Moves() != moves { // a secret, or already stale
				return out, nil
			}
			body, err := out.MarshalVT()
			if err != nil {
				return out, nil
			}
			s.KeepReport(key, moves, now, body)
			return pb.Encoded(&pb.GetApplicationReportResponseProto{}, body), nil
		}
	}})
}

func (c *clientHandler) GetApplicationAttemptReport(
	ctx context.Context,
	req *pb.GetApplicationAttemptReportRequestProto,
) (*pb.GetApplicationAttemptReportResponseProto, error) {
	type R = *pb.GetApplicationAttemptReportResponseProto
	s, who, id := c.s, callerOf(ctx), pb.ToAttemptID(req.GetApplicationAttemptId())
	return later(ctx, s, server.Op[R]{Run: func(m *rm.Machine, _ time.Time) func() (R, error) {
		a, err := s.Viewable(m, who, id.Application)
		if err != nil {
			return server.Failed[R](err)
		}
		v, ok := m.Attempt(id)
		if !ok {
			return server.Failed[R](
				&creel.Error{
					Kind: creel.ErrAttemptNotFound,
					What: fmt.Sprintf("ApplicationAttempt with id '%s' doesn't exist in RM.", id),
				},
			)
		}
		return server.Done(
			&pb.GetApplicationAttemptReportResponseProto{
				ApplicationAttemptReport: codec.AttemptReport(&v, s.Cluster().TrackingURL(&a)),
			},
		)
	}})
}

func (c *clientHandler) GetApplicationAttempts(
	ctx context.Context,
	req *pb.GetApplicationAttemptsRequestProto,
) (*pb.GetApplicationAttemptsResponseProto, error) {
	type R = *pb.GetApplicationAttemptsResponseProto
	s, who, id := c.s, callerOf(ctx), pb.ToApplicationID(req.GetApplicationId())
	return later(ctx, s, server.Op[R]{Run: func(m *rm.Machine, _ time.Time) func() (R, error) {
		a, err := s.Viewable(m, who, id)
		if err != nil {
			return server.Failed[R](err)
		}
		r := &pb.GetApplicationAttemptsResponseProto{}
		for _, v := range m.Attempts(id) {
			r.ApplicationAttempts = append(r.ApplicationAttempts, codec.AttemptReport(&v, s.Cluster().TrackingURL(&a)))
		}
		return server.Done(r)
	}})
}

func (c *clientHandler) GetContainerReport(
	ctx context.Context,
	req *pb.GetContainerReportRequestProto,
) (*pb.GetContainerReportResponseProto, error) {
	type R = *pb.GetContainerReportResponseProto
	s, who, id := c.s, callerOf(ctx), pb.ToContainerID(req.GetContainerId())
	return later(ctx, s, server.Op[R]{Run: func(m *rm.Machine, _ time.Time) func() (R, error) {
		a, err := s.Viewable(m, who, id.Attempt.Application)
		if err != nil {
			return server.Failed[R](err)
		}
		v, ok := m.Container(id)
		if !ok {
			return server.Failed[R](
				&creel.Error{
					Kind: creel.ErrContainerNotFound,
					What: fmt.Sprintf("Container with id '%s' doesn't exist in RM.", id),
				},
			)
		}
		return server.Done(
			&pb.GetContainerReportResponseProto{
				ContainerReport: c.s.Cluster().ContainerReport(&v, a.User),
			},
		)
	}})
}

func (c *clientHandler) GetContainers(
	ctx context.Context,
	req *pb.GetContainersRequestProto,
) (*pb.GetContainersResponseProto, error) {
	type R = *pb.GetContainersResponseProto
	s, who, id := c.s, callerOf(ctx), pb.ToAttemptID(req.GetApplicationAttemptId())
	return later(ctx, s, server.Op[R]{Run: func(m *rm.Machine, _ time.Time) func() (R, error) {
		a, err := s.Viewable(m, who, id.Application)
		if err != nil {
			return server.Failed[R](err)
		}
		if _, ok := m.Attempt(id); !ok {
			return server.Failed[R](
				&creel.Error{
					Kind: creel.ErrAttemptNotFound,
					What: fmt.Sprintf("ApplicationAttempt with id '%s' doesn't exist in RM.", id),
				},
			)
		}
		list := m.Containers(id)
		return func() (R, error) {
			r := &pb.GetContainersResponseProto{}
			for i := range list {
				r.Containers = append(
					r.Containers,
					c.s.Cluster().ContainerReport(&list[i], a.User),
				)
			}
			return r, nil
		}
	}})
}
