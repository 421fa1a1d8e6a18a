// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// AskPlacement returns a request for the queue in which a ResourceManager's placement rules would run a submission of
// the caller.
func AskPlacement(c *pb.ApplicationSubmissionContextProto) (*pb.GetQueueInfoRequestProto, error) {
	text, err := c.MarshalVT()
	if err != nil {
		return nil, err
	}
	// Without knowledge of the field, a ResourceManager answers for a queue that cannot exist.
	r := &pb.GetQueueInfoRequestProto{QueueName: proto.String("")}
	r.ProtoReflect().SetUnknown(pb.AppendText(nil, pb.FieldPlacement, text))
	return r, nil
}

// PlacementAsked returns the submission of AskPlacement, nil if the request asks for a queue. It removes the field
// from the request.
func PlacementAsked(r *pb.GetQueueInfoRequestProto) (*pb.ApplicationSubmissionContextProto, error) {
	m := r.ProtoReflect()
	fields := m.GetUnknown()
	text := pb.BytesIn(fields, pb.FieldPlacement)
	if text == nil {
		return nil, nil
	}
	c := &pb.ApplicationSubmissionContextProto{}
	err := c.UnmarshalVT(text)
	m.SetUnknown(pb.Without(fields, pb.FieldPlacement))
	return c, err
}

// PlacementAnswer returns the answer to AskPlacement.
func PlacementAnswer(queue creel.QueuePath) *pb.GetQueueInfoResponseProto {
	return pb.Encoded(&pb.GetQueueInfoResponseProto{}, pb.AppendText(nil, pb.FieldPlacement, string(queue)))
}

// PlacedIn returns the queue in an encoded answer to AskPlacement, "" if it has none.
func PlacedIn(answer []byte) creel.QueuePath {
	return creel.QueuePath(pb.BytesIn(answer, pb.FieldPlacement))
}
