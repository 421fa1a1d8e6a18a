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

// placerOf returns a placer over home sc-00, which is full, and sc-01, which is free, with an ask for 10 containers.
func placerOf(t *testing.T, now time.Time) *placer {
	t.Helper()
	var cfg Config
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	policy, err := policies.Parse([]byte(`{"split":{"policy":"balanced"}}`))
	if err != nil {
		t.Fatal(err)
	}
	all := &links{}
	all.home = all.member("sc-00")
	all.home.home, all.home.state = true, linkUp
	l := &ledger{cfg: &cfg, links: all, held: newContainers(), blacklist: map[string]bool{}}
	p := &placer{cfg: &cfg, links: all, ledger: l, rnd: rand.New(rand.NewPCG(1, 2))}
	p.see(Saw{View: viewOf(now, "one"), Policy: policy})
	l.take(&yarnpb.AllocateRequestProto{Ask: []*yarnpb.ResourceRequestProto{{
		Priority: yarnpb.FromPriority(1), ResourceName: proto.String(anywhere), NumContainers: proto.Int32(10),
		Capability: yarnpb.FromResource(creel.NewResource(1024, 1)), RelaxLocality: proto.Bool(true),
	}}}, &yarnpb.AllocateResponseProto{}, now)
	return p
}

func viewOf(now time.Time, store string, labels ...string) *subcluster.View {
	v := subcluster.NewView(now, []subcluster.Status{
		{Member: subcluster.Member{ID: "sc-00"}, State: subcluster.StateActive},
		{Member: subcluster.Member{ID: "sc-01"}, State: subcluster.StateActive, Load: subcluster.Load{
			Metrics: subcluster.ClusterMetrics{
				AvailableMB: 1 << 20, AvailableVirtualCores: 1 << 10, TotalMB: 1 << 20, TotalVirtualCores: 1 << 10,
			},
		}},
	}, nil)
	v.Store = store
	for _, name := range labels {
		at := &v.Members[0].Load.Labels
		at.Known, at.Partitions = true, append(at.Partitions, subcluster.Partition{Label: name})
	}
	return v
}

// placed has the results of splits.
type placed struct {
	wanted  []*link
	refusal error
}

func (p *placed) wantUAM(m *link)      { p.wanted = append(p.wanted, m) }
func (p *placed) refuseAsks(err error) { p.refusal = err }

// place returns the results of the splits that are due, and their number.
func place(p *placer, now time.Time) (out placed, splits int) {
	for _, g := range p.ledger.groups {
		if g.dirty {
			splits++
		}
	}
	p.placeNew(now, "root.a", &out)
	for _, g := range p.ledger.groups {
		if g.dirty {
			splits--
		}
	}
	return out, splits
}

func TestPlacerRequestsUAMsForItsShares(t *testing.T) {
	now := time.Unix(0, 0)
	p := placerOf(t, now)
	got, n := place(p, now)
	free := p.links.member("sc-01")
	if n != 1 || len(got.wanted) != 1 || got.wanted[0] != free || got.refusal != nil {
		t.Fatalf("%d splits with %v, want a UAM in sc-01", n, got)
	}
	if n := p.ledger.outstanding(free); n == 0 {
		t.Error("the free member is asked for nothing")
	}
	if _, n := place(p, now); n != 0 {
		t.Error("unchanged asks were split again")
	}
}

func TestAsksWithoutLabelWaitForHomesReport(t *testing.T) {
	now := time.Unix(0, 0)
	p := placerOf(t, now)
	p.see(Saw{View: viewOf(now, "one", "gpu"), Policy: p.policy})
	if _, n := place(p, now); !p.wantsLabel() || n != 0 {
		t.Fatalf("%d splits before home has reported the label", n)
	}
	p.labelled(Labelled{})
	if _, n := place(p, now); p.wantsLabel() || n != 1 {
		t.Errorf("%d splits after it", n)
	}
}

func TestEmptiedStoreIsReported(t *testing.T) {
	now := time.Unix(0, 0)
	p := placerOf(t, now)
	if p.see(Saw{View: viewOf(now, "one"), Policy: p.policy}) {
		t.Error("the same store was reported as emptied")
	}
	if !p.see(Saw{View: viewOf(now, "two"), Policy: p.policy}) {
		t.Error("another store was not reported")
	}
}

func TestClosedMemberSpoilsPlacementsOnce(t *testing.T) {
	now := time.Unix(0, 0)
	p := placerOf(t, now)
	place(p, now)
	p.links.home.call.begin(now)
	now = now.Add(p.cfg.SlowAfter)
	p.closeSlowMembers(now)
	if _, n := place(p, now); n != 1 || !p.links.home.closed {
		t.Error("asks were not split after a member stopped answering")
	}
	p.closeSlowMembers(now)
	if _, n := place(p, now); n != 0 {
		t.Error("asks were split though no member has changed")
	}
}

// Queues' lengths matter to opportunistic asks only. Home's queues are long and sc-01's are short, and sc-01 is full.
func TestLengthsOfQueuesChooseUAMForOpportunisticAsks(t *testing.T) {
	now := time.Unix(0, 0)
	for _, x := range []struct {
		long      int32
		execution yarnpb.ExecutionTypeProto
		want      int64 // in sc-01
	}{
		{5, yarnpb.ExecutionTypeProto_OPPORTUNISTIC, 2},
		{5, yarnpb.ExecutionTypeProto_GUARANTEED, 0},
		{0, yarnpb.ExecutionTypeProto_OPPORTUNISTIC, 0},
	} {
		p := placerOf(t, now)
		p.cfg.LongQueue = x.long
		v := viewOf(now, "one")
		v.Members[0].Load.NodeQueues, v.Members[1].Load.NodeQueues = []int32{5}, []int32{3}
		v.Members[0].Load.Metrics, v.Members[1].Load.Metrics = v.Members[1].Load.Metrics, subcluster.ClusterMetrics{
			TotalMB: 1 << 20, TotalVirtualCores: 1 << 10,
		}
		p.see(Saw{View: v, Policy: p.policy})
		p.ledger.take(&yarnpb.AllocateRequestProto{Ask: []*yarnpb.ResourceRequestProto{{
			Priority: yarnpb.FromPriority(2), ResourceName: proto.String(anywhere), NumContainers: proto.Int32(10),
			Capability: yarnpb.FromResource(creel.NewResource(1024, 1)), RelaxLocality: proto.Bool(true),
			ExecutionTypeRequest: &yarnpb.ExecutionTypeRequestProto{ExecutionType: x.execution.Enum()},
		}}}, &yarnpb.AllocateResponseProto{}, now)
		place(p, now)
		if n := p.ledger.outstanding(p.links.member("sc-01")); n != x.want {
			t.Errorf("%v, long from %d on: %d in sc-01, want %d", x.execution, x.long, n, x.want)
		}
	}
}
