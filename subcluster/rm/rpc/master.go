// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"slices"
	"time"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
)

// masterDoor is ApplicationMasterProtocol. Who calls is told by the AMRM token
// of the connection and by nothing else.
type masterDoor struct{ d *Daemon }

func (d *Daemon) masterService() hrpc.Service {
	return yarnrpc.Inline(yarnrpc.ApplicationMasterProtocolService(&masterDoor{d: d}),
		"registerApplicationMaster", "finishApplicationMaster", "allocate")
}

func held(ctx context.Context) token.AMRM {
	id, _ := hrpc.CallFrom(ctx).Identity.Value.(token.AMRM)
	return id
}

func (p *masterDoor) RegisterApplicationMaster(
	ctx context.Context,
	req *pb.RegisterApplicationMasterRequestProto,
) (*pb.RegisterApplicationMasterResponseProto, error) {
	type R = *pb.RegisterApplicationMasterResponseProto
	d, id := p.d, held(ctx).Attempt
	return later(
		ctx,
		d,
		op[R]{
			name:   "registerApplicationMaster",
			target: id.String(),
			run: func(m *rm.Machine, now time.Time) func() (R, error) {
				r, err := m.RegisterMaster(
					now,
					&rm.RegisterMaster{
						Attempt:     id,
						Host:        req.GetHost(),
						Port:        req.GetRpcPort(),
						TrackingURL: req.GetTrackingUrl(),
						Constraints: len(req.GetPlacementConstraints()) > 0,
					},
				)
				if err != nil {
					return failed[R](err)
				}
				a, _ := m.App(id.Application)
				return func() (R, error) {
					out := &pb.RegisterApplicationMasterResponseProto{
						MaximumCapability:      pb.FromResource(r.MaxAllocation),
						Queue:                  new(string(r.Queue)),
						SchedulerResourceTypes: []pb.SchedulerResourceTypes{pb.SchedulerResourceTypes_MEMORY},
						Application_ACLs:       contextOf(a.Context).GetAmContainerSpec().GetApplication_ACLs(),
						ResourceTypes:          d.resourceTypes(),
					}
					if !r.MemoryOnly {
						out.SchedulerResourceTypes = append(out.SchedulerResourceTypes, pb.SchedulerResourceTypes_CPU)
					}
					t, finish := d.secrets.minting(id.Application)
					defer finish()
					for i := range r.Previous {
						out.ContainersFromPreviousAttempts = append(
							out.ContainersFromPreviousAttempts,
							t.containerProto(&r.Previous[i]),
						)
					}
					for _, at := range r.NMTokens {
						out.NmTokensFromPreviousAttempts = append(
							out.NmTokensFromPreviousAttempts,
							t.nmProto(id, at.Node),
						)
					}
					return out, nil
				}
			},
		},
	)
}

func (p *masterDoor) FinishApplicationMaster(
	ctx context.Context,
	req *pb.FinishApplicationMasterRequestProto,
) (*pb.FinishApplicationMasterResponseProto, error) {
	type R = *pb.FinishApplicationMasterResponseProto
	d, id := p.d, held(ctx).Attempt
	return later(
		ctx,
		d,
		op[R]{
			name:   "finishApplicationMaster",
			target: id.String(),
			run: func(m *rm.Machine, now time.Time) func() (R, error) {
				finished, err := m.FinishMaster(
					now,
					&rm.FinishMaster{
						Attempt:     id,
						Status:      finalStatus(req),
						Diagnostics: req.GetDiagnostics(),
						TrackingURL: req.GetTrackingUrl(),
					},
				)
				if err != nil {
					return failed[R](err)
				}
				return done(&pb.FinishApplicationMasterResponseProto{IsUnregistered: &finished})
			},
		},
	)
}

func (p *masterDoor) Allocate(ctx context.Context, req *pb.AllocateRequestProto) (*pb.AllocateResponseProto, error) {
	d, who, reply := p.d, held(ctx), hrpc.LaterSending(ctx)
	ask := decodeAllocate(req)
	d.metrics.Allocates.Add(1)
	err := d.ask(func(m *rm.Machine, now time.Time) func() {
		answer, err := m.Allocate(now, who.Attempt, ask)
		if err != nil {
			return func() { reply(nil, err) }
		}
		// The machine writes into this answer again at the next call: the
		// responder works on a copy of what it points at.
		a := *answer
		a.Granted, a.Completed, a.Updated = slices.Clone(a.Granted), slices.Clone(a.Completed), slices.Clone(a.Updated)
		a.UpdateErrors, a.FromPrevious, a.Rejected = slices.Clone(
			a.UpdateErrors,
		), slices.Clone(
			a.FromPrevious,
		), slices.Clone(
			a.Rejected,
		)
		a.UpdatedNodes, a.NMTokens, a.Preempt = slices.Clone(
			a.UpdatedNodes,
		), slices.Clone(
			a.NMTokens,
		), slices.Clone(
			a.Preempt,
		)
		var nodes []rm.NodeView
		for _, u := range a.UpdatedNodes {
			n, _ := m.Node(u.ID)
			nodes = append(nodes, n)
		}
		return func() { reply(d.encodeAnswer(who, &a, nodes, now), nil) }
	})
	if err != nil {
		reply(nil, err)
	}
	return nil, hrpc.ErrLater
}

