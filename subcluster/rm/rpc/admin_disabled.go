// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// Attributes are off. An administrator is told so; others are refused first.

var errAttributes = yarnrpc.Throw(
	yarnrpc.ClassYarn,
	&creel.Error{
		Kind: creel.ErrNotEnabled,
		What: "Node attributes are disabled: this ResourceManager does not place by them",
	},
)

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
