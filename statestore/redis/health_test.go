// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// health returns a store's findings, those that stop it first.
func health(t *testing.T, s *redis.Store) (stops, warnings []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	found, err := s.Health(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.What == "" || f.Try == "" || !slices.Contains(statestore.Findings, f.Name) {
			t.Errorf("%+v does not say what to do", f)
		}
		if f.Stop {
			stops = append(stops, f.Name)
		} else {
			warnings = append(warnings, f.Name)
		}
	}
	return stops, warnings
}

func wantHealth(t *testing.T, s *redis.Store, wantStops, wantWarnings []string) {
	t.Helper()
	if stops, warnings := health(t, s); !slices.Equal(stops, wantStops) || !slices.Equal(warnings, wantWarnings) {
		t.Errorf("stops %v, want %v; warnings %v, want %v", stops, wantStops, warnings, wantWarnings)
	}
}

// Each way in which one server can be set up wrongly is named, and nothing else.
func TestMisconfiguredServerIsNamed(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes")
	s := open(t, redis.Config{URL: server.URL()})
	wantHealth(t, s, nil, nil)

	server.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	wantHealth(t, s, nil, []string{statestore.Evicts})
	server.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")

	server.Do("CONFIG", "SET", "appendonly", "no")
	wantHealth(t, s, nil, []string{statestore.NotPersistent})
	server.Do("CONFIG", "SET", "save", "3600 1")
	wantHealth(t, s, nil, []string{statestore.LosesWrites})
	server.Do("CONFIG", "SET", "appendonly", "yes")
	server.Do("CONFIG", "SET", "appendfsync", "no")
	wantHealth(t, s, nil, []string{statestore.LosesWrites})
	server.Do("CONFIG", "SET", "appendfsync", "always")
	wantHealth(t, s, nil, nil)

	server.Do("CONFIG", "SET", "maxmemory", "1")
	wantHealth(t, s, []string{statestore.NotWritable}, []string{statestore.NearlyFull})
	server.Do("CONFIG", "SET", "maxmemory", "0")

	server.Do("CONFIG", "SET", "min-replicas-to-write", "1")
	wantHealth(t, s, []string{statestore.NotWritable}, nil)
	server.Do("CONFIG", "SET", "min-replicas-to-write", "0")

	server.Do("REPLICAOF", "127.0.0.1", "1")
	wantHealth(t, s, []string{statestore.NotWritable}, nil)
	server.Do("REPLICAOF", "NO", "ONE")
	wantHealth(t, s, nil, nil)

	waits := open(t, redis.Config{URL: server.URL() + "?wait=1&prefix=other"})
	wantHealth(t, waits, []string{statestore.FewReplicas}, nil) // no call would be acknowledged

	server.Do("ACL", "SETUSER", "creel", "on", ">word", "~{creel:*", "&creel:changes",
		"+@read", "+@write", "+@scripting", "+@pubsub", "+@connection", "+wait", "+time", "+info")
	limited := open(t, redis.Config{URL: "redis://creel:word@" + server.Addr})
	wantHealth(t, limited, nil, nil)

	server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if found, err := s.Health(ctx); !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("a dead server has the health %v, %v", found, err)
	}
}

// A primary under Sentinels without its replica loses records when it dies.
func TestAPrimaryWithoutReplicasIsNamed(t *testing.T) {
	group := redistest.StartSentinels(t)
	s := open(t, redis.Config{URL: group.URL()})
	stops, warnings := health(t, s)
	if len(stops) > 0 || slices.Contains(warnings, statestore.FewReplicas) {
		t.Errorf("with its replica: stops %v, warnings %v", stops, warnings)
	}
	if !slices.Contains(warnings, statestore.Unconfirmed) {
		t.Errorf("without confirmation by replicas: warnings %v", warnings)
	}
	confirmed := open(t, redis.Config{URL: group.URL() + "?prefix=other&wait=1"})
	if _, warnings := health(t, confirmed); slices.Contains(warnings, statestore.Unconfirmed) {
		t.Errorf("with wait=1: warnings %v", warnings)
	}
	group.Replica.Kill()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, warnings := health(t, s); slices.Contains(warnings, statestore.FewReplicas) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the missing replica is not named")
		}
	}
}

// overdue is a context whose deadline is the end of the one in it.
type overdue struct{ context.Context }

func (o overdue) Err() error {
	if o.Context.Err() == nil {
		return nil
	}
	return context.DeadlineExceeded
}

// Without the replica that each change waits for nothing is acknowledged: that stops, and is
// an error of its own.
func TestAMissingReplicaThatChangesWaitForStops(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Config{URL: server.URL() + "?wait=1&wait_timeout=50ms&timeout=1h&max_wait=1h"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.CheckSchema(overdue{ctx}) }()
	for s.Stats().Retries == 0 { // the first try has ended without them
		select {
		case err := <-ended:
			t.Fatalf("a change without its replica ended at once: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, redis.ErrNoReplicas) || !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("a change without its replica was answered %v", err)
	}
	if stops, warnings := health(t, s); !slices.Contains(stops, statestore.FewReplicas) {
		t.Errorf("stops %v, warnings %v", stops, warnings)
	}
}
