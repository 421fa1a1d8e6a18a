// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// fieldTrace is not Hadoop's. In an ApplicationSubmissionContextProto it is the span,
// as W3C writes a traceparent, under which a ResourceManager of ours took the application,
// and is kept in its journal with it. In a RegisterApplicationMasterResponseProto it tells
// that to a proxy of ours.
const fieldTrace protowire.Number = 15020

// SetTrace writes a kept span into a message of those two kinds; nil takes none away.
func SetTrace(m proto.Message, kept []byte) {
	if len(kept) == 0 {
		return
	}
	r := m.ProtoReflect()
	b := protowire.AppendTag(r.GetUnknown(), fieldTrace, protowire.BytesType)
	r.SetUnknown(protowire.AppendBytes(b, kept))
}

// TraceOf reads it, nil if there is none. Of several the last counts.
func TraceOf(m proto.Message) (kept []byte) {
	for fields := []byte(m.ProtoReflect().GetUnknown()); len(fields) > 0; {
		num, typ, n := protowire.ConsumeTag(fields)
		if n < 0 {
			return nil
		}
		size := protowire.ConsumeFieldValue(num, typ, fields[n:])
		if size < 0 {
			return nil
		}
		if num == fieldTrace && typ == protowire.BytesType {
			kept, _ = protowire.ConsumeBytes(fields[n:])
		}
		fields = fields[n+size:]
	}
	return kept
}
