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

// registeredSession is one of an AM that has registered, before its first allocate.
func registeredSession(t testing.TB, now time.Time, members int) *Session {
	t.Helper()
	s, err := NewSession(Options{
		Attempt: creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 7, ID: 1}, Attempt: 1},
		Home:    "sc-00", User: "ann", Rand: rand.New(rand.NewPCG(1, 2)),
	})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := policies.Parse([]byte(`{"split":{"policy":"balanced"}}`))
	if err != nil {
		t.Fatal(err)
	}
	var status []subcluster.Status
	for i := range members {
		status = append(status, subcluster.Status{
			Member: subcluster.Member{ID: creel.SubclusterID(fmt.Sprintf("sc-%02d", i))},
			State:  subcluster.StateActive,
			Load: subcluster.Load{Metrics: subcluster.ClusterMetrics{
				AvailableMB: 1 << 20, AvailableVirtualCores: 1 << 10, TotalMB: 1 << 20, TotalVirtualCores: 1 << 10,
			}},
		})
	}
	Settle(t, s, now, Saw{View: subcluster.NewView(now, status, nil), Policy: policy}, Answer)
	Settle(t, s, now, FromAM{Call: 1, Register: &yarnpb.RegisterApplicationMasterRequestProto{}}, Answer)
	return s
}

// manyPriorities is an allocate with an ask at each of n priorities, the least urgent first.
func manyPriorities(n int) *yarnpb.AllocateRequestProto {
	call := &yarnpb.AllocateRequestProto{ResponseId: proto.Int32(0)}
	for i := range n {
		call.Ask = append(call.Ask, &yarnpb.ResourceRequestProto{
			Priority: yarnpb.FromPriority(int32(n - i)), ResourceName: proto.String("*"),
			Capability:    yarnpb.FromResource(creel.NewResource(1024, 1)),
			NumContainers: proto.Int32(1), RelaxLocality: proto.Bool(true),
		})
	}
	return call
}

// The work for the asks of one call grows as their number, not as its square: it is counted
// in groups visited.
func TestManyPrioritiesCostLinearWork(t *testing.T) {
	now := time.Unix(0, 0)
	visits := func(n int) int {
		s := registeredSession(t, now, 5)
		Settle(t, s, now, FromAM{Call: 2, Allocate: manyPriorities(n)}, Answer)
		if len(s.ledger.groups) != n || len(s.ledger.byKey) != n {
			t.Fatalf("%d groups, %d by key, want %d", len(s.ledger.groups), len(s.ledger.byKey), n)
		}
		for i, g := range s.ledger.groups {
			if g.key.priority != int32(i+1) {
				t.Fatalf("group %d has priority %d", i, g.key.priority)
			}
		}
		return s.ledger.visits
	}
	few, many := visits(200), visits(2000)
	t.Logf("%d visits of 200 groups, %d of 2000", few, many)
	if few < 200 || many > 12*few {
		t.Errorf("200 groups cost %d visits, 2000 cost %d: want ten times as many", few, many)
	}
}

// The table of pending asks that splits update equals one that is counted from scratch.
func TestPendingTableFollowsSplits(t *testing.T) {
	now := time.Unix(0, 0)
	s := registeredSession(t, now, 3)
	call := manyPriorities(20)
	for i, a := range call.Ask {
		a.NumContainers = proto.Int32(int32(100 + i))
		if i%3 == 0 {
			a.NodeLabelExpression = proto.String([]string{"", "gpu"}[i%2])
		}
	}
	Settle(t, s, now, FromAM{Call: 2, Allocate: call}, Answer)
	table := s.placer.pendingTable()
	for _, g := range s.ledger.groups {
		s.placer.split(table, g, nil, asked, s)
	}
	want := s.placer.pendingTable()
	if len(want) == 0 {
		t.Fatal("nothing is pending")
	}
	for m, of := range want {
		for _, label := range []string{"", "gpu", "none"} {
			n, others := table.beside(label, m)
			if wantN, wantOthers := want.beside(label, m); n != wantN || others != wantOthers {
				t.Errorf("%s, label %q: %d pending, others %v, want %d, %v", m.id, label, n, others, wantN, wantOthers)
			}
		}
		if fmt.Sprint(table[m]) != fmt.Sprint(of) {
			t.Errorf("%s has %v, want %v", m.id, table[m], of)
		}
	}
}

// BenchmarkManyPriorities is one allocate with an ask at each of many priorities, from the
// AM's call to the answer.
func BenchmarkManyPriorities(b *testing.B) {
	now := time.Unix(0, 0)
	for _, n := range []int{1000, 16_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				s, call := registeredSession(b, now, 5), manyPriorities(n)
				b.StartTimer()
				Settle(b, s, now, FromAM{Call: 2, Allocate: call}, Answer)
			}
		})
	}
}
