// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"errors"
	"math/rand/v2"
	"slices"
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

// The store does not return the record of a later attempt. The drivers of earlier attempts have stopped, so this one
// reads it again, also if its AM never calls again, and ends their UAMs.
func TestUnreadRecordIsReadAgain(t *testing.T) {
	d := NewDriver(DriverOptions{
		Attempt: creel.AttemptID{Application: app, Attempt: 2}, Home: "sc-a", Rand: rand.New(rand.NewPCG(1, 2)),
	})
	now := time.Unix(1000, 0)
	away := &creel.Error{Kind: creel.ErrUnavailable, What: "failed to read the UAM records"}
	count := func(e Event) (loads, refused, closed, dropped int) {
		for _, a := range slices.Clone(d.Step(now, e)) {
			switch a := a.(type) {
			case Save:
				for _, a := range d.Step(now, Saved{a.Number}) {
					if _, ok := a.(Drop); ok {
						dropped++
					}
				}
			case Load:
				loads++
			case Reply:
				if errors.Is(a.Err, creel.ErrUnavailable) {
					refused++
				}
			case Close:
				closed++
			case Drop:
				dropped++
			}
		}
		return loads, refused, closed, dropped
	}
	register := func(call uint64) FromAM {
		return FromAM{Call: call, Register: &yarnpb.RegisterApplicationMasterRequestProto{}}
	}
	if loads, _, _, _ := count(register(1)); loads != 0 {
		t.Fatal("the record is read twice at once")
	}
	if _, refused, closed, _ := count(Opened{Err: away}); refused != 1 || closed != 0 {
		t.Fatalf("%d calls are refused, closed: %d", refused, closed)
	}
	if loads, _, _, _ := count(register(2)); loads != 1 {
		t.Fatal("a call does not read the record again")
	}
	if loads, _, _, _ := count(register(3)); loads != 0 {
		t.Fatal("the record is read twice at once")
	}
	if _, refused, _, _ := count(Opened{Err: away}); refused != 2 {
		t.Fatalf("%d calls are refused", refused)
	}
	if loads, _, _, _ := count(Tick{}); loads != 0 {
		t.Fatal("the record is read again without a pause")
	}
	now = d.Wake()
	if loads, _, _, _ := count(Tick{}); loads != 1 {
		t.Fatal("the record is not read again while the AM is silent")
	}
	record := &Record{
		Attempt: creel.AttemptID{Application: app, Attempt: 1}, Home: "sc-a", User: "ann",
		UAMs: []UAM{{Member: "sc-b", Attempt: creel.AttemptID{Application: app, Attempt: 1}}},
	}
	_, _, _, dropped := count(Opened{Record: record})
	if dropped != 0 {
		t.Fatal("UAMs are dropped before home has reported the end")
	}
	for range 3 {
		_, _, _, n := count(HomeAnswered{State: creel.AppKilled})
		dropped += n
		now = now.Add(time.Second)
	}
	if dropped != 1 {
		t.Fatalf("the application is over, and %d UAMs are dropped", dropped)
	}
}
