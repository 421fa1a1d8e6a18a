// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"

	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/remote"
)

// Labels and attributes are joined by name. If several members have a name, the lists of their nodes are joined.

// GetNodeToLabels lists nodes with their labels.
func (h *Handler) GetNodeToLabels(
	ctx context.Context,
	req *yarnpb.GetNodesToLabelsRequestProto,
) (*yarnpb.GetNodesToLabelsResponseProto, error) {
	return merged[yarnpb.GetNodesToLabelsResponseProto](ctx, h, remote.List, "getNodeToLabels", req)
}

// GetLabelsToNodes lists labels with their nodes.
func (h *Handler) GetLabelsToNodes(
	ctx context.Context,
	req *yarnpb.GetLabelsToNodesRequestProto,
) (*yarnpb.GetLabelsToNodesResponseProto, error) {
	return merged[yarnpb.GetLabelsToNodesResponseProto](ctx, h, remote.List, "getLabelsToNodes", req)
}

// GetClusterNodeLabels lists the labels.
func (h *Handler) GetClusterNodeLabels(
	ctx context.Context,
	req *yarnpb.GetClusterNodeLabelsRequestProto,
) (*yarnpb.GetClusterNodeLabelsResponseProto, error) {
	return merged[yarnpb.GetClusterNodeLabelsResponseProto](ctx, h, remote.Read, "getClusterNodeLabels", req)
}

// GetClusterNodeAttributes lists the attributes.
func (h *Handler) GetClusterNodeAttributes(
	ctx context.Context,
	req *yarnpb.GetClusterNodeAttributesRequestProto,
) (*yarnpb.GetClusterNodeAttributesResponseProto, error) {
	return merged[yarnpb.GetClusterNodeAttributesResponseProto](ctx, h, remote.Read, "getClusterNodeAttributes", req)
}

// GetAttributesToNodes lists attributes with their hosts.
func (h *Handler) GetAttributesToNodes(
	ctx context.Context,
	req *yarnpb.GetAttributesToNodesRequestProto,
) (*yarnpb.GetAttributesToNodesResponseProto, error) {
	return merged[yarnpb.GetAttributesToNodesResponseProto](ctx, h, remote.List, "getAttributesToNodes", req)
}

// GetNodesToAttributes lists hosts with their attributes.
func (h *Handler) GetNodesToAttributes(
	ctx context.Context,
	req *yarnpb.GetNodesToAttributesRequestProto,
) (*yarnpb.GetNodesToAttributesResponseProto, error) {
	return merged[yarnpb.GetNodesToAttributesResponseProto](ctx, h, remote.List, "getNodesToAttributes", req)
}
