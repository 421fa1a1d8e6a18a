// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/rm"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

func TestMain(m *testing.M) { rm.Main(m) }

// illness is a fault of the store, with its special expectations.
type illness struct {
	name      string
	fall, get func()
	serves    bool // new claims are served all the same
	outlives  bool // it lasts longer than the members' leases
	forgets   bool // it comes back empty
}

// endure runs the test of one store fault. Routers, proxies and ResourceManagers behave so:
//
//   - a known home, a running application and the nodes continue;
//   - a new application waits, then its client gets 503 with Retry-After, and a repeat of the same submission is
//     accepted once the store is well;
//   - members keep their state, under the same epoch, in a frozen view;
//   - afterwards no application has two homes.
func endure(t *testing.T, f *federation, client *hrpc.Client, ill illness) {
	f.await("both members are active", func() bool { return len(f.active()) == 2 }) // after the illness before
	before := f.active()
	known := f.newID()
	f.submitSoon(known)
	running := f.am(client, known)
	if err := running.register(); err != nil {
		t.Fatal(err)
	}
	running.more(f, 4) // of both members, so that nothing new has to be written
	fresh, second := f.newID(), f.newID()

	ill.fall()
	if ill.serves {
		a := f.submit(fresh)
		if a.code != http.StatusAccepted {
			t.Fatalf("the submission was answered %+v", a)
		}
	} else {
		a := f.submit(fresh)
		retriable(t, a)
		t.Logf(
			"a new application waited %v, then: %d, Retry-After: %s",
			a.took.Round(time.Millisecond),
			a.code,
			a.retryAfter,
		)
	}
	if s := f.state(f.router, known); s != "RUNNING" {
		t.Fatalf("the router says that the known application is %q", s)
	}
	running.more(f, 2)
	for _, m := range f.members {
		if n := f.nodes(m.rm); n != 2 {
			t.Fatalf("%s has %d nodes", m.id, n)
		}
	}
	if ill.outlives {
		f.await("the store has been silent for longer than the leases", func() bool {
			v := f.view()
			for _, s := range v.Subclusters {
				if s.State != "active" && s.State != "ACTIVE" {
					t.Fatalf("%s became %s: %s", s.ID, s.State, s.Reason)
				}
			}
			return v.Frozen != "" && running.since() > 2*lease
		})
		running.more(f, 1)
		if a := f.submit(second); a.code != http.StatusServiceUnavailable {
			t.Fatalf("a submission in a frozen view was answered %+v", a)
		}
	}

	// A client that repeats its submission, as requested, while the store recovers.
	var wg sync.WaitGroup
	refused := 0
	wg.Go(func() { refused = f.submitSoon(fresh) })
	wg.Go(ill.get)
	wg.Wait()
	t.Logf("well again; the repeated submission was told %d times to come later", refused)
	f.submitSoon(second)
	for _, id := range []string{known, fresh, second} {
		if homes := f.homes(id); len(homes) != 1 {
			t.Fatalf("%s has the homes %v", id, homes)
		}
	}
	f.await("both members are active under their epochs, and the view is thawed", func() bool {
		now := f.active()
		return len(now) == 2 && now["sc-1"] == before["sc-1"] && now["sc-2"] == before["sc-2"] && f.view().Frozen == ""
	})
	running.more(f, 2)
	late := f.am(client, fresh)
	f.await("the new AM registers", func() bool { return late.register() == nil })
	late.more(f, 2)
}

// One server: it is slow, silent, cut off, gone, read-only, out of memory, and empty after its return.
func TestWhenTheStoreIsIll(t *testing.T) {
	operatorsSee(t)
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	path := redistest.NewProxy(t, server.Addr)
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	t.Cleanup(func() { client.Close() })
	f := found(t, "redis://"+path.Addr, "")
	for _, ill := range []illness{
		{name: "slow", fall: func() { path.Delay(25 * time.Millisecond) }, get: path.Heal, serves: true},
		{name: "silent network", fall: path.Silence, get: path.Heal},
		{name: "cut network", fall: path.Cut, get: path.Heal, outlives: true},
		{name: "gone", fall: server.Kill, get: server.Restart},
		{name: "read-only", fall: func() { server.Do("REPLICAOF", "127.0.0.1", "1") }, get: func() { server.Do("REPLICAOF", "NO", "ONE") }},
		{name: "out of memory", fall: func() { server.Do("CONFIG", "SET", "maxmemory", "1") }, get: func() { server.Do("CONFIG", "SET", "maxmemory", "0") }},
		{name: "restarted empty", forgets: true, fall: server.Kill, get: func() {
			if err := os.RemoveAll(filepath.Join(server.Dir, "appendonlydir")); err != nil {
				t.Error(err)
			}
			server.Restart()
		}},
	} {
		if !t.Run(ill.name, func(t *testing.T) {
			f := *f
			f.t = t
			endure(t, &f, client, ill)
			if ill.forgets {
				if out := f.router.Output(); !strings.Contains(out, "state store rebuilt") {
					t.Fatal("the router did not say that it rebuilt the store")
				}
			}
		}) {
			return
		}
	}
}

// A primary with a replica under three Sentinels: the primary dies.
func TestWhenTheStoreFailsOver(t *testing.T) {
	operatorsSee(t)
	s := redistest.StartSentinels(t)
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	t.Cleanup(func() { client.Close() })
	f := found(t, s.URL(), "wait=1") // without it the failover may lose the last acknowledged writes
	endure(t, f, client, illness{name: "failing over", fall: s.Primary.Kill, get: func() {
		s.AwaitFailover()
		s.Primary.Restart() // as the new primary's replica
	}})
}
