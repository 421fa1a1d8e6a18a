// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"

	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// haHandler is HAServiceProtocol of a ResourceManager without a peer: always active.
type haHandler struct{ s *server.Server }

func haService(s *server.Server) hrpc.Service {
	return yarnrpc.HAServiceProtocolService(&haHandler{s: s})
}

func (p *haHandler) MonitorHealth(
	context.Context,
	*pb.MonitorHealthRequestProto,
) (*pb.MonitorHealthResponseProto, error) {
	return &pb.MonitorHealthResponseProto{}, nil
}

func (p *haHandler) TransitionToActive(
	ctx context.Context,
	_ *pb.TransitionToActiveRequestProto,
) (*pb.TransitionToActiveResponseProto, error) {
	return admin(ctx, p.s, "transitionToActive", func() (*pb.TransitionToActiveResponseProto, error) {
		return &pb.TransitionToActiveResponseProto{}, nil
	})
}

// notHA is the error of a ResourceManager without a peer for orders that it cannot carry out.
func notHA() error {
	return hrpc.Errorf(
		classServiceFailed,
		"HA is not enabled: there is no other ResourceManager to take over",
	)
}

func (p *haHandler) TransitionToStandby(
	ctx context.Context,
	_ *pb.TransitionToStandbyRequestProto,
) (*pb.TransitionToStandbyResponseProto, error) {
	return admin(
		ctx,
		p.s,
		"transitionToStandby",
		func() (*pb.TransitionToStandbyResponseProto, error) { return nil, notHA() },
	)
}

func (p *haHandler) TransitionToObserver(
	ctx context.Context,
	_ *pb.TransitionToObserverRequestProto,
) (*pb.TransitionToObserverResponseProto, error) {
	return admin(
		ctx,
		p.s,
		"transitionToObserver",
		func() (*pb.TransitionToObserverResponseProto, error) { return nil, notHA() },
	)
}

func (p *haHandler) GetServiceStatus(
	context.Context,
	*pb.GetServiceStatusRequestProto,
) (*pb.GetServiceStatusResponseProto, error) {
	return &pb.GetServiceStatusResponseProto{
		State:               pb.HAServiceStateProto_ACTIVE.Enum(),
		ReadyToBecomeActive: new(true),
		NotReadyReason:      new(""),
	}, nil
}
