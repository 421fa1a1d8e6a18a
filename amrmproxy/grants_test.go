// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/internal/yarnpb"
)

// ledgerOf returns a ledger with home and one UAM, which are registered, and an ask for containers in the UAM.
func ledgerOf(t *testing.T, asked int32) (*ledger, *link, *group) {
	t.Helper()
	var cfg Config
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	all := &links{}
	all.home = all.member("sc-a")
	all.home.home, all.home.state = true, linkUp
	m := all.member("sc-b")
	m.state = linkUp
	l := &ledger{cfg: &cfg, links: all, held: newContainers(), blacklist: map[string]bool{}}
	l.take(&yarnpb.AllocateRequestProto{Ask: []*yarnpb.ResourceRequestProto{{
		Priority: yarnpb.FromPriority(1), ResourceName: proto.String(anywhere), NumContainers: &asked,
	}}}, &yarnpb.AllocateResponseProto{}, time.Unix(0, 0))
	g := l.groups[0]
	g.star().cell(m).share = int64(asked)
	return l, m, g
}

func granting(n int64) *yarnpb.AllocateResponseProto {
	return &yarnpb.AllocateResponseProto{AllocatedContainers: []*yarnpb.ContainerProto{{
		Id: &yarnpb.ContainerIdProto{Id: &n}, Priority: yarnpb.FromPriority(1),
	}}}
}

func completing(n int64) *yarnpb.AllocateResponseProto {
	return &yarnpb.AllocateResponseProto{CompletedContainerStatuses: []*yarnpb.ContainerStatusProto{{
		ContainerId: &yarnpb.ContainerIdProto{Id: &n},
	}}}
}

func TestSurplusGrantIsReleasedByItsMember(t *testing.T) {
	l, m, g := ledgerOf(t, 1)
	now := time.Unix(1, 0)
	r := granting(1)
	if l.keepWanted(m, r, now, true); len(r.AllocatedContainers) != 1 || g.need != 0 || m.live != 1 {
		t.Fatalf("%d containers kept, %d needed, %d live", len(r.AllocatedContainers), g.need, m.live)
	}
	if wait, ok := l.takeWaits(); !ok {
		t.Errorf("no waiting time in %v", wait)
	}
	r = granting(2)
	if l.keepWanted(m, r, now, true); len(r.AllocatedContainers) != 0 || len(m.release) != 1 || !m.news {
		t.Fatalf("%d containers kept, %d released", len(r.AllocatedContainers), len(m.release))
	}
	if l.keepCompletions(m, completing(2), &yarnpb.AllocateResponseProto{}, now); m.live != 1 {
		t.Errorf("%d live after the completion of the surplus one", m.live)
	}
}

// A completion that arrives before the AM has the grant opens the ask again and is not reported.
func TestCompletionBeforeItsGrantIsDelivered(t *testing.T) {
	l, m, g := ledgerOf(t, 1)
	now := time.Unix(1, 0)
	out := granting(1)
	l.keepWanted(m, out, now, true)
	r := completing(1)
	l.keepCompletions(m, r, out, now)
	if len(out.AllocatedContainers) != 0 || len(r.CompletedContainerStatuses) != 0 || g.need != 1 || g.unsent != 0 {
		t.Errorf("grants %v, completions %v, %d needed", out.AllocatedContainers, r.CompletedContainerStatuses, g.need)
	}
}

func TestLostMembersContainersComplete(t *testing.T) {
	l, m, g := ledgerOf(t, 2)
	now := time.Unix(1, 0)
	for n := int64(1); n <= 2; n++ {
		r := granting(n)
		l.keepWanted(m, r, now, true)
		l.delivered(r)
	}
	g.dirty = false
	out := &yarnpb.AllocateResponseProto{}
	if l.lose(m, "it died", out, now); len(out.CompletedContainerStatuses) != 2 || m.live != 0 || !g.dirty {
		t.Fatalf("completions %v, %d live", out.CompletedContainerStatuses, m.live)
	}
	if got := out.CompletedContainerStatuses[0].GetDiagnostics(); got != "it died" {
		t.Errorf("diagnostics %q", got)
	}
	if _, asked := g.star().at[m]; asked {
		t.Error("the lost member is still asked")
	}
}

// A release of an unknown container goes to home, and to its member once that reports the container.
func TestReleaseBeforeItsMemberIsKnown(t *testing.T) {
	l, m, _ := ledgerOf(t, 1)
	l.restored = true
	m.state = linkLaunched
	id := &yarnpb.ContainerIdProto{Id: proto.Int64(7)}
	l.release(id, time.Unix(1, 0))
	if len(l.links.home.release) != 1 || len(m.release) != 0 {
		t.Fatalf("%d releases at home, %d at the UAM", len(l.links.home.release), len(m.release))
	}
	if !l.learn(m, id) || len(m.release) != 1 || l.learn(m, id) {
		t.Errorf("%d releases at the UAM that reports it", len(m.release))
	}
}

func TestRestartedMemberGetsItsReleasesAndBlacklist(t *testing.T) {
	l, m, _ := ledgerOf(t, 1)
	now := time.Unix(1, 0)
	r := granting(1)
	l.keepWanted(m, r, now, true)
	l.delivered(r)
	l.release(r.AllocatedContainers[0].Id, now)
	l.blacken(&yarnpb.ResourceBlacklistRequestProto{BlacklistAdditions: []string{"h2", "h1"}})
	m.moveTo(&yarnpb.AllocateRequestProto{})
	if l.renew(m); len(m.release) != 1 || len(m.blackAdd) != 2 || m.blackAdd[0] != "h1" {
		t.Errorf("releases %v, blacklist %v", m.release, m.blackAdd)
	}
}
