// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"

	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/remote"
)

// Labels and attributes are joined by name; nodes under a name that several
// members have are listed one after the other.

// GetNodeToLabels lists nodes with their labels.
func (d *Door) GetNodeToLabels(
	ctx context.Context,
	req *yarnpb.GetNodesToLabelsRequestProto,
) (*yarnpb.GetNodesToLabelsResponseProto, error) {
	parts, err := ask[yarnpb.GetNodesToLabelsResponseProto](ctx, d, remote.List, "getNodeToLabels", req)
	if err != nil {
		return nil, err
	}
	return &yarnpb.GetNodesToLabelsResponseProto{
		NodeToLabels: union(pick(parts, (*yarnpb.GetNodesToLabelsResponseProto).GetNodeToLabels),
			func(n *yarnpb.NodeIdToLabelsProto) string { return yarnpb.ToNodeID(n.GetNodeId()).String() }, nil),
	}, nil
}

// GetLabelsToNodes lists labels with their nodes.
func (d *Door) GetLabelsToNodes(
	ctx context.Context,
	req *yarnpb.GetLabelsToNodesRequestProto,
) (*yarnpb.GetLabelsToNodesResponseProto, error) {
	parts, err := ask[yarnpb.GetLabelsToNodesResponseProto](ctx, d, remote.List, "getLabelsToNodes", req)
	if err != nil {
		return nil, err
	}
	return &yarnpb.GetLabelsToNodesResponseProto{
		LabelsToNodes: union(
			pick(parts, (*yarnpb.GetLabelsToNodesResponseProto).GetLabelsToNodes),
			(*yarnpb.LabelsToNodeIdsProto).GetNodeLabels,
			func(a, b *yarnpb.LabelsToNodeIdsProto) { a.NodeId = append(a.NodeId, b.NodeId...) },
		),
	}, nil
}

// GetClusterNodeLabels lists the labels.
func (d *Door) GetClusterNodeLabels(
	ctx context.Context,
	req *yarnpb.GetClusterNodeLabelsRequestProto,
) (*yarnpb.GetClusterNodeLabelsResponseProto, error) {
	parts, err := ask[yarnpb.GetClusterNodeLabelsResponseProto](ctx, d, remote.Read, "getClusterNodeLabels", req)
	if err != nil {
		return nil, err
	}
	return &yarnpb.GetClusterNodeLabelsResponseProto{
		NodeLabels: union(
			pick(parts, (*yarnpb.GetClusterNodeLabelsResponseProto).GetNodeLabels),
			(*yarnpb.NodeLabelProto).GetName,
			nil,
		),
		DeprecatedNodeLabels: union(
			pick(parts, (*yarnpb.GetClusterNodeLabelsResponseProto).GetDeprecatedNodeLabels),
			func(s string) string { return s },
			nil,
		),
	}, nil
}

// GetClusterNodeAttributes lists the attributes.
func (d *Door) GetClusterNodeAttributes(
	ctx context.Context,
	req *yarnpb.GetClusterNodeAttributesRequestProto,
) (*yarnpb.GetClusterNodeAttributesResponseProto, error) {
	parts, err := ask[yarnpb.GetClusterNodeAttributesResponseProto](
		ctx,
		d,
		remote.Read,
		"getClusterNodeAttributes",
		req,
	)
	if err != nil {
		return nil, err
	}
	return &yarnpb.GetClusterNodeAttributesResponseProto{
		NodeAttributes: union(pick(parts, (*yarnpb.GetClusterNodeAttributesResponseProto).GetNodeAttributes),
			func(a *yarnpb.NodeAttributeInfoProto) string { return attributeName(a.GetAttributeKey()) }, nil),
	}, nil
}

// GetAttributesToNodes lists attributes with their hosts.
func (d *Door) GetAttributesToNodes(
	ctx context.Context,
	req *yarnpb.GetAttributesToNodesRequestProto,
) (*yarnpb.GetAttributesToNodesResponseProto, error) {
	parts, err := ask[yarnpb.GetAttributesToNodesResponseProto](ctx, d, remote.List, "getAttributesToNodes", req)
	if err != nil {
		return nil, err
	}
	return &yarnpb.GetAttributesToNodesResponseProto{
		AttributesToNodes: union(pick(parts, (*yarnpb.GetAttributesToNodesResponseProto).GetAttributesToNodes),
			func(a *yarnpb.AttributeToNodesProto) string { return attributeName(a.GetNodeAttribute()) },
			func(a, b *yarnpb.AttributeToNodesProto) { a.NodeValueMap = append(a.NodeValueMap, b.NodeValueMap...) }),
	}, nil
}

// GetNodesToAttributes lists hosts with their attributes.
func (d *Door) GetNodesToAttributes(
	ctx context.Context,
	req *yarnpb.GetNodesToAttributesRequestProto,
) (*yarnpb.GetNodesToAttributesResponseProto, error) {
	parts, err := ask[yarnpb.GetNodesToAttributesResponseProto](ctx, d, remote.List, "getNodesToAttributes", req)
	if err != nil {
		return nil, err
	}
	return &yarnpb.GetNodesToAttributesResponseProto{
		NodesToAttributes: union(pick(parts, (*yarnpb.GetNodesToAttributesResponseProto).GetNodesToAttributes),
			(*yarnpb.NodeToAttributesProto).GetNode,
			func(a, b *yarnpb.NodeToAttributesProto) {
				a.NodeAttributes = append(a.NodeAttributes, b.NodeAttributes...)
			}),
	}, nil
}

func attributeName(k *yarnpb.NodeAttributeKeyProto) string {
	return k.GetAttributePrefix() + "/" + k.GetAttributeName()
}
