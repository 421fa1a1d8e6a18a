// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/server"
)

func (c *clientHandler) GetQueueInfo(
	ctx context.Context,
	req *pb.GetQueueInfoRequestProto,
) (*pb.GetQueueInfoResponseProto, error) {
	type R = *pb.GetQueueInfoResponseProto
	if sub, err := yarnrpc.PlacementAsked(req); sub != nil || err != nil {
		return c.placed(ctx, sub, err)
	}
	s, who, routed := c.s, callerOf(ctx), yarnrpc.Parts(req)
	return later(ctx, s, server.Op[R]{Run: func(m *rm.Machine, now time.Time) func() (R, error) {
		top, ok := m.Queue(req.GetQueueName())
		if !ok {
			return server.Done(&pb.GetQueueInfoResponseProto{}) // YARN's response for an absent queue
		}
		d := c.queues(m)
		told := d.Info
		if routed {
			uams := m.UAMs()
			told = func(q *rm.QueueView) *pb.QueueInfoProto {
				uams.TakeFromQueue(q)
				return d.Info(q)
			}
		}
		info := told(&top)
		if req.GetIncludeChildQueues() {
			children(m, info, &top, req.GetRecursive(), told)
		}
		if req.GetIncludeApplications() {
			for a := range m.Apps {
				if a.Queue == top.Path && !a.State.Ended() && s.MayView(m, who, a) {
					info.Applications = append(info.Applications, s.Cluster().Report(a, now, true))
				}
			}
		}
		return server.Done(&pb.GetQueueInfoResponseProto{QueueInfo: info})
	}})
}

// queues describes the queues of the moment.
func (c *clientHandler) queues(m *rm.Machine) *codec.Queues {
	cfg := c.s.MachineConfig()
	return &codec.Queues{
		Scheduler: cfg.Queues.Scheduler,
		Types:     cfg.TypeNames(),
		Queue: func(path creel.QueuePath) *rm.QueueView {
			if q, ok := m.Queue(string(path)); ok {
				return &q
			}
			return nil
		},
	}
}

// placed answers a router with the queue in which a submission of the caller would run.
func (c *clientHandler) placed(
	ctx context.Context, sub *pb.ApplicationSubmissionContextProto, err error,
) (*pb.GetQueueInfoResponseProto, error) {
	type R = *pb.GetQueueInfoResponseProto
	user := callerOf(ctx).User
	request := rm.Submission{
		ID: pb.ToApplicationID(sub.GetApplicationId()), User: user, Groups: c.s.Groups(user),
		Name: sub.GetApplicationName(), Type: sub.GetApplicationType(), Tags: sub.GetApplicationTags(),
		Queue: sub.GetQueue(),
	}
	return later(ctx, c.s, server.Op[R]{Run: func(m *rm.Machine, _ time.Time) func() (R, error) {
		if err != nil {
			return server.Failed[R](err)
		}
		queue, err := m.QueueFor(&request)
		if err != nil {
			return server.Failed[R](err)
		}
		return server.Done(yarnrpc.PlacementAnswer(queue))
	}})
}

// children adds the queues below one to its description; deep adds all descendants.
func children(
	m *rm.Machine, info *pb.QueueInfoProto, q *rm.QueueView, deep bool, told func(*rm.QueueView) *pb.QueueInfoProto,
) {
	for _, path := range q.Children {
		child, ok := m.Queue(string(path))
		if !ok {
			continue
		}
		i := told(&child)
		if deep {
			children(m, i, &child, deep, told)
		}
		info.ChildQueues = append(info.ChildQueues, i)
	}
}

func (c *clientHandler) GetQueueUserAcls(
	ctx context.Context,
	_ *pb.GetQueueUserAclsInfoRequestProto,
) (*pb.GetQueueUserAclsInfoResponseProto, error) {
	type R = *pb.GetQueueUserAclsInfoResponseProto
	s, who := c.s, callerOf(ctx)
	groups := s.Groups(who.User)
	return later(ctx, s, server.Op[R]{Run: func(m *rm.Machine, _ time.Time) func() (R, error) {
		r := &pb.GetQueueUserAclsInfoResponseProto{}
		admin := !s.ACLs() || s.IsAdmin(who.User)
		for q := range m.Queues {
			info := &pb.QueueUserACLInfoProto{QueueName: new(string(q.Path))}
			if admin || m.MaySubmit(string(q.Path), who.User, groups) {
				info.UserAcls = append(info.UserAcls, pb.QueueACLProto_QACL_SUBMIT_APPLICATIONS)
			}
			if admin || m.MayAdminister(string(q.Path), who.User, groups) {
				info.UserAcls = append(info.UserAcls, pb.QueueACLProto_QACL_ADMINISTER_QUEUE)
			}
			r.QueueUserAcls = append(r.QueueUserAcls, info)
		}
		return server.Done(r)
	}})
}

func (c *clientHandler) GetClusterMetrics(
	ctx context.Context,
	_ *pb.GetClusterMetricsRequestProto,
) (*pb.GetClusterMetricsResponseProto, error) {
	type R = *pb.GetClusterMetricsResponseProto
	return later(ctx, c.s, server.Op[R]{Run: func(m *rm.Machine, _ time.Time) func() (R, error) {
		v := m.Cluster()
		return func() (R, error) {
			n := func(states ...creel.NodeState) *int32 {
				total := 0
				for _, s := range states {
					total += v.Nodes[s]
				}
				return new(int32(total))
			}
			return &pb.GetClusterMetricsResponseProto{ClusterMetrics: &pb.YarnClusterMetricsProto{
				NumNodeManagers:       n(creel.NodeRunning, creel.NodeDecommissioning),
				NumDecommissionedNms:  n(creel.NodeDecommissioned),
				NumActiveNms:          n(creel.NodeRunning),
				NumLostNms:            n(creel.NodeLost),
				NumUnhealthyNms:       n(creel.NodeUnhealthy),
				NumRebootedNms:        n(creel.NodeRebooted),
				NumDecommissioningNms: n(creel.NodeDecommissioning),
				NumShutdownNms:        n(creel.NodeShutdown),
			}}, nil
		}
	}})
}
