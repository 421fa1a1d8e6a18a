// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"google.golang.org/protobuf/proto"

	pb "github.com/creelrm/creel/internal/yarnpb"
)

// SetTrace writes the span of an application's submission into an ApplicationSubmissionContextProto, or into the answer
// to a registration. nil leaves m unchanged.
func SetTrace(m proto.Message, kept []byte) {
	if len(kept) == 0 {
		return
	}
	r := m.ProtoReflect()
	r.SetUnknown(pb.AppendText(r.GetUnknown(), pb.FieldTraceparent, kept))
}

// TraceOf reads the span from a message; nil without one.
func TraceOf(m proto.Message) (kept []byte) {
	return pb.BytesIn(m.ProtoReflect().GetUnknown(), pb.FieldTraceparent)
}
