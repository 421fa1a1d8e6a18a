// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/resolver"
)

// Publisher keeps a member's published nodes up to date. A host that is gone stays published for a while, because
// most return, and every router and proxy reads each change.
type Publisher struct {
	Member creel.SubclusterID
	Store  statestore.Documents
	// Read returns the member's nodes that run, or may return by themselves.
	Read  func(context.Context) (resolver.Nodes, error)
	Every time.Duration // between reads: 5s
	// Linger and Verify are numbers of rounds: a missing host stays published for Linger rounds (120). After Verify
	// rounds without a change (12), the store is checked, because it may have been emptied.
	Linger, Verify int
	Log            *slog.Logger

	digest atomic.Pointer[string]
}

// Digest returns the digest of the published document, for the heartbeat; "" before there is one.
func (p *Publisher) Digest() string {
	if d := p.digest.Load(); d != nil {
		return *d
	}
	return ""
}

// Run publishes until ctx ends, and returns nil.
func (p *Publisher) Run(ctx context.Context) error {
	if p.Every <= 0 {
		p.Every = 5 * time.Second
	}
	if p.Linger <= 0 {
		p.Linger = 120
	}
	if p.Verify <= 0 {
		p.Verify = 12
	}
	if p.Log == nil {
		p.Log = slog.New(slog.DiscardHandler)
	}
	tick := time.NewTicker(p.Every)
	defer tick.Stop()
	is := resolver.PublisherState{Member: p.Member, Linger: p.Linger, Verify: p.Verify}
	logged := ""
	for {
		now := ""
		if err := p.round(ctx, &is); err != nil && ctx.Err() == nil {
			now = err.Error()
		}
		if now != logged && now != "" {
			p.Log.Warn("failed to publish hosts; asks for new hosts are not routed here",
				"subcluster", p.Member, "error", now)
		}
		logged = now
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// round updates the published document.
func (p *Publisher) round(ctx context.Context, is *resolver.PublisherState) error {
	ctx, cancel := context.WithTimeout(ctx, max(p.Every, time.Second))
	defer cancel()
	there, err := p.Read(ctx)
	if err != nil {
		return fmt.Errorf("the nodes cannot be read: %w", err)
	}
	if err := is.Round(ctx, p.Store, there); err != nil {
		return err
	}
	digest := is.Digest()
	p.digest.Store(&digest)
	return nil
}
