// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// Ids are requested from a member in blocks of the number needed within idsAhead, and ids unused after idsAge are
// dropped: a gap in the numbers, as any client makes that asks and does not submit. The age is also the greatest age
// of the maximal capability that accompanies an id.
const (
	idsAhead = 10 * time.Millisecond
	idsAge   = time.Second
	idsUsers = 1024 // users remembered at most

	// If a member has not answered after idsPatience for each call on its way, the waiting callers are asked for
	// again, at any member. At most idsCalls are on their way for one user.
	idsPatience = 100 * time.Millisecond
	idsCalls    = 32
)

// ids answers getNewApplication. Carrying each of these calls to a member and back was an eighth of the cost of a
// submission. So concurrent calls share one, and when there are many it brings ids for the next ones too. A lone call
// is one call to a member, for one id. Members with Hadoop's ResourceManager issue one id per call: then there is a
// call for each waiting caller. Each user's ids come from calls as that user: a user rejected there is rejected here.
type ids struct {
	// fetch asks any member as a user.
	fetch func(ctx context.Context, user string, request []byte) ([]byte, error)
	gave  func(first creel.ApplicationID, n int) // is called with ids before any caller has them

	mu    sync.Mutex
	users map[string]*userIDs
}

// userIDs are the ids fetched ahead for one user, and the calls that wait for some.
type userIDs struct {
	next    *pb.GetNewApplicationResponseProto // with the next id; it is never changed
	left    int
	since   time.Time // of the last block
	wanted  time.Time // when it was asked for
	asked   int       // calls since then
	waiting []func([]byte, error)
	gone    int // the number of all that ever waited and do no longer
	calls   int // on their way to members
	young   int // of those, the ones that are still waited for alone
}

// take returns an encoded answer at once, or nil and calls later once it is there.
func (s *ids) take(user string, later func() func([]byte, error)) ([]byte, error) {
	s.mu.Lock()
	u := s.of(user)
	u.asked++
	if u.left > 0 && time.Since(u.since) < idsAge {
		answer := u.pop()
		s.mu.Unlock()
		return answer.MarshalVT()
	}
	u.left = 0
	u.waiting = append(u.waiting, later())
	s.call(user, u)
	s.mu.Unlock()
	return nil, hrpc.ErrLater
}

// call asks members for the waiting callers, unless a young call does. The lock is held.
func (s *ids) call(user string, u *userIDs) {
	if u.young == 0 && len(u.waiting) > 0 {
		s.start(user, u)
	}
}

// start sends one more call on its way. The lock is held.
func (s *ids) start(user string, u *userIDs) {
	if u.calls < idsCalls {
		u.calls++
		u.young++
		go s.fill(user, u)
	}
}

// of returns a user's entry. The lock is held.
func (s *ids) of(user string) *userIDs {
	u := s.users[user]
	if u == nil {
		if len(s.users) >= idsUsers {
			for user, u := range s.users {
				if u.calls == 0 {
					delete(s.users, user)
				}
			}
		}
		u = &userIDs{}
		s.users[user] = u
	}
	return u
}

// pop takes the next answer.
func (u *userIDs) pop() *pb.GetNewApplicationResponseProto {
	answer := u.next
	if u.left--; u.left > 0 {
		id := answer.GetApplicationId()
		u.next = &pb.GetNewApplicationResponseProto{
			ApplicationId:     &pb.ApplicationIdProto{Id: new(id.GetId() + 1), ClusterTimestamp: id.ClusterTimestamp},
			MaximumCapability: answer.MaximumCapability,
		}
		u.next.ProtoReflect().SetUnknown(answer.ProtoReflect().GetUnknown())
	}
	return answer
}

// want returns how many ids to ask for now.
func (u *userIDs) want(now time.Time) int {
	ahead := int(float64(u.asked) * float64(idsAhead) / float64(max(now.Sub(u.wanted), time.Microsecond)))
	u.wanted, u.asked = now, 0
	return min(max(ahead, len(u.waiting)), yarnrpc.MaxBlock)
}

// fill asks members until no caller waits. It lives no longer than the calls of the pool, whose close ends them. It
// is started as one of the calls and of the young ones.
func (s *ids) fill(user string, u *userIDs) {
	for {
		s.mu.Lock()
		wanted := u.want(time.Now())
		asked := u.gone + len(u.waiting) // those that waited before this call
		wait := idsPatience * time.Duration(u.calls)
		s.mu.Unlock()
		young := true
		patience := time.AfterFunc(wait, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if young {
				young = false
				u.young--
				s.call(user, u)
			}
		})
		body, err := s.fetch(context.Background(), user, yarnrpc.BlockRequest(wanted))
		var first pb.GetNewApplicationResponseProto
		if err == nil {
			err = first.UnmarshalVT(body)
		}
		patience.Stop()
		s.mu.Lock()
		if young {
			young = false
			u.young--
		}
		waiting := u.waiting
		var answers []*pb.GetNewApplicationResponseProto
		if err == nil {
			got := yarnrpc.TakeBlock(&first)
			if s.gave != nil {
				s.gave(pb.ToApplicationID(first.GetApplicationId()), got)
			}
			u.next, u.left, u.since = &first, got, time.Now()
			waiting = waiting[:min(len(waiting), got)]
			for range waiting {
				answers = append(answers, u.pop())
			}
			u.leave(len(waiting))
			if got == 1 && wanted > 1 {
				for range len(u.waiting) - 1 {
					s.start(user, u)
				}
			}
		} else {
			// Later callers have a call of their own, or get the next one.
			waiting = waiting[:min(max(asked-u.gone, 0), len(waiting))]
			u.leave(len(waiting))
		}
		more := len(u.waiting) > 0
		if more {
			u.young++
		} else {
			u.calls--
		}
		s.mu.Unlock()
		for i, reply := range waiting {
			if err != nil {
				reply(nil, err)
				continue
			}
			reply(answers[i].MarshalVT())
		}
		if !more {
			return
		}
	}
}

// leave removes the first n of the waiting callers.
func (u *userIDs) leave(n int) {
	u.gone += n
	if u.waiting = u.waiting[n:]; len(u.waiting) == 0 {
		u.waiting = nil
	}
}
