// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
)

// adminDoor is ResourceManagerAdministrationProtocol. The federation's own
// calls, which are a Router's, are not enabled here and answered so.
type adminDoor struct {
	yarnrpc.UnimplementedResourceManagerAdministrationProtocol
	d *Daemon
}

func (d *Daemon) adminService() hrpc.Service {
	return yarnrpc.ResourceManagerAdministrationProtocolService(&adminDoor{d: d})
}

// admin runs an administrator's order: the caller must be one, and the line of
// audit is written either way.
func admin[T any](ctx context.Context, d *Daemon, name string, order func() (T, error)) (t T, err error) {
	who := callerOf(ctx)
	defer func() { d.audit(who, name, "AdminService", err) }()
	if !d.access.isAdmin(who.User) {
		return t, denied("User %s doesn't have permission to call '%s'", who.User, name)
	}
	return order()
}

// tell has the owner run f and gives its error.
func (d *Daemon) tell(ctx context.Context, f func(m *rm.Machine, now time.Time) error) error {
	var result error
	err := d.Query(ctx, func(m *rm.Machine, now time.Time) {
		result = f(m, now)
		d.changes.Add(1)
		d.moves.Add(1)
	})
	if err != nil {
		return err
	}
	return result
}

func (p *adminDoor) RefreshQueues(
	ctx context.Context,
	_ *pb.RefreshQueuesRequestProto,
) (*pb.RefreshQueuesResponseProto, error) {
	d := p.d
	return admin(ctx, d, "refreshQueues", func() (*pb.RefreshQueuesResponseProto, error) {
		return &pb.RefreshQueuesResponseProto{}, d.RefreshQueues(ctx)
	})
}

// RefreshQueues reads the queues again and puts them in force.
func (d *Daemon) RefreshQueues(ctx context.Context) error {
	if d.cfg.ReloadQueues == nil {
		return nil
	}
	queues, err := d.cfg.ReloadQueues()
	if err != nil {
		return invalid("the queues could not be read: %v", err)
	}
	return d.tell(ctx, func(m *rm.Machine, now time.Time) error { return m.ReloadQueues(now, queues) })
}

func (p *adminDoor) RefreshNodes(
	ctx context.Context,
	req *pb.RefreshNodesRequestProto,
) (*pb.RefreshNodesResponseProto, error) {
	d := p.d
	return admin(ctx, d, "refreshNodes", func() (*pb.RefreshNodesResponseProto, error) {
		graceful := req.GetDecommissionType() == pb.DecommissionTypeProto_GRACEFUL
		var timeout time.Duration
		if req.DecommissionTimeout != nil {
			timeout = time.Duration(req.GetDecommissionTimeout()) * time.Second
		}
		return &pb.RefreshNodesResponseProto{}, d.refreshNodes(ctx, graceful, timeout)
	})
}

