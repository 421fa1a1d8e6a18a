// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/nm"
)

// handler is ContainerManagementProtocol of all nodes of a Farm.
type handler struct {
	yarnrpc.UnimplementedContainerManagementProtocol
	farm *Farm
}

// visitor is who is at the other end, by its NMToken.
type visitor struct {
	node *node
	id   token.NM
}

func (f *Farm) checkNMToken(identifier []byte) ([]byte, hrpc.Identity, error) {
	id, err := token.ParseNM(identifier)
	if err != nil {
		return nil, hrpc.Identity{}, err
	}
	n := f.byID[id.Node]
	if n == nil {
		return nil, hrpc.Identity{}, refuse(
			creel.ErrInvalidToken,
			"Given NMToken for application : %s is not valid for current node manager. The token is for %s",
			id.Attempt,
			id.Node,
		)
	}
	n.mu.Lock()
	key := token.KeyFrom(n.m.NMKey(id.Attempt, id.KeyID))
	n.mu.Unlock()
	if key.IsZero() {
		return nil, hrpc.Identity{}, refuse(
			creel.ErrInvalidToken,
			"Given NMToken for application : %s seems to have been generated illegally: key %d is not known",
			id.Attempt,
			id.KeyID,
		)
	}
	return key.Password(
			identifier,
		), hrpc.Identity{
			User:      id.Attempt.String(),
			TokenKind: token.KindNM,
			Value:     &visitor{node: n, id: id},
		}, nil
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
		id, err := v.node.verify(token.FromProto(r.GetContainerToken()))
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

// verify checks a container token's signature and node.
func (n *node) verify(t token.Token) (token.Container, error) {
	id, err := token.ParseContainer(t.Identifier)
	if err != nil {
		return id, err
	}
	n.mu.Lock()
	key := token.KeyFrom(n.m.ContainerKey(id.KeyID))
	n.mu.Unlock()
	switch {
	case key.IsZero() || !key.Verify(t.Identifier, t.Password):
		return id, refuse(
			creel.ErrInvalidToken,
			"Given Container %s seems to have an illegally generated token.",
			id.ID,
		)
	case id.Node != n.m.ID():
		return id, refuse(
			creel.ErrInvalidToken,
			"Given Container %s identifier is not valid for current Node manager. Expected : %s Found : %s",
			id.ID,
			n.m.ID(),
			id.Node,
		)
	}
	return id, nil
}

func refuse(kind error, format string, args ...any) error {
	return &creel.Error{Kind: kind, What: fmt.Sprintf(format, args...)}
}

func (d *handler) start(v *visitor, now time.Time, id token.Container, launch *pb.ContainerLaunchContextProto) error {
	switch {
	case id.ID.Attempt.Application != v.id.Attempt.Application:
		return refuse(
			creel.ErrNotPermitted,
			"Unauthorized request to start container.\nNMToken for application attempt : %s was used for starting container with container token issued for application attempt : %s",
			v.id.Attempt,
			id.ID.Attempt,
		)
	case len(launch.GetServiceData()) > 0 && !knownServices(launch):
		return yarnrpc.Throw(
			yarnrpc.ClassInvalidAuxService,
			refuse(creel.ErrInvalidRequest, "The auxService:%s does not exist", launch.GetServiceData()[0].GetKey()),
		)
	}
	if tokens := launch.GetTokens(); len(tokens) > 0 {
		if _, err := token.ParseCredentials(tokens); err != nil {
			return err
		}
	}
	for _, r := range launch.GetLocalResources() {
		if v := r.GetValue(); v.GetResource() == nil || v.Type == nil || v.Visibility == nil {
			return refuse(
				creel.ErrInvalidRequest,
				"Null resource URL, type or visibility for local resource %s",
				r.GetKey(),
			)
		}
	}
	c := nm.Container{
		ID:        id.ID,
		User:      id.User,
		Resource:  id.Resource,
		Priority:  id.Priority,
		Version:   id.Version,
		Execution: id.Execution,
		AM:        id.AM,
		RequestID: id.AllocationRequestID,
		Created:   id.Created,
	}
	err := v.node.step(
		now,
		nm.Start{Container: c, Launch: launch, RM: id.RMIdentifier, Expires: id.Expires, NMKey: v.id.KeyID},
	)
	return told(err)
}

// knownServices: a simulated node plays the shuffle service, which does nothing.
func knownServices(launch *pb.ContainerLaunchContextProto) bool {
	for _, s := range launch.GetServiceData() {
		if s.GetKey() != "mapreduce_shuffle" && s.GetKey() != "spark_shuffle" {
			return false
		}
	}
	return true
}

func failure(id creel.ContainerID, err error) *pb.ContainerExceptionMapProto {
	return &pb.ContainerExceptionMapProto{
		ContainerId: pb.FromContainerID(id),
		Exception:   yarnrpc.ToSerialized(told(err)),
	}
}

// mine tells whether a container belongs to the visitor's application.
func mine(v *visitor, id creel.ContainerID, verb string) error {
	if id.Attempt.Application != v.id.Attempt.Application {
		return refuse(
			creel.ErrNotPermitted,
			"%s attempted to %s non-application container : %s",
			v.id.Attempt,
			verb,
			id,
		)
	}
	return nil
}

func (d *handler) StopContainers(
	ctx context.Context,
	req *pb.StopContainersRequestProto,
) (*pb.StopContainersResponseProto, error) {
	v, now := visitorOf(ctx), time.Now()
	out := &pb.StopContainersResponseProto{}
	for _, p := range req.GetContainerId() {
		id := pb.ToContainerID(p)
		err := mine(v, id, "stop")
		if err == nil {
			err = v.node.step(now, nm.Stop{ID: id})
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
		err := mine(v, id, "get status for")
		var status *pb.ContainerStatusProto
		if err == nil {
			v.node.mu.Lock()
			status, err = v.node.m.Status(id)
			v.node.mu.Unlock()
		}
		if err != nil {
			out.FailedRequests = append(out.FailedRequests, failure(id, err))
			continue
		}
		out.Status = append(out.Status, status)
	}
	return out, nil
}

// update gives containers the sizes of new tokens.
func (d *handler) update(
	ctx context.Context,
	tokens []*pb.TokenProto,
) (succeeded []*pb.ContainerIdProto, failed []*pb.ContainerExceptionMapProto, err error) {
	v, now := visitorOf(ctx), time.Now()
	for _, p := range tokens {
		id, err := v.node.verify(token.FromProto(p))
		if err != nil {
			return nil, nil, err
		}
		if err = mine(v, id.ID, "update"); err == nil {
			err = v.node.step(
				now,
				nm.Resize{ID: id.ID, Version: id.Version, Resource: id.Resource, Execution: id.Execution},
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
	if err := mine(v, id, "signal"); err != nil {
		return nil, err
	}
	v.node.mu.Lock()
	calls := v.node.perform(time.Now(), nm.SignalContainer{ID: id, Command: req.GetCommand()}, nil)
	v.node.mu.Unlock()
	for _, call := range calls {
		call()
	}
	return &pb.SignalContainerResponseProto{}, nil
}

// told gives the machine's refusals the exceptions that YARN has for them.
func told(err error) error {
	e, ok := err.(*creel.Error)
	if !ok {
		return err
	}
	switch e.Kind {
	case creel.ErrUnavailable:
		return yarnrpc.Throw(yarnrpc.ClassNodeNotYetReady, err)
	case creel.ErrStale:
		return yarnrpc.Throw(yarnrpc.ClassInvalidContainer, err)
	case creel.ErrContainerNotFound, creel.ErrNotPermitted:
		return yarnrpc.Throw(yarnrpc.ClassYarn, err)
	}
	return err
}
