// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// The Router administers a federation, in YARN too: a ResourceManager has no data about other members.
var errRouterOnly = &creel.Error{
	Kind: creel.ErrNotEnabled,
	What: "a ResourceManager does not administer a federation",
	Try:  "ask its Router",
}

func (p *adminHandler) DeregisterSubCluster(
	context.Context,
	*pb.DeregisterSubClusterRequestProto,
) (*pb.DeregisterSubClusterResponseProto, error) {
	return nil, errRouterOnly
}

func (p *adminHandler) SaveFederationQueuePolicy(
	context.Context,
	*pb.SaveFederationQueuePolicyRequestProto,
) (*pb.SaveFederationQueuePolicyResponseProto, error) {
	return nil, errRouterOnly
}

func (p *adminHandler) BatchSaveFederationQueuePolicies(
	context.Context,
	*pb.BatchSaveFederationQueuePoliciesRequestProto,
) (*pb.BatchSaveFederationQueuePoliciesResponseProto, error) {
	return nil, errRouterOnly
}

func (p *adminHandler) ListFederationQueuePolicies(
	context.Context,
	*pb.QueryFederationQueuePoliciesRequestProto,
) (*pb.QueryFederationQueuePoliciesResponseProto, error) {
	return nil, errRouterOnly
}

func (p *adminHandler) DeleteFederationApplication(
	context.Context,
	*pb.DeleteFederationApplicationRequestProto,
) (*pb.DeleteFederationApplicationResponseProto, error) {
	return nil, errRouterOnly
}

func (p *adminHandler) GetFederationSubClusters(
	context.Context,
	*pb.GetSubClustersRequestProto,
) (*pb.GetSubClustersResponseProto, error) {
	return nil, errRouterOnly
}

func (p *adminHandler) DeleteFederationPoliciesByQueues(
	context.Context,
	*pb.DeleteFederationQueuePoliciesRequestProto,
) (*pb.DeleteFederationQueuePoliciesResponseProto, error) {
	return nil, errRouterOnly
}