// encodeAnswer writes the answer to an allocate call, minting its tokens.
func (d *Daemon) encodeAnswer(
	who token.AMRM,
	a *rm.Answer,
	nodes []rm.NodeView,
	now time.Time,
) *pb.AllocateResponseProto {
	t, finish := d.secrets.minting(who.Attempt.Application)
	defer finish()
	r := &pb.AllocateResponseProto{
		ResponseId:          &a.ResponseID,
		Limit:               pb.FromResource(a.Headroom),
		NumClusterNodes:     &a.Nodes,
		ApplicationPriority: pb.FromPriority(a.Priority),
		AmRmToken:           d.secrets.newerAMRM(who),
		EnhancedHeadroom: &pb.EnhancedHeadroomProto{
			TotalPendingCount: &a.PendingContainers,
			TotalActiveCores:  &a.ActiveCores,
		},
	}
	if len(a.Granted) > 0 {
		r.AllocatedContainers = make([]*pb.ContainerProto, len(a.Granted))
		memory := make([]pb.ContainerProto, len(a.Granted))
		for i := range a.Granted {
			r.AllocatedContainers[i] = t.fill(&memory[i], &a.Granted[i])
		}
	}
	if len(a.Completed) > 0 {
		r.CompletedContainerStatuses = make([]*pb.ContainerStatusProto, len(a.Completed))
		for i := range a.Completed {
			r.CompletedContainerStatuses[i] = t.completed(&a.Completed[i])
		}
	}
	for _, at := range a.NMTokens {
		r.NmTokens = append(r.NmTokens, t.nmProto(who.Attempt, at.Node))
	}
	for i := range a.FromPrevious {
		r.ContainersFromPreviousAttempts = append(
			r.ContainersFromPreviousAttempts,
			t.containerProto(&a.FromPrevious[i]),
		)
	}
	for i := range a.Updated {
		u := &a.Updated[i]
		r.UpdatedContainers = append(
			r.UpdatedContainers,
			&pb.UpdatedContainerProto{
				UpdateType: new(pb.ContainerUpdateTypeProto(u.Kind)),
				Container:  t.containerProto(&u.Grant),
			},
		)
	}
	for i := range a.UpdateErrors {
		e := &a.UpdateErrors[i]
		request, _ := e.Update.Message.(*pb.UpdateContainerRequestProto)
		r.UpdateErrors = append(
			r.UpdateErrors,
			&pb.UpdateContainerErrorProto{
				Reason:                  &e.Reason,
				UpdateRequest:           request,
				CurrentContainerVersion: &e.Version,
			},
		)
	}
	for _, s := range a.Rejected {
		request, _ := s.Message.(*pb.SchedulingRequestProto)
		r.RejectedSchedulingRequests = append(r.RejectedSchedulingRequests, &pb.RejectedSchedulingRequestProto{
			Reason: pb.RejectionReasonProto_RRP_COULD_NOT_PLACE_ON_NODE.Enum(), Request: request})
	}
	for i, u := range a.UpdatedNodes {
		n := nodeReport(&nodes[i], now)
		n.NodeId = pb.FromNodeID(u.ID)
		n.NodeUpdateType = new(pb.NodeUpdateTypeProto(u.Kind))
		r.UpdatedNodes = append(r.UpdatedNodes, n)
	}
	if len(a.Preempt) > 0 {
		strict := &pb.StrictPreemptionContractProto{}
		for _, c := range a.Preempt {
			strict.Container = append(strict.Container, &pb.PreemptionContainerProto{Id: pb.FromContainerID(c)})
		}
		r.Preempt = &pb.PreemptionMessageProto{StrictContract: strict}
	}
	return r
}

// completed is the end of a container as its master is told: the node's own
// message where there is one, so that fields we do not know survive.
func (t *mint) completed(c *rm.Completed) *pb.ContainerStatusProto {
	if s, ok := c.Message.(*pb.ContainerStatusProto); ok && s.GetExitStatus() == c.ExitStatus &&
		s.GetState() == pb.ContainerStateProto_C_COMPLETE {
		return s
	}
	execution := pb.ExecutionTypeProto(c.Execution)
	if execution == 0 {
		execution = pb.ExecutionTypeProto_GUARANTEED
	}
	return &pb.ContainerStatusProto{
		ContainerId: pb.FromContainerID(
			c.ID,
		),
		State:         pb.ContainerStateProto_C_COMPLETE.Enum(),
		Diagnostics:   &c.Diagnostics,
		ExitStatus:    &c.ExitStatus,
		Capability:    t.resourceOf(c.Resource),
		ExecutionType: &execution,
	}
}
