// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"sync"
	"time"

	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// Ids are asked of a member in blocks of what is wanted within idsAhead, and
// those nobody took within idsAge are left: a gap in the numbers, as any client
// makes that asks and does not submit. The age is also how old the maximal
// capability beside an id may be.
const (
	idsAhead = 10 * time.Millisecond
	idsAge   = time.Second
	idsUsers = 1024 // users remembered at most
)

// ids answers getNewApplication. To carry each of these calls to a member and
// back was an eighth of what a submission cost; so those that come together
// share one call, and when many come it brings ids for the next ones too. A lone
// call is one call to a member, for one id. Each user's ids come of calls in
// that user's name: who is refused there is refused here.
type ids struct {
	// fetch asks any member in the name of a user.
	fetch func(ctx context.Context, user string, request []byte) ([]byte, error)

	mu    sync.Mutex
	users map[string]*shelf
}

// shelf is what one user has in store.
type shelf struct {
	next    *pb.GetNewApplicationResponseProto // with the next id; it is never changed
	left    int
	since   time.Time // of the last block
	wanted  time.Time // when it was asked for
	asked   int       // calls since then
	waiting []func([]byte, error)
	filling bool
}

// take gives an encoded answer at once, or nil and calls later once it is there.
func (s *ids) take(user string, later func() func([]byte, error)) ([]byte, error) {
	s.mu.Lock()
	h := s.shelf(user)
	h.asked++
	if h.left > 0 && time.Since(h.since) < idsAge {
		answer := h.pop()
		s.mu.Unlock()
		return answer.MarshalVT()
	}
	h.left = 0
	h.waiting = append(h.waiting, later())
	if !h.filling {
		h.filling = true
		go s.fill(user, h)
	}
	s.mu.Unlock()
	return nil, hrpc.ErrLater
}

// shelf finds a user's. The lock is held.
func (s *ids) shelf(user string) *shelf {
	h := s.users[user]
	if h == nil {
		if len(s.users) >= idsUsers {
			for u, h := range s.users {
				if !h.filling {
					delete(s.users, u)
				}
			}
		}
		h = &shelf{}
		s.users[user] = h
	}
	return h
}

// pop takes the next answer.
func (h *shelf) pop() *pb.GetNewApplicationResponseProto {
	answer := h.next
	if h.left--; h.left > 0 {
		id := answer.GetApplicationId()
		h.next = &pb.GetNewApplicationResponseProto{ApplicationId: &pb.ApplicationIdProto{Id: new(id.GetId() + 1), ClusterTimestamp: id.ClusterTimestamp},
			MaximumCapability: answer.MaximumCapability}
		h.next.ProtoReflect().SetUnknown(answer.ProtoReflect().GetUnknown())
	}
	return answer
}

// want is how many ids to ask for now.
func (h *shelf) want(now time.Time) int {
	ahead := int(float64(h.asked) * float64(idsAhead) / float64(max(now.Sub(h.wanted), time.Microsecond)))
	h.wanted, h.asked = now, 0
	return min(max(ahead, len(h.waiting)), yarnrpc.MaxBlock)
}

// fill asks members until nobody waits. The calls of the pool, whose close ends
// them, bound its life.
func (s *ids) fill(user string, h *shelf) {
	for filling := true; filling; {
		s.mu.Lock()
		n := h.want(time.Now())
		s.mu.Unlock()
		body, err := s.fetch(context.Background(), user, yarnrpc.BlockRequest(n))
		var first pb.GetNewApplicationResponseProto
		if err == nil {
			err = first.UnmarshalVT(body)
		}
		s.mu.Lock()
		waiting := h.waiting
		var answers []*pb.GetNewApplicationResponseProto
		if err == nil {
			h.next, h.left, h.since = &first, yarnrpc.TakeBlock(&first), time.Now()
			waiting = waiting[:min(len(waiting), h.left)]
			for range waiting {
				answers = append(answers, h.pop())
			}
		}
		h.waiting = h.waiting[len(waiting):]
		if filling = len(h.waiting) > 0; !filling {
			h.filling, h.waiting = false, nil
		}
		s.mu.Unlock()
		for i, reply := range waiting {
			if err != nil {
				reply(nil, err)
				continue
			}
			reply(answers[i].MarshalVT())
		}
	}
}
