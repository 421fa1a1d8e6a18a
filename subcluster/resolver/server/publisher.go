// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/resolver"
)

// Publisher keeps a member's published nodes as they are. A host that has gone stays
// published for a while: most come back, and each change is read by every router and
// proxy.
type Publisher struct {
	Member creel.SubclusterID
	Store  statestore.Documents
	// Read returns the member's nodes: those that run, or may come back by themselves.
	Read  func(context.Context) (resolver.Nodes, error)
	Every time.Duration // between reads: 5s
	// Linger and Verify count rounds: how many a host stays published that is not
	// there any more (120), and after how many the store is looked at though nothing
	// changed (12), since it may have been emptied.
	Linger, Verify int
	Log            *slog.Logger

	digest atomic.Pointer[string]
}

// Digest names what is published, for the heartbeat; "" before there is anything.
func (p *Publisher) Digest() string {
	if d := p.digest.Load(); d != nil {
		return *d
	}
	return ""
}

// publishing is what Run knows.
type publishing struct {
	nodes     resolver.Nodes
	absent    map[string]int // rounds since a host of nodes was there
	published []byte
	rounds    int // since the store was looked at
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
	var is publishing
	logged := ""
	for {
		now := ""
		if err := p.round(ctx, &is); err != nil && ctx.Err() == nil {
			now = err.Error()
		}
		if now != logged && now != "" {
			p.Log.Warn("hosts are not published: asks for new ones are not routed by place",
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

// round brings what is published up to date.
func (p *Publisher) round(ctx context.Context, is *publishing) error {
	ctx, cancel := context.WithTimeout(ctx, max(p.Every, time.Second))
	defer cancel()
	there, err := p.Read(ctx)
	if err != nil {
		return fmt.Errorf("the nodes cannot be read: %w", err)
	}
	if is.nodes == nil {
		if err := p.recall(ctx, is); err != nil {
			return err
		}
	}
	is.see(there, p.Linger)
	encoded := is.nodes.Encode()
	is.rounds++
	if bytes.Equal(encoded, is.published) && is.rounds < p.Verify {
		return nil
	}
	set, err := p.Store.Documents(ctx, resolver.Class(p.Member))
	if err != nil {
		return err
	}
	stored, _ := set.Find(resolver.Document)
	if !bytes.Equal(stored.Data, encoded) {
		_, err := p.Store.PutDocument(ctx, statestore.DocumentWrite{
			Class: resolver.Class(p.Member), Name: resolver.Document, Expect: stored.Version, Data: encoded,
			Author: string(p.Member), Source: set.Source, Quiet: true,
		})
		if err != nil {
			return err
		}
	}
	is.published, is.rounds = encoded, 0
	digest := resolver.Digest(encoded)
	p.digest.Store(&digest)
	return nil
}

// recall begins with what the process before this one published: its nodes are still
// to register with us.
func (p *Publisher) recall(ctx context.Context, is *publishing) error {
	set, err := p.Store.Documents(ctx, resolver.Class(p.Member))
	if err != nil {
		return err
	}
	is.nodes, is.absent = resolver.Nodes{}, map[string]int{}
	if d, ok := set.Find(resolver.Document); ok {
		if nodes, err := resolver.Decode(d.Data); err == nil { // else it is written anew
			is.nodes = nodes
		}
	}
	return nil
}

// see takes over which hosts are there now.
func (is *publishing) see(there resolver.Nodes, linger int) {
	for host := range is.nodes {
		if _, ok := there[host]; ok {
			continue
		}
		if is.absent[host]++; is.absent[host] > linger {
			delete(is.nodes, host)
			delete(is.absent, host)
		}
	}
	for host, rack := range there {
		is.nodes[host] = rack
		delete(is.absent, host)
	}
}
