// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// preemption returns the message for an AM about its containers under notice. A strict contract names the containers
// that will be killed. A negotiable contract adds the sum of their resources, as in FairScheduler and
// CapacityScheduler.
func preemption(ids []creel.ContainerID, n *rm.NegotiableContract) *pb.PreemptionMessageProto {
	list := make([]*pb.PreemptionContainerProto, len(ids))
	for i, id := range ids {
		list[i] = &pb.PreemptionContainerProto{Id: pb.FromContainerID(id)}
	}
	if n == nil {
		return &pb.PreemptionMessageProto{StrictContract: &pb.StrictPreemptionContractProto{Container: list}}
	}
	return &pb.PreemptionMessageProto{Contract: &pb.PreemptionContractProto{
		Container: list,
		Resource: []*pb.PreemptionResourceRequestProto{{Resource: &pb.ResourceRequestProto{
			Priority:      &pb.PriorityProto{Priority: new(int32(-1))},
			ResourceName:  new("*"),
			Capability:    pb.FromResource(n.Each),
			NumContainers: &n.Count,
		}}},
	}}
}
