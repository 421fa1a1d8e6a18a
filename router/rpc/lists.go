// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster/remote"
)

// parse decodes a message, by its fast parser if it has one.
func parse(b []byte, m proto.Message) error {
	if fast, ok := m.(interface{ UnmarshalVT([]byte) error }); ok {
		return fast.UnmarshalVT(b)
	}
	return proto.Unmarshal(b, m)
}

// ask sends one request to all members and parses their answers. A message cannot name missing members. So if a
// member's part is missing, the result is an error of kind creel.ErrIncomplete that names the member, unless the
// router's settings allow partial answers. A member that rejects the call has no part either, unless it reports that
// the requested item does not exist there. If none answers and all rejections are alike, the error is that rejection:
// it concerns the caller. A lost member is left out, as in Hadoop's router.
func ask[T any, M interface {
	*T
	proto.Message
}](ctx context.Context, h *Handler, kind remote.Kind, method string, request proto.Message) ([]router.Part[M], error) {
	body, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	return askAll(ctx, h, kind, method, func(_ creel.SubclusterID, send sender) (M, error) {
		return parsed[T, M](send(body))
	})
}

// parsed decodes an answer's bytes, if there is no error.
func parsed[T any, M interface {
	*T
	proto.Message
}](b []byte, err error) (M, error) {
	if err != nil {
		return nil, err
	}
	answer := M(new(T))
	return answer, parse(b, answer)
}

// sender sends a request to a member and returns its answer.
type sender func(request []byte) (answer []byte, err error)

// askAll returns for each member the result of of, which makes calls to it. It returns the parts also with an error.
func askAll[V any](
	ctx context.Context,
	h *Handler,
	kind remote.Kind,
	method string,
	of func(member creel.SubclusterID, send sender) (V, error),
) ([]router.Part[V], error) {
	parts := server.Ask(ctx, h.server, func(ctx context.Context, m *remote.Member) (V, error) {
		return of(m.ID, func(request []byte) ([]byte, error) {
			return m.Client(ctx, kind, user(ctx), method, request)
		})
	})
	if err := ctx.Err(); err != nil {
		return parts, err // the client has gone, so nothing is merged
	}
	return parts, without(h, method, parts)
}

// pick converts parts to parts of one field of their values.
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

// GetClusterNodes lists the nodes of all members.
func (h *Handler) GetClusterNodes(
	ctx context.Context,
	req *yarnpb.GetClusterNodesRequestProto,
) (*yarnpb.GetClusterNodesResponseProto, error) {
	parts, err := ask[yarnpb.GetClusterNodesResponseProto](ctx, h, remote.List, "getClusterNodes", req)
	if err != nil {
		return nil, err
	}
	nodes, _ := router.MergeNodes(pick(parts, (*yarnpb.GetClusterNodesResponseProto).GetNodeReports),
		func(n *yarnpb.NodeReportProto) creel.NodeID { return yarnpb.ToNodeID(n.GetNodeId()) },
		(*yarnpb.NodeReportProto).GetLastHealthReportTime)
	return &yarnpb.GetClusterNodesResponseProto{NodeReports: nodes}, nil
}

// GetClusterMetrics merges the node counts.
func (h *Handler) GetClusterMetrics(
	ctx context.Context,
	req *yarnpb.GetClusterMetricsRequestProto,
) (*yarnpb.GetClusterMetricsResponseProto, error) {
	return merged[yarnpb.GetClusterMetricsResponseProto](ctx, h, remote.Read, "getClusterMetrics", req)
}

// GetQueueInfo merges the members' queues of that name.
func (h *Handler) GetQueueInfo(
	ctx context.Context,
	req *yarnpb.GetQueueInfoRequestProto,
) (*yarnpb.GetQueueInfoResponseProto, error) {
	yarnrpc.Parts(req) // this and the next call remove fields that only routers set
	if _, err := yarnrpc.PlacementAsked(req); err != nil {
		return nil, badMessage(err)
	}
	body, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	body = yarnrpc.WithParts(body)
	parts, err := askAll(ctx, h, remote.Read, "getQueueInfo",
		func(_ creel.SubclusterID, send sender) (*yarnpb.GetQueueInfoResponseProto, error) {
			return parsed[yarnpb.GetQueueInfoResponseProto](send(body))
		})
	if err != nil {
		return nil, err
	}
	present, _ := router.Present(parts)
	apps := make([]router.Part[[]*yarnpb.ApplicationReportProto], len(present))
	for i, p := range present {
		q := p.Value.GetQueueInfo()
		apps[i] = router.Part[[]*yarnpb.ApplicationReportProto]{Member: p.Member, Value: q.GetApplications()}
		if q != nil {
			q.Applications = nil // applications are one list, merged separately
		}
	}
	one := merge(h.server, present)
	if one.QueueInfo != nil {
		one.QueueInfo.Applications = joinReports(h.server, apps)
	}
	return one, nil
}

