// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"google.golang.org/protobuf/proto"

	pb "github.com/creelrm/creel/internal/yarnpb"
)

// A router requests long lists from members over and over. creel's ResourceManager identifies each by a tag, and
// sends only the tag to a router that has the list with that tag. A ResourceManager that does not know the field
// sends the whole list, without a tag.

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

// WithParts returns an encoded GetApplicationsRequestProto of a router that joins UAMs of proxies with their
// applications: the answer includes UAMs that run, or whose logs are not aggregated, whatever the filter. For an
// encoded GetQueueInfoRequestProto it excludes those UAMs from the numbers. The request itself is not changed.
func WithParts(request []byte) []byte {
	return pb.AppendNumber(request[:len(request):len(request)], pb.FieldParts, 1)
}

// Parts removes the mark of WithParts from a request, and reports whether it was there.
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
