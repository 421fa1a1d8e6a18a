// SPDX-License-Identifier: Apache-2.0

package redistest_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

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

func TestMutedProxyDeliversRequestsAlone(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr)
	p.Mute()
	c, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "SET k v\r\n"); err != nil {
		t.Fatal(err)
	}
	for s.Do("GET", "k") != "v" {
		time.Sleep(time.Millisecond)
	}
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 8)); n > 0 || err == nil {
		t.Fatalf("a muted path answered %d bytes, %v", n, err)
	}
	p.Heal()
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != "+OK\r\n" {
		t.Fatalf("the answer is %q, %v", line, err)
	}
}
