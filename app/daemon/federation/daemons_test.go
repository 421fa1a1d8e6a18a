// SPDX-License-Identifier: Apache-2.0

package federation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel/app/daemon/federation"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
)

// mortal is a store that ignores a daemon's record after that daemon died.
type mortal struct {
	*memory.Store
	dead atomic.Pointer[string] // its name
}

var errDead = errors.New("who is dead says nothing")

func (m *mortal) KeepDaemon(ctx context.Context, d statestore.Daemon, life time.Duration) error {
	if name := m.dead.Load(); name != nil && *name == d.Name {
		return errDead
	}
	return m.Store.KeepDaemon(ctx, d, life)
}

func (m *mortal) DropDaemon(ctx context.Context, d statestore.Daemon) error {
	if name := m.dead.Load(); name != nil && *name == d.Name {
		return errDead
	}
	return m.Store.DropDaemon(ctx, d)
}

// Each router lists all routers, proxies and rebalancers as ready, with their ages. A stopped daemon disappears at
// once. A dead one stays listed with a growing age until its record expires by the store's clock.
func TestTheDaemonsOfTheFederationAreListed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	dir := t.TempDir()
	s, err := federation.Settings(dir, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var ahead atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	store := &mortal{Store: memory.New(memory.NewState("test", role.ValidPolicy), clock)}
	fed, err := federation.New(t.Context(), federation.Config{
		Subclusters: 2, Routers: 2, Rebalancers: 1, Dir: dir, Store: store, Settings: s,
		Lease: time.Hour, Heartbeat: time.Second, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer fed.Close()
	routers := []string{"router " + fed.Routers[0].Address("client"), "router " + fed.Routers[1].Address("client")}
	if routers[0] > routers[1] {
		routers[0], routers[1] = routers[1], routers[0]
	}
	first, second := "proxy proxy-sc-1", "proxy proxy-sc-2"
	listed := func(router int, want ...string) rest.DaemonsDoc {
		t.Helper()
		var doc rest.DaemonsDoc
		var is []string
		for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			doc, is = rest.DaemonsDoc{}, nil
			resp, err := http.Get("http://" + fed.Routers[router].Address("web") + "/api/v1/daemons")
			if err != nil {
				t.Fatal(err)
			}
			err = json.NewDecoder(resp.Body).Decode(&doc)
			resp.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			ready := true
			for _, d := range doc.Daemons {
				is = append(is, d.Kind+" "+d.Name)
				ready = ready && d.Ready
			}
			if ready && fmt.Sprint(is) == fmt.Sprint(want) {
				return doc
			}
		}
		t.Fatalf("router %d lists %q, want %q: %+v", router, is, want, doc)
		return doc
	}
	for i := range fed.Routers {
		doc := listed(i, first, second, "rebalancer rebalancer-1", routers[0], routers[1])
		if doc.Kinds["router"] != 2 || doc.Kinds["proxy"] != 2 || doc.Kinds["rebalancer"] != 1 || len(doc.Versions) != 1 {
			t.Errorf("kinds %v, versions %v", doc.Kinds, doc.Versions)
		}
		for _, d := range doc.Daemons {
			if d.AgeSeconds > 15 || d.AgeSeconds < 0 || d.Addresses["web"] == "" || d.Version == "" || d.Started.IsZero() {
				t.Errorf("%+v", d)
			}
		}
	}
	// Stopped: its record goes with it.
	if err := fed.Rebalancers[0].Stop(); err != nil {
		t.Fatal(err)
	}
	if page, _, err := store.Daemons(t.Context(), "rebalancer ", 1); err != nil || page[0].Kind != "router" {
		t.Fatalf("after the rebalancer's stop there is %+v, %v", page, err)
	}
	listed(0, first, second, routers[0], routers[1])
	// The daemon is dead: the store receives nothing more from it, and its record is not removed.
	name := "proxy-sc-2"
	store.dead.Store(&name)
	if err := fed.Proxies[1].Stop(); err != nil {
		t.Fatal(err)
	}
	ahead.Add(int64(12 * time.Second))
	page, _, err := store.Daemons(t.Context(), "", 10)
	if err != nil || len(page) != 4 || page[1].Name != name || page[1].Age < 12*time.Second {
		t.Fatalf("of a proxy that died 12 s ago the store tells %+v, %v", page, err)
	}
	ahead.Add(int64(19 * time.Second)) // live daemons write their record again within ten seconds of their own clock
	listed(0, first, routers[0], routers[1])
}
