// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"google.golang.org/protobuf/encoding/protowire"

	pb "github.com/creelrm/creel/internal/yarnpb"
)

// A router that takes thousands of submissions a second asks a
// ResourceManager of ours for a block of application ids in one
// getNewApplication. fieldBlock is not Hadoop's: in the request it says how many
// ids are wanted, in the answer how many there are in a row, the first of which
// stands where Hadoop has it. A ResourceManager that does not know the field
// gives one id, as a client that does not know it gets.
const fieldBlock protowire.Number = 15001

// MaxBlock is how many ids one getNewApplication gives at most.
const MaxBlock = 32

// BlockRequest is an encoded GetNewApplicationRequestProto for n ids.
func BlockRequest(n int) []byte {
	if n <= 1 {
		return nil
	}
	return appendBlock(nil, n)
}

func appendBlock(b []byte, n int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, fieldBlock, protowire.VarintType), uint64(n))
}

// BlockWanted is how many ids a request wants.
func BlockWanted(r *pb.GetNewApplicationRequestProto) int {
	return blockIn(r.ProtoReflect().GetUnknown())
}

// SetBlock notes in an answer that it gives n ids in a row.
func SetBlock(r *pb.GetNewApplicationResponseProto, n int) {
	if n > 1 {
		r.ProtoReflect().SetUnknown(appendBlock(nil, n))
	}
}

// TakeBlock tells how many ids in a row an answer gives, and removes the note.
func TakeBlock(r *pb.GetNewApplicationResponseProto) int {
	unknown := r.ProtoReflect().GetUnknown()
	n := blockIn(unknown)
	if n > 1 {
		r.ProtoReflect().SetUnknown(without(unknown))
	}
	return n
}

// blockIn reads the number among fields that are not Hadoop's: 1 if there is
// none, or none that makes sense.
func blockIn(fields []byte) int {
	for len(fields) > 0 {
		num, typ, n := protowire.ConsumeTag(fields)
		if n < 0 {
			return 1
		}
		if num == fieldBlock && typ == protowire.VarintType {
			v, _ := protowire.ConsumeVarint(fields[n:])
			return int(min(max(v, 1), MaxBlock))
		}
		m := protowire.ConsumeFieldValue(num, typ, fields[n:])
		if m < 0 {
			return 1
		}
		fields = fields[n+m:]
	}
	return 1
}

// without copies fields but for the block's. They were parsed before.
func without(fields []byte) (rest []byte) {
	for len(fields) > 0 {
		num, _, n := protowire.ConsumeField(fields)
		if n < 0 {
			return rest
		}
		if num != fieldBlock {
			rest = append(rest, fields[:n]...)
		}
		fields = fields[n:]
	}
	return rest
}
