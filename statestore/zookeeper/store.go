// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/zkclient"
	"github.com/creelrm/creel/statestore"
)

// Config of a store. Servers and Parent are required.
type Config struct {
	Servers  zkclient.Servers
	Parent   string // the root of Hadoop's records
	Validate statestore.Validate
	MaxWait  time.Duration // of a call without a deadline, 10 s

	// HadoopLease is the lease of members that Hadoop's ResourceManagers registered; 15 min, three of their heartbeats.
	HadoopLease time.Duration
	// Confirm makes a new store wait for the homes that ResourceManagers report (Reopen) before its first claim.
	Confirm bool

	// Tests replace them.
	connect func(zkclient.Servers) (session, error)
	local   func() time.Time
}

// session is a session with ZooKeeper, which a later one follows when it expires. A call ends with its context.
type session interface {
	Get(ctx context.Context, path string) ([]byte, *zk.Stat, error)
	Watch(ctx context.Context, path string) ([]byte, *zk.Stat, <-chan zk.Event, error)
	Children(ctx context.Context, path string) ([]string, *zk.Stat, error)
	Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error)
	Sync(ctx context.Context, path string) error
	AddAuth(ctx context.Context, a zkclient.Auth) error
	Close()
}

// Store is a store in ZooKeeper. It is safe for concurrent use.
type Store struct{ *engine }

// engine makes the transactions of a store.
type engine struct {
	cfg   Config
	zk    session
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

// Open makes a store, which connects in the background.
func Open(cfg Config) (*Store, error) {
	cfg.Servers = cfg.Servers.WithDefaults()
	cfg.MaxWait = cmp.Or(cfg.MaxWait, 10*time.Second)
	cfg.HadoopLease = cmp.Or(cfg.HadoopLease, 15*time.Minute)
	if !strings.HasPrefix(cfg.Parent, "/") || strings.Trim(cfg.Parent, "/") == "" {
		return nil, &creel.Error{
			Kind: creel.ErrInvalidRequest, What: "invalid path in ZooKeeper", Why: cfg.Parent + " is not below /",
			Try: "set yarn.federation.state-store.zk.parent-path to a path such as /federationstore",
		}
	}
	if cfg.connect == nil {
		cfg.connect = func(s zkclient.Servers) (session, error) { return zkclient.Connect(s) }
	}
	if cfg.local == nil {
		cfg.local = time.Now
	}
	session, err := cfg.connect(cfg.Servers)
	if err != nil {
		return nil, err
	}
	return &Store{&engine{cfg: cfg, zk: session, paths: pathsOf(cfg.Parent)}}, nil
}

// Close ends the session.
func (s *Store) Close() error {
	s.zk.Close()
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
	for _, a := range s.cfg.Servers.Auth {
		if err := s.zk.AddAuth(ctx, a); err != nil {
			return &lostCall{err}
		}
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
	_, _, err := s.zk.Get(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		_, err = s.zk.Multi(ctx, &zk.CreateRequest{Path: path, Acl: s.cfg.Servers.ACL})
	}
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
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
