// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"

	"github.com/creelrm/creel/statestore"
)

// Script is a Lua script of another package.
type Script struct{ script *script }

// NewScript names a script for metrics. Its keys must be of one slot.
func NewScript(name, source string) *Script { return &Script{newScript(name, source)} }

// Name is the name in metrics.
func (s *Script) Name() string { return s.script.name }

// Scripts runs another package's scripts on a deployment. As with a Store, calls are repeated while the deployment
// cannot answer, and Config.Wait replicas acknowledge a write.
type Scripts struct{ store *Store }

// OpenScripts prepares the connection, as Open does for a store.
func OpenScripts(cfg Config) (*Scripts, error) {
	store, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	return &Scripts{store}, nil
}

// Close waits for calls in flight and ends all connections.
func (s *Scripts) Close() error { return s.store.Close() }

// Key returns a key under the prefix. Keys with the same tag share a slot.
func (s *Scripts) Key(tag, name string) string { return s.store.key(tag, name) }

// Write runs a script. It may run more than once, so it must be safe to repeat. Each run must write something, because
// Redis waits for replicas only after a write of the same connection.
func (s *Scripts) Write(ctx context.Context, sc *Script, keys []string, args ...any) ([]any, error) {
	c := reading(sc.script, keys, args...)
	c.write = true
	return s.list(ctx, c)
}

// Read runs a script that writes nothing, at the primary. After a partition this may be a former primary.
func (s *Scripts) Read(ctx context.Context, sc *Script, keys []string, args ...any) ([]any, error) {
	return s.list(ctx, reading(sc.script, keys, args...))
}

// list performs a call whose answer is a list.
func (s *Scripts) list(ctx context.Context, c *call) ([]any, error) {
	v, err := s.store.do(ctx, c)
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil, surprise(v)
	}
	return list, nil
}

// Scan returns a part of a hash, as fields and values in turn, and the cursor of the next part, "0" after the last.
func (s *Scripts) Scan(ctx context.Context, key, cursor string, count int) (part []any, next string, err error) {
	c := command("HSCAN", key, cursor, "COUNT", count)
	v, err := s.store.do(ctx, c)
	if err != nil {
		return nil, "", err
	}
	list, _ := v.([]any)
	if len(list) != 2 {
		return nil, "", surprise(v)
	}
	part, _ = list[1].([]any)
	return part, str(list[0]), nil
}

// Health is Store.Health for the deployment.
func (s *Scripts) Health(ctx context.Context) ([]statestore.Finding, error) {
	return s.store.Health(ctx)
}