// refreshNodes reads the host lists again: unwanted nodes are decommissioned,
// wanted ones that were on their way out come back.
func (d *Daemon) refreshNodes(ctx context.Context, graceful bool, timeout time.Duration) error {
	if d.cfg.Hosts == nil {
		return nil
	}
	hosts, err := d.cfg.Hosts()
	if err != nil {
		return invalid("the lists of hosts could not be read: %v", err)
	}
	d.tracker.setHosts(hosts)
	return d.tell(ctx, func(m *rm.Machine, now time.Time) error {
		var in, out []creel.NodeID
		for n := range m.Nodes {
			if d.tracker.wanted(n.ID.Host) {
				in = append(in, n.ID)
			} else {
				out = append(out, n.ID)
			}
		}
		for _, id := range out {
			limit := timeout
			if own, ok := hosts.Timeouts[id.Host]; ok {
				limit = own
			}
			if err := m.Decommission(now, &rm.Decommission{ID: id, Graceful: graceful, Timeout: limit}); err != nil {
				return err
			}
		}
		for _, id := range in {
			if n, _ := m.Node(id); n.State == creel.NodeDecommissioning || n.State == creel.NodeDecommissioned {
				if err := m.Recommission(now, id); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (p *adminDoor) RefreshSuperUserGroupsConfiguration(
	ctx context.Context,
	_ *pb.RefreshSuperUserGroupsConfigurationRequestProto,
) (*pb.RefreshSuperUserGroupsConfigurationResponseProto, error) {
	d := p.d
	return admin(
		ctx,
		d,
		"refreshSuperUserGroupsConfiguration",
		func() (*pb.RefreshSuperUserGroupsConfigurationResponseProto, error) {
			if d.cfg.ReloadProxies != nil {
				rules, err := d.cfg.ReloadProxies()
				if err != nil {
					return nil, invalid("the proxy-user rules could not be read: %v", err)
				}
				d.access.setProxies(rules)
			}
			return &pb.RefreshSuperUserGroupsConfigurationResponseProto{}, nil
		},
	)
}

func (p *adminDoor) RefreshUserToGroupsMappings(
	ctx context.Context,
	_ *pb.RefreshUserToGroupsMappingsRequestProto,
) (*pb.RefreshUserToGroupsMappingsResponseProto, error) {
	return admin(ctx, p.d, "refreshUserToGroupsMappings", func() (*pb.RefreshUserToGroupsMappingsResponseProto, error) {
		p.d.access.forgetGroups()
		return &pb.RefreshUserToGroupsMappingsResponseProto{}, nil
	})
}

func (p *adminDoor) RefreshAdminAcls(
	ctx context.Context,
	_ *pb.RefreshAdminAclsRequestProto,
) (*pb.RefreshAdminAclsResponseProto, error) {
	d := p.d
	return admin(ctx, d, "refreshAdminAcls", func() (*pb.RefreshAdminAclsResponseProto, error) {
		if d.cfg.ReloadAdmin != nil {
			acl, err := d.cfg.ReloadAdmin()
			if err != nil {
				return nil, invalid("the administrators' ACL could not be read: %v", err)
			}
			d.access.setAdmin(acl)
		}
		return &pb.RefreshAdminAclsResponseProto{}, nil
	})
}

func (p *adminDoor) RefreshServiceAcls(
	ctx context.Context,
	_ *pb.RefreshServiceAclsRequestProto,
) (*pb.RefreshServiceAclsResponseProto, error) {
	return admin(ctx, p.d, "refreshServiceAcls", func() (*pb.RefreshServiceAclsResponseProto, error) {
		return nil, yarnrpc.Throw(
			yarnrpc.ClassYarn,
			&creel.Error{
				Kind: creel.ErrNotEnabled,
				What: "Service Authorization (hadoop.security.authorization) not enabled.",
			},
		)
	})
}

func (p *adminDoor) GetGroupsForUser(
	_ context.Context,
	req *pb.GetGroupsForUserRequestProto,
) (*pb.GetGroupsForUserResponseProto, error) {
	return &pb.GetGroupsForUserResponseProto{Groups: p.d.access.groupsOf(req.GetUser())}, nil
}

func (p *adminDoor) UpdateNodeResource(
	ctx context.Context,
	req *pb.UpdateNodeResourceRequestProto,
) (*pb.UpdateNodeResourceResponseProto, error) {
	d := p.d
	return admin(ctx, d, "updateNodeResource", func() (*pb.UpdateNodeResourceResponseProto, error) {
		return &pb.UpdateNodeResourceResponseProto{}, d.tell(ctx, func(m *rm.Machine, now time.Time) error {
			for _, e := range req.GetNodeResourceMap() {
				if _, ok := m.Node(pb.ToNodeID(e.GetNodeId())); !ok {
					return &creel.Error{
						Kind: creel.ErrNodeNotFound,
						What: "Node " + pb.ToNodeID(e.GetNodeId()).String() + " is not registered",
					}
				}
			}
			for _, e := range req.GetNodeResourceMap() {
				err := m.SetNodeResource(
					now,
					pb.ToNodeID(e.GetNodeId()),
					pb.ToResource(e.GetResourceOption().GetResource()),
				)
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (p *adminDoor) RefreshNodesResources(
	ctx context.Context,
	_ *pb.RefreshNodesResourcesRequestProto,
) (*pb.RefreshNodesResourcesResponseProto, error) {
	return admin(ctx, p.d, "refreshNodesResources", func() (*pb.RefreshNodesResourcesResponseProto, error) {
		return &pb.RefreshNodesResourcesResponseProto{}, nil // dynamic-resources.xml is not read: there is nothing to refresh
	})
}

func (p *adminDoor) CheckForDecommissioningNodes(
	ctx context.Context,
	_ *pb.CheckForDecommissioningNodesRequestProto,
) (*pb.CheckForDecommissioningNodesResponseProto, error) {
	d := p.d
	return admin(ctx, d, "checkForDecommissioningNodes", func() (*pb.CheckForDecommissioningNodesResponseProto, error) {
		r := &pb.CheckForDecommissioningNodesResponseProto{}
		return r, d.tell(ctx, func(m *rm.Machine, _ time.Time) error {
			for n := range m.Nodes {
				if n.State == creel.NodeDecommissioning {
					r.DecommissioningNodes = append(r.DecommissioningNodes, pb.FromNodeID(n.ID))
				}
			}
			return nil
		})
	})
}

func (p *adminDoor) RefreshClusterMaxPriority(
	ctx context.Context,
	_ *pb.RefreshClusterMaxPriorityRequestProto,
) (*pb.RefreshClusterMaxPriorityResponseProto, error) {
	return admin(ctx, p.d, "refreshClusterMaxPriority", func() (*pb.RefreshClusterMaxPriorityResponseProto, error) {
		return &pb.RefreshClusterMaxPriorityResponseProto{}, p.d.RefreshQueues(
			ctx,
		) // it is part of what the queues' file says
	})
}

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

func (p *adminDoor) AddToClusterNodeLabels(
	ctx context.Context,
	_ *pb.AddToClusterNodeLabelsRequestProto,
) (*pb.AddToClusterNodeLabelsResponseProto, error) {
	return admin(
		ctx,
		p.d,
		"addToClusterNodeLabels",
		func() (*pb.AddToClusterNodeLabelsResponseProto, error) { return nil, errLabels },
	)
}

func (p *adminDoor) RemoveFromClusterNodeLabels(
	ctx context.Context,
	_ *pb.RemoveFromClusterNodeLabelsRequestProto,
) (*pb.RemoveFromClusterNodeLabelsResponseProto, error) {
	return admin(
		ctx,
		p.d,
		"removeFromClusterNodeLabels",
		func() (*pb.RemoveFromClusterNodeLabelsResponseProto, error) { return nil, errLabels },
	)
}

func (p *adminDoor) ReplaceLabelsOnNodes(
	ctx context.Context,
	_ *pb.ReplaceLabelsOnNodeRequestProto,
) (*pb.ReplaceLabelsOnNodeResponseProto, error) {
	return admin(
		ctx,
		p.d,
		"replaceLabelsOnNodes",
		func() (*pb.ReplaceLabelsOnNodeResponseProto, error) { return nil, errLabels },
	)
}

func (p *adminDoor) MapAttributesToNodes(
	ctx context.Context,
	_ *pb.NodesToAttributesMappingRequestProto,
) (*pb.NodesToAttributesMappingResponseProto, error) {
	return admin(
		ctx,
		p.d,
		"mapAttributesToNodes",
		func() (*pb.NodesToAttributesMappingResponseProto, error) { return nil, errAttributes },
	)
}

// haDoor is HAServiceProtocol of a ResourceManager without a peer: always active.
type haDoor struct{ d *Daemon }

func (d *Daemon) haService() hrpc.Service { return yarnrpc.HAServiceProtocolService(&haDoor{d: d}) }

func (p *haDoor) MonitorHealth(context.Context, *pb.MonitorHealthRequestProto) (*pb.MonitorHealthResponseProto, error) {
	return &pb.MonitorHealthResponseProto{}, nil
}

func (p *haDoor) TransitionToActive(
	ctx context.Context,
	_ *pb.TransitionToActiveRequestProto,
) (*pb.TransitionToActiveResponseProto, error) {
	return admin(ctx, p.d, "transitionToActive", func() (*pb.TransitionToActiveResponseProto, error) {
		return &pb.TransitionToActiveResponseProto{}, nil
	})
}

// notHA is what a ResourceManager without a peer says to orders it cannot follow.
func notHA() error {
	return hrpc.Errorf(
		"org.apache.hadoop.ha.ServiceFailedException",
		"HA is not enabled: there is no other ResourceManager to take over",
	)
}

func (p *haDoor) TransitionToStandby(
	ctx context.Context,
	_ *pb.TransitionToStandbyRequestProto,
) (*pb.TransitionToStandbyResponseProto, error) {
	return admin(
		ctx,
		p.d,
		"transitionToStandby",
		func() (*pb.TransitionToStandbyResponseProto, error) { return nil, notHA() },
	)
}

func (p *haDoor) TransitionToObserver(
	ctx context.Context,
	_ *pb.TransitionToObserverRequestProto,
) (*pb.TransitionToObserverResponseProto, error) {
	return admin(
		ctx,
		p.d,
		"transitionToObserver",
		func() (*pb.TransitionToObserverResponseProto, error) { return nil, notHA() },
	)
}

func (p *haDoor) GetServiceStatus(
	context.Context,
	*pb.GetServiceStatusRequestProto,
) (*pb.GetServiceStatusResponseProto, error) {
	return &pb.GetServiceStatusResponseProto{
		State:               pb.HAServiceStateProto_ACTIVE.Enum(),
		ReadyToBecomeActive: new(true),
		NotReadyReason:      new(""),
	}, nil
}
