// SPDX-License-Identifier: Apache-2.0

package role

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
)

// awayStore answers nothing while it is away.
type awayStore struct {
	*memory.Store
	away atomic.Bool
}

func (s *awayStore) KeepDaemon(ctx context.Context, d statestore.Daemon, life time.Duration) error {
	if s.away.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.Store.KeepDaemon(ctx, d, life)
}

// A daemon's record follows its readiness and outlives resources that the daemon releases before it. While the store
// is unreachable it is missing, with one log line a minute. It delays no stop.
func TestADaemonKeepsItsRecordInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &awayStore{Store: memory.New(memory.NewState("test", nil), time.Now)}
		var log bytes.Buffer
		var frozen atomic.Bool
		drain := func(ctx context.Context) error { <-ctx.Done(); time.Sleep(5 * time.Second); return nil }
		start := func() *daemon.Running {
			s := &daemon.Service{Health: health.New()}
			s.Health.Depend("view", func() health.State {
				if frozen.Load() {
					return health.State{Err: errors.New("frozen")}
				}
				return health.State{}
			})
			s.Entries = []daemon.Entry{daemon.NewEntry("router", map[string]string{
				"client": "0.0.0.0:8050", "admin": "[::]:8052", "web": "127.0.0.1:8089",
			})}
			s.Add("work", drain)
			if err := keepRecord(s, store, "", false, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
				t.Fatal(err)
			}
			return s.Start()
		}
		is := func(after time.Duration, notReady string) statestore.LiveDaemon {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			page, _, err := store.Daemons(t.Context(), "", 10)
			if err != nil || len(page) != 1 || page[0].NotReady != notReady || page[0].Age > recordEvery {
				t.Fatalf("the store tells %+v, %v; want one that says %q", page, err, notReady)
			}
			return page[0]
		}
		gone := func() {
			t.Helper()
			if page, _, err := store.Daemons(t.Context(), "", 10); err != nil || len(page) != 0 {
				t.Fatalf("there is %+v, %v", page, err)
			}
		}
		r := start()
		d := is(2*recordLook, "")
		if d.Addresses["client"] != d.Host+":8050" || d.Addresses["admin"] != d.Host+":8052" ||
			d.Addresses["web"] != "127.0.0.1:8089" || d.Name != d.Addresses["client"] {
			t.Errorf("%+v", d)
		}
		is(time.Minute, "")
		frozen.Store(true)
		is(2*recordLook, "view: frozen")
		frozen.Store(false)
		is(2*recordLook, "")
		stopped := make(chan struct{})
		go func() {
			if err := r.Stop(); err != nil {
				t.Error(err)
			}
			close(stopped)
		}()
		is(2*recordLook, "serving: starting or stopping")
		<-stopped
		gone()

		if log.Len() > 0 {
			t.Errorf("with a store that answers it was logged: %s", log.String())
		}
		r = start()
		is(2*recordLook, "")
		store.away.Store(true)
		time.Sleep(150 * time.Second)
		synctest.Wait()
		gone()
		if n := strings.Count(log.String(), "\n"); n < 2 || n > 3 {
			t.Errorf("%d lines in 150 s:\n%s", n, log.String())
		}
		began := time.Now()
		if err := r.Stop(); err != nil || time.Since(began) > 5*time.Second {
			t.Errorf("a stop took %v while the store was away, 5 s of them for its work: %v", time.Since(began), err)
		}
	})
}
