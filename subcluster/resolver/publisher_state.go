// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"bytes"
	"context"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// DocumentStore is the part of the state store for publishing and following.
type DocumentStore interface {
	Documents(ctx context.Context, class string) (statestore.DocumentSet, error)
	PutDocument(ctx context.Context, w statestore.DocumentWrite) (statestore.Document, error)
}

// PublisherState maintains a member's published nodes, round by round. It has one owner.
type PublisherState struct {
	Member creel.SubclusterID
	// Linger and Verify are numbers of rounds: a missing host stays published for Linger rounds. After Verify rounds
	// without a change, the store is checked, because it may have been emptied.
	Linger, Verify int

	nodes     Nodes
	absent    map[string]int // rounds since a host was last present
	encoded   []byte         // published form of nodes
	published []byte
	digest    string
	rounds    int // since the last check of the store
}

// Digest returns the digest of the published document, for the heartbeat; "" before there is one.
func (p *PublisherState) Digest() string { return p.digest }

// Round updates the published document for the present hosts. The error comes from the store.
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

// recall starts with the document that the previous process published: its nodes have yet to register here.
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

// see records the present hosts, and reports whether the published document changes.
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
