// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/certs"
	"github.com/creelrm/creel/internal/workerpool"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	goredis "github.com/redis/go-redis/v9"
)

// Store implements the contract of package statestore on Redis.
type Store struct {
	applications
	reservations homesOf[creel.ReservationID]

	cfg     Config
	client  goredis.UniversalClient
	cluster *goredis.ClusterClient // nil unless a cluster
	channel string

	sentinels bool // Sentinels name the primary

	identity atomic.Pointer[string] // of the known store; nil before the first contact
	opening  chan struct{}          // one goroutine at a time makes first contact
	self     string                 // unique among all processes
	lastMark atomic.Pointer[mark]   // nil before the first

	policies atomic.Pointer[policySet]
	members  atomic.Pointer[memberSet] // read by Records
	inParts  atomic.Pointer[memberSet] // by RecordsOf

	mu     sync.Mutex
	closed bool
	lanes  map[string]*lane        // by server
	wg     sync.WaitGroup          // pipelines under way
	fliers *workerpool.Pool[*lane] // goroutines that send pipelines

	counts counters
}

var _ statestore.Store = (*Store)(nil)

type policySet struct {
	identity, version string
	list              []subcluster.Policy
	problems          []string
}

// keepAlive is the interval of TCP's probes of an idle connection.
const keepAlive = 5 * time.Minute

// Open prepares a store. The first call connects; Open does not use the network.
func Open(cfg Config) (*Store, error) {
	t, err := cfg.parse()
	if err != nil {
		return nil, err
	}
	listen(cfg.Log)
	s := &Store{
		cfg: cfg, self: rand.Text(), channel: cfg.Prefix + ":changes", opening: make(chan struct{}, 1),
		lanes: map[string]*lane{},
	}
	s.applications.homesOf = homesOf[creel.ApplicationID]{table{s: s, kind: "a", publish: true}, &appIDs}
	s.reservations = homesOf[creel.ReservationID]{table{s: s, kind: "r"}, &reservationIDs}
	s.fliers = workerpool.New(s.fly)
	dial := cfg.Dial
	if t.tls {
		if dial == nil {
			dial = (&net.Dialer{Timeout: cfg.Timeout, KeepAlive: keepAlive}).DialContext
		}
		trust := cfg.TLS
		if trust == nil {
			if trust, err = certs.OpenTrust("", "", cfg.Log); err != nil {
				return nil, err
			}
		}
		dial = trust.DialTLS(dial)
	}
	// The store retries by itself (see do), because only it can decide which calls may be repeated and for how long.
	// The pool is small because calls share pipelines.
	const pool = 16
	switch t.kind {
	case "redis":
		s.client = goredis.NewClient(
			&goredis.Options{
				Addr:                  t.addrs[0],
				DB:                    t.db,
				Username:              t.user,
				Password:              t.password,
				Dialer:                dial,
				MaxRetries:            -1,
				DialTimeout:           cfg.Timeout,
				ReadTimeout:           cfg.readTimeout(),
				WriteTimeout:          cfg.Timeout,
				PoolSize:              pool,
				ContextTimeoutEnabled: true,
				DialerRetries:         1,
				ClientName:            "creel",
				DisableIdentity:       true,
				OnConnect:             s.connected,
			},
		)
	case "sentinel":
		s.sentinels = true
		s.client = goredis.NewFailoverClient(
			&goredis.FailoverOptions{
				MasterName:            t.master,
				SentinelAddrs:         t.addrs,
				DB:                    t.db,
				Username:              t.user,
				Password:              t.password,
				SentinelUsername:      t.sentinelUser,
				SentinelPassword:      t.sentinelPassword,
				Dialer:                dial,
				MaxRetries:            -1,
				DialTimeout:           cfg.Timeout,
				ReadTimeout:           cfg.readTimeout(),
				WriteTimeout:          cfg.Timeout,
				PoolSize:              pool,
				ContextTimeoutEnabled: true,
				DialerRetries:         1,
				ClientName:            "creel",
				DisableIdentity:       true,
				OnConnect:             s.connected,
			},
		)
	case "cluster":
		s.cluster = goredis.NewClusterClient(
			&goredis.ClusterOptions{
				Addrs:                 t.addrs,
				Username:              t.user,
				Password:              t.password,
				Dialer:                dial,
				MaxRetries:            -1,
				MaxRedirects:          3,
				DialTimeout:           cfg.Timeout,
				ReadTimeout:           cfg.readTimeout(),
				WriteTimeout:          cfg.Timeout,
				PoolSize:              pool,
				ContextTimeoutEnabled: true,
				DialerRetries:         1,
				ClientName:            "creel",
				DisableIdentity:       true,
				OnConnect:             s.connected,
			},
		)
		s.client = s.cluster
	}
	return s, nil
}

