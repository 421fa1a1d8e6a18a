// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// AMRMKeys are the keys whose AMRM tokens are accepted now, the one in use and
// the one to come: what a federation's proxies must know to tell our masters.
func (d *Daemon) AMRMKeys() token.Ring { return d.secrets.keys.Load().amrm }

// The administration of a federation is its Router's, also in YARN: a
// ResourceManager knows nothing of the others.
var errRouters = &creel.Error{
	Kind: creel.ErrNotEnabled,
	What: "a ResourceManager does not administer a federation",
	Try:  "ask its Router",
}

func (p *adminDoor) DeregisterSubCluster(
	context.Context,
	*pb.DeregisterSubClusterRequestProto,
) (*pb.DeregisterSubClusterResponseProto, error) {
	return nil, errRouters
}

func (p *adminDoor) SaveFederationQueuePolicy(
	context.Context,
	*pb.SaveFederationQueuePolicyRequestProto,
) (*pb.SaveFederationQueuePolicyResponseProto, error) {
	return nil, errRouters
}

func (p *adminDoor) BatchSaveFederationQueuePolicies(
	context.Context,
	*pb.BatchSaveFederationQueuePoliciesRequestProto,
) (*pb.BatchSaveFederationQueuePoliciesResponseProto, error) {
	return nil, errRouters
}

func (p *adminDoor) ListFederationQueuePolicies(
	context.Context,
	*pb.QueryFederationQueuePoliciesRequestProto,
) (*pb.QueryFederationQueuePoliciesResponseProto, error) {
	return nil, errRouters
}

func (p *adminDoor) DeleteFederationApplication(
	context.Context,
	*pb.DeleteFederationApplicationRequestProto,
) (*pb.DeleteFederationApplicationResponseProto, error) {
	return nil, errRouters
}

func (p *adminDoor) GetFederationSubClusters(
	context.Context,
	*pb.GetSubClustersRequestProto,
) (*pb.GetSubClustersResponseProto, error) {
	return nil, errRouters
}

func (p *adminDoor) DeleteFederationPoliciesByQueues(
	context.Context,
	*pb.DeleteFederationQueuePoliciesRequestProto,
) (*pb.DeleteFederationQueuePoliciesResponseProto, error) {
	return nil, errRouters
}
