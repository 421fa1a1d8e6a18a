// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/gateway"
	"github.com/creelrm/creel/subcluster/remote"
)

// parse fills a message from bytes by its fast parser where it has one.
func parse(b []byte, m proto.Message) error {
	if fast, ok := m.(interface{ UnmarshalVT([]byte) error }); ok {
		return fast.UnmarshalVT(b)
	}
	return proto.Unmarshal(b, m)
}

// ask puts one request to all members and parses their answers. When none
// answers, the first refusal is the error: an exception every member agrees on
// is the caller's.
func ask[T any, M interface {
	*T
	proto.Message
}](ctx context.Context, d *Door, kind remote.Kind, method string, request proto.Message) ([]router.Part[M], error) {
	body, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	parts := gateway.Ask(ctx, d.gate, func(ctx context.Context, m *remote.Member) (M, error) {
		b, err := m.Client(ctx, kind, user(ctx), method, body)
		if err != nil {
			return nil, err
		}
		answer := M(new(T))
		return answer, parse(b, answer)
	})
	present, missing := router.Present(parts)
	if len(present) > 0 {
		return parts, nil
	}
	for _, p := range parts {
		var silent *remote.Unavailable
		if p.Err != nil && !errors.As(p.Err, &silent) {
			return nil, p.Err
		}
	}
	return nil, missingError(method, router.MissingText(missing))
}

// pick turns parts of an answer into parts of one of its fields.
func pick[T, V any](parts []router.Part[T], field func(T) V) []router.Part[V] {
	out := make([]router.Part[V], len(parts))
	for i, p := range parts {
		out[i] = router.Part[V]{Member: p.Member, Err: p.Err}
		if p.Err == nil {
			out[i].Value = field(p.Value)
		}
	}
	return out
}

// GetApplications lists the applications of all members, each once.
func (d *Door) GetApplications(
	ctx context.Context,
	req *yarnpb.GetApplicationsRequestProto,
) (*yarnpb.GetApplicationsResponseProto, error) {
	parts, err := ask[yarnpb.GetApplicationsResponseProto](ctx, d, remote.List, "getApplications", req)
	if err != nil {
		return nil, err
	}
	limit := 0
	if req.Limit != nil && req.GetLimit() < 1<<31 {
		limit = int(req.GetLimit())
	}
	apps, _ := router.MergeApps(
		pick(parts, (*yarnpb.GetApplicationsResponseProto).GetApplications),
		appFields(d.gate),
		d.gate.HomeSeen,
		limit,
	)
	return &yarnpb.GetApplicationsResponseProto{Applications: apps}, nil
}

// GetClusterNodes lists the nodes of all members.
func (d *Door) GetClusterNodes(
	ctx context.Context,
	req *yarnpb.GetClusterNodesRequestProto,
) (*yarnpb.GetClusterNodesResponseProto, error) {
	parts, err := ask[yarnpb.GetClusterNodesResponseProto](ctx, d, remote.List, "getClusterNodes", req)
	if err != nil {
		return nil, err
	}
	nodes, _ := router.MergeNodes(pick(parts, (*yarnpb.GetClusterNodesResponseProto).GetNodeReports),
		func(n *yarnpb.NodeReportProto) creel.NodeID { return yarnpb.ToNodeID(n.GetNodeId()) },
		(*yarnpb.NodeReportProto).GetLastHealthReportTime)
	return &yarnpb.GetClusterNodesResponseProto{NodeReports: nodes}, nil
}

// GetClusterMetrics merges the node counts.
func (d *Door) GetClusterMetrics(
	ctx context.Context,
	req *yarnpb.GetClusterMetricsRequestProto,
) (*yarnpb.GetClusterMetricsResponseProto, error) {
	return merged[yarnpb.GetClusterMetricsResponseProto](ctx, d, remote.Read, "getClusterMetrics", req)
}

// GetQueueInfo makes one queue of the members' queues of that name.
func (d *Door) GetQueueInfo(
	ctx context.Context,
	req *yarnpb.GetQueueInfoRequestProto,
) (*yarnpb.GetQueueInfoResponseProto, error) {
	return merged[yarnpb.GetQueueInfoResponseProto](ctx, d, remote.Read, "getQueueInfo", req)
}

