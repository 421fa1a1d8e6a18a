// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"google.golang.org/protobuf/proto"

	pb "github.com/creelrm/creel/internal/yarnpb"
)

// A router asks members for long lists over and over. A ResourceManager of ours names each
// one by a tag, and sends a router that has the list of that tag the tag alone. One that
// does not know the field sends all, without a tag.

// WithListKnown returns an encoded GetApplicationsRequestProto with the tag of the list
// that a router has, which may be empty. The request itself is not changed.
func WithListKnown(request []byte, tag string) []byte {
	return pb.AppendText(request[:len(request):len(request)], pb.FieldTag, tag)
}

// ListKnown takes the tag off a request; false if it did not come from a router.
func ListKnown(r *pb.GetApplicationsRequestProto) (tag string, routed bool) {
	m := r.ProtoReflect()
	fields := m.GetUnknown()
	known := pb.BytesIn(fields, pb.FieldTag)
	if known == nil {
		return "", false
	}
	m.SetUnknown(pb.Without(fields, pb.FieldTag))
	return string(known), true
}

// WithParts returns an encoded GetApplicationsRequestProto of a router that joins unmanaged AMs of
// proxies with their applications: it is to be given those that run, or whose logs are not gathered,
// whatever the filter. A router of an earlier version would list them. Of an encoded GetQueueInfoRequestProto
// it asks for figures without those unmanaged AMs. The request itself is not changed.
func WithParts(request []byte) []byte {
	return pb.AppendNumber(request[:len(request):len(request)], pb.FieldParts, 1)
}

// Parts takes what WithParts appended off a request, and reports whether it was there.
func Parts(r proto.Message) bool {
	m := r.ProtoReflect()
	fields := m.GetUnknown()
	if pb.NumberIn(fields, pb.FieldParts) == 0 {
		return false
	}
	m.SetUnknown(pb.Without(fields, pb.FieldParts))
	return true
}

// TaggedList returns an encoded list with its tag. The list itself is not changed.
func TaggedList(list []byte, tag string) *pb.GetApplicationsResponseProto {
	whole := append(make([]byte, 0, len(list)+len(tag)+8), list...)
	return pb.Encoded(&pb.GetApplicationsResponseProto{}, pb.AppendText(whole, pb.FieldTag, tag))
}

// ListHolds returns the answer to a router that has the list of this tag.
func ListHolds(tag string) *pb.GetApplicationsResponseProto { return TaggedList(nil, tag) }

// ListTag returns the tag of an encoded answer; empty if it has none.
func ListTag(answer []byte) string { return string(pb.BytesIn(answer, pb.FieldTag)) }
