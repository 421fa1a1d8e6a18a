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
	"github.com/creelrm/creel/subcluster"
)

// The view shows free resources in 19 members, but all but one report none to this application, as they do at a
// user's limit. It has at no time more UAMs than the bound that grows with its ask, and in the end it finds the one.
// Where UAMs cannot be given back it adds as many every two minutes.
func TestUngrantedAskIsInFewMembersAtOnce(t *testing.T) {
	for _, count := range []int32{1, 9} {
		for _, once := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d, UAMs can be given back: %v", count, !once), func(t *testing.T) {
				inFewMembers(t, count, once)
			})
		}
	}
}

func inFewMembers(t *testing.T, count int32, once bool) {
	const all, good = 20, "sc-07"
	var members []subcluster.Status
	for i := range all {
		st := subcluster.Status{State: subcluster.StateActive}
		st.ID = creel.SubclusterID(fmt.Sprintf("sc-%02d", i))
		st.Load.BeginsAgain = !once
		st.Load.Metrics = subcluster.ClusterMetrics{
			AvailableMB: 100 << 10, AvailableVirtualCores: 100, TotalMB: 100 << 10, TotalVirtualCores: 100,
		}
		members = append(members, st)
	}
	s, err := NewSession(Options{
		Attempt: creel.AttemptID{Application: app, Attempt: 1}, Home: "sc-00", User: "ann", Rand: rand.New(rand.NewPCG(1, 2)),
	})
	if err != nil {
		t.Fatal(err)
	}
	now, id, granted, tried := time.Unix(1000, 0), int32(0), int64(0), map[creel.SubclusterID]bool{}
	answer := func(a Send) *Answered {
		tried[a.Member] = tried[a.Member] || a.Register != nil
		if a.Finish != nil {
			return &Answered{Member: a.Member, Seq: a.Seq, Finish: &yarnpb.FinishApplicationMasterResponseProto{
				IsUnregistered: proto.Bool(true),
			}}
		}
		out := Answer(a)
		if out.Allocate != nil && a.Member == good {
			for _, ask := range a.Allocate.Ask {
				for range ask.GetNumContainers() {
					granted++
					out.Allocate.AllocatedContainers = append(out.Allocate.AllocatedContainers, &yarnpb.ContainerProto{
						Id: &yarnpb.ContainerIdProto{Id: proto.Int64(7<<40 + granted)}, Priority: ask.Priority,
						NodeId: &yarnpb.NodeIdProto{Host: proto.String("h1"), Port: proto.Int32(1)},
					})
				}
			}
		}
		return out
	}
	policy, err := policies.Parse([]byte(`{"split":{"policy":"balanced"}}`))
	if err != nil {
		t.Fatal(err)
	}
	Settle(t, s, now, Saw{subcluster.NewView(now, members, nil), policy, nil}, answer)
	Settle(t, s, now, FromAM{Call: 1, Register: &yarnpb.RegisterApplicationMasterRequestProto{}}, answer)
	bound := map[int32]int{1: 1, 9: 3}[count]
	most := 0
	for i := 0; granted < int64(count); i++ {
		if i%4 == 0 {
			a := &yarnpb.AllocateRequestProto{ResponseId: proto.Int32(id)}
			if i == 0 {
				a.Ask = []*yarnpb.ResourceRequestProto{{
					Priority: priority(1), ResourceName: proto.String("*"), NumContainers: proto.Int32(count), Capability: gigabytes(1),
				}}
			}
			Settle(t, s, now, FromAM{Call: uint64(i + 2), Allocate: a}, answer)
			id = s.am.lastID
		}
		now = now.Add(250 * time.Millisecond)
		Settle(t, s, now, Tick{}, answer)
		uams, may := 0, bound
		for _, m := range s.members {
			if !m.home && m.inUse() {
				uams++
			}
		}
		if once {
			may *= 1 + int(now.Sub(time.Unix(1000, 0))/(2*time.Minute))
		}
		if most = max(most, uams); uams > may {
			t.Fatalf("after %v: %d UAMs", now.Sub(time.Unix(1000, 0)), uams)
		}
		if now.Sub(time.Unix(1000, 0)) > 2*time.Hour {
			t.Fatalf("%s has room, and is not asked; %d were tried", good, len(tried))
		}
	}
	t.Logf("granted after %v, %d UAMs at most, %d members tried", now.Sub(time.Unix(1000, 0)), most, len(tried)-1)
}
