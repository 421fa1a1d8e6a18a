// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/gateway"
	"github.com/creelrm/creel/subcluster"
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

// AppFields reads application reports for the merge rule.
var AppFields = router.AppFields[*yarnpb.ApplicationReportProto]{
	ID: func(r *yarnpb.ApplicationReportProto) creel.ApplicationID {
		return yarnpb.ToApplicationID(r.GetApplicationId())
	},
	Unmanaged: func(r *yarnpb.ApplicationReportProto) bool { return r.GetUnmanagedApplication() },
	Start:     func(r *yarnpb.ApplicationReportProto) int64 { return r.GetStartTime() },
	Add: func(home, twin *yarnpb.ApplicationReportProto) *yarnpb.ApplicationReportProto {
		a, b := home.GetAppResource_Usage(), twin.GetAppResource_Usage()
		if b == nil {
			return home
		}
		if a == nil {
			a = &yarnpb.ApplicationResourceUsageReportProto{}
			home.AppResource_Usage = a
		}
		// -1 means "not known" in all of these.
		addInt(&a.NumUsedContainers, b.NumUsedContainers)
		addInt(&a.NumReservedContainers, b.NumReservedContainers)
		addInt(&a.MemorySeconds, b.MemorySeconds)
		addInt(&a.VcoreSeconds, b.VcoreSeconds)
		addInt(&a.PreemptedMemorySeconds, b.PreemptedMemorySeconds)
		addInt(&a.PreemptedVcoreSeconds, b.PreemptedVcoreSeconds)
		a.UsedResources = addResource(a.UsedResources, b.UsedResources)
		a.ReservedResources = addResource(a.ReservedResources, b.ReservedResources)
		a.NeededResources = addResource(a.NeededResources, b.NeededResources)
		return home
	},
}

func addInt[N int32 | int64](to **N, v *N) {
	if v == nil || *v < 0 {
		return
	}
	sum := *v
	if *to != nil && **to > 0 {
		sum += **to
	}
	*to = &sum
}

func addResource(a, b *yarnpb.ResourceProto) *yarnpb.ResourceProto {
	x, y := yarnpb.ToResource(a), yarnpb.ToResource(b)
	if b == nil || y.IsNegative() {
		return a
	}
	if a == nil || x.IsNegative() {
		return b
	}
	return yarnpb.FromResource(x.Add(y))
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
		AppFields,
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

// GetClusterMetrics adds up the node counts.
func (d *Door) GetClusterMetrics(
	ctx context.Context,
	req *yarnpb.GetClusterMetricsRequestProto,
) (*yarnpb.GetClusterMetricsResponseProto, error) {
	parts, err := ask[yarnpb.GetClusterMetricsResponseProto](ctx, d, remote.Read, "getClusterMetrics", req)
	if err != nil {
		return nil, err
	}
	sum, _ := router.MergeMetrics(pick(parts, func(r *yarnpb.GetClusterMetricsResponseProto) subcluster.ClusterMetrics {
		m := r.GetClusterMetrics()
		return subcluster.ClusterMetrics{
			TotalNodes:          int64(m.GetNumNodeManagers()),
			DecommissionedNodes: int64(m.GetNumDecommissionedNms()),
			ActiveNodes: int64(
				m.GetNumActiveNms(),
			),
			LostNodes:      int64(m.GetNumLostNms()),
			UnhealthyNodes: int64(m.GetNumUnhealthyNms()),
			RebootedNodes: int64(
				m.GetNumRebootedNms(),
			),
			DecommissioningNodes: int64(m.GetNumDecommissioningNms()),
			ShutdownNodes:        int64(m.GetNumShutdownNms()),
		}
	}))
	n := func(v int64) *int32 { return proto.Int32(int32(min(v, 1<<31-1))) }
	return &yarnpb.GetClusterMetricsResponseProto{ClusterMetrics: &yarnpb.YarnClusterMetricsProto{
		NumNodeManagers: n(
			sum.TotalNodes,
		),
		NumDecommissionedNms: n(sum.DecommissionedNodes),
		NumActiveNms:         n(sum.ActiveNodes),
		NumLostNms:           n(sum.LostNodes),
		NumUnhealthyNms: n(
			sum.UnhealthyNodes,
		),
		NumRebootedNms:        n(sum.RebootedNodes),
		NumDecommissioningNms: n(sum.DecommissioningNodes),
		NumShutdownNms:        n(sum.ShutdownNodes),
	}}, nil
}

// GetQueueUserAcls joins what the caller may do, by queue.
func (d *Door) GetQueueUserAcls(
	ctx context.Context,
	req *yarnpb.GetQueueUserAclsInfoRequestProto,
) (*yarnpb.GetQueueUserAclsInfoResponseProto, error) {
	parts, err := ask[yarnpb.GetQueueUserAclsInfoResponseProto](ctx, d, remote.Read, "getQueueUserAcls", req)
	if err != nil {
		return nil, err
	}
	acls := union(
		pick(parts, (*yarnpb.GetQueueUserAclsInfoResponseProto).GetQueueUserAcls),
		(*yarnpb.QueueUserACLInfoProto).GetQueueName,
		func(a, b *yarnpb.QueueUserACLInfoProto) {
			for _, acl := range b.GetUserAcls() {
				if !slices.Contains(a.UserAcls, acl) {
					a.UserAcls = append(a.UserAcls, acl)
				}
			}
		},
	)
	return &yarnpb.GetQueueUserAclsInfoResponseProto{QueueUserAcls: acls}, nil
}

// GetResourceTypeInfo joins the resource types of all members.
func (d *Door) GetResourceTypeInfo(
	ctx context.Context,
	req *yarnpb.GetAllResourceTypeInfoRequestProto,
) (*yarnpb.GetAllResourceTypeInfoResponseProto, error) {
	parts, err := ask[yarnpb.GetAllResourceTypeInfoResponseProto](ctx, d, remote.Read, "getResourceTypeInfo", req)
	if err != nil {
		return nil, err
	}
	types := union(
		pick(parts, (*yarnpb.GetAllResourceTypeInfoResponseProto).GetResourceTypeInfo),
		(*yarnpb.ResourceTypeInfoProto).GetName,
		nil,
	)
	return &yarnpb.GetAllResourceTypeInfoResponseProto{ResourceTypeInfo: types}, nil
}

// union joins lists by key; of equal keys the first stays, and join adds the other to it.
func union[T any, K cmp.Ordered](parts []router.Part[[]T], key func(T) K, join func(kept, other T)) (out []T) {
	present, _ := router.Present(parts)
	at := map[K]int{}
	for _, p := range present {
		for _, v := range p.Value {
			if i, there := at[key(v)]; there {
				if join != nil {
					join(out[i], v)
				}
				continue
			}
			at[key(v)] = len(out)
			out = append(out, v)
		}
	}
	return out
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
	for i, p := range parts {
		if p.Member == home.ID && p.Err != nil {
			return nil, p.Err // the home's answer is the one that counts
		}
		parts[i] = p
	}
	return &yarnpb.GetContainersResponseProto{
		Containers: union(
			pick(parts, (*yarnpb.GetContainersResponseProto).GetContainers),
			func(c *yarnpb.ContainerReportProto) string { return yarnpb.ToContainerID(c.GetContainerId()).String() },
			nil,
		),
	}, nil
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
