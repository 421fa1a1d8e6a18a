// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/router/client"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/rebuild"
	"github.com/creelrm/creel/statestore/reconcile"
	"github.com/creelrm/creel/statestore/tidy"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// addRebuild adds a router's loop that restores the homes of a store which came back empty. The in-memory store
// cannot come back empty: it ends with its process.
func (r *Router) addRebuild(store statestore.Store, pool *remote.Pool, clock *pauseclock.Clock, log *slog.Logger) {
	s, ok := store.(rebuild.Store)
	if !ok {
		return
	}
	host, err := os.Hostname()
	if err != nil {
		host = "router"
	}
	loop := rebuild.New(s, rebuild.Config{
		View:  r.Watcher.View,
		Name:  fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()),
		Log:   log,
		Clock: clock,
		Ask:   reported(pool),
		End: func(ctx context.Context, m *subcluster.Status, app creel.ApplicationID) error {
			return killAt(ctx, client.Of(pool.Member(m)), app)
		},
	})
	r.Add("store rebuild", loop.Run)
	r.Health.Depend("homes", func() health.State {
		if t := loop.Trouble(); t != "" {
			return health.State{Err: errors.New(t)}
		}
		return health.State{Text: "available from the store"}
	})
}

// addWitness adds a loop to a daemon other than a router. It reports the members it knew when an emptied store is
// rebuilt.
func addWitness(s *daemon.Service, store statestore.Store, view func() *subcluster.View) {
	if lost, ok := store.(rebuild.Store); ok {
		s.Add("store witness", rebuild.Witness(lost, view, time.Second).Run)
	}
}

// addTidy adds a router's loop that removes ended applications from the store.
func (r *Router) addTidy(store tidy.Store, ttl time.Duration, lists *client.Lists, log *slog.Logger) {
	r.Add("store tidy", tidy.New(store, tidy.Config{
		View: r.Watcher.View,
		TTL:  ttl,
		Name: "router-" + rand.Text(),
		Log:  log,
		Ask:  lists.Member,
	}).Run)
}

// addReconcile adds a router's loop that finds applications away from their home.
func (r *Router) addReconcile(store reconcile.Store, pool *remote.Pool, lists *client.Lists, log *slog.Logger) {
	loop := reconcile.New(store, reconcile.Config{
		View:  r.Watcher.View,
		Name:  "router-" + rand.Text(),
		Log:   log,
		Ask:   lists.Member,
		Whole: reported(pool),
		End: func(ctx context.Context, m *subcluster.Status, app creel.ApplicationID) error {
			return killAt(ctx, client.Of(pool.Member(m)), app)
		},
	})
	n := loop.Stats()
	for _, c := range []struct {
		name, help string
		load       func() int64
	}{
		{"found_total", "Applications found living where they are not at home.", n.Found.Load},
		{"ended_total", "Applications ended because their home had them too.", n.Ended.Load},
		{"rehomed_total", "Home records moved to where the application lives.", n.Rehomed.Load},
	} {
		r.Health.Counter("creel_router_reconcile_"+c.name, c.help, c.load)
	}
	r.Add("reconcile", loop.Run)
}

// reported returns all applications that a member reports.
func reported(
	pool *remote.Pool,
) func(context.Context, *subcluster.Status) ([]statestore.ReportedApplication, error) {
	return func(ctx context.Context, m *subcluster.Status) ([]statestore.ReportedApplication, error) {
		return client.Of(pool.Member(m)).Applications(ctx)
	}
}

// killAt kills an application at a member, and waits until it has ended.
func killAt(ctx context.Context, m client.Member, app creel.ApplicationID) error {
	for {
		ended, err := m.End(ctx, app, "its home is another subcluster")
		if errors.Is(err, creel.ErrApplicationNotFound) {
			return nil
		}
		if err != nil || ended {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
