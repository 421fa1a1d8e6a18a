// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/nm"
	"github.com/creelrm/creel/subcluster/nm/server"
)

// handler is ContainerManagementProtocol of all nodes of a Farm.
type handler struct {
	yarnrpc.UnimplementedContainerManagementProtocol
	farm *server.Farm
}

// visitor is the caller, identified by its NMToken.
type visitor struct {
	node *server.Node
	id   token.NM
}

func (f *Farm) checkNMToken(identifier []byte) ([]byte, hrpc.Identity, error) {
	id, err := token.ParseNM(identifier)
	if err != nil {
		return nil, hrpc.Identity{}, err
	}
	n := f.Node(id.Node)
	if n == nil {
		return nil, hrpc.Identity{}, nm.WrongNode(id)
	}
	password, err := n.CheckNM(id, identifier)
	if err != nil {
		return nil, hrpc.Identity{}, err
	}
	who := hrpc.Identity{User: id.Attempt.String(), TokenKind: token.KindNM, Value: &visitor{node: n, id: id}}
	return password, who, nil
}

func visitorOf(ctx context.Context) *visitor {
	v, _ := hrpc.CallFrom(ctx).Identity.Value.(*visitor)
	return v
}

func (d *handler) StartContainers(
	ctx context.Context,
	req *pb.StartContainersRequestProto,
) (*pb.StartContainersResponseProto, error) {
	v, now := visitorOf(ctx), time.Now()
	out := &pb.StartContainersResponseProto{}
	for _, r := range req.GetStartContainerRequest() {
		id, err := v.node.CheckContainer(token.FromProto(r.GetContainerToken()))
		if err != nil {
			return nil, err // a forged token fails the whole call
		}
		if err = d.start(v, now, id, r.GetContainerLaunchContext()); err != nil {
			out.FailedRequests = append(out.FailedRequests, failure(id.ID, err))
			continue
		}
		out.SucceededRequests = append(out.SucceededRequests, pb.FromContainerID(id.ID))
	}
	return out, nil
}

func (d *handler) start(v *visitor, now time.Time, id token.Container, launch *pb.ContainerLaunchContextProto) error {
	start, err := nm.StartOf(v.id, id, launch)
	if err == nil {
		err = v.node.Do(now, start)
	}
	return exceptionFor(err)
}

func failure(id creel.ContainerID, err error) *pb.ContainerExceptionMapProto {
	return &pb.ContainerExceptionMapProto{
		ContainerId: pb.FromContainerID(id),
		Exception:   yarnrpc.ToSerialized(exceptionFor(err)),
	}
}

func (d *handler) StopContainers(
	ctx context.Context,
	req *pb.StopContainersRequestProto,
) (*pb.StopContainersResponseProto, error) {
	v, now := visitorOf(ctx), time.Now()
	out := &pb.StopContainersResponseProto{}
	for _, p := range req.GetContainerId() {
		id := pb.ToContainerID(p)
		err := nm.MayTouch(v.id, id, "stop")
		if err == nil {
			err = v.node.Do(now, nm.Stop{ID: id})
		}
		if err != nil {
			out.FailedRequests = append(out.FailedRequests, failure(id, err))
			continue
		}
		out.SucceededRequests = append(out.SucceededRequests, p)
	}
	return out, nil
}

func (d *handler) GetContainerStatuses(
	ctx context.Context,
	req *pb.GetContainerStatusesRequestProto,
) (*pb.GetContainerStatusesResponseProto, error) {
	v := visitorOf(ctx)
	out := &pb.GetContainerStatusesResponseProto{}
	for _, p := range req.GetContainerId() {
		id := pb.ToContainerID(p)
		err := nm.MayTouch(v.id, id, "get status for")
		var status *pb.ContainerStatusProto
		if err == nil {
			status, err = v.node.Status(id)
		}
		if err != nil {
			out.FailedRequests = append(out.FailedRequests, failure(id, err))
			continue
		}
		out.Status = append(out.Status, status)
	}
	return out, nil
}

// update changes sizes and execution types of containers according to new tokens.
func (d *handler) update(
	ctx context.Context,
	tokens []*pb.TokenProto,
) (succeeded []*pb.ContainerIdProto, failed []*pb.ContainerExceptionMapProto, err error) {
	v, now := visitorOf(ctx), time.Now()
	for _, p := range tokens {
		id, err := v.node.CheckContainer(token.FromProto(p))
		if err != nil {
			return nil, nil, err
		}
		if err = nm.MayTouch(v.id, id.ID, "update"); err == nil {
			err = v.node.Do(
				now,
				nm.Update{ID: id.ID, Version: id.Version, Resource: id.Resource, Execution: id.Execution},
			)
		}
		if err != nil {
			failed = append(failed, failure(id.ID, err))
			continue
		}
		succeeded = append(succeeded, pb.FromContainerID(id.ID))
	}
	return succeeded, failed, nil
}

func (d *handler) IncreaseContainersResource(
	ctx context.Context,
	req *pb.IncreaseContainersResourceRequestProto,
) (*pb.IncreaseContainersResourceResponseProto, error) {
	ok, failed, err := d.update(ctx, req.GetIncreaseContainers())
	return &pb.IncreaseContainersResourceResponseProto{SucceededRequests: ok, FailedRequests: failed}, err
}

func (d *handler) UpdateContainer(
	ctx context.Context,
	req *pb.ContainerUpdateRequestProto,
) (*pb.ContainerUpdateResponseProto, error) {
	ok, failed, err := d.update(ctx, req.GetUpdateContainerToken())
	return &pb.ContainerUpdateResponseProto{SucceededRequests: ok, FailedRequests: failed}, err
}

func (d *handler) SignalToContainer(
	ctx context.Context,
	req *pb.SignalContainerRequestProto,
) (*pb.SignalContainerResponseProto, error) {
	v, id := visitorOf(ctx), pb.ToContainerID(req.GetContainerId())
	if err := nm.MayTouch(v.id, id, "signal"); err != nil {
		return nil, err
	}
	v.node.Signal(time.Now(), id, req.GetCommand())
	return &pb.SignalContainerResponseProto{}, nil
}

// exceptionFor converts the machine's errors to YARN's exceptions.
func exceptionFor(err error) error {
	e, ok := err.(*creel.Error)
	if !ok {
		return err
	}
	switch e.Kind {
	case nm.ErrAuxService:
		return yarnrpc.Throw(yarnrpc.ClassInvalidAuxService, err)
	case creel.ErrUnavailable:
		return yarnrpc.Throw(yarnrpc.ClassNodeNotYetReady, err)
	case creel.ErrStale:
		return yarnrpc.Throw(yarnrpc.ClassInvalidContainer, err)
	case creel.ErrContainerNotFound, creel.ErrNotPermitted:
		return yarnrpc.Throw(yarnrpc.ClassYarn, err)
	}
	return err
}
