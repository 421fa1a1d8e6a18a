// SPDX-License-Identifier: Apache-2.0

package redistest_test

import (
	"strings"
	"testing"

	"github.com/creelrm/creel/statestore/redis/redistest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServerPersistenceFollowsOption(t *testing.T) {
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s.Do("SET", "k", "v")
	s.Kill()
	if _, err := s.Try("GET", "k"); err == nil {
		t.Fatal("a killed server answered")
	}
	s.Restart()
	if v := s.Do("GET", "k"); v != "v" {
		t.Fatalf("after the restart k is %v", v)
	}
}

func TestAClusterSharesTheSlots(t *testing.T) {
	c := redistest.StartCluster(t, 3)
	owners := map[string]bool{}
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		for _, s := range c.Nodes {
			if _, err := s.Try("SET", key, "v"); err == nil {
				owners[s.Addr] = true
			} else if !strings.HasPrefix(err.Error(), "MOVED") {
				t.Fatal(err)
			}
		}
	}
	if len(owners) < 2 {
		t.Fatalf("all keys are at %v", owners)
	}
}

func TestAReplicaIsPromoted(t *testing.T) {
	s := redistest.StartSentinels(t)
	s.Primary.Do("SET", "k", "v")
	s.Primary.Do("WAIT", 1, 0)
	s.Primary.Kill()
	s.AwaitFailover()
	if v := s.Replica.Do("GET", "k"); v != "v" {
		t.Fatalf("the new primary has %v", v)
	}
}

func TestAProxyCutsAndHeals(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr)
	via := *s
	via.Addr = p.Addr
	via.Do("SET", "k", "v")
	p.Cut()
	if _, err := via.Try("GET", "k"); err == nil {
		t.Fatal("a cut path answered")
	}
	p.Heal()
	if v := via.Do("GET", "k"); v != "v" {
		t.Fatalf("got %v", v)
	}
}
