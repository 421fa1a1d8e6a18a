// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

// AdminHandler serves ResourceManagerAdministrationProtocol over a server. Who
// may administer members is for each of them to say: calls go there in the caller's
// name. The calls about the federation's own records (federation.go) are for the
// operator to permit.
type AdminHandler struct {
	yarnrpc.UnimplementedResourceManagerAdministrationProtocol
	server   *server.Server
	operator *operator.Operator
	own      map[string]func() error
}

// AdminService is the protocol's table for an hrpc server. own is what the router itself
// reads anew when its administrators put a refresh to all members, by the calls' names.
func AdminService(s *server.Server, o *operator.Operator, own map[string]func() error) hrpc.Service {
	h := &AdminHandler{server: s, operator: o, own: own}
	table := yarnrpc.ResourceManagerAdministrationProtocolService(h)
	for name, named := range broadcasts {
		table.Methods[name] = hrpc.Method{Raw: h.broadcast(name, named)}
	}
	return table
}

// broadcasts are the orders that go to every member, or to the one they name.
var broadcasts = map[string]func([]byte) (string, error){
	"refreshQueues":                       named[yarnpb.RefreshQueuesRequestProto],
	"refreshNodes":                        named[yarnpb.RefreshNodesRequestProto],
	"refreshSuperUserGroupsConfiguration": named[yarnpb.RefreshSuperUserGroupsConfigurationRequestProto],
	"refreshUserToGroupsMappings":         named[yarnpb.RefreshUserToGroupsMappingsRequestProto],
	"refreshAdminAcls":                    named[yarnpb.RefreshAdminAclsRequestProto],
	"refreshServiceAcls":                  named[yarnpb.RefreshServiceAclsRequestProto],
	"refreshNodesResources":               named[yarnpb.RefreshNodesResourcesRequestProto],
	"addToClusterNodeLabels":              named[yarnpb.AddToClusterNodeLabelsRequestProto],
	"removeFromClusterNodeLabels":         named[yarnpb.RemoveFromClusterNodeLabelsRequestProto],
	"refreshClusterMaxPriority":           named[yarnpb.RefreshClusterMaxPriorityRequestProto],
}

// named is the member that a request names, "" for all.
func named[T any, M interface {
	vt[T]
	GetSubClusterId() string
}](request []byte) (string, error) {
	m := M(new(T))
	if err := m.UnmarshalVT(request); err != nil {
		return "", badMessage(err)
	}
	return m.GetSubClusterId(), nil
}

// asked puts an order to every member, or to the one named. An order must be
// carried out everywhere: one member that did not makes it an error, which
// says who did not and that the others did.
func (h *AdminHandler) asked(
	ctx context.Context,
	method, only string,
	request func(*remote.Member) ([]byte, error),
) ([]router.Part[[]byte], error) {
	parts := server.Ask(ctx, h.server, func(ctx context.Context, m *remote.Member) ([]byte, error) {
		if only != "" && string(m.ID) != only {
			return nil, nil
		}
		body, err := request(m)
		if err != nil || body == nil {
			return nil, err
		}
		return m.Admin(ctx, user(ctx), method, body)
	})
	if only != "" {
		parts = slices.DeleteFunc(parts, func(p router.Part[[]byte]) bool { return string(p.Member) != only })
		if len(parts) == 0 {
			return nil, &creel.Error{
				Kind: creel.ErrSubclusterNotFound,
				What: fmt.Sprintf("%s: there is no subcluster %q", method, only),
				Try:  "see `creel subcluster list`",
			}
		}
	}
	var failed []string
	var first error
	for _, p := range parts {
		if p.Err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", p.Member, p.Err))
			if first == nil {
				first = p.Err
			}
		}
	}
	switch {
	case len(parts) == 0:
		return nil, missingError(method, "no subcluster has registered")
	case first == nil:
		return parts, nil
	case len(failed) == len(parts) && len(parts) == 1:
		return nil, first // as the one that was asked says it
	}
	var silent *remote.Unavailable
	if len(failed) == len(parts) && !errors.As(first, &silent) {
		return nil, first
	}
	return nil, &creel.Error{
		Kind: creel.ErrUnavailable,
		What: fmt.Sprintf("%s was not carried out in %d of %d subclusters", method, len(failed), len(parts)),
		Why:  strings.Join(failed, "; "),
		Try:  "again when they are well; in the others it is done",
	}
}

func (h *AdminHandler) broadcast(method string, only func([]byte) (string, error)) hrpc.RawHandler {
	return func(ctx context.Context, request []byte) ([]byte, error) {
		member, err := only(request)
		if err != nil {
			return nil, err
		}
		audit.NoteOf(ctx).Target = member
		// Whatever the members answer: the router's lists are its own.
		if member == "" && h.operator.Permits(user(ctx)) {
			if err := h.refresh(method); err != nil {
				return nil, err
			}
		}
		parts, err := h.asked(ctx, method, member, func(*remote.Member) ([]byte, error) { return request, nil })
		if err != nil {
			return nil, err
		}
		return parts[0].Value, nil
	}
}

// refresh reads anew what the router itself has of what a refresh is about.
func (h *AdminHandler) refresh(method string) error {
	if method == "refreshAdminAcls" {
		return h.operator.Refresh()
	}
	if own := h.own[method]; own != nil {
		return own()
	}
	return nil
}

// GetGroupsForUser joins the groups that the members see a user in.
func (h *AdminHandler) GetGroupsForUser(
	ctx context.Context,
	req *yarnpb.GetGroupsForUserRequestProto,
) (*yarnpb.GetGroupsForUserResponseProto, error) {
	body, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	parts, err := h.asked(ctx, "getGroupsForUser", "", func(*remote.Member) ([]byte, error) { return body, nil })
	if err != nil {
		return nil, err
	}
	return mergedOrders[yarnpb.GetGroupsForUserResponseProto](h.server, parts)
}

