// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy/keys"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
)

var secret = []statestore.Key{{ID: 1, Secret: []byte("a secret of the cluster, long enough")}}

func secrets(context.Context) ([]statestore.Key, error) { return secret, nil }

// illStore is a store that cannot be read while ill.
type illStore struct {
	statestore.Store
	ill    bool
	silent atomic.Bool
}

func (s *illStore) KeysOf(ctx context.Context, rings []string) ([][]statestore.Key, error) {
	out := make([][]statestore.Key, len(rings))
	var err error
	for i, ring := range rings {
		if out[i], err = s.Keys(ctx, ring); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *illStore) Keys(ctx context.Context, ring string) ([]statestore.Key, error) {
	if s.silent.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if s.ill {
		return nil, creel.ErrUnavailable
	}
	return s.Store.Keys(ctx, ring)
}

// An AM may be quicker than the keys of the ResourceManager that started it.
func TestATokenWaitsForItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		store := &illStore{Store: memory.New(memory.NewState("test", nil), time.Now)}
		view := &subcluster.View{
			Members: []subcluster.Status{{Member: subcluster.Member{ID: "sc-1"}, State: subcluster.StateActive}},
		}
		cache := keys.NewCache(store, secrets, func() *subcluster.View { return view }, nil)
		if err := cache.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		key := token.Key{ID: 7, Secret: []byte("a secret of the ResourceManager")}
		identifier := token.AMRM{
			Attempt: creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1},
			KeyID:   7,
		}.Append(
			nil,
		)

		began := time.Now()
		_, _, _, err := cache.Verify(ctx, identifier)
		if !errors.Is(err, creel.ErrInvalidToken) || time.Since(began) > 5*time.Second {
			t.Errorf(
				"a token that nobody issued: %v after %v; want it refused as invalid within seconds",
				err,
				time.Since(began),
			)
		}

		seal, err := secrets(ctx)
		if err != nil {
			t.Fatal(err)
		}
		published := make(chan error)
		go func() {
			time.Sleep(time.Second)
			published <- keys.Publish(ctx, store, "sc-1", token.Ring{key}, seal)
		}()
		_, member, password, err := cache.Verify(ctx, identifier)
		if err := <-published; err != nil {
			t.Fatal(err)
		}
		if err != nil || member != "sc-1" || !key.Verify(identifier, password) {
			t.Errorf("a key that came a second after its token: issued by %q, %v", member, err)
		}

		store.ill = true
		if _, _, _, err := cache.Verify(ctx, identifier); err != nil {
			t.Errorf("a known key is lost with the store: %v", err)
		}
		identifier = token.AMRM{KeyID: 8}.Append(nil)
		if _, _, _, err := cache.Verify(ctx, identifier); !errors.Is(err, creel.ErrUnavailable) {
			t.Errorf("while the store cannot be read: %v; want an error after which AMs come again", err)
		}
	})
}

// A silent store blocks only its reader; goroutines that wait for that reading wait no longer than their own timeout.
// A token is then not called invalid, which would be final.
func TestTokenIsAcceptedWhileStoreIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &illStore{Store: memory.New(memory.NewState("test", nil), time.Now)}
		view := &subcluster.View{
			Members: []subcluster.Status{{Member: subcluster.Member{ID: "sc-1"}, State: subcluster.StateActive}},
		}
		cache := keys.NewCache(store, secrets, func() *subcluster.View { return view }, nil)
		store.silent.Store(true)
		slow, cancel := context.WithCancel(t.Context())
		read := make(chan error)
		go func() { read <- cache.Refresh(slow) }()
		synctest.Wait()

		identifier := token.AMRM{
			Attempt: creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1},
			KeyID:   7,
		}.Append(
			nil,
		)
		began := time.Now()
		_, _, _, err := cache.Verify(t.Context(), identifier)
		if !errors.Is(err, creel.ErrUnavailable) || time.Since(began) > 5*time.Second {
			t.Errorf("%v after %v; want a word that it may be tried again, within seconds", err, time.Since(began))
		}
		store.silent.Store(false)
		cancel()
		if err := <-read; !errors.Is(err, context.Canceled) {
			t.Errorf("the reading that hung says %v", err)
		}
		if err := cache.Refresh(t.Context()); err != nil {
			t.Errorf("the next reading: %v", err)
		}
	})
}

// The store is read when it announces a change, when a member comes, and each half minute otherwise; not by each
// proxy for each member each second.
func TestKeysAreReadWhenTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Store: memory.New(memory.NewState("test", nil), time.Now)}
		var view atomic.Pointer[subcluster.View]
		see := func(members ...creel.SubclusterID) {
			records, err := store.Records(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range members {
				records.Members = append(records.Members, subcluster.Record{Member: subcluster.Member{ID: id}})
			}
			view.Store(subcluster.Build(nil, records, records.Now))
		}
		cache := keys.NewCache(store, secrets, view.Load, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = cache.Run(ctx, time.Second) }()
		reads := func(what string, wait time.Duration, want int64) {
			t.Helper()
			before := store.reads.Load()
			time.Sleep(wait)
			synctest.Wait()
			if got := store.reads.Load() - before; got != want {
				t.Errorf("%s: %d reads of the store, want %d", what, got, want)
			}
		}
		reads("before there is a view", 5*time.Second, 0)
		see("sc-1", "sc-2")
		reads("the first view", 2*time.Second, 1)
		see("sc-1", "sc-2")
		reads("the same again", 10*time.Second, 0)
		ring := token.Ring{{ID: 7, Secret: []byte("a secret of the ResourceManager")}}
		if err := keys.Publish(ctx, store.Store, "sc-1", ring, secret); err != nil {
			t.Fatal(err)
		}
		see("sc-1", "sc-2")
		reads("a ring has changed", 2*time.Second, 1)
		see("sc-1", "sc-2", "sc-3")
		reads("a member came", 2*time.Second, 1)
		reads("nothing was heard of", time.Minute, 2)
	})
}

// counting counts the reads of rings.
type counting struct {
	statestore.Store
	reads atomic.Int64
}

func (s *counting) KeysOf(ctx context.Context, rings []string) ([][]statestore.Key, error) {
	s.reads.Add(1)
	return s.Store.KeysOf(ctx, rings)
}
