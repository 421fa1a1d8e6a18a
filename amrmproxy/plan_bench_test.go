// SPDX-License-Identifier: Apache-2.0

package amrmproxy_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// planned is a view of members that are full, in which a plan entitles the queue to more in each.
func planned(now time.Time, members int, version int64) *subcluster.View {
	var status []subcluster.Status
	share := 1 / float64(members)
	p := &subcluster.Plan{
		Version: version, At: now, LeaseMS: 1 << 40, Total: creel.NewResource(int64(members)<<20, int64(members)<<10),
	}
	q := subcluster.QueuePlan{Queue: "root.a", Wants: 1, Entitled: 0.6, Uses: 0.5}
	for i := range members {
		s := free(creel.SubclusterID(fmt.Sprintf("sc-%02d", i)), 0)
		s.Load.Metrics.PendingMB, s.Load.Metrics.PendingVirtualCores = 1<<16, 1<<6
		s.Load.Queues = []subcluster.QueueLoad{{
			Queue: "root.a", Capacity: creel.NewResource(1<<19, 1<<9), Used: creel.NewResource(1<<19, 1<<9),
			Pending: creel.NewResource(1<<16, 1<<6),
		}}
		status = append(status, s)
		p.Members = append(p.Members, subcluster.MemberSize{Member: s.ID, Share: share})
		q.Members = append(q.Members, subcluster.MemberPlan{
			Member: s.ID, Given: share * (0.55 + 0.1*float64((int64(i)+version)%2)), Weight: share,
		})
	}
	p.Queues = []subcluster.QueuePlan{q}
	v := subcluster.NewView(now, status, nil)
	v.Plan = p
	return v
}

// BenchmarkAnotherPlan measures the cost of another plan for a proxy of a thousand sessions. Each sees it, and at its
// next tick places its waiting asks again: none, or ten asks for 10 containers each. An iteration is a plan;
// ns/session is of one session.
func BenchmarkAnotherPlan(b *testing.B) {
	const sessions = 1000
	for _, members := range []int{5, 20} {
		for _, asks := range []int{0, 1, 10} {
			b.Run(fmt.Sprintf("members=%d/asks=%d", members, asks), func(b *testing.B) {
				now := time.Unix(0, 0)
				policy, err := policies.Parse([]byte(`{"split":{"policy":"balanced"}}`))
				if err != nil {
					b.Fatal(err)
				}
				views := [2]*subcluster.View{planned(now, members, 1), planned(now, members, 2)}
				all := make([]*amrmproxy.Session, sessions)
				for i := range all {
					all[i] = waitingSession(b, now, views[0], policy, asks)
				}
				out := 0
				for n := 0; b.Loop(); n++ {
					now = now.Add(200 * time.Millisecond)
					for _, s := range all {
						s.Step(now, amrmproxy.Saw{View: views[(n+1)%2], Policy: policy})
						out += len(s.Step(now, amrmproxy.Tick{}))
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/sessions, "ns/session")
				b.ReportMetric(float64(out)/float64(b.N)/sessions, "actions/session")
			})
		}
	}
}

// waitingSession returns a session whose AM waits for asks of 10 containers each, of another size each.
func waitingSession(
	b *testing.B, now time.Time, view *subcluster.View, policy policies.Policy, asks int,
) *amrmproxy.Session {
	s, err := amrmproxy.NewSession(amrmproxy.Options{
		Attempt: creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 7, ID: 1}, Attempt: 1},
		Home:    "sc-00", User: "ann", Rand: rand.New(rand.NewPCG(1, 2)),
	})
	if err != nil {
		b.Fatal(err)
	}
	step := func(e amrmproxy.Event) { amrmproxy.Settle(b, s, now, e, amrmproxy.Answer) }
	step(amrmproxy.Saw{View: view, Policy: policy})
	step(amrmproxy.FromAM{Call: 1, Register: &yarnpb.RegisterApplicationMasterRequestProto{}})
	call := &yarnpb.AllocateRequestProto{ResponseId: proto.Int32(0)}
	for i := range asks {
		call.Ask = append(call.Ask, &yarnpb.ResourceRequestProto{
			Priority: &yarnpb.PriorityProto{Priority: proto.Int32(int32(i + 1))}, ResourceName: proto.String("*"),
			Capability:    &yarnpb.ResourceProto{Memory: proto.Int64(1024 * int64(1+i%4)), VirtualCores: proto.Int32(1)},
			NumContainers: proto.Int32(10), RelaxLocality: proto.Bool(true),
		})
	}
	step(amrmproxy.FromAM{Call: 2, Allocate: call})
	return s
}
