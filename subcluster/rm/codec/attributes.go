// SPDX-License-Identifier: Apache-2.0

package codec

import (
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// Attributes parses node attributes.
func Attributes(list []*pb.NodeAttributeProto) []rm.Attribute {
	out := make([]rm.Attribute, len(list))
	for i, a := range list {
		k := a.GetAttributeKey()
		out[i] = rm.Attribute{
			AttributeKey: rm.AttributeKey{Prefix: k.GetAttributePrefix(), Name: k.GetAttributeName()},
			Value:        a.GetAttributeValue(),
		}
	}
	return out
}

// AttributeProtos encodes node attributes, nil for none.
func AttributeProtos(list []rm.Attribute) []*pb.NodeAttributeProto {
	var out []*pb.NodeAttributeProto
	for _, a := range list {
		out = append(out, &pb.NodeAttributeProto{
			AttributeKey:   AttributeKey(a.AttributeKey),
			AttributeType:  pb.NodeAttributeTypeProto_STRING.Enum(),
			AttributeValue: new(a.Value),
		})
	}
	return out
}

// AttributeKey encodes the key of a node attribute.
func AttributeKey(k rm.AttributeKey) *pb.NodeAttributeKeyProto {
	return &pb.NodeAttributeKeyProto{AttributePrefix: new(k.Prefix), AttributeName: new(k.Name)}
}
