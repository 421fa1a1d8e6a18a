// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import pb "github.com/creelrm/creel/internal/yarnpb"

// MaxBlock is the largest number of ids that one getNewApplication returns. A router that handles thousands of
// submissions a second asks creel's ResourceManager for a block of ids. A ResourceManager without support for the field
// returns one id. A client without support for it gets one id.
const MaxBlock = 32

// BlockRequest is an encoded GetNewApplicationRequestProto for n ids.
func BlockRequest(n int) []byte {
	if n <= 1 {
		return nil
	}
	return pb.AppendNumber(nil, pb.FieldBlock, int64(n))
}

// BlockWanted returns the number of ids that a request asks for.
func BlockWanted(r *pb.GetNewApplicationRequestProto) int {
	return blockIn(r.ProtoReflect().GetUnknown())
}

// SetBlock marks an answer as a block of n consecutive ids.
func SetBlock(r *pb.GetNewApplicationResponseProto, n int) {
	if n > 1 {
		r.ProtoReflect().SetUnknown(BlockRequest(n))
	}
}

// TakeBlock returns the number of consecutive ids in an answer, and removes the mark.
func TakeBlock(r *pb.GetNewApplicationResponseProto) int {
	unknown := r.ProtoReflect().GetUnknown()
	n := blockIn(unknown)
	if n > 1 {
		r.ProtoReflect().SetUnknown(pb.Without(unknown, pb.FieldBlock))
	}
	return n
}

// blockIn reads the number from the fields unknown to Hadoop. The result is within 1 and MaxBlock; 1 if the number is
// missing.
func blockIn(fields []byte) int {
	return int(min(max(pb.NumberIn(fields, pb.FieldBlock), 1), MaxBlock))
}
