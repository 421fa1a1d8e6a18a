// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/internal/yarnpb"
)

// scheduling has the AM's scheduling requests, which go to home. They are absolute for each priority, allocation and
// execution type, like asks, so a later request replaces an earlier one.
type scheduling struct {
	unsent []*yarnpb.SchedulingRequestProto
	// unplaced are the requests that home has not answered yet: a restarted home has lost them, and the AM is not
	// informed of that.
	unplaced []*yarnpb.SchedulingRequestProto
	used     bool // the AM has sent such requests, which are in no group
}

// add stores requests of the AM.
func (s *scheduling) add(requests []*yarnpb.SchedulingRequestProto) {
	s.unsent, s.unplaced = put(s.unsent, requests), put(s.unplaced, requests)
	s.used = s.used || len(requests) > 0
}

// send returns the requests for the next call to home.
func (s *scheduling) send() []*yarnpb.SchedulingRequestProto {
	out := s.unsent
	s.unsent = nil
	return out
}

// lost records that home has lost all requests.
func (s *scheduling) lost() { s.unsent = slices.Clone(s.unplaced) }

// untaken stores the requests of a call that home did not accept.
func (s *scheduling) untaken(requests []*yarnpb.SchedulingRequestProto) {
	s.unsent = append(requests, s.unsent...)
}

// scheduleKey identifies a scheduling request.
type scheduleKey struct {
	priority int32
	request  int64
	kind     yarnpb.ExecutionTypeProto
}

// put adds requests to a list. An AM may send thousands.
func put(list, requests []*yarnpb.SchedulingRequestProto) []*yarnpb.SchedulingRequestProto {
	if len(requests) == 0 {
		return list
	}
	at := make(map[scheduleKey]int, len(list)+len(requests))
	key := func(r *yarnpb.SchedulingRequestProto) scheduleKey {
		return scheduleKey{
			r.GetPriority().GetPriority(), r.GetAllocationRequestId(), r.GetExecutionType().GetExecutionType(),
		}
	}
	for i, r := range list {
		at[key(r)] = i
	}
	for _, r := range requests {
		if i, has := at[key(r)]; has {
			list[i] = r
			continue
		}
		at[key(r)] = len(list)
		list = append(list, r)
	}
	return list
}

// placed subtracts n containers from the scheduling request that a grant or a rejection answers.
func (s *scheduling) placed(priority *yarnpb.PriorityProto, request int64, n int32) {
	i := slices.IndexFunc(s.unplaced, func(o *yarnpb.SchedulingRequestProto) bool {
		return o.GetPriority().GetPriority() == priority.GetPriority() && o.GetAllocationRequestId() == request
	})
	if i < 0 {
		return
	}
	if left := allocations(s.unplaced[i]) - n; left > 0 {
		r := proto.CloneOf(s.unplaced[i]) // the AM's message may still be on its way to home
		r.ResourceSizing.NumAllocations = proto.Int32(left)
		s.unplaced[i] = r
		return
	}
	s.unplaced = slices.Delete(s.unplaced, i, i+1)
}

// rejected takes home's rejections.
func (s *scheduling) rejected(list []*yarnpb.RejectedSchedulingRequestProto) {
	for _, x := range list {
		r := x.GetRequest()
		s.placed(r.GetPriority(), r.GetAllocationRequestId(), allocations(r))
	}
}

// allocations returns the number of containers of a scheduling request; one if the request has no valid number.
func allocations(r *yarnpb.SchedulingRequestProto) int32 {
	return max(1, r.GetResourceSizing().GetNumAllocations())
}
