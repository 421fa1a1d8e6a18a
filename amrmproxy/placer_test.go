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

func placings(p *placer, now time.Time) (out []placing) {
	for x := range p.placeNew(now, "root.a") {
		out = append(out, x)
	}
	return out
}

func TestPlacerRequestsUAMsForItsShares(t *testing.T) {
	now := time.Unix(0, 0)
	p := placerOf(t, now)
	got := placings(p, now)
	free := p.links.member("sc-01")
	if len(got) != 1 || len(got[0].wanted) != 1 || got[0].wanted[0] != free || got[0].refusal != nil {
		t.Fatalf("placings %v, want a UAM in sc-01", got)
	}
	if n := p.ledger.outstanding(free); n == 0 {
		t.Error("the free member is asked for nothing")
	}
	if again := placings(p, now); len(again) != 0 {
		t.Errorf("unchanged asks were split again: %v", again)
	}
}

func TestAsksWithoutLabelWaitForHomesReport(t *testing.T) {
	now := time.Unix(0, 0)
	p := placerOf(t, now)
	p.see(Saw{View: viewOf(now, "one", "gpu"), Policy: p.policy})
	if got := placings(p, now); !p.wantsLabel() || len(got) != 0 {
		t.Fatalf("placings %v before home has reported the label", got)
	}
	p.labelled(Labelled{})
	if got := placings(p, now); p.wantsLabel() || len(got) != 1 {
		t.Errorf("%d placings after it", len(got))
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
	placings(p, now)
	p.links.home.call.begin(now)
	now = now.Add(p.cfg.SlowAfter)
	if p.closeSlowMembers(now); len(placings(p, now)) != 1 || !p.links.home.closed {
		t.Error("asks were not split after a member stopped answering")
	}
	if p.closeSlowMembers(now); len(placings(p, now)) != 0 {
		t.Error("asks were split though no member has changed")
	}
}
