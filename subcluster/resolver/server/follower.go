// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/resolver"
)

// Reader is the part of the store that a Follower needs.
type Reader interface {
	Documents(ctx context.Context, class string) (statestore.DocumentSet, error)
}

// Follower maintains the table of all members' hosts and racks.
type Follower struct {
	Store Reader
	View  func() *subcluster.View
	List  *MachineList  // overrides published nodes; nil: no list
	Every time.Duration // between checks of the view: 1s
	// Jitter is the longest random wait before a changed document is read, so that thousands of proxies do not read
	// it at the same moment: 2s.
	Jitter time.Duration
	Log    *slog.Logger

	table atomic.Pointer[resolver.Table]
	reads atomic.Int64
}

// Where returns the subclusters that have the host or rack; see resolver.Table.
func (f *Follower) Where(name string) []creel.SubclusterID { return f.table.Load().Where(name) }

// Table returns the current table; nil has no entries.
func (f *Follower) Table() *resolver.Table { return f.table.Load() }

// Hosts is the number of known hosts.
func (f *Follower) Hosts() int { return f.table.Load().Hosts() }

// Reads is the number of documents read.
func (f *Follower) Reads() int64 { return f.reads.Load() }

// Run works until ctx ends, and returns nil.
func (f *Follower) Run(ctx context.Context) error {
	if f.Every <= 0 {
		f.Every = time.Second
	}
	if f.Jitter <= 0 {
		f.Jitter = 2 * time.Second
	}
	if f.Log == nil {
		f.Log = slog.New(slog.DiscardHandler)
	}
	tick := time.NewTicker(f.Every)
	defer tick.Stop()
	var is resolver.FollowerState
	logged := ""
	for {
		now := ""
		if err := f.round(ctx, &is); err != nil && ctx.Err() == nil {
			now = err.Error()
		}
		if now != logged && now != "" {
			f.Log.Warn("failed to refresh host map; using the previous one", "error", now)
		}
		logged = now
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// round reads newly named documents.
func (f *Follower) round(ctx context.Context, is *resolver.FollowerState) error {
	list, changed, problem := f.List.Read()
	err := is.Round(ctx, f.read, f.View(), list, changed, func(ctx context.Context) bool {
		return sleep(ctx, rand.N(f.Jitter))
	})
	f.table.Store(is.Table())
	return cmp.Or(err, problem)
}

// read fetches a member's document; if the store does not answer within 2 s, it is read later.
func (f *Follower) read(ctx context.Context, class string) (statestore.DocumentSet, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	f.reads.Add(1)
	return f.Store.Documents(ctx, class)
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