// GetQueueUserAcls joins the caller's permissions, by queue.
func (h *Handler) GetQueueUserAcls(
	ctx context.Context,
	req *yarnpb.GetQueueUserAclsInfoRequestProto,
) (*yarnpb.GetQueueUserAclsInfoResponseProto, error) {
	return merged[yarnpb.GetQueueUserAclsInfoResponseProto](ctx, h, remote.Read, "getQueueUserAcls", req)
}

// GetResourceTypeInfo joins the resource types of all members.
func (h *Handler) GetResourceTypeInfo(
	ctx context.Context,
	req *yarnpb.GetAllResourceTypeInfoRequestProto,
) (*yarnpb.GetAllResourceTypeInfoResponseProto, error) {
	return merged[yarnpb.GetAllResourceTypeInfoResponseProto](ctx, h, remote.Read, "getResourceTypeInfo", req)
}

// GetContainers lists an attempt's containers in all members (server.Containers).
func (h *Handler) GetContainers(
	ctx context.Context,
	req *yarnpb.GetContainersRequestProto,
) (*yarnpb.GetContainersResponseProto, error) {
	attempt := yarnpb.ToAttemptID(req.GetApplicationAttemptId())
	if attempt.Application.IsZero() {
		return nil, &creel.Error{Kind: creel.ErrInvalidRequest, What: "the request names no application"}
	}
	type answer = *yarnpb.GetContainersResponseProto
	lists, err := server.Containers(ctx, h.server, attempt,
		func(ctx context.Context, m *remote.Member, at creel.AttemptID) (answer, error) {
			ask := req
			if at != attempt {
				ask = &yarnpb.GetContainersRequestProto{ApplicationAttemptId: yarnpb.FromAttemptID(at)}
			}
			body, err := proto.Marshal(ask)
			if err != nil {
				return nil, err
			}
			return parsed[yarnpb.GetContainersResponseProto](
				m.Client(ctx, remote.Read, user(ctx), "getContainers", body))
		})
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err // the client has gone, so nothing is merged
	}
	if err := without(h, "getContainers", lists); err != nil {
		return nil, err
	}
	present, _ := router.Present(lists)
	return merge(h.server, present), nil
}

// GetContainerReport asks home first, then the members that may run a UAM.
func (h *Handler) GetContainerReport(
	ctx context.Context,
	req *yarnpb.GetContainerReportRequestProto,
) (*yarnpb.GetContainerReportResponseProto, error) {
	answer := &yarnpb.GetContainerReportResponseProto{}
	return answer, h.owner(
		ctx,
		yarnpb.ToContainerID(req.GetContainerId()),
		remote.Read,
		"getContainerReport",
		req,
		answer,
	)
}

// SignalToContainer goes to the member that runs the container. A member that does not know the container may have
// been restarted and wait for its node. Then creel's ResourceManager accepts the signal.
func (h *Handler) SignalToContainer(
	ctx context.Context,
	req *yarnpb.SignalContainerRequestProto,
) (*yarnpb.SignalContainerResponseProto, error) {
	id := yarnpb.ToContainerID(req.GetContainerId())
	i := intents.Intent{
		Application: id.Attempt.Application, Verb: intents.Signal, User: user(ctx),
		Container: id, Command: int32(req.GetCommand()),
	}
	if i.Application.IsZero() {
		return nil, &creel.Error{Kind: creel.ErrInvalidRequest, What: "the request names no application"}
	}
	look, err := proto.Marshal(&yarnpb.GetContainerReportRequestProto{ContainerId: req.GetContainerId()})
	if err != nil {
		return nil, err
	}
	signal, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	send := func(ctx context.Context, m *remote.Member) (bool, error) {
		_, err := m.Client(ctx, remote.Write, i.User, "signalToContainer", signal)
		return err == nil, err
	}
	_, kept, err := server.Signal(ctx, h.server, i, func(ctx context.Context, m *remote.Member) (bool, error) {
		// Hadoop's rejection of a signal does not show that the container is missing.
		if _, err := m.Client(ctx, remote.Read, i.User, "getContainerReport", look); err != nil {
			return false, err
		}
		return send(ctx, m)
	})
	if errors.Is(err, creel.ErrContainerNotFound) && kept == nil {
		if _, refused := server.AtHolder(ctx, h.server, i.Application, send); refused == nil {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	return &yarnpb.SignalContainerResponseProto{}, nil
}

// owner calls home and, if home does not know the container, the other members until one does. The error is home's.
func (h *Handler) owner(
	ctx context.Context,
	id creel.ContainerID,
	kind remote.Kind,
	method string,
	req, answer proto.Message,
) error {
	app := id.Attempt.Application
	if app.IsZero() {
		return &creel.Error{Kind: creel.ErrInvalidRequest, What: "the request names no application"}
	}
	body, err := proto.Marshal(req)
	if err != nil {
		return err
	}
	b, err := server.AtHolder(ctx, h.server, app, func(ctx context.Context, m *remote.Member) ([]byte, error) {
		return m.Client(ctx, kind, user(ctx), method, body)
	})
	if err != nil {
		return err
	}
	return parse(b, answer)
}
