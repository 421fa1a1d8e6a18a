// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"strings"

	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
)

// partitionKey is the key of a constraint on a node's label.
const partitionKey = "yarn_node_partition/"

func tagConstraints(list []*pb.PlacementConstraintMapEntryProto) []rm.TagConstraint {
	var out []rm.TagConstraint
	for _, e := range list {
		out = append(out, rm.TagConstraint{
			Tags: e.GetAllocationTags(), Constraint: constraint(e.GetPlacementConstraint()),
		})
	}
	return out
}

// constraint parses a placement constraint. A kind that Hadoop's scheduler does not support, such as delayed
// alternatives, is never satisfied, as in Hadoop.
func constraint(p *pb.PlacementConstraintProto) *constraints.Constraint {
	if p == nil {
		return nil
	}
	if c := p.GetCompositeConstraint(); c != nil {
		out := &constraints.Constraint{}
		switch c.GetCompositeType() {
		case pb.CompositePlacementConstraintProto_AND:
			out.Op = constraints.AllOf
		case pb.CompositePlacementConstraintProto_OR:
			out.Op = constraints.AnyOf
		default:
			return &constraints.Constraint{Wrong: "Unsupported type of constraint: DelayedOr"}
		}
		for _, k := range c.GetChildConstraints() {
			if part := constraint(k); part != nil {
				out.Parts = append(out.Parts, part)
			}
		}
		return out
	}
	c := p.GetSimpleConstraint()
	if c == nil {
		return nil
	}
	out := &constraints.Constraint{
		Rack:     c.GetScope() == "rack",
		Min:      c.GetMinCardinality(),
		Max:      c.GetMaxCardinality(),
		NotEqual: c.GetAttributeOpCode() == pb.NodeAttributeOpCodeProto_NE,
	}
	for _, t := range c.GetTargetExpressions() {
		target, err := target(t)
		if err != nil {
			out.Wrong = err.Error()
		}
		out.Targets = append(out.Targets, target)
	}
	return out
}

func target(t *pb.PlacementConstraintTargetProto) (constraints.Target, error) {
	out := constraints.Target{Values: t.GetTargetValues(), Key: t.GetTargetKey()}
	switch t.GetTargetType() {
	case pb.PlacementConstraintTargetProto_NODE_ATTRIBUTE:
		if out.Kind = constraints.ByAttribute; out.Key == partitionKey {
			out.Kind = constraints.ByPartition
		} else if !strings.Contains(out.Key, "/") {
			out.Key = rm.AttributesByCall + "/" + out.Key
		}
	case pb.PlacementConstraintTargetProto_ALLOCATION_TAG:
		return out, constraints.ParseNamespace(t.GetTargetKey(), &out)
	default:
		out.Kind = constraints.ByNothing
	}
	return out, nil
}

// partitionOf returns the label of a request's partition, if a single clause names one.
func partitionOf(p *pb.PlacementConstraintProto) string {
	for _, t := range p.GetSimpleConstraint().GetTargetExpressions() {
		if t.GetTargetType() == pb.PlacementConstraintTargetProto_NODE_ATTRIBUTE &&
			t.GetTargetKey() == partitionKey && len(t.GetTargetValues()) > 0 {
			return t.GetTargetValues()[0]
		}
	}
	return ""
}

// rejected encodes a rejected request, with the number of containers that were not placed.
func rejected(r *rm.Rejection) *pb.RejectedSchedulingRequestProto {
	reason := pb.RejectionReasonProto_RRP_COULD_NOT_SCHEDULE_ON_NODE
	if r.NoPlace {
		reason = pb.RejectionReasonProto_RRP_COULD_NOT_PLACE_ON_NODE
	}
	request := &pb.SchedulingRequestProto{}
	if asked, ok := r.Ask.Message.(*pb.SchedulingRequestProto); ok {
		request = asked.CloneVT()
	}
	if request.ResourceSizing == nil {
		request.ResourceSizing = &pb.ResourceSizingProto{}
	}
	request.ResourceSizing.NumAllocations = &r.Count
	return &pb.RejectedSchedulingRequestProto{Reason: &reason, Request: request}
}
