// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import pb "github.com/creelrm/creel/internal/yarnpb"

// MaxBlock is how many ids one getNewApplication returns at most: a router that handles thousands of submissions a
// second asks creel's ResourceManager for a block of them. A ResourceManager that does not know the field returns one
// id, and a client that does not know it gets one.
const MaxBlock = 32

// BlockRequest is an encoded GetNewApplicationRequestProto for n ids.
func BlockRequest(n int) []byte {
	if n <= 1 {
		return nil
	}
	return pb.AppendNumber(nil, pb.FieldBlock, int64(n))
}

// BlockWanted is how many ids a request wants.
func BlockWanted(r *pb.GetNewApplicationRequestProto) int {
	return blockIn(r.ProtoReflect().GetUnknown())
}

// SetBlock marks an answer as a block of n consecutive ids.
func SetBlock(r *pb.GetNewApplicationResponseProto, n int) {
	if n > 1 {
		r.ProtoReflect().SetUnknown(BlockRequest(n))
	}
}

// TakeBlock returns how many consecutive ids an answer contains, and removes the mark.
func TakeBlock(r *pb.GetNewApplicationResponseProto) int {
	unknown := r.ProtoReflect().GetUnknown()
	n := blockIn(unknown)
	if n > 1 {
		r.ProtoReflect().SetUnknown(pb.Without(unknown, pb.FieldBlock))
	}
	return n
}

// blockIn reads the number among fields that are not Hadoop's: 1 if there is
// none, or none that makes sense.
func blockIn(fields []byte) int {
	return int(min(max(pb.NumberIn(fields, pb.FieldBlock), 1), MaxBlock))
}
