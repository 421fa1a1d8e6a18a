// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel/statestore"
)

// Config of a store. Tree, System and MaxChange are required.
type Config struct {
	Tree      Tree
	System    string // the tree's system, for messages
	Parent    string // the root of Hadoop's records; "": the tree's
	MaxChange int    // bytes of a transaction
	Validate  statestore.Validate
	MaxWait   time.Duration // of a call without a deadline, 10 s

	// HadoopLease is the lease of members that Hadoop's ResourceManagers registered; 15 min, three of their heartbeats.
	HadoopLease time.Duration
	// HadoopHTTPS: their web ports use TLS, which Hadoop's records do not tell.
	HadoopHTTPS bool
	// Replacing waits until a record of a policy that is missing has been replaced, if a program of Hadoop's is
	// replacing it. nil: its replacement is one step.
	Replacing func(context.Context)
	// Confirm makes a new store wait for the homes that ResourceManagers report (Reopen) before its first claim.
	Confirm bool
	// Local is this process's clock, time.Now.
	Local func() time.Time
}

// Store is a store in a tree of nodes. It is safe for concurrent use.
type Store struct {
	applications
	*engine
}

// engine makes the transactions of a store.
type engine struct {
	cfg   Config
	tree  Tree
	paths paths
	clock clock

	preparing sync.Mutex
	prepared  atomic.Bool
	known     atomic.Pointer[string] // identity of the store that this process serves
	swept     atomic.Int64           // ms of the last search for leftovers

	unanswered atomic.Int64 // calls
}

var _ statestore.Store = (*Store)(nil)

// paths are the nodes of a store: Hadoop's, and creel's below one of its own.
type paths struct {
	root, memberships, homes, hadoopPolicies, bookings string // Hadoop's

	own, meta, clock, feed                       string
	members, drains, apps, uams, reservations    string
	ending, policies, documents, history, leases string
	keys, tokens, events, daemons, reported      string
}

func pathsOf(parent string) paths {
	root := strings.TrimSuffix(parent, "/")
	own := root + "/creel"
	return paths{
		root: root, memberships: root + "/memberships", homes: root + "/applications",
		hadoopPolicies: root + "/policies", bookings: root + "/reservation",
		own: own, meta: own + "/meta", clock: own + "/clock", feed: own + "/feed",
		members: own + "/members", drains: own + "/drains", apps: own + "/apps", uams: own + "/uams",
		reservations: own + "/reservations", ending: own + "/ending", policies: own + "/policies",
		documents: own + "/documents", history: own + "/history", leases: own + "/leases",
		keys: own + "/keys", tokens: own + "/tokens", events: own + "/events", daemons: own + "/daemons",
		reported: own + "/reported",
	}
}

// static are the nodes that every store has, parents first.
func (p *paths) static() []string {
	out := []string{
		p.memberships, p.homes, p.hadoopPolicies, p.bookings, p.own, p.clock, p.feed,
		p.members, p.drains, p.apps, p.uams, p.reservations, p.ending, p.policies, p.documents, p.history,
		p.leases, p.keys, p.tokens, p.events, p.daemons, p.reported,
	}
	for _, kind := range feeds {
		out = append(out, p.feed+"/"+string(kind))
	}
	return out
}

// Open makes a store. It makes no call yet. Close closes the tree.
func Open(cfg Config) *Store {
	cfg.MaxWait = cmp.Or(cfg.MaxWait, 10*time.Second)
	cfg.HadoopLease = cmp.Or(cfg.HadoopLease, 15*time.Minute)
	if cfg.Local == nil {
		cfg.Local = time.Now
	}
	e := &engine{cfg: cfg, tree: cfg.Tree, paths: pathsOf(cfg.Parent)}
	return &Store{applicationsOf(e), e}
}

// Close closes the tree.
func (s *Store) Close() error {
	s.tree.Close()
	return nil
}

// prepare creates the nodes that every store has.
func (s *engine) prepare(ctx context.Context) error {
	if s.prepared.Load() {
		return nil
	}
	s.preparing.Lock()
	defer s.preparing.Unlock()
	if s.prepared.Load() {
		return nil
	}
	if err := s.tree.Prepare(ctx); err != nil {
		return &lostCall{err}
	}
	for end := 1; end <= len(s.paths.root); end++ {
		if end == len(s.paths.root) || s.paths.root[end] == '/' {
			if err := s.make(ctx, s.paths.root[:end]); err != nil {
				return err
			}
		}
	}
	for _, path := range s.paths.static() {
		if err := s.make(ctx, path); err != nil {
			return err
		}
	}
	if err := s.makeMeta(ctx); err != nil {
		return err
	}
	s.prepared.Store(true)
	return nil
}

// make creates a node, if it is missing. An existing one is not created: the right to create may be missing.
func (s *engine) make(ctx context.Context, path string) error {
	_, _, err := s.tree.Get(ctx, path)
	if errors.Is(err, ErrNoNode) {
		_, err = s.tree.Apply(ctx, []Op{{Kind: OpCreate, Path: path}})
	}
	if err != nil && !errors.Is(err, ErrConflict) {
		return &lostCall{err}
	}
	return nil
}

// CheckSchema implements statestore.Schema.
func (s *Store) CheckSchema(ctx context.Context) error {
	return s.look(ctx, func(t *txn) error {
		m, err := t.meta()
		if err != nil {
			return err
		}
		return statestore.ReadableSchema(m.Schema)
	})
}

// jsonOf encodes a value that can always be encoded.
func jsonOf(v any) []byte {
	b, _ := json.Marshal(v) // its types are numbers and texts
	return b
}

// ClockPath is the node that a Tree may write to learn the time.
func ClockPath(parent string) string { return pathsOf(parent).clock }
