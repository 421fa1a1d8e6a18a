// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"google.golang.org/protobuf/proto"

	pb "github.com/creelrm/creel/internal/yarnpb"
)

// SetTrace writes the span under which an application was taken into an
// ApplicationSubmissionContextProto, or the answer to a registration; nil takes none away.
func SetTrace(m proto.Message, kept []byte) {
	if len(kept) == 0 {
		return
	}
	r := m.ProtoReflect()
	r.SetUnknown(pb.AppendText(r.GetUnknown(), pb.FieldTraceparent, kept))
}

// TraceOf reads it, nil if there is none.
func TraceOf(m proto.Message) (kept []byte) {
	return pb.BytesIn(m.ProtoReflect().GetUnknown(), pb.FieldTraceparent)
}
