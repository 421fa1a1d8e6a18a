// SPDX-License-Identifier: Apache-2.0

package yarnpb_test

import (
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/creelrm/creel/internal/yarnpb"
)

// The number survives the wire, and a hostile one is cut to that of an ask.
func TestUnplacedSurvivesTheWire(t *testing.T) {
	for n, want := range map[int64]int32{0: 0, -3: 0, 7: 7, math.MaxInt64: math.MaxInt32} {
		r := &pb.DistributedSchedulingAllocateRequestProto{AllocateRequest: &pb.AllocateRequestProto{}}
		pb.SetUnplaced(r, n)
		b, err := proto.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		got := &pb.DistributedSchedulingAllocateRequestProto{}
		if err := proto.Unmarshal(b, got); err != nil || pb.Unplaced(got) != want {
			t.Errorf("%d reads as %d, %v", n, pb.Unplaced(got), err)
		}
	}
}
