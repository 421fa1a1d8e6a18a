// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/cache"
	"github.com/creelrm/creel/statestore/storetest"
)

// shaky is a store that counts lookups and can be ill.
type shaky struct {
	*statestore.Memory
	mu      sync.Mutex
	ill     bool
	lookups int
}

func (s *shaky) Home(ctx context.Context, app creel.ApplicationID) (creel.SubclusterID, error) {
	s.mu.Lock()
	s.lookups++
	ill := s.ill
	s.mu.Unlock()
	if ill {
		<-ctx.Done() // an ill store takes all the time it is given
		return "", statestore.Unavailable("it is ill", time.Second)
	}
	return s.Memory.Home(ctx, app)
}

func newShaky() *shaky {
	return &shaky{Memory: statestore.NewMemory(statestore.NewState("m", nil), time.Now)}
}

func wants(t *testing.T, h *cache.Homes, app int, want creel.SubclusterID) {
	t.Helper()
	is, err := h.Home(t.Context(), storetest.App(app))
	if err != nil || is != want {
		t.Fatalf("home is %q, %v; want %q", is, err, want)
	}
}

func TestAHomeIsAskedOnceWhileFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaky()
		h := cache.New(s, cache.Config{Fresh: time.Minute})
		if _, _, err := s.Claim(t.Context(), storetest.App(1), "sc-1", nil); err != nil {
			t.Fatal(err)
		}
		wants(t, h, 1, "sc-1")
		wants(t, h, 1, "sc-1")
		if s.lookups != 1 {
			t.Fatalf("%d lookups", s.lookups)
		}
		if _, err := s.Move(t.Context(), storetest.App(1), "sc-1", "sc-2", 0, nil); err != nil {
			t.Fatal(err)
		}
		wants(t, h, 1, "sc-1") // the change was not announced
		h.Changed(statestore.Change{Kind: statestore.ChangeHome, Application: storetest.App(1)})
		time.Sleep(time.Nanosecond) // else the answer may be from before the change
		wants(t, h, 1, "sc-2")
		if _, err := s.Move(t.Context(), storetest.App(1), "sc-2", "sc-3", 0, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Nanosecond)
		h.Changed(statestore.Change{Kind: statestore.ChangeResync})
		wants(t, h, 1, "sc-3")
		if _, err := s.Move(t.Context(), storetest.App(1), "sc-3", "sc-4", 0, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		wants(t, h, 1, "sc-4")
		if is, err := h.Move(t.Context(), storetest.App(1), "sc-1", "sc-9", 0, nil); !errors.Is(
			err,
			creel.ErrConflict,
		) ||
			is != "sc-4" {
			t.Fatalf("move gave %q, %v", is, err)
		}
		wants(t, h, 1, "sc-4")
	})
}

func TestKnownHomesWorkDuringStoreFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaky()
		h := cache.New(s, cache.Config{Fresh: time.Minute, Patience: 50 * time.Millisecond, Rest: time.Second})
		if _, _, err := h.Claim(t.Context(), storetest.App(1), "sc-1", nil); err != nil {
			t.Fatal(err)
		}
		s.ill = true
		time.Sleep(2 * time.Minute)
		began := time.Now()
		wants(t, h, 1, "sc-1")
		if took := time.Since(began); took != 50*time.Millisecond {
			t.Fatalf("the first lookup took %v, its patience is 50ms", took)
		}
		for range 100 {
			wants(t, h, 1, "sc-1")
		}
		if took := time.Since(began); took != 50*time.Millisecond || s.lookups != 1 {
			t.Fatalf("lookups during the rest took %v and asked %d times", took, s.lookups)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := h.Home(
			ctx,
			storetest.App(2),
		); !errors.Is(err, creel.ErrUnavailable) ||
			statestore.RetryAfter(err) == 0 {
			t.Fatalf("an unknown home gave %v", err)
		}
		s.mu.Lock()
		s.ill = false
		s.mu.Unlock()
		if err := s.Memory.Forget(t.Context(), storetest.App(1), "sc-1", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if _, err := h.Home(t.Context(), storetest.App(1)); !errors.Is(err, creel.ErrApplicationNotFound) {
			t.Fatalf("a home that is gone gave %v", err)
		}
	})
}

