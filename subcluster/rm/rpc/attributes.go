// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"slices"
	"time"

	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

func (p *adminHandler) MapAttributesToNodes(
	ctx context.Context,
	req *pb.NodesToAttributesMappingRequestProto,
) (*pb.NodesToAttributesMappingResponseProto, error) {
	return admin(ctx, p.s, "mapAttributesToNodes", func() (*pb.NodesToAttributesMappingResponseProto, error) {
		list := make([]rm.HostAttributes, len(req.GetNodeToAttributes()))
		for i, n := range req.GetNodeToAttributes() {
			list[i] = rm.HostAttributes{Host: n.GetNode(), Attributes: codec.Attributes(n.GetNodeAttributes())}
		}
		err := p.s.MapAttributes(ctx, rm.AttributeOp(req.GetOperation()), list, req.GetFailOnUnknownNodes())
		return &pb.NodesToAttributesMappingResponseProto{}, labelError(err)
	})
}

func (c *clientHandler) GetClusterNodeAttributes(
	ctx context.Context,
	_ *pb.GetClusterNodeAttributesRequestProto,
) (*pb.GetClusterNodeAttributesResponseProto, error) {
	r := &pb.GetClusterNodeAttributesResponseProto{}
	return r, c.s.Query(ctx, func(m *rm.Machine, _ time.Time) {
		keys, _ := m.Attributes()
		for _, k := range keys {
			r.NodeAttributes = append(r.NodeAttributes, &pb.NodeAttributeInfoProto{
				AttributeKey: codec.AttributeKey(k), AttributeType: pb.NodeAttributeTypeProto_STRING.Enum(),
			})
		}
	})
}

func (c *clientHandler) GetAttributesToNodes(
	ctx context.Context,
	req *pb.GetAttributesToNodesRequestProto,
) (*pb.GetAttributesToNodesResponseProto, error) {
	r := &pb.GetAttributesToNodesResponseProto{}
	return r, c.s.Query(ctx, func(m *rm.Machine, _ time.Time) {
		keys, hosts := m.Attributes()
		for _, k := range keys {
			wanted := func(p *pb.NodeAttributeKeyProto) bool {
				return p.GetAttributePrefix() == k.Prefix && p.GetAttributeName() == k.Name
			}
			if len(req.GetNodeAttributes()) > 0 && !slices.ContainsFunc(req.GetNodeAttributes(), wanted) {
				continue
			}
			has := &pb.AttributeToNodesProto{NodeAttribute: codec.AttributeKey(k)}
			for _, h := range hosts {
				for _, a := range h.Attributes {
					if a.AttributeKey == k {
						has.NodeValueMap = append(has.NodeValueMap, &pb.NodeToAttributeValueProto{
							Hostname: new(h.Host), AttributeValue: new(a.Value),
						})
					}
				}
			}
			r.AttributesToNodes = append(r.AttributesToNodes, has)
		}
	})
}

func (c *clientHandler) GetNodesToAttributes(
	ctx context.Context,
	req *pb.GetNodesToAttributesRequestProto,
) (*pb.GetNodesToAttributesResponseProto, error) {
	r := &pb.GetNodesToAttributesResponseProto{}
	return r, c.s.Query(ctx, func(m *rm.Machine, _ time.Time) {
		_, hosts := m.Attributes()
		for _, h := range hosts {
			if len(req.GetHostnames()) == 0 || slices.Contains(req.GetHostnames(), h.Host) {
				r.NodesToAttributes = append(r.NodesToAttributes, &pb.NodeToAttributesProto{
					Node: new(h.Host), NodeAttributes: codec.AttributeProtos(h.Attributes),
				})
			}
		}
	})
}
