// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"math"
	"testing"

	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

func simple(scope string, least, most int32, targets ...*pb.PlacementConstraintTargetProto) *pb.PlacementConstraintProto {
	return &pb.PlacementConstraintProto{SimpleConstraint: &pb.SimplePlacementConstraintProto{
		Scope: &scope, MinCardinality: &least, MaxCardinality: &most, TargetExpressions: targets,
	}}
}

func expression(
	kind pb.PlacementConstraintTargetProto_TargetType, key string, values ...string,
) *pb.PlacementConstraintTargetProto {
	return &pb.PlacementConstraintTargetProto{TargetType: &kind, TargetKey: &key, TargetValues: values}
}

// Messages in the encoding of Hadoop's clients decode to their meaning.
func TestConstraintsAreReadFromMessages(t *testing.T) {
	const (
		byTag       = pb.PlacementConstraintTargetProto_ALLOCATION_TAG
		byAttribute = pb.PlacementConstraintTargetProto_NODE_ATTRIBUTE
	)
	not := simple("node", -1, -1, expression(byAttribute, "nm.yarn.io/os", "bsd"))
	not.SimpleConstraint.AttributeOpCode = pb.NodeAttributeOpCodeProto_NE.Enum()
	composite := func(
		kind pb.CompositePlacementConstraintProto_CompositeType, list ...*pb.PlacementConstraintProto,
	) *pb.PlacementConstraintProto {
		return &pb.PlacementConstraintProto{CompositeConstraint: &pb.CompositePlacementConstraintProto{
			CompositeType: &kind, ChildConstraints: list,
		}}
	}
	in := simple("rack", 1, math.MaxInt32, expression(byTag, "app-tag/red", "x", "y"))
	for want, p := range map[string]*pb.PlacementConstraintProto{
		"notin,node,x":                simple("node", 0, 0, expression(byTag, "", "x")),
		"in,rack,app-tag/red/x,y":     in,
		"cardinality,node,all/x,1,3":  simple("node", 1, 3, expression(byTag, "all", "x")),
		"rm.yarn.io/os=bsd":           simple("node", -1, -1, expression(byAttribute, "os", "bsd")),
		"nm.yarn.io/os!=bsd":          not,
		"yarn_node_partition/=gpu":    simple("node", -1, -1, expression(byAttribute, "yarn_node_partition/", "gpu")),
		"Invalid namespace prefix: w": simple("node", 0, 0, expression(byTag, "w/x", "x")),
		"and(in,rack,app-tag/red/x,y:nm.yarn.io/os!=bsd)": composite(
			pb.CompositePlacementConstraintProto_AND, in, not),
		"or(nm.yarn.io/os!=bsd)": composite(pb.CompositePlacementConstraintProto_OR, not),
		"Unsupported type of constraint: DelayedOr": composite(
			pb.CompositePlacementConstraintProto_DELAYED_OR, in),
	} {
		if got := constraint(p).String(); len(got) < len(want) || got[:len(want)] != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := partitionOf(simple("node", -1, -1, expression(byAttribute, "yarn_node_partition/", "gpu"))); got != "gpu" {
		t.Errorf("partition %q", got)
	}
}

// A rejected request is returned as received, with its remaining count and Hadoop's reason.
func TestRejectedRequestsAreReturnedUnchanged(t *testing.T) {
	asked := &pb.SchedulingRequestProto{
		AllocationRequestId: new(int64(7)), AllocationTags: []string{"x"},
		ResourceSizing: &pb.ResourceSizingProto{NumAllocations: new(int32(5))},
	}
	got := rejected(&rm.Rejection{Ask: rm.SchedulingAsk{Message: asked}, Count: 2, NoPlace: true})
	r := got.GetRequest()
	if got.GetReason() != pb.RejectionReasonProto_RRP_COULD_NOT_PLACE_ON_NODE || r.GetAllocationRequestId() != 7 ||
		r.GetResourceSizing().GetNumAllocations() != 2 || asked.GetResourceSizing().GetNumAllocations() != 5 {
		t.Errorf("%v", got)
	}
	got = rejected(&rm.Rejection{Ask: rm.SchedulingAsk{Message: asked}, Count: 1})
	if got.GetReason() != pb.RejectionReasonProto_RRP_COULD_NOT_SCHEDULE_ON_NODE {
		t.Errorf("%v", got)
	}
}
