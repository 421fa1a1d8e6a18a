// SPDX-License-Identifier: Apache-2.0

package yarnpb

import "google.golang.org/protobuf/encoding/protowire"

// fieldAfter, in ApplicationSubmissionContextProto, is not Hadoop's: by it a proxy of
// ours has a ResourceManager of ours begin a UAM again, which a ResourceManager that
// does not know it leaves as it is.
const fieldAfter protowire.Number = 15004

// BeginAfter has a submission begin the attempt of a UAM that follows the one of this
// number, which has ended.
func BeginAfter(c *ApplicationSubmissionContextProto, attempt int32) {
	m := c.ProtoReflect()
	b := protowire.AppendTag(m.GetUnknown(), fieldAfter, protowire.VarintType)
	m.SetUnknown(protowire.AppendVarint(b, uint64(max(attempt, 0))))
}

// BeginsAfter returns the number that BeginAfter gave, the last one of several; 0 if
// there is none.
func BeginsAfter(c *ApplicationSubmissionContextProto) (attempt int32) {
	for fields := c.ProtoReflect().GetUnknown(); len(fields) > 0; {
		number, kind, value, n := field(fields)
		if n < 0 {
			return 0
		}
		if number == fieldAfter && kind == protowire.VarintType {
			v, _ := protowire.ConsumeVarint(value)
			attempt = int32(min(v, 1<<31-1))
		}
		fields = fields[n:]
	}
	return attempt
}

// field takes the first field off encoded ones; n is its size, negative if it is cut off.
func field(b []byte) (number protowire.Number, kind protowire.Type, value []byte, n int) {
	number, kind, tag := protowire.ConsumeTag(b)
	if tag < 0 {
		return 0, 0, nil, tag
	}
	size := protowire.ConsumeFieldValue(number, kind, b[tag:])
	if size < 0 {
		return 0, 0, nil, size
	}
	return number, kind, b[tag : tag+size], tag + size
}