func TestTheCacheIsBounded(t *testing.T) {
	s := newShaky()
	h := cache.New(s, cache.Config{Size: 640})
	for i := range 10_000 {
		if _, _, err := h.Claim(
			t.Context(),
			storetest.App(i),
			creel.SubclusterID(fmt.Sprintf("sc-%d", i%7)),
			nil,
		); err != nil {
			t.Fatal(err)
		}
	}
	before := h.Stats().Hits
	for i := 9_999; i >= 0; i-- { // a lookup of an old one makes a young one go
		wants(t, h, i, creel.SubclusterID(fmt.Sprintf("sc-%d", i%7)))
	}
	if hits := h.Stats().Hits - before; hits != 640 {
		t.Fatalf("%d homes were cached, the size is 640", hits)
	}
}

// An answer that left the store before a change was announced must not be taken for a fresh one when it arrives after
// it.
func TestAnswerBeforeChangeIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaky()
		slow := &slow{Homes: s, after: make(chan struct{})}
		h := cache.New(slow, cache.Config{Fresh: time.Minute})
		if _, _, err := s.Claim(t.Context(), storetest.App(1), "sc-1", nil); err != nil {
			t.Fatal(err)
		}
		go func() {
			if is, err := h.Home(t.Context(), storetest.App(1)); err != nil || is != "sc-1" {
				t.Errorf("home is %q, %v", is, err)
			}
		}()
		synctest.Wait() // the answer is on its way
		if _, err := s.Move(t.Context(), storetest.App(1), "sc-1", "sc-2", 0, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		h.Changed(statestore.Change{Kind: statestore.ChangeHome, Application: storetest.App(1)})
		close(slow.after)
		synctest.Wait()
		time.Sleep(time.Millisecond)
		wants(t, h, 1, "sc-2")
	})
}

// slow is a store whose answers to lookups wait.
type slow struct {
	statestore.Homes
	after chan struct{}
}

func (s *slow) Home(ctx context.Context, app creel.ApplicationID) (creel.SubclusterID, error) {
	home, err := s.Homes.Home(ctx, app)
	<-s.after
	return home, err
}

// Readers concurrent with writers see each home whole: application i is at sc-i%7, whatever is written, evicted and
// forgotten meanwhile.
func TestReadersBesideWritersSeeWholeHomes(t *testing.T) {
	s := newShaky()
	h := cache.New(s, cache.Config{Size: 64})
	home := func(i int) creel.SubclusterID { return creel.SubclusterID(fmt.Sprintf("sc-%d", i%7)) }
	const apps = 500
	for i := range apps {
		if _, _, err := h.Claim(t.Context(), storetest.App(i), home(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for k := range 20_000 {
				i := (k*31 + w*17) % apps
				if w == 0 && k%3 == 0 {
					h.Changed(statestore.Change{Kind: statestore.ChangeHome, Application: storetest.App(i)})
					continue
				}
				if is, err := h.Home(t.Context(), storetest.App(i)); err != nil || is != home(i) {
					t.Errorf("home of %d is %q, %v", i, is, err)
					return
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkLookupFromCache(b *testing.B) {
	s := newShaky()
	h := cache.New(s, cache.Config{})
	const apps = 50_000
	for i := range apps {
		if _, _, err := h.Claim(b.Context(), storetest.App(i), "sc-1", nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	ctx := b.Context()
	// The median of many short rounds: on a machine that others use the mean
	// counts their work, too.
	const round = 64
	var rounds []time.Duration
	for i, began := 1, time.Now(); b.Loop(); i++ {
		if _, err := h.Home(ctx, storetest.App(i*7919%apps)); err != nil {
			b.Fatal(err)
		}
		if i%round == 0 {
			now := time.Now()
			rounds = append(rounds, now.Sub(began))
			began = time.Now()
		}
	}
	if len(rounds) > 0 {
		slices.Sort(rounds)
		b.ReportMetric(float64(rounds[len(rounds)/2].Nanoseconds())/round, "ns/lookup-median")
	}
}