// CheckForDecommissioningNodes joins the nodes on their way out.
func (h *AdminHandler) CheckForDecommissioningNodes(
	ctx context.Context,
	req *yarnpb.CheckForDecommissioningNodesRequestProto,
) (*yarnpb.CheckForDecommissioningNodesResponseProto, error) {
	body, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	parts, err := h.asked(
		ctx,
		"checkForDecommissioningNodes",
		req.GetSubClusterId(),
		func(*remote.Member) ([]byte, error) { return body, nil },
	)
	if err != nil {
		return nil, err
	}
	return mergedOrders[yarnpb.CheckForDecommissioningNodesResponseProto](h.server, parts)
}

// mergedOrders merges what all members answered to an order.
func mergedOrders[T any, M interface {
	*T
	proto.Message
}](s *server.Server, parts []router.Part[[]byte]) (M, error) {
	answers := make([]router.Part[M], len(parts))
	for i, p := range parts {
		answers[i] = router.Part[M]{Member: p.Member, Value: M(new(T))}
		if err := parse(p.Value, answers[i].Value); err != nil {
			return nil, err
		}
	}
	return merge(s, answers), nil
}

// UpdateNodeResource goes to the members that have the nodes.
func (h *AdminHandler) UpdateNodeResource(
	ctx context.Context,
	req *yarnpb.UpdateNodeResourceRequestProto,
) (*yarnpb.UpdateNodeResourceResponseProto, error) {
	err := byNode(
		ctx,
		h,
		"updateNodeResource",
		req.GetSubClusterId(),
		req.GetNodeResourceMap(),
		func(n *yarnpb.NodeResourceMapProto) creel.NodeID { return yarnpb.ToNodeID(n.GetNodeId()) },
		func(part []*yarnpb.NodeResourceMapProto) proto.Message {
			order := proto.CloneOf(req)
			order.NodeResourceMap = part
			return order
		},
	)
	return &yarnpb.UpdateNodeResourceResponseProto{}, err
}

// ReplaceLabelsOnNodes goes to the members that have the nodes.
func (h *AdminHandler) ReplaceLabelsOnNodes(
	ctx context.Context,
	req *yarnpb.ReplaceLabelsOnNodeRequestProto,
) (*yarnpb.ReplaceLabelsOnNodeResponseProto, error) {
	err := byNode(
		ctx,
		h,
		"replaceLabelsOnNodes",
		req.GetSubClusterId(),
		req.GetNodeToLabels(),
		func(n *yarnpb.NodeIdToLabelsProto) creel.NodeID { return yarnpb.ToNodeID(n.GetNodeId()) },
		func(part []*yarnpb.NodeIdToLabelsProto) proto.Message {
			order := proto.CloneOf(req)
			order.NodeToLabels = part
			return order
		},
	)
	return &yarnpb.ReplaceLabelsOnNodeResponseProto{}, err
}

// MapAttributesToNodes goes to the members that have the hosts.
func (h *AdminHandler) MapAttributesToNodes(
	ctx context.Context,
	req *yarnpb.NodesToAttributesMappingRequestProto,
) (*yarnpb.NodesToAttributesMappingResponseProto, error) {
	err := byNode(
		ctx,
		h,
		"mapAttributesToNodes",
		req.GetSubClusterId(),
		req.GetNodeToAttributes(),
		func(n *yarnpb.NodeToAttributesProto) creel.NodeID { return creel.NodeID{Host: n.GetNode()} },
		func(part []*yarnpb.NodeToAttributesProto) proto.Message {
			order := proto.CloneOf(req)
			order.NodeToAttributes = part
			return order
		},
	)
	return &yarnpb.NodesToAttributesMappingResponseProto{}, err
}

// byNode gives each member the items about its nodes. What is about a node
// that no member has goes to all, so that the caller gets a ResourceManager's
// own words on it.
func byNode[T any](
	ctx context.Context,
	h *AdminHandler,
	method, only string,
	items []T,
	node func(T) creel.NodeID,
	request func(part []T) proto.Message,
) error {
	has := func(ctx context.Context, m *remote.Member) (map[string]bool, error) {
		body, err := proto.Marshal(&yarnpb.GetClusterNodesRequestProto{})
		if err != nil {
			return nil, err
		}
		answer, err := m.Client(ctx, remote.List, user(ctx), "getClusterNodes", body)
		if err != nil {
			return nil, err
		}
		var nodes yarnpb.GetClusterNodesResponseProto
		if err := parse(answer, &nodes); err != nil {
			return nil, err
		}
		set := map[string]bool{}
		for _, n := range nodes.GetNodeReports() {
			id := yarnpb.ToNodeID(n.GetNodeId())
			set[id.String()], set[id.Host] = true, true
		}
		return set, nil
	}
	owner := map[string]creel.SubclusterID{}
	sets := server.Ask(ctx, h.server, has)
	for _, item := range items {
		id := node(item)
		for _, s := range sets {
			if s.Value[id.String()] || id.Port == 0 && s.Value[id.Host] {
				owner[id.String()] = s.Member
				break
			}
		}
	}
	_, err := h.asked(ctx, method, only, func(m *remote.Member) ([]byte, error) {
		var part []T
		for _, item := range items {
			if at, known := owner[node(item).String()]; !known || at == m.ID {
				part = append(part, item)
			}
		}
		if len(part) == 0 {
			return nil, nil
		}
		return proto.Marshal(request(part))
	})
	return err
}
