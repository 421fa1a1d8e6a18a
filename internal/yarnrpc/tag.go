// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"google.golang.org/protobuf/proto"

	pb "github.com/creelrm/creel/internal/yarnpb"
)

// A router requests long lists from members repeatedly. creel's ResourceManager identifies each list by a tag. If the
// router already has the list with that tag, the ResourceManager sends only the tag. A ResourceManager without support
// for the field sends the whole list, without a tag.

// WithListKnown returns an encoded GetApplicationsRequestProto with the tag of the router's list, which may be empty.
// The request itself is not changed.
func WithListKnown(request []byte, tag string) []byte {
	return pb.AppendText(request[:len(request):len(request)], pb.FieldTag, tag)
}

// ListKnown removes the tag from a request; false if the request did not come from a router.
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
// applications. The answer then includes UAMs that run, or whose logs are not aggregated, whatever the filter. For an
// encoded GetQueueInfoRequestProto it excludes those UAMs from the numbers. The request itself is not changed.
func WithParts(request []byte) []byte {
	return pb.AppendNumber(request[:len(request):len(request)], pb.FieldParts, 1)
}

// Parts removes the mark of WithParts from a request, and reports whether it was present.
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

// ListHolds returns the answer for a router that already has the list with this tag.
func ListHolds(tag string) *pb.GetApplicationsResponseProto { return TaggedList(nil, tag) }

// ListTag returns the tag of an encoded answer; empty without one.
func ListTag(answer []byte) string { return string(pb.BytesIn(answer, pb.FieldTag)) }
