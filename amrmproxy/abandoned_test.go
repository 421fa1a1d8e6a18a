// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// Home gives an attempt up while its AM goes on. The driver asks home at once, and repeatedly until home answers,
// whether the application is over; only then its UAMs are dropped.
func TestUAMsOfAbandonedAttemptEndWithApplication(t *testing.T) {
	d := NewDriver(DriverOptions{
		Attempt: creel.AttemptID{Application: app, Attempt: 1}, Home: "sc-a", Rand: rand.New(rand.NewPCG(1, 2)),
	})
	now := time.Unix(1000, 0)
	var members []subcluster.Status
	for _, id := range []creel.SubclusterID{"sc-a", "sc-b"} {
		st := subcluster.Status{State: subcluster.StateActive}
		st.ID = id
		st.Load.Metrics = subcluster.ClusterMetrics{
			AvailableMB: 1 << 20, AvailableVirtualCores: 1 << 10, TotalMB: 1 << 20, TotalVirtualCores: 1 << 10,
		}
		members = append(members, st)
	}
	document := subcluster.Policy{Queue: "root", Document: []byte(byHeadroom), Version: 1}
	view := subcluster.NewView(now, members, []subcluster.Policy{document})
	d.See(view, policies.NewTable(nil, view.Policies), nil)
	gone := false
	asked, dropped := 0, 0
	var refused error
	var step func(e Event)
	step = func(e Event) {
		var next []Event
		for _, a := range d.Step(now, e) {
			switch a := a.(type) {
			case Save:
				next = append(next, Saved{a.Number})
			case Launch:
				next = append(next, Launched{
					Member: a.Member, Type: "YARN", Attempt: creel.AttemptID{Application: app, Attempt: 1},
					Token: &yarnpb.TokenProto{Identifier: []byte{1}, Password: []byte{1}},
				})
			case Send:
				answer := Answered{Member: a.Member, Seq: a.Seq}
				switch {
				case gone && a.Member == "sc-a":
					answer.Err = creel.ErrAttemptNotFound
				case a.Register != nil:
					answer.Register = &yarnpb.RegisterApplicationMasterResponseProto{Queue: proto.String("root.a")}
				default:
					id := a.Allocate.GetResponseId() + 1
					answer.Allocate = &yarnpb.AllocateResponseProto{ResponseId: &id}
				}
				next = append(next, answer)
			case AskHome:
				asked++
			case Drop:
				dropped++
				next = append(next, Dropped{Member: a.Member})
			case Reply:
				refused = a.Err
			}
		}
		for _, e := range next {
			step(e)
		}
	}
	allocate := func(call uint64, n int32) {
		step(FromAM{Call: call, Allocate: &yarnpb.AllocateRequestProto{
			ResponseId: proto.Int32(int32(call) - 2),
			Ask: []*yarnpb.ResourceRequestProto{{
				Priority: priority(1), ResourceName: proto.String(anywhere), NumContainers: &n, Capability: gigabytes(1),
			}},
		}})
	}
	step(Opened{})
	step(FromAM{Call: 1, Register: &yarnpb.RegisterApplicationMasterRequestProto{}})
	allocate(2, 10)
	gone = true
	allocate(3, 10)
	if !errors.Is(refused, creel.ErrAttemptNotFound) || asked != 1 || dropped != 0 {
		t.Fatalf("refused with %v, home asked %d times, %d UAMs dropped", refused, asked, dropped)
	}
	step(HomeAnswered{State: creel.AppRunning})
	for call := range uint64(30) {
		now = now.Add(time.Second)
		allocate(4+call, 10)
		step(Tick{})
	}
	if !errors.Is(refused, creel.ErrAttemptNotFound) || asked != 2 || dropped != 0 {
		t.Fatalf("refused with %v, home asked %d times, %d UAMs dropped", refused, asked, dropped)
	}
	step(HomeAnswered{State: creel.AppFailed})
	if dropped != 1 {
		t.Fatalf("the application is over, and %d UAMs are dropped", dropped)
	}
}
