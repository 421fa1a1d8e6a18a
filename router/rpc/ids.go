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

// Ids are requested from a member in blocks, of the number needed within idsAhead. Ids unused after idsAge are
// dropped. That leaves a gap in the numbers, like a client that gets an id and does not submit. idsAge is also the
// greatest age of the maximum capability in the same answer.
const (
	idsAhead = 10 * time.Millisecond
	idsAge   = time.Second
	idsUsers = 1024 // limit of stored users

	// If a member has not answered after idsPatience for each call under way, another call for the waiting callers
	// goes to any member. At most idsCalls are under way for one user.
	idsPatience = 100 * time.Millisecond
	idsCalls    = 32
)

// ids answers getNewApplication. Forwarding each of these calls to a member was an eighth of the cost of a
// submission. So concurrent calls share one call to a member, and if there are many, it also gets ids for the next
// callers. A single call makes one call to a member, for one id. Members running Hadoop's ResourceManager issue one
// id per call, so each waiting caller needs a call. Each user's ids come from calls with that user's name, so
// members' rejections apply here too.
type ids struct {
	// fetch calls any member with the name of a user.
	fetch func(ctx context.Context, user string, request []byte) ([]byte, error)
	gave  func(first creel.ApplicationID, n int) // called with ids before any caller gets them

	mu    sync.Mutex
	users map[string]*userIDs
}

// userIDs has the ids fetched ahead for one user, and the calls that wait for ids.
type userIDs struct {
	next    *pb.GetNewApplicationResponseProto // has the next id; it is immutable
	left    int
	since   time.Time // of the last block
	wanted  time.Time // time of the last request for ids
	asked   int       // calls since then
	waiting []func([]byte, error)
	gone    int // number of callers that have left waiting
	calls   int // number of calls under way to members
	young   int // number of these calls that are younger than the patience
}

// take returns an encoded answer if there is one. Otherwise it returns nil, and uses the result of later for the
// answer.
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

// call asks members for the waiting callers, unless there is a young call. The caller must have the lock.
func (s *ids) call(user string, u *userIDs) {
	if u.young == 0 && len(u.waiting) > 0 {
		s.start(user, u)
	}
}

// start starts one more call. The caller must have the lock.
func (s *ids) start(user string, u *userIDs) {
	if u.calls < idsCalls {
		u.calls++
		u.young++
		go s.fill(user, u)
	}
}

// of returns a user's entry. The caller must have the lock.
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

// pop returns the next answer and advances to the following id.
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

// want returns the number of ids to request now.
func (u *userIDs) want(now time.Time) int {
	ahead := int(float64(u.asked) * float64(idsAhead) / float64(max(now.Sub(u.wanted), time.Microsecond)))
	u.wanted, u.asked = now, 0
	return min(max(ahead, len(u.waiting)), yarnrpc.MaxBlock)
}

// fill asks members until no caller waits. It also ends when the pool is closed, since that ends its calls. The
// caller counts it in calls and young before the start.
func (s *ids) fill(user string, u *userIDs) {
	for {
		s.mu.Lock()
		wanted := u.want(time.Now())
		asked := u.gone + len(u.waiting) // callers that waited before this call
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
			// Later callers have another call, or get the next one.
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
