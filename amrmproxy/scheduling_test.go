// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/internal/yarnpb"
)

func TestSchedulingRequestsUntilHomeAnswers(t *testing.T) {
	request := func(n int32) *yarnpb.SchedulingRequestProto {
		return &yarnpb.SchedulingRequestProto{
			Priority: yarnpb.FromPriority(1), AllocationRequestId: proto.Int64(4),
			ResourceSizing: &yarnpb.ResourceSizingProto{NumAllocations: &n},
		}
	}
	var s scheduling
	s.add([]*yarnpb.SchedulingRequestProto{request(5)})
	s.add([]*yarnpb.SchedulingRequestProto{request(3)})
	if sent := s.send(); len(sent) != 1 || allocations(sent[0]) != 3 || len(s.send()) != 0 || !s.used {
		t.Fatalf("sent %v, want the later request once", sent)
	}
	s.placed(yarnpb.FromPriority(1), 4, 1)
	s.lost()
	if sent := s.send(); len(sent) != 1 || allocations(sent[0]) != 2 {
		t.Fatalf("after home's restart: %v, want two more", sent)
	}
	s.rejected([]*yarnpb.RejectedSchedulingRequestProto{{Request: request(2)}})
	if s.lost(); len(s.send()) != 0 {
		t.Error("a rejected request is sent again")
	}
}
