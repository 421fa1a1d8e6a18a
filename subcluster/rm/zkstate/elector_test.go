// SPDX-License-Identifier: Apache-2.0

package zkstate

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/creelrm/creel/internal/propertytest"
)

func elector(t *testing.T, s *fakeServer, id string) *Elector {
	t.Helper()
	e, err := OpenElector(ElectorConfig{Base: "/yarn-leader-election", Cluster: "c1", ID: id, connect: s.connect})
	must(t, err)
	return e
}

func (e *Elector) expects(t *testing.T, want Claim) {
	t.Helper()
	if got, err := e.Claim(t.Context()); err != nil || got != want {
		t.Errorf("the claim is answered %+v (%v), want %+v", got, err, want)
	}
}

func (s *fakeServer) data(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.nodes[path]; n != nil {
		return string(n.data)
	}
	return "(none)"
}

const (
	electorDir = "/yarn-leader-election/c1/"
	infoOfRM1  = "\x0a\x02c1\x12\x03rm1" // as Hadoop's ActiveRMInfoProto
)

func TestOneProcessHasTheLock(t *testing.T) {
	s := newFake()
	one, two := elector(t, s, "rm1"), elector(t, s, "rm2")
	one.expects(t, Claim{Won: true})
	two.expects(t, Claim{Holder: "rm1"})
	one.expects(t, Claim{Won: true})
	if c, err := two.Look(t.Context()); err != nil || c != (Claim{Holder: "rm1"}) {
		t.Errorf("a look returns %+v (%v)", c, err)
	}
	for _, node := range []string{"ActiveStandbyElectorLock", "ActiveBreadCrumb"} {
		if got := s.data(electorDir + node); got != infoOfRM1 {
			t.Errorf("%s is %q", node, got)
		}
	}
	must(t, one.Release(t.Context()))
	if got := s.data(electorDir + "ActiveBreadCrumb"); got != "(none)" {
		t.Errorf("after a release the breadcrumb is %q", got)
	}
	two.expects(t, Claim{Won: true})
	one.expects(t, Claim{Holder: "rm2"})
	must(t, one.Release(t.Context())) // it has nothing to release
	two.expects(t, Claim{Won: true})
	must(t, one.Close())
	must(t, two.Close())
}

// A process whose session expired, as during a pause, has lost the lock, and takes nothing from its successor.
func TestExpiredSessionHasNoLock(t *testing.T) {
	s := newFake()
	one, two := elector(t, s, "rm1"), elector(t, s, "rm2")
	one.expects(t, Claim{Won: true})
	(*one.tree.Load()).(*fakeClient).expire()
	if got := s.data(electorDir + "ActiveBreadCrumb"); got != infoOfRM1 {
		t.Errorf("after a crash the breadcrumb is %q", got)
	}
	two.expects(t, Claim{Won: true})
	one.expects(t, Claim{Holder: "rm2"})
	must(t, one.Release(t.Context()))
	two.expects(t, Claim{Won: true})
	if got := leaderOf([]byte(s.data(electorDir + "ActiveBreadCrumb"))); got != "rm2" {
		t.Errorf("the breadcrumb is of %s", got)
	}
	must(t, one.Close())
	must(t, two.Close())
}

// A claim whose answer was lost is confirmed by the next one.
func TestLostAnswerToAClaim(t *testing.T) {
	s := newFake()
	e := elector(t, s, "rm1")
	e.expects(t, Claim{Won: true})
	must(t, e.Release(t.Context()))
	s.failing(func() (bool, bool) { return true, true })
	if c, err := e.Claim(t.Context()); err == nil {
		t.Errorf("a claim without an answer is %+v", c)
	}
	s.failing(nil)
	e.expects(t, Claim{Won: true})
	must(t, e.Close())
}

// Two would lead if a server ended the session before the claim ends.
func TestShortSessionsDoNotLead(t *testing.T) {
	s := newFake()
	s.timeout = 4 * time.Second
	e := elector(t, s, "rm1")
	if c, err := e.Claim(t.Context()); err == nil || !strings.Contains(err.Error(), "hadoop.zk.timeout-ms to at most") {
		t.Errorf("a claim in a session of 4 s is answered %+v, %v", c, err)
	}
	must(t, e.Close())
}

func TestLeaderOfAnyInfo(t *testing.T) {
	for info, want := range map[string]string{
		infoOfRM1: "rm1", "": "an unknown process", "rm1": "an unknown process", "\x12\x03rm9\x0a\x02c1": "rm9",
		"\x0a\x02c1\x12\x09rm": "an unknown process", "\x08\x96\x01\x12\x01x": "x", "\x12\x00": "an unknown process",
	} {
		if got := leaderOf([]byte(info)); got != want {
			t.Errorf("%q is of %q, want %q", info, got, want)
		}
	}
}

func FuzzLeaderOf(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add([]byte(infoOfRM1))
	f.Fuzz(func(t *testing.T, info []byte) {
		if leaderOf(info) == "" {
			t.Error("a holder without a name would be a free lock")
		}
	})
}

func TestRootACLSeparatesCreationAndDeletion(t *testing.T) {
	all := []zk.ACL{{Perms: zk.PermAll, Scheme: "world", ID: "anyone"}, {Perms: zk.PermCreate, Scheme: "auth"}}
	got := rootACL(all, "creel", "secret")
	if len(got) != 2 || got[0].Perms != zk.PermRead|zk.PermWrite|zk.PermAdmin || got[1].Scheme != "digest" ||
		got[1].Perms != zk.PermCreate|zk.PermDelete {
		t.Errorf("the ACL is %+v", got)
	}
}
