// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/resolver"
)

// Reader is what a Follower needs of the store.
type Reader interface {
	Documents(ctx context.Context, class string) (statestore.DocumentSet, error)
}

// Follower keeps the table of all members' hosts and racks.
type Follower struct {
	Store Reader
	View  func() *subcluster.View
	List  *MachineList  // overrules what members publish; nil: nothing does
	Every time.Duration // between looks at the view: 1s
	// Jitter is the longest wait before a change is read, drawn anew each time, so
	// that thousands of proxies do not read it at the same moment: 2s.
	Jitter time.Duration
	Log    *slog.Logger

	table atomic.Pointer[resolver.Table]
	reads atomic.Int64
}

// Where returns the subclusters that have the host or rack; see resolver.Table.
func (f *Follower) Where(name string) []creel.SubclusterID { return f.table.Load().Where(name) }

// Hosts is how many hosts are known, and Reads how many documents were read.
func (f *Follower) Hosts() int { return f.table.Load().Hosts() }

// Reads see Hosts.
func (f *Follower) Reads() int64 { return f.reads.Load() }

// followed is a member's nodes as they were read.
type followed struct {
	digest string
	nodes  resolver.Nodes
}

// Run follows until ctx ends, and returns nil.
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
	has := map[creel.SubclusterID]followed{}
	logged := ""
	for {
		now := ""
		if err := f.round(ctx, has); err != nil && ctx.Err() == nil {
			now = err.Error()
		}
		if now != logged && now != "" {
			f.Log.Warn("which subcluster has which host is as it was", "error", now)
		}
		logged = now
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// round reads what the view says is new.
func (f *Follower) round(ctx context.Context, has map[creel.SubclusterID]followed) error {
	overrides, changed, problem := f.List.Read()
	changed = changed || f.table.Load() == nil
	view := f.View()
	if view == nil {
		if changed {
			f.table.Store(resolver.NewTable(nil, overrides))
		}
		return problem
	}
	for id := range has {
		if _, ok := view.Member(id); !ok {
			delete(has, id)
			changed = true
		}
	}
	waited := false
	for i := range view.Members {
		m := &view.Members[i]
		if m.Load.Nodes == "" || m.Load.Nodes == has[m.ID].digest {
			continue // without a digest it has not published yet in its present epoch: what we have holds
		}
		if !waited && has[m.ID].digest != "" {
			waited = true
			if !sleep(ctx, rand.N(f.Jitter)) {
				break
			}
		}
		nodes, err := f.read(ctx, m)
		if errors.Is(err, creel.ErrInvalidRequest) {
			problem = err
			has[m.ID] = followed{m.Load.Nodes, has[m.ID].nodes} // what cannot be read is not read again
			continue
		}
		if err != nil {
			problem = err
			break // the others at the next round: the store may be ill
		}
		if nodes != nil {
			has[m.ID] = followed{m.Load.Nodes, nodes}
			changed = true
		}
	}
	if changed {
		members := make(map[creel.SubclusterID]resolver.Nodes, len(has))
		for id, h := range has {
			members[id] = h.nodes
		}
		f.table.Store(resolver.NewTable(members, overrides))
	}
	return problem
}

// read fetches what a heartbeat named; nil if the store has another version of it:
// then the next heartbeat names that one.
func (f *Follower) read(ctx context.Context, m *subcluster.Status) (resolver.Nodes, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	f.reads.Add(1)
	set, err := f.Store.Documents(ctx, resolver.Class(m.ID))
	if err != nil {
		return nil, fmt.Errorf("subcluster %s: %w", m.ID, err)
	}
	d, ok := set.Find(resolver.Document)
	if !ok || resolver.Digest(d.Data) != m.Load.Nodes {
		return nil, nil
	}
	nodes, err := resolver.Decode(d.Data)
	if err != nil {
		return nil, fmt.Errorf("subcluster %s: %w", m.ID, err)
	}
	return nodes, nil
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
