// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm/server"
	"google.golang.org/protobuf/proto"
)

// PairConfig is one of an HA pair as its admin port sees it.
type PairConfig struct {
	server.Pair
	Automatic bool // yarn.resourcemanager.ha.automatic-failover.enabled
	// Active returns the server that is active in this process, nil while this is the standby.
	Active func() *server.Server
	// Lead makes this ResourceManager active, StandBy makes it standby. They return when that is done.
	Lead, StandBy func(ctx context.Context) error
	Gate          *server.Gate // for the standby
	Log           *slog.Logger
}

// ListenAdmin binds the admin port of one of a pair, which active and standby serve. It returns its address.
func ListenAdmin(cfg Config, p PairConfig) (_ *Ports, address string, err error) {
	c := plainPort(cfg, p.Log, p.adminService(), yarnrpc.HAServiceProtocolService(&pairHandler{p}))
	c.Impersonate = p.impersonate
	ports, err := bind(protocol{"admin", cfg.Admin, c})
	if err != nil {
		return nil, "", err
	}
	return ports, ports.at(0), nil
}

// standbyError makes a client's failover proxy use the other ResourceManager.
func standbyError(id string) error {
	return hrpc.Errorf(hrpc.ClassStandby, "ResourceManager %s is not Active!", id)
}

// refuseAtStandby refuses calls on open connections after the lease has ended.
func refuseAtStandby(p *server.Pair) hrpc.Interceptor {
	return func(context.Context, *hrpc.Call, proto.Message) (context.Context, func(proto.Message, error), error) {
		if !p.Leads() {
			return nil, nil, standbyError(p.ID)
		}
		return nil, nil, nil
	}
}

func (p *PairConfig) impersonate(real, effective string, remote netip.Addr) error {
	if s := p.Active(); s != nil {
		return s.Impersonate(real, effective, remote)
	}
	return p.Gate.Impersonate(real, effective, remote)
}

// adminService is the administration protocol of the active server. The standby refuses all of it.
func (p *PairConfig) adminService() hrpc.Service {
	service := adminService(nil)
	for name, m := range service.Methods {
		m.Serve = func(ctx context.Context, req proto.Message) (proto.Message, error) {
			s := p.Active()
			if s == nil || !p.Leads() {
				return nil, standbyError(p.ID)
			}
			return adminService(s).Methods[name].Serve(ctx, req)
		}
		service.Methods[name] = m
	}
	return service
}

// pairHandler is HAServiceProtocol of one of a pair.
type pairHandler struct{ PairConfig }

func (p *pairHandler) MonitorHealth(
	context.Context,
	*pb.MonitorHealthRequestProto,
) (*pb.MonitorHealthResponseProto, error) {
	return &pb.MonitorHealthResponseProto{}, nil
}

func (p *pairHandler) TransitionToActive(
	ctx context.Context,
	req *pb.TransitionToActiveRequestProto,
) (*pb.TransitionToActiveResponseProto, error) {
	err := p.order(ctx, "transitionToActive", req.GetReqInfo(), p.Lead)
	return &pb.TransitionToActiveResponseProto{}, err
}

func (p *pairHandler) TransitionToStandby(
	ctx context.Context,
	req *pb.TransitionToStandbyRequestProto,
) (*pb.TransitionToStandbyResponseProto, error) {
	err := p.order(ctx, "transitionToStandby", req.GetReqInfo(), p.StandBy)
	return &pb.TransitionToStandbyResponseProto{}, err
}

func (p *pairHandler) TransitionToObserver(
	ctx context.Context,
	req *pb.TransitionToObserverRequestProto,
) (*pb.TransitionToObserverResponseProto, error) {
	err := p.order(ctx, "transitionToObserver", req.GetReqInfo(), func(context.Context) error {
		return hrpc.Errorf(classServiceFailed, "ResourceManager %s does not support the observer state", p.ID)
	})
	return &pb.TransitionToObserverResponseProto{}, err
}

func (p *pairHandler) GetServiceStatus(
	context.Context,
	*pb.GetServiceStatusRequestProto,
) (*pb.GetServiceStatusResponseProto, error) {
	state := pb.HAServiceStateProto_STANDBY
	if p.Active() != nil && p.Leads() {
		state = pb.HAServiceStateProto_ACTIVE
	}
	return &pb.GetServiceStatusResponseProto{
		State: state.Enum(), ReadyToBecomeActive: new(true), NotReadyReason: new(""),
	}, nil
}

const classServiceFailed = "org.apache.hadoop.ha.ServiceFailedException"

// order carries out an administrator's transition, if its source may order one.
func (p *pairHandler) order(
	ctx context.Context, name string, req *pb.HAStateChangeRequestInfoProto, do func(context.Context) error,
) error {
	who := callerOf(ctx)
	return p.administer(who, name, func() error {
		switch source := req.GetReqSource(); {
		case source == pb.HARequestSource_REQUEST_BY_USER && p.Automatic:
			return hrpc.Errorf(hrpc.ClassAccessControl,
				"Manual failover for this ResourceManager is disallowed, because automatic failover is enabled.")
		case source == pb.HARequestSource_REQUEST_BY_ZKFC && !p.Automatic:
			return hrpc.Errorf(hrpc.ClassAccessControl,
				"Request from ZK failover controller at %s denied since automatic HA is not enabled", who.Remote)
		case source == pb.HARequestSource_REQUEST_BY_USER_FORCED && p.Automatic:
			p.Log.Warn("manual failover although automatic failover is enabled: the user set --forcemanual", "call", name)
		}
		err := do(ctx)
		if err != nil && ctx.Err() == nil {
			if _, ok := err.(*hrpc.Error); !ok {
				err = hrpc.Errorf(classServiceFailed, "%v", err)
			}
		}
		return err
	})
}

func (p *pairHandler) administer(who server.Caller, name string, order func() error) error {
	if s := p.Active(); s != nil {
		return s.Administer(who, name, order)
	}
	return p.Gate.Administer(who, name, order)
}
