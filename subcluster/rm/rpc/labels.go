// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"slices"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// labelError converts the error of a call about labels. Hadoop throws an IOException, which its clients retry for
// minutes; this is a YarnException with the same words.
func labelError(err error) error {
	if err == nil {
		return nil
	}
	return yarnrpc.Throw(yarnrpc.ClassYarn, err)
}

func (p *adminHandler) AddToClusterNodeLabels(
	ctx context.Context,
	req *pb.AddToClusterNodeLabelsRequestProto,
) (*pb.AddToClusterNodeLabelsResponseProto, error) {
	return admin(ctx, p.s, "addToClusterNodeLabels", func() (*pb.AddToClusterNodeLabelsResponseProto, error) {
		var list []rm.Label
		for _, l := range req.GetNodeLabels() {
			list = append(list, rm.Label{Name: l.GetName(), Exclusive: l.GetIsExclusive()})
		}
		if len(list) == 0 { // a client older than 2.8
			for _, name := range req.GetDeprecatedNodeLabels() {
				list = append(list, rm.Label{Name: name, Exclusive: true})
			}
		}
		return &pb.AddToClusterNodeLabelsResponseProto{}, labelError(p.s.AddLabels(ctx, list))
	})
}

func (p *adminHandler) RemoveFromClusterNodeLabels(
	ctx context.Context,
	req *pb.RemoveFromClusterNodeLabelsRequestProto,
) (*pb.RemoveFromClusterNodeLabelsResponseProto, error) {
	return admin(ctx, p.s, "removeFromClusterNodeLabels", func() (*pb.RemoveFromClusterNodeLabelsResponseProto, error) {
		err := p.s.RemoveLabels(ctx, slices.Clone(req.GetNodeLabels()))
		return &pb.RemoveFromClusterNodeLabelsResponseProto{}, labelError(err)
	})
}

var errNoNode = codec.Invalid("the request has an entry without a node")

func (p *adminHandler) ReplaceLabelsOnNodes(
	ctx context.Context,
	req *pb.ReplaceLabelsOnNodeRequestProto,
) (*pb.ReplaceLabelsOnNodeResponseProto, error) {
	return admin(ctx, p.s, "replaceLabelsOnNodes", func() (*pb.ReplaceLabelsOnNodeResponseProto, error) {
		var list []rm.NodeLabels
		for _, n := range req.GetNodeToLabels() {
			if n.GetNodeId().GetHost() == "" {
				return nil, errNoNode
			}
			list = append(list, rm.NodeLabels{Node: pb.ToNodeID(n.GetNodeId()), Labels: n.GetNodeLabels()})
		}
		err := p.s.ReplaceLabels(ctx, list, req.GetFailOnUnknownNodes())
		return &pb.ReplaceLabelsOnNodeResponseProto{}, labelError(err)
	})
}

func (c *clientHandler) GetClusterNodeLabels(
	ctx context.Context,
	_ *pb.GetClusterNodeLabelsRequestProto,
) (*pb.GetClusterNodeLabelsResponseProto, error) {
	r := &pb.GetClusterNodeLabelsResponseProto{}
	return r, c.s.Query(ctx, func(m *rm.Machine, _ time.Time) {
		for _, l := range m.Labels()[1:] {
			r.NodeLabels = append(r.NodeLabels, &pb.NodeLabelProto{Name: new(l.Name), IsExclusive: new(l.Exclusive)})
			r.DeprecatedNodeLabels = append(r.DeprecatedNodeLabels, l.Name)
		}
	})
}

func (c *clientHandler) GetNodeToLabels(
	ctx context.Context,
	_ *pb.GetNodesToLabelsRequestProto,
) (*pb.GetNodesToLabelsResponseProto, error) {
	r := &pb.GetNodesToLabelsResponseProto{}
	return r, c.s.Query(ctx, func(m *rm.Machine, _ time.Time) {
		for _, n := range m.NodeLabels() {
			r.NodeToLabels = append(r.NodeToLabels, &pb.NodeIdToLabelsProto{
				NodeId: pb.FromNodeID(n.Node), NodeLabels: []string{n.Label},
			})
		}
	})
}

func (c *clientHandler) GetLabelsToNodes(
	ctx context.Context,
	req *pb.GetLabelsToNodesRequestProto,
) (*pb.GetLabelsToNodesResponseProto, error) {
	r := &pb.GetLabelsToNodesResponseProto{}
	return r, c.s.Query(ctx, func(m *rm.Machine, _ time.Time) {
		for _, l := range m.Labels()[1:] {
			if len(l.Nodes) == 0 || len(req.GetNodeLabels()) > 0 && !slices.Contains(req.GetNodeLabels(), l.Name) {
				continue
			}
			r.LabelsToNodes = append(r.LabelsToNodes, &pb.LabelsToNodeIdsProto{
				NodeLabels: new(l.Name), NodeId: nodeIDs(l.Nodes),
			})
		}
	})
}

func nodeIDs(list []creel.NodeID) []*pb.NodeIdProto {
	out := make([]*pb.NodeIdProto, len(list))
	for i, id := range list {
		out[i] = pb.FromNodeID(id)
	}
	return out
}
