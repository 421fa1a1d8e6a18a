// SPDX-License-Identifier: Apache-2.0

package yarnpb

// SetUnplaced adds the number of containers that a proxy has to place and has found no node for; 0 adds nothing.
func SetUnplaced(r *DistributedSchedulingAllocateRequestProto, n int64) {
	if n > 0 {
		m := r.ProtoReflect()
		m.SetUnknown(AppendNumber(m.GetUnknown(), FieldUnplaced, n))
	}
}

// Unplaced returns the number set by SetUnplaced, at most the largest number of containers of an ask.
func Unplaced(r *DistributedSchedulingAllocateRequestProto) int32 {
	return int32(min(max(NumberIn(r.ProtoReflect().GetUnknown(), FieldUnplaced), 0), 1<<31-1))
}
