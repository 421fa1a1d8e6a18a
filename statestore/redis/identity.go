// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"crypto/rand"
	"strconv"
	"time"

	"github.com/creelrm/creel/statestore"
)

// A store has an identity, made by whoever opens an empty one, and each shard
// carries it as a mark. A claim in a shard without the mark would give a running
// application a second home, so it is refused until Reopen has written the homes
// that the ResourceManagers report. States of the identity:
const (
	stateMaking  = "making"     // shards are being marked: an empty store is opened
	stateRebuild = "rebuilding" // homes are being written back: nobody else may claim
	stateReady   = "ready"
)

func came(why string) error {
	return statestore.Unavailable("the store came back empty or is another one: "+why+"; known homes go on, new ones wait until it is rebuilt", 5*time.Second)
}

// known is the identity of the store; at first contact it opens the store.
func (s *Store) known(ctx context.Context) (string, error) {
	if p := s.identity.Load(); p != nil {
		return *p, nil
	}
	select { // one makes contact, the others wait for it
	case s.opening <- struct{}{}:
	case <-ctx.Done():
		return "", s.gaveUp(ctx, nil)
	}
	defer func() { <-s.opening }()
	if p := s.identity.Load(); p != nil {
		return *p, nil
	}
	id, schema, state, err := s.openMeta(ctx, stateMaking)
	if err != nil {
		return "", err
	}
	if err := statestore.ReadableSchema(schema); err != nil {
		return "", err
	}
	switch state {
	case stateRebuild:
		return "", came("its homes are being written back")
	case stateMaking:
		if err := s.mark(ctx, id, "nx"); err != nil {
			return "", err
		}
		if _, err := s.write(ctx, stateScript, []string{s.control("meta")}, id, stateReady); err != nil {
			return "", err
		}
	}
	s.identity.Store(&id)
	return id, nil
}

// openMeta reads identity, schema and state, and makes them if there are none.
func (s *Store) openMeta(ctx context.Context, state string) (id, schema, is string, err error) {
	list, err := s.write(ctx, openScript, []string{s.control("meta")}, rand.Text(), strconv.Itoa(statestore.SchemaVersion), state)
	if err != nil {
		return "", "", "", err
	}
	if len(list) != 3 {
		return "", "", "", surprise(list)
	}
	return str(list[0]), str(list[1]), str(list[2]), nil
}

// mark writes the identity into all shards; how is "nx" to spare marks of
// others, or "".
func (s *Store) mark(ctx context.Context, id, how string) error {
	return s.everyShard(ctx, markScript, id, how)
}

// everyShard runs a script that needs only the guard on all shards at once.
func (s *Store) everyShard(ctx context.Context, sc *script, args ...any) error {
	errs := make(chan error, shards)
	for n := range int64(shards) {
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			v, err := s.do(ctx, s.writing(ctx, sc, s.shard(n, "guard"), "", nil, args))
			if err == nil {
				_, err = s.refusal(ctx, v)
			}
			errs <- err
		}()
	}
	var first error
	for range shards {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// adopt is called when a shard does not have the mark we know. If another
// identity is ready, somebody has rebuilt the store: we go on with that.
func (s *Store) adopt(ctx context.Context, mark string) error {
	if mark == "" {
		return came("a shard has lost its mark")
	}
	v, err := s.do(ctx, command("HMGET", s.control("meta"), "id", "state"))
	if err != nil {
		return err
	}
	list, _ := v.([]any)
	if len(list) != 2 || str(list[0]) != mark || str(list[1]) != stateReady {
		return came("it is not ready yet")
	}
	s.identity.Store(&mark)
	return nil
}

// CheckSchema implements statestore.Schema.
func (s *Store) CheckSchema(ctx context.Context) error {
	if _, err := s.known(ctx); err != nil {
		return err
	}
	v, err := s.do(ctx, command("HGET", s.control("meta"), "schema"))
	if err != nil {
		return err
	}
	if v == nil {
		return came("it has no schema")
	}
	return statestore.ReadableSchema(str(v))
}

// Reopen makes a store that came back empty, or of which a part did, serve new
// claims again: it writes the rebuilt homes (statestore.Rebuild of what all
// ResourceManagers report), and only then marks the shards. Homes that are
// there already win, and are told as conflicts. It may be repeated, also by
// another process, until it returns no error.
func (s *Store) Reopen(ctx context.Context, homes []statestore.Home) ([]statestore.Conflict, error) {
	id, schema, _, err := s.openMeta(ctx, stateRebuild)
	if err != nil {
		return nil, err
	}
	if err := statestore.ReadableSchema(schema); err != nil {
		return nil, err
	}
	if _, err := s.write(ctx, stateScript, []string{s.control("meta")}, id, stateRebuild); err != nil {
		return nil, err
	}
	conflicts, err := statestore.Reclaim(ctx, anyIdentity{s}, homes)
	if err != nil {
		return conflicts, err
	}
	if err := s.mark(ctx, id, ""); err != nil {
		return conflicts, err
	}
	if list, err := s.write(ctx, stateScript, []string{s.control("meta")}, id, stateReady); err != nil {
		return conflicts, err
	} else if list[0] != "OK" {
		return conflicts, came("it was replaced again while it was rebuilt")
	}
	s.identity.Store(&id)
	return conflicts, nil
}
