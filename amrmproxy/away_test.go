// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
)

// Home is away for an hour while its AM goes on. Only the first heartbeat waits for home, and the state stored for
// home's return does not grow with the hour.
func TestHourWithoutHomeIsCheap(t *testing.T) {
	for name, fails := range map[string]bool{"refusing": true, "silent": false} {
		s, err := NewSession(Options{
			Attempt: creel.AttemptID{Application: app, Attempt: 1}, Home: "sc-a", User: "ann", Rand: rand.New(rand.NewPCG(1, 2)),
		})
		if err != nil {
			t.Fatal(err)
		}
		now, replied := time.Unix(1000, 0), uint64(0)
		answer := func(a Send) *Answered {
			switch {
			case a.Register != nil:
				return Answer(a)
			case fails:
				return &Answered{Member: a.Member, Seq: a.Seq, Err: creel.ErrUnavailable}
			}
			return nil
		}
		step := func(e Event) {
			for _, r := range Settle(t, s, now, e, answer) {
				if r.Err != nil {
					t.Fatalf("%s: refused: %v", name, r.Err)
				}
				replied = r.Call
			}
		}
		step(Saw{nil, policies.Policy{}, nil})
		step(FromAM{Call: 1, Register: &yarnpb.RegisterApplicationMasterRequestProto{}})
		slowest, slow := time.Duration(0), 0
		for i := range 3600 {
			names := []string{fmt.Sprintf("h%d", i%7)}
			list := &yarnpb.ResourceBlacklistRequestProto{BlacklistAdditions: names}
			if i%14 >= 7 {
				list = &yarnpb.ResourceBlacklistRequestProto{BlacklistRemovals: names}
			}
			id := idProto(creel.NewContainerID(creel.AttemptID{Application: app, Attempt: 1}, 1, int64(i%5)))
			call, began := uint64(i+2), now
			step(FromAM{Call: call, Allocate: &yarnpb.AllocateRequestProto{
				ResponseId: proto.Int32(int32(i)),
				Ask: []*yarnpb.ResourceRequestProto{{
					Priority: priority(int64(i % 3)), ResourceName: proto.String(anywhere),
					NumContainers: proto.Int32(int32(i % 9)), Capability: gigabytes(1),
				}},
				Release:          []*yarnpb.ContainerIdProto{id},
				BlacklistRequest: list,
				UpdateRequests:   []*yarnpb.UpdateContainerRequestProto{{ContainerId: id}},
				SchedulingRequests: []*yarnpb.SchedulingRequestProto{
					{AllocationRequestId: proto.Int64(int64(i % 4)), Priority: priority(9)},
				},
			}})
			for replied != call {
				now = now.Add(50 * time.Millisecond)
				step(Tick{})
			}
			if waited := now.Sub(began); waited > 0 {
				slow++
				slowest = max(slowest, waited)
			}
			now = now.Add(time.Second)
			step(Tick{})
		}
		if slow > 4 || slowest > 3*time.Second+50*time.Millisecond {
			t.Errorf("%s: %d of 3,600 heartbeats waited for home, %v at most; the first few may, 3 s", name, slow, slowest)
		}
		h := s.home
		kept := map[string]int{
			"releases": len(h.release), "blacklisted": len(h.blackAdd), "whitelisted": len(h.blackDel),
			"updates": len(h.updates), "scheduling requests": len(s.ledger.scheduling.unsent), "groups of asks": len(s.ledger.groups),
			"held": len(s.ledger.held.live), "answers": len(s.am.out.CompletedContainerStatuses),
		}
		for what, n := range kept {
			if n > 10 {
				t.Errorf("%s: after an hour %d %s are kept", name, n, what)
			}
		}
	}
}
