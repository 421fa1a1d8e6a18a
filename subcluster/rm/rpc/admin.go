// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// adminHandler is ResourceManagerAdministrationProtocol. The federation's calls, which only a Router serves, are
// answered as not enabled.
type adminHandler struct {
	yarnrpc.UnimplementedResourceManagerAdministrationProtocol
	s *server.Server
}

func adminService(s *server.Server) hrpc.Service {
	return yarnrpc.ResourceManagerAdministrationProtocolService(&adminHandler{s: s})
}

// admin carries out an administrator's order that returns a message.
func admin[T any](ctx context.Context, s *server.Server, name string, order func() (T, error)) (t T, err error) {
	err = s.Administer(callerOf(ctx), name, func() error {
		t, err = order()
		return err
	})
	return t, err
}

func (p *adminHandler) RefreshQueues(
	ctx context.Context,
	_ *pb.RefreshQueuesRequestProto,
) (*pb.RefreshQueuesResponseProto, error) {
	return admin(ctx, p.s, "refreshQueues", func() (*pb.RefreshQueuesResponseProto, error) {
		return &pb.RefreshQueuesResponseProto{}, p.s.RefreshQueues(ctx)
	})
}

func (p *adminHandler) RefreshNodes(
	ctx context.Context,
	req *pb.RefreshNodesRequestProto,
) (*pb.RefreshNodesResponseProto, error) {
	return admin(ctx, p.s, "refreshNodes", func() (*pb.RefreshNodesResponseProto, error) {
		graceful := req.GetDecommissionType() == pb.DecommissionTypeProto_GRACEFUL
		var timeout *time.Duration
		if req.DecommissionTimeout != nil {
			timeout = new(time.Duration(req.GetDecommissionTimeout()) * time.Second)
		}
		return &pb.RefreshNodesResponseProto{}, p.s.RefreshNodes(ctx, graceful, timeout)
	})
}

func (p *adminHandler) RefreshSuperUserGroupsConfiguration(
	ctx context.Context,
	_ *pb.RefreshSuperUserGroupsConfigurationRequestProto,
) (*pb.RefreshSuperUserGroupsConfigurationResponseProto, error) {
	type R = *pb.RefreshSuperUserGroupsConfigurationResponseProto
	return admin(ctx, p.s, "refreshSuperUserGroupsConfiguration", func() (R, error) {
		return &pb.RefreshSuperUserGroupsConfigurationResponseProto{}, p.s.RefreshProxyUsers()
	})
}

func (p *adminHandler) RefreshUserToGroupsMappings(
	ctx context.Context,
	_ *pb.RefreshUserToGroupsMappingsRequestProto,
) (*pb.RefreshUserToGroupsMappingsResponseProto, error) {
	return admin(ctx, p.s, "refreshUserToGroupsMappings", func() (*pb.RefreshUserToGroupsMappingsResponseProto, error) {
		p.s.RefreshGroups()
		return &pb.RefreshUserToGroupsMappingsResponseProto{}, nil
	})
}

func (p *adminHandler) RefreshAdminAcls(
	ctx context.Context,
	_ *pb.RefreshAdminAclsRequestProto,
) (*pb.RefreshAdminAclsResponseProto, error) {
	return admin(ctx, p.s, "refreshAdminAcls", func() (*pb.RefreshAdminAclsResponseProto, error) {
		return &pb.RefreshAdminAclsResponseProto{}, p.s.RefreshAdmins()
	})
}

func (p *adminHandler) RefreshServiceAcls(
	ctx context.Context,
	_ *pb.RefreshServiceAclsRequestProto,
) (*pb.RefreshServiceAclsResponseProto, error) {
	return admin(ctx, p.s, "refreshServiceAcls", func() (*pb.RefreshServiceAclsResponseProto, error) {
		err := p.s.RefreshServiceACLs()
		if errors.Is(err, creel.ErrNotEnabled) {
			err = yarnrpc.Throw(yarnrpc.ClassYarn, err)
		}
		return &pb.RefreshServiceAclsResponseProto{}, err
	})
}

func (p *adminHandler) GetGroupsForUser(
	_ context.Context,
	req *pb.GetGroupsForUserRequestProto,
) (*pb.GetGroupsForUserResponseProto, error) {
	return &pb.GetGroupsForUserResponseProto{Groups: p.s.Groups(req.GetUser())}, nil
}

func (p *adminHandler) UpdateNodeResource(
	ctx context.Context,
	req *pb.UpdateNodeResourceRequestProto,
) (*pb.UpdateNodeResourceResponseProto, error) {
	return admin(ctx, p.s, "updateNodeResource", func() (*pb.UpdateNodeResourceResponseProto, error) {
		var sizes []server.NodeSize
		for _, e := range req.GetNodeResourceMap() {
			if e.GetNodeId().GetHost() == "" {
				return nil, errNoNode
			}
			if err := pb.ConvertUnits(e.GetResourceOption().GetResource(), p.s.ResourceTypes()); err != nil {
				return nil, err
			}
			sizes = append(sizes, server.NodeSize{
				Node:     pb.ToNodeID(e.GetNodeId()),
				Resource: pb.ToResource(e.GetResourceOption().GetResource()),
			})
		}
		return &pb.UpdateNodeResourceResponseProto{}, p.s.ResizeNodes(ctx, sizes)
	})
}

func (p *adminHandler) RefreshNodesResources(
	ctx context.Context,
	_ *pb.RefreshNodesResourcesRequestProto,
) (*pb.RefreshNodesResourcesResponseProto, error) {
	return admin(ctx, p.s, "refreshNodesResources", func() (*pb.RefreshNodesResourcesResponseProto, error) {
		// dynamic-resources.xml is not supported: there is nothing to refresh
		return &pb.RefreshNodesResourcesResponseProto{}, nil
	})
}

func (p *adminHandler) CheckForDecommissioningNodes(
	ctx context.Context,
	_ *pb.CheckForDecommissioningNodesRequestProto,
) (*pb.CheckForDecommissioningNodesResponseProto, error) {
	return admin(
		ctx,
		p.s,
		"checkForDecommissioningNodes",
		func() (*pb.CheckForDecommissioningNodesResponseProto, error) {
			r := &pb.CheckForDecommissioningNodesResponseProto{}
			return r, p.s.Query(ctx, func(m *rm.Machine, _ time.Time) {
				for n := range m.Nodes {
					if n.State == creel.NodeDecommissioning {
						r.DecommissioningNodes = append(r.DecommissioningNodes, pb.FromNodeID(n.ID))
					}
				}
			})
		},
	)
}

func (p *adminHandler) RefreshClusterMaxPriority(
	ctx context.Context,
	_ *pb.RefreshClusterMaxPriorityRequestProto,
) (*pb.RefreshClusterMaxPriorityResponseProto, error) {
	return admin(ctx, p.s, "refreshClusterMaxPriority", func() (*pb.RefreshClusterMaxPriorityResponseProto, error) {
		// The maximum priority is part of the queue file.
		return &pb.RefreshClusterMaxPriorityResponseProto{}, p.s.RefreshQueues(ctx)
	})
}
