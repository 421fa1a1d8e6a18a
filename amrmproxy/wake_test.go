// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// An AM that calls many times a second does not delay its session's Tick. Asks that have waited long are placed
// again, and a failed member is retried, each second at the latest, and at once when there is another plan. A driver
// sets its timer again after each event, so a moment that every event puts off never comes.
func TestASessionWithEventsAllTheTimeTicks(t *testing.T) {
	for _, between := range []time.Duration{20 * time.Millisecond, time.Millisecond} {
		t.Run(between.String(), func(t *testing.T) { eventsAllTheTime(t, between) })
	}
}

func eventsAllTheTime(t *testing.T, between time.Duration) {
	s, err := NewSession(Options{
		Attempt: creel.AttemptID{Application: app, Attempt: 1}, Home: "sc-a", User: "ann", Rand: rand.New(rand.NewPCG(1, 2)),
	})
	if err != nil {
		t.Fatal(err)
	}
	now, last, longest := time.Unix(1000, 0), time.Unix(1000, 0), time.Duration(0)
	view := &subcluster.View{}
	step := func(e Event) {
		if _, ok := e.(Tick); ok {
			longest, last = max(longest, now.Sub(last)), now
		}
		Settle(t, s, now, e, Answer)
	}
	step(Saw{view, policies.Policy{}, nil})
	step(Tick{})
	step(FromAM{Call: 1, Register: &yarnpb.RegisterApplicationMasterRequestProto{}})
	calls := int(10 * time.Second / between)
	for i := range calls {
		if i == calls/2 {
			view = &subcluster.View{Plan: &subcluster.Plan{}}
			step(Saw{view, policies.Policy{}, nil})
			if wait := s.Wake().Sub(now); wait > 20*time.Millisecond {
				t.Errorf("another plan is there, and waits for %v", wait)
			}
		}
		if now = now.Add(between); !now.Before(s.Wake()) {
			step(Tick{})
		}
		step(FromAM{Call: uint64(i + 2), Allocate: &yarnpb.AllocateRequestProto{ResponseId: proto.Int32(int32(i))}})
	}
	longest = max(longest, now.Sub(last))
	if longest > time.Second+between {
		t.Errorf("nothing ticked for %v", longest)
	}
}
