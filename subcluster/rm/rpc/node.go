// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"time"

	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/server"
	"google.golang.org/protobuf/proto"
)

// nodeHandler is ResourceTracker.
type nodeHandler struct {
	yarnrpc.UnimplementedResourceTracker // heartbeat replaces nodeHeartbeat
	s                                    *server.Server
	heartbeats                           *heartbeats
}

func nodeService(s *server.Server) hrpc.Service {
	h := &nodeHandler{s: s, heartbeats: newHeartbeats()}
	service := yarnrpc.Inline(yarnrpc.ResourceTrackerService(h), "nodeHeartbeat", "unRegisterNodeManager")
	m := service.Methods["nodeHeartbeat"]
	m.NewRequest = func() proto.Message { return h.heartbeats.get() }
	m.Serve = func(ctx context.Context, req proto.Message) (proto.Message, error) {
		return nil, h.heartbeat(ctx, req.(*heartbeat))
	}
	service.Methods["nodeHeartbeat"] = m
	return service
}

func (h *nodeHandler) RegisterNodeManager(
	ctx context.Context,
	req *pb.RegisterNodeManagerRequestProto,
) (*pb.RegisterNodeManagerResponseProto, error) {
	types := h.s.ResourceTypes()
	for _, r := range [...]*pb.ResourceProto{req.GetResource(), req.GetPhysicalResource()} {
		if err := pb.ConvertUnits(r, types); err != nil {
			return nil, err
		}
	}
	for _, c := range req.GetContainerStatuses() {
		if err := pb.ConvertUnits(c.GetResource(), types); err != nil {
			return nil, err
		}
	}
	node := codec.RegisterNode(req)
	if node.ID.Host == "" || node.ID.Port <= 0 {
		return nil, codec.Invalid("a node registers as %q; it needs a host and a port", node.ID)
	}
	register, err := h.s.RegisterNode(ctx, callerOf(ctx), &node)
	if err != nil {
		return &pb.RegisterNodeManagerResponseProto{
			NodeAction:         pb.NodeActionProto_SHUTDOWN.Enum(),
			DiagnosticsMessage: new(err.Error()),
		}, nil
	}
	return later(ctx, h.s, server.Then(register, func(a rm.NodeRegistration) *pb.RegisterNodeManagerResponseProto {
		return codec.RegisterNodeResponse(&a, h.s.NodeKeys(nil, nil), h.s.Started().UnixMilli(), server.Version)
	}))
}

// heartbeat is nodeHeartbeat.
func (h *nodeHandler) heartbeat(ctx context.Context, b *heartbeat) error {
	reply := hrpc.Later(ctx)
	keys := h.s.NodeKeys(b.GetLastKnownContainerTokenMasterKey(), b.GetLastKnownNmTokenMasterKey())
	h.s.Heartbeat(&b.report, b.taken, func(a *rm.NodeAnswer, next time.Duration, err error) {
		if err != nil {
			reply(nil, err)
		} else {
			r := codec.NodeHeartbeatResponse(a, keys, next, h.s.Mint)
			codec.SystemCredentials(r, b.GetTokenSequenceNo(), h.s.Renewer.System)
			reply(r, nil)
		}
		h.heartbeats.put(b)
	})
	return hrpc.ErrLater
}

func (h *nodeHandler) UnRegisterNodeManager(
	ctx context.Context,
	req *pb.UnRegisterNodeManagerRequestProto,
) (*pb.UnRegisterNodeManagerResponseProto, error) {
	id := pb.ToNodeID(req.GetNodeId())
	op := h.s.UnregisterNode(id, func() { h.heartbeats.keep(id, nil) })
	return later(ctx, h.s, server.Then(op, func(struct{}) *pb.UnRegisterNodeManagerResponseProto {
		return &pb.UnRegisterNodeManagerResponseProto{}
	}))
}
