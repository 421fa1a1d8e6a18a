// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/internal/yarnpb"
)

// Settle passes a session an event and all that follows from it, as a driver would at once: records are saved, UAMs
// launched, and members answer by answer; nil is silence. It returns the replies to the AM.
func Settle(t testing.TB, s *Session, now time.Time, e Event, answer func(Send) *Answered) (replies []Reply) {
	t.Helper()
	todo := []Event{e}
	for n := 0; len(todo) > 0; n++ {
		for _, a := range s.Step(now, todo[0]) {
			switch a := a.(type) {
			case Save:
				todo = append(todo, Saved{a.Number})
			case Launch:
				todo = append(todo, Launched{Member: a.Member, Attempt: s.Attempt(), Token: &yarnpb.TokenProto{}})
			case Send:
				if by := answer(a); by != nil {
					todo = append(todo, *by)
				}
			case Reply:
				replies = append(replies, a)
			}
		}
		if todo = todo[1:]; n > 1000 {
			t.Fatal("the session does not settle")
		}
	}
	return replies
}

// Answer is that of a member that accepts each call, and has no free resources.
func Answer(a Send) *Answered {
	out := &Answered{Member: a.Member, Seq: a.Seq}
	if a.Register != nil {
		out.Register = &yarnpb.RegisterApplicationMasterResponseProto{Queue: proto.String("root.a")}
	} else {
		out.Allocate = &yarnpb.AllocateResponseProto{
			ResponseId: proto.Int32(a.Allocate.GetResponseId() + 1), Limit: &yarnpb.ResourceProto{},
		}
	}
	return out
}
