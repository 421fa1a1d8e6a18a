// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"crypto/subtle"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// Placed returns the containers that an AM's NodeManager placed. Only their tokens count, because NodeManagers sign
// them and AMs cannot. accepted are the keys of container tokens, and identifier is the ResourceManager's.
func Placed(list []*pb.ContainerProto, accepted token.Ring, identifier int64) []rm.PlacedContainer {
	out := make([]rm.PlacedContainer, len(list))
	for i, c := range list {
		out[i] = placed(c, accepted, identifier)
	}
	return out
}

func placed(c *pb.ContainerProto, accepted token.Ring, identifier int64) rm.PlacedContainer {
	bytes := c.GetContainerToken().GetIdentifier()
	id, err := token.ParseContainer(bytes)
	if err != nil {
		return rm.PlacedContainer{ID: pb.ToContainerID(c.GetId()), Invalid: "its token is unreadable"}
	}
	out := rm.PlacedContainer{
		ID: id.ID, Node: id.Node, Resource: id.Resource, Priority: id.Priority,
		AllocationRequestID: id.AllocationRequestID,
	}
	password, err := accepted.Password(id.KeyID, bytes)
	switch {
	case err != nil || subtle.ConstantTimeCompare(password, c.GetContainerToken().GetPassword()) == 0:
		out.Invalid = "no NodeManager has signed its token"
	case id.Execution != creel.Opportunistic || id.AM:
		out.Invalid = "its token is not of an opportunistic container"
	case id.RMIdentifier != identifier:
		out.Invalid = "its token is of an earlier start of the ResourceManager"
	}
	return out
}

// DistributedAM is the answer to an AM's registration whose NodeManager places containers.
type DistributedAM struct {
	AMRegistration
	Terms rm.SchedulingTerms
}

// RegisterDistributedResponse encodes the terms of a registration around the usual answer.
func RegisterDistributedResponse(
	terms *rm.SchedulingTerms, r *pb.RegisterApplicationMasterResponseProto,
) *pb.RegisterDistributedSchedulingAMResponseProto {
	return &pb.RegisterDistributedSchedulingAMResponseProto{
		RegisterResponse:             r,
		MaxContainerResource:         pb.FromResource(terms.Most),
		MinContainerResource:         pb.FromResource(terms.Least),
		IncrContainerResource:        pb.FromResource(terms.Step),
		ContainerTokenExpiryInterval: new(int32(min(terms.TokenLife.Milliseconds(), 1<<31-1))),
		ContainerIdStart:             &terms.IDStart,
		NodesForScheduling:           nodesForScheduling(terms.Nodes),
	}
}

// AllocateDistributedResponse adds the least loaded nodes to the usual answer.
func AllocateDistributedResponse(
	nodes []rm.LoadedNode, r *pb.AllocateResponseProto,
) *pb.DistributedSchedulingAllocateResponseProto {
	return &pb.DistributedSchedulingAllocateResponseProto{
		AllocateResponse: r, NodesForScheduling: nodesForScheduling(nodes),
	}
}

func nodesForScheduling(list []rm.LoadedNode) []*pb.RemoteNodeProto {
	out := make([]*pb.RemoteNodeProto, len(list))
	for i := range list {
		n := &list[i]
		out[i] = &pb.RemoteNodeProto{
			NodeId: pb.FromNodeID(n.Node), HttpAddress: &n.HTTPAddress, RackName: &n.Rack, NodePartition: &n.Label,
		}
	}
	return out
}
