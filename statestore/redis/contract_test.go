// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"flag"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/statestore/storetest"
	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// The tests wait for servers far more than they compute: more of them than there
// are cores run side by side, each with servers of its own.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

var prefixes atomic.Int64

// open makes a store that is closed at the end of the test.
func open(t testing.TB, cfg redis.Config) *redis.Store {
	t.Helper()
	s, err := redis.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// snapshot saves the state of a test's servers. goBack restores it.
type snapshot func() (goBack func())

// deployment is a store under a prefix of its own.
func deployment(
	t *testing.T, url string, set func(t *testing.T, key, field, value string), wait int, save snapshot,
) storetest.Deployment {
	cfg := redis.Config{
		URL:      url,
		Prefix:   fmt.Sprintf("t%d", prefixes.Add(1)),
		Validate: storetest.Validate,
		Wait:     wait,
	}
	store := open(t, cfg)
	return storetest.Deployment{
		Store: store,
		Back: func(t *testing.T) func(...statestore.ApplicationHome) {
			goBack := save()
			return func(homes ...statestore.ApplicationHome) {
				looks(t, store, false) // its mark is newer than the snapshot
				goBack()
				looks(t, store, true)
				whole(t, store, homes...)
			}
		},
		Again:   func(t *testing.T) statestore.Store { return open(t, cfg) },
		Advance: time.Sleep,
		SetSchema: func(t *testing.T, word string) {
			set(t, "{"+cfg.Prefix+":c}:meta", "schema", word)
		},
	}
}

// contract runs the suite, each part under a prefix of its own.
func contract(
	t *testing.T, url string, set func(t *testing.T, key, field, value string), wait int, save snapshot,
) {
	storetest.Run(t, func(t *testing.T) storetest.Deployment { return deployment(t, url, set, wait, save) })
}

func TestOneServerKeepsTheContract(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	contract(t, s.URL(), func(t *testing.T, key, field, value string) { s.Do("HSET", key, field, value) }, 0,
		func() func() {
			older := s.Snapshot()
			return func() { s.GoBack(older) }
		})
}

func TestAClusterKeepsTheContract(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	contract(t, c.URL(), func(t *testing.T, key, field, value string) {
		var addrs []string
		for _, n := range c.Nodes {
			addrs = append(addrs, n.Addr)
		}
		client := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: addrs})
		defer func() { _ = client.Close() }()
		if err := client.HSet(context.Background(), key, field, value).Err(); err != nil {
			t.Fatal(err)
		}
	}, 0, c.Snapshot)
}

func TestSentinelsWithAReplicaKeepTheContract(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	contract(t, s.URL(), func(t *testing.T, key, field, value string) { s.Primary.Do("HSET", key, field, value) }, 1,
		s.Snapshot)
}

// A failover to a replica that lacks the last writes, which no replica was to confirm.
func TestFailoverWithLossKeepsTheContract(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	storetest.GoesBack(t, deployment(t, s.URL(), nil, 0, func() func() {
		s.Detach()
		return func() {
			s.Primary.Kill()
			s.AwaitFailover()
		}
	}))
}
