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

// Home has enough memory for its AM's asks but no cores, or no GPUs where those are wanted. Asks that wait there move
// on at once, except from a member whose scheduler compares memory alone.
func TestAsksLeaveAMemberThatHasNoCores(t *testing.T) {
	gpus := creel.NewResource(1024, 1).With("yarn.io/gpu", 1)
	memory, cpu := yarnpb.SchedulerResourceTypes_MEMORY, yarnpb.SchedulerResourceTypes_CPU
	for _, c := range []struct {
		story string
		types []yarnpb.SchedulerResourceTypes
		limit creel.Resource
		size  creel.Resource
		moves bool
	}{
		{"no cores", []yarnpb.SchedulerResourceTypes{memory, cpu}, creel.NewResource(50<<10, 0), creel.NewResource(1024, 1), true},
		{"fewer than none", []yarnpb.SchedulerResourceTypes{memory, cpu}, creel.NewResource(50<<10, -7), creel.NewResource(1024, 1), true},
		{"it does not say what it compares", nil, creel.NewResource(50<<10, 0), creel.NewResource(1024, 1), true},
		{"it compares memory alone", []yarnpb.SchedulerResourceTypes{memory}, creel.NewResource(50<<10, -7), creel.NewResource(1024, 1), false},
		{"no GPUs", []yarnpb.SchedulerResourceTypes{memory, cpu}, creel.NewResource(50<<10, 50).With("yarn.io/gpu", 0), gpus, true},
		{"all", []yarnpb.SchedulerResourceTypes{memory, cpu}, creel.NewResource(50<<10, 50), creel.NewResource(1024, 1), false},
	} {
		t.Run(c.story, func(t *testing.T) {
			s, err := NewSession(Options{
				Attempt: creel.AttemptID{Application: app, Attempt: 1}, Home: "sc-a", User: "ann", Rand: rand.New(rand.NewPCG(1, 2)),
			})
			if err != nil {
				t.Fatal(err)
			}
			policy, err := policies.Parse([]byte(`{"split":{"policy":"balanced"}}`))
			if err != nil {
				t.Fatal(err)
			}
			now := time.Unix(1000, 0)
			var members []subcluster.Status
			for _, id := range []creel.SubclusterID{"sc-a", "sc-b"} {
				m := subcluster.Status{State: subcluster.StateActive}
				m.ID, m.Load.BeginsAgain = id, true
				m.Load.Metrics = subcluster.ClusterMetrics{
					AvailableMB: 100 << 10, AvailableVirtualCores: 100, TotalMB: 100 << 10, TotalVirtualCores: 100,
				}
				m.Load.Queues = []subcluster.QueueLoad{{
					Queue: "root.a", Capacity: creel.NewResource(100<<10, 100).With("yarn.io/gpu", 8),
					Free: creel.NewResource(100<<10, 100).With("yarn.io/gpu", 8),
				}}
				members = append(members, m)
			}
			moved := false
			answer := func(a Send) *Answered {
				moved = moved || a.Member == "sc-b"
				out := Answer(a)
				if out.Register != nil {
					out.Register.SchedulerResourceTypes = c.types
				} else {
					out.Allocate.Limit = yarnpb.FromResource(c.limit)
				}
				return out
			}
			Settle(t, s, now, Saw{subcluster.NewView(now, members, nil), policy, nil}, answer)
			Settle(t, s, now, FromAM{Call: 1, Register: &yarnpb.RegisterApplicationMasterRequestProto{}}, answer)
			Settle(t, s, now, FromAM{Call: 2, Allocate: &yarnpb.AllocateRequestProto{
				ResponseId: proto.Int32(0), Ask: []*yarnpb.ResourceRequestProto{{
					Priority: priority(1), ResourceName: proto.String("*"), NumContainers: proto.Int32(4), Capability: yarnpb.FromResource(c.size),
				}},
			}}, answer)
			for range 20 {
				now = now.Add(50 * time.Millisecond)
				Settle(t, s, now, Tick{}, answer)
			}
			if moved != c.moves {
				t.Errorf("asked of another within a second: %v", moved)
			}
		})
	}
}
