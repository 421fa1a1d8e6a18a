// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"bytes"
	"context"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// DocumentStore is the part of the state store that publishing and following need.
type DocumentStore interface {
	Documents(ctx context.Context, class string) (statestore.DocumentSet, error)
	PutDocument(ctx context.Context, w statestore.DocumentWrite) (statestore.Document, error)
}

// PublisherState keeps a member's published nodes as they are, a round at a time. It has
// one owner.
type PublisherState struct {
	Member creel.SubclusterID
	// Linger and Verify count rounds: how many a host stays published that is not
	// there any more, and after how many the store is looked at though nothing
	// changed, since it may have been emptied.
	Linger, Verify int

	nodes     Nodes
	absent    map[string]int // rounds since a host of nodes was there
	encoded   []byte         // nodes, as they are published
	published []byte
	digest    string
	rounds    int // since the store was looked at
}

// Digest returns the digest of the published document, for the heartbeat; "" before there is one.
func (p *PublisherState) Digest() string { return p.digest }

// Round brings the published document up to date with the current hosts. The error is the store's.
func (p *PublisherState) Round(ctx context.Context, store DocumentStore, there Nodes) error {
	if p.nodes == nil {
		if err := p.recall(ctx, store); err != nil {
			return err
		}
	}
	if p.see(there) || p.encoded == nil {
		p.encoded = p.nodes.Encode()
	}
	p.rounds++
	if bytes.Equal(p.encoded, p.published) && p.rounds < p.Verify {
		return nil
	}
	set, err := store.Documents(ctx, Class(p.Member))
	if err != nil {
		return err
	}
	stored, _ := set.Find(Document)
	if !bytes.Equal(stored.Data, p.encoded) {
		_, err := store.PutDocument(ctx, statestore.DocumentWrite{
			Class: Class(p.Member), Name: Document, Expect: stored.Version, Data: p.encoded,
			Author: string(p.Member), Source: set.Source, Quiet: true,
		})
		if err != nil {
			return err
		}
	}
	p.published, p.rounds, p.digest = p.encoded, 0, Digest(p.encoded)
	return nil
}

// recall begins with the document that the process before this one published: its nodes are still to register here.
func (p *PublisherState) recall(ctx context.Context, store DocumentStore) error {
	set, err := store.Documents(ctx, Class(p.Member))
	if err != nil {
		return err
	}
	p.nodes, p.absent = Nodes{}, map[string]int{}
	if d, ok := set.Find(Document); ok {
		if nodes, err := Decode(d.Data); err == nil { // else it is written again
			p.nodes = nodes
		}
	}
	return nil
}

// see takes over the current hosts, and reports whether the published document changes.
func (p *PublisherState) see(there Nodes) (changed bool) {
	for host := range p.nodes {
		if _, ok := there[host]; ok {
			continue
		}
		if p.absent[host]++; p.absent[host] > p.Linger {
			delete(p.nodes, host)
			delete(p.absent, host)
			changed = true
		}
	}
	for host, rack := range there {
		was, known := p.nodes[host]
		changed = changed || !known || was != rack
		p.nodes[host] = rack
		delete(p.absent, host)
	}
	return changed
}
