// SPDX-License-Identifier: Apache-2.0

package redisstate

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// Redis loses acknowledged changes of a holder, and another process opens the state before the holder notices. The
// holder's error says both, also if the loss includes its opening.
func TestFencedHolderReportsLostChanges(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"changes": false, "opening": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			d := deployment(server.URL(), 0, time.Hour)
			_ = d.Start(t).End() // the state exists
			older := server.Snapshot()
			h := d.Start(t)
			if !before {
				older = server.Snapshot()
			}
			save(t, h, "a", "1")
			server.GoBack(older)
			next, last := d.Start(t), d.Start(t)
			if err := h.Confirm(t.Context()); !errors.Is(err, state.ErrFenced) || !errors.Is(err, state.ErrLost) {
				t.Errorf("the holder was confirmed with %v", err)
			}
			if err := next.Confirm(t.Context()); !errors.Is(err, state.ErrFenced) || errors.Is(err, state.ErrLost) {
				t.Errorf("a holder that lost nothing was confirmed with %v", err)
			}
			_, _, _ = h.End(), next.End(), last.End()
		})
	}
}

// A standby takes over a state that lacks changes of its copy, and logs that.
func TestStandbyReportsLostChanges(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := deployment(server.URL(), 0, time.Hour)
	h := d.Start(t)
	f := d.StartFollower(t).(*Follower)
	defer f.Close()
	var log bytes.Buffer
	f.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	save(t, h, "a", "1")
	older := server.Snapshot()
	save(t, h, "a", "2")
	follow(t, f)
	server.GoBack(older)
	l, err := f.Lead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := entriesOf(t, l); got["a"] != "1" {
		t.Errorf("it leads with %v", got)
	}
	if !strings.Contains(log.String(), "has lost changes that the standby had copied\" changes=1") {
		t.Errorf("it logs %s", log.String())
	}
	_ = h.End()
}

// lateRelease is a Redis that receives releases late.
type lateRelease struct {
	Server
	late []func()
}

func (s *lateRelease) Write(ctx context.Context, sc *redis.Script, keys []string, args ...any) ([]any, error) {
	if sc == releaseScript {
		s.late = append(s.late, func() { _, _ = s.Server.Write(ctx, sc, keys, args...) })
		return nil, context.DeadlineExceeded
	}
	return s.Server.Write(ctx, sc, keys, args...)
}

// A release that arrives after its process has won the lease again does not end that lease.
func TestLateReleaseEndsNoLaterLease(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	one, other := lease(t, server.URL(), "late", "rm1"), lease(t, server.URL(), "late", "rm2")
	path := &lateRelease{Server: one.scripts}
	one.scripts = path
	claim := func(term time.Duration) bool {
		c, err := one.Claim(t.Context(), term)
		if err != nil {
			t.Fatal(err)
		}
		return c.Won
	}
	claim(time.Millisecond)
	if err := one.Release(t.Context()); err == nil {
		t.Error("a release without an answer succeeds")
	}
	for !claim(time.Hour) { // once the first has expired
	}
	for _, arrive := range path.late {
		arrive()
	}
	if c, err := other.Claim(t.Context(), time.Hour); err != nil || c.Won || c.Holder != "rm1" {
		t.Errorf("another process is answered %+v, %v", c, err)
	}
}
