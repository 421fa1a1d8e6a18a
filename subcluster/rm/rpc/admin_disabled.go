// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// Labels and attributes are off. An administrator is told so as by YARN; others
// are refused first.

var (
	errLabels = yarnrpc.Throw(
		yarnrpc.ClassYarn,
		&creel.Error{
			Kind: creel.ErrNotEnabled,
			What: "Node-label-based scheduling is disabled. Please check yarn.node-labels.enabled",
		},
	)
	errAttributes = yarnrpc.Throw(
		yarnrpc.ClassYarn,
		&creel.Error{
			Kind: creel.ErrNotEnabled,
			What: "Node attributes are disabled: this ResourceManager does not place by them",
		},
	)
)

func (p *adminHandler) AddToClusterNodeLabels(
	ctx context.Context,
	_ *pb.AddToClusterNodeLabelsRequestProto,
) (*pb.AddToClusterNodeLabelsResponseProto, error) {
	return admin(
		ctx,
		p.s,
		"addToClusterNodeLabels",
		func() (*pb.AddToClusterNodeLabelsResponseProto, error) { return nil, errLabels },
	)
}

func (p *adminHandler) RemoveFromClusterNodeLabels(
	ctx context.Context,
	_ *pb.RemoveFromClusterNodeLabelsRequestProto,
) (*pb.RemoveFromClusterNodeLabelsResponseProto, error) {
	return admin(
		ctx,
		p.s,
		"removeFromClusterNodeLabels",
		func() (*pb.RemoveFromClusterNodeLabelsResponseProto, error) { return nil, errLabels },
	)
}

func (p *adminHandler) ReplaceLabelsOnNodes(
	ctx context.Context,
	_ *pb.ReplaceLabelsOnNodeRequestProto,
) (*pb.ReplaceLabelsOnNodeResponseProto, error) {
	return admin(
		ctx,
		p.s,
		"replaceLabelsOnNodes",
		func() (*pb.ReplaceLabelsOnNodeResponseProto, error) { return nil, errLabels },
	)
}

func (p *adminHandler) MapAttributesToNodes(
	ctx context.Context,
	_ *pb.NodesToAttributesMappingRequestProto,
) (*pb.NodesToAttributesMappingResponseProto, error) {
	return admin(
		ctx,
		p.s,
		"mapAttributesToNodes",
		func() (*pb.NodesToAttributesMappingResponseProto, error) { return nil, errAttributes },
	)
}
