// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"fmt"

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

// AdminHandler serves ResourceManagerAdministrationProtocol. Each member authorizes calls to it: they are sent with
// the caller's name. The operator authorizes calls about the federation's records (federation.go).
type AdminHandler struct {
	yarnrpc.UnimplementedResourceManagerAdministrationProtocol
	server   *server.Server
	operator *operator.Operator
	own      map[string]func() error
}

// AdminService returns the protocol's service for an hrpc server. own has functions that reload the router's files,
// by the name of the refresh call.
func AdminService(s *server.Server, o *operator.Operator, own map[string]func() error) hrpc.Service {
	h := &AdminHandler{server: s, operator: o, own: own}
	table := yarnrpc.ResourceManagerAdministrationProtocolService(h)
	for name, named := range broadcasts {
		table.Methods[name] = hrpc.Method{Raw: h.broadcast(name, named)}
	}
	return table
}

// broadcasts has the orders that go to every member, or to the member that they name.
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

// named returns the member that a request names, "" for all.
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

// asked sends an order to every member, or to the named one. Every member must carry it out. If some did not, the
// error names them (server.CarriedOut).
func (h *AdminHandler) asked(
	ctx context.Context,
	method, only string,
	request []byte,
) ([]router.Part[[]byte], error) {
	concerned := func(id creel.SubclusterID) bool { return only == "" || string(id) == only }
	parts := server.AskSome(ctx, h.server, concerned, func(ctx context.Context, m *remote.Member) ([]byte, error) {
		return m.Admin(ctx, user(ctx), method, request)
	})
	switch {
	case len(parts) > 0:
		return parts, server.CarriedOut(method, parts)
	case only != "":
		return nil, &creel.Error{
			Kind: creel.ErrSubclusterNotFound,
			What: fmt.Sprintf("%s: there is no subcluster %q", method, only),
			Try:  "see `creel subcluster list`",
		}
	}
	return nil, missingError(method, "no subcluster has registered")
}

func (h *AdminHandler) broadcast(method string, only func([]byte) (string, error)) hrpc.RawHandler {
	return func(ctx context.Context, request []byte) ([]byte, error) {
		member, err := only(request)
		if err != nil {
			return nil, err
		}
		audit.NoteOf(ctx).Target = member
		// Reload the router's lists regardless of the members' answers.
		if member == "" && h.operator.Permits(user(ctx)) {
			if err := h.refresh(method); err != nil {
				return nil, err
			}
		}
		parts, err := h.asked(ctx, method, member, request)
		if err != nil {
			return nil, err
		}
		return parts[0].Value, nil
	}
}

// refresh reloads the router's files for a refresh call.
func (h *AdminHandler) refresh(method string) error {
	if method == "refreshAdminAcls" {
		return h.operator.Refresh()
	}
	if own := h.own[method]; own != nil {
		return own()
	}
	return nil
}

// GetGroupsForUser joins the groups of a user in the members.
func (h *AdminHandler) GetGroupsForUser(
	ctx context.Context,
	req *yarnpb.GetGroupsForUserRequestProto,
) (*yarnpb.GetGroupsForUserResponseProto, error) {
	body, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	parts, err := h.asked(ctx, "getGroupsForUser", "", body)
	if err != nil {
		return nil, err
	}
	return mergedOrders[yarnpb.GetGroupsForUserResponseProto](h.server, parts)
}

// CheckForDecommissioningNodes joins the lists of decommissioning nodes.
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
		body,
	)
	if err != nil {
		return nil, err
	}
	return mergedOrders[yarnpb.CheckForDecommissioningNodesResponseProto](h.server, parts)
}

// mergedOrders merges the answers of all members to an order.
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
		nil,
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
		labelled,
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
		nil,
	)
	return &yarnpb.NodesToAttributesMappingResponseProto{}, err
}

// byNode sends each item to the members that have its node (server.OrderNodes), or all items to a named member. known,
// if not nil, returns further nodes for which a member has data to change.
func byNode[T any](
	ctx context.Context,
	h *AdminHandler,
	method, only string,
	items []T,
	node func(T) creel.NodeID,
	request func(part []T) proto.Message,
	known func(context.Context, *remote.Member) ([]creel.NodeID, error),
) error {
	if only != "" {
		body, err := proto.Marshal(request(items))
		if err != nil {
			return err
		}
		_, err = h.asked(ctx, method, only, body)
		return err
	}
	answers, _, err := server.OrderNodes(ctx, h.server, server.NodeOrder[T, []byte]{
		Name: method, Items: items, Node: node,
		Has: func(ctx context.Context, m *remote.Member) (func(creel.NodeID) bool, error) {
			nodes, err := registered(ctx, m)
			if err == nil && known != nil {
				var more []creel.NodeID
				more, err = known(ctx, m)
				nodes = append(nodes, more...)
			}
			set := map[creel.NodeID]bool{}
			for _, id := range nodes {
				set[id], set[creel.NodeID{Host: id.Host}] = true, true
			}
			return func(id creel.NodeID) bool { return set[id] }, err
		},
		Send: func(ctx context.Context, m *remote.Member, part []T) ([]byte, error) {
			body, err := proto.Marshal(request(part))
			if err != nil {
				return nil, err
			}
			return m.Admin(ctx, user(ctx), method, body)
		},
	})
	if err == nil && len(answers) == 0 && len(items) > 0 {
		return missingError(method, "no subcluster has registered")
	}
	return err
}

// registered returns the nodes of a member.
func registered(ctx context.Context, m *remote.Member) (ids []creel.NodeID, err error) {
	var nodes yarnpb.GetClusterNodesResponseProto
	if err := listed(ctx, m, "getClusterNodes", &yarnpb.GetClusterNodesRequestProto{}, &nodes); err != nil {
		return nil, err
	}
	for _, n := range nodes.GetNodeReports() {
		ids = append(ids, yarnpb.ToNodeID(n.GetNodeId()))
	}
	return ids, nil
}

// labelled returns the nodes for which a member stores labels, registered or not.
func labelled(ctx context.Context, m *remote.Member) (ids []creel.NodeID, err error) {
	var nodes yarnpb.GetNodesToLabelsResponseProto
	if err := listed(ctx, m, "getNodeToLabels", &yarnpb.GetNodesToLabelsRequestProto{}, &nodes); err != nil {
		return nil, err
	}
	for _, n := range nodes.GetNodeToLabels() {
		ids = append(ids, yarnpb.ToNodeID(n.GetNodeId()))
	}
	return ids, nil
}

// listed gets a list from a member with the caller's name.
func listed(ctx context.Context, m *remote.Member, method string, request, into proto.Message) error {
	body, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	answer, err := m.Client(ctx, remote.List, user(ctx), method, body)
	if err != nil {
		return err
	}
	return parse(answer, into)
}