// GetQueueUserAcls joins what the caller may do, by queue.
func (d *Door) GetQueueUserAcls(
	ctx context.Context,
	req *yarnpb.GetQueueUserAclsInfoRequestProto,
) (*yarnpb.GetQueueUserAclsInfoResponseProto, error) {
	return merged[yarnpb.GetQueueUserAclsInfoResponseProto](ctx, d, remote.Read, "getQueueUserAcls", req)
}

// GetResourceTypeInfo joins the resource types of all members.
func (d *Door) GetResourceTypeInfo(
	ctx context.Context,
	req *yarnpb.GetAllResourceTypeInfoRequestProto,
) (*yarnpb.GetAllResourceTypeInfoResponseProto, error) {
	return merged[yarnpb.GetAllResourceTypeInfoResponseProto](ctx, d, remote.Read, "getResourceTypeInfo", req)
}

// GetContainers lists an attempt's containers at its home and at every member
// with a twin of it.
func (d *Door) GetContainers(
	ctx context.Context,
	req *yarnpb.GetContainersRequestProto,
) (*yarnpb.GetContainersResponseProto, error) {
	home, err := d.homeOf(ctx, yarnpb.ToApplicationID(req.GetApplicationAttemptId().GetApplicationId()))
	if err != nil {
		return nil, err
	}
	parts, err := ask[yarnpb.GetContainersResponseProto](ctx, d, remote.Read, "getContainers", req)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if p.Member == home.ID && p.Err != nil {
			return nil, p.Err // the home's answer is the one that counts
		}
	}
	present, _ := router.Present(parts)
	return merge(d.gate, present), nil
}

// GetContainerReport asks home first, then whoever may run a twin.
func (d *Door) GetContainerReport(
	ctx context.Context,
	req *yarnpb.GetContainerReportRequestProto,
) (*yarnpb.GetContainerReportResponseProto, error) {
	answer := &yarnpb.GetContainerReportResponseProto{}
	return answer, d.whoever(
		ctx,
		yarnpb.ToContainerID(req.GetContainerId()),
		remote.Read,
		"getContainerReport",
		req,
		answer,
	)
}

// SignalToContainer goes to the member that runs the container.
func (d *Door) SignalToContainer(
	ctx context.Context,
	req *yarnpb.SignalContainerRequestProto,
) (*yarnpb.SignalContainerResponseProto, error) {
	answer := &yarnpb.SignalContainerResponseProto{}
	report := &yarnpb.GetContainerReportResponseProto{}
	id := yarnpb.ToContainerID(req.GetContainerId())
	if err := d.whoever(
		ctx,
		id,
		remote.Read,
		"getContainerReport",
		&yarnpb.GetContainerReportRequestProto{ContainerId: req.GetContainerId()},
		report,
	); err != nil {
		return nil, err
	}
	return answer, d.whoever(ctx, id, remote.Write, "signalToContainer", req, answer)
}

// whoever calls home, and if home does not know the container the other
// members, until one does. The error is home's.
func (d *Door) whoever(
	ctx context.Context,
	id creel.ContainerID,
	kind remote.Kind,
	method string,
	req, answer proto.Message,
) error {
	home, err := d.homeOf(ctx, id.Attempt.Application)
	if err != nil {
		return err
	}
	body, err := proto.Marshal(req)
	if err != nil {
		return err
	}
	b, homeErr := home.Client(ctx, kind, user(ctx), method, body)
	if homeErr == nil {
		return parse(b, answer)
	}
	for _, p := range gateway.Ask(ctx, d.gate, func(ctx context.Context, m *remote.Member) ([]byte, error) {
		if m.ID == home.ID {
			return nil, homeErr
		}
		return m.Client(ctx, kind, user(ctx), method, body)
	}) {
		if p.Err == nil {
			return parse(p.Value, answer)
		}
	}
	return homeErr
}