// readTimeout leaves time for a WAIT.
func (c *Config) readTimeout() time.Duration {
	if c.Wait > 0 {
		return c.Timeout + c.WaitTimeout
	}
	return c.Timeout
}

// Close waits for calls in flight and ends all connections.
func (s *Store) Close() error {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	s.wg.Wait() // no call is in flight after this
	if !already {
		s.fliers.Close()
	}
	return s.client.Close()
}

var errClosed = errors.New("the store is closed")

// Keys. All keys of a shard share a slot by their hash tag, and so do all keys of the control data,
// so that each script touches one slot.

// shards is the number of shards of homes, reservations and UAM records. It is part of the schema.
const shards = 64

func (s *Store) key(tag, name string) string { return "{" + s.cfg.Prefix + ":" + tag + "}:" + name }

// control returns a key of the slot for members, policies, leases and keys.
func (s *Store) control(name string) string { return s.key("c", name) }

func (s *Store) shard(n int64, name string) string {
	return s.key(strconv.FormatInt(n&(shards-1), 10), name)
}

// write runs a guarded script on control data, without a check of the store's identity.
func (s *Store) write(ctx context.Context, sc *script, keys []string, args ...any) ([]any, error) {
	if err := statestore.CheckRecording(ctx); err != nil {
		return nil, err
	}
	v, err := s.do(ctx, s.writing(ctx, sc, s.control("guard"), "", keys, args))
	if err != nil {
		return nil, err
	}
	return refusal(ctx, v)
}

// writeShard runs a guarded script on a shard of the known store.
func (s *Store) writeShard(ctx context.Context, n int64, sc *script, keys []string, args ...any) ([]any, error) {
	for try := 0; ; try++ {
		id, err := s.whole(ctx)
		if err != nil {
			return nil, err
		}
		v, err := s.do(ctx, s.writing(ctx, sc, s.shard(n, "guard"), id, keys, args))
		if err != nil {
			return nil, err
		}
		list, err := refusal(ctx, v)
		if err == nil && len(list) == 2 && list[0] == "EMPTY" {
			if err = s.adopt(ctx, str(list[1])); err == nil && try < 3 {
				continue
			}
			if err == nil {
				err = statestore.Unavailable("the identity of the state store keeps changing", time.Second)
			}
		}
		return list, err
	}
}

// refusal converts a script's answer to a list, and a rejected lease to its error.
func refusal(ctx context.Context, v any) ([]any, error) {
	list, ok := v.([]any)
	if !ok {
		return []any{"IS", v}, nil
	}
	if len(list) == 2 && list[0] == "FENCED" {
		l, _ := statestore.FenceOf(ctx)
		return nil, statestore.Fenced(l, num(list[1]))
	}
	if len(list) == 0 {
		return nil, surprise(v)
	}
	return list, nil
}

// surprise is the error for an unexpected script reply.
func surprise(v any) error {
	return &creel.Error{
		Kind: creel.ErrUnavailable,
		What: "unexpected reply from the state store",
		Why:  short(v),
		Try:  "check that no other program writes under this prefix",
	}
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

func num(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case string:
		i, _ := strconv.ParseInt(n, 10, 64)
		return i
	}
	return 0
}

// at reads an element of a list that may be shorter.
func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}
