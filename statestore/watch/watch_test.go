// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/statestore/storetest"
	"github.com/creelrm/creel/statestore/watch"
	"github.com/creelrm/creel/subcluster"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// faulty is a store that can lose its subscription, its answers, or both.
type faulty struct {
	*memory.Store
	mu   sync.Mutex
	deaf bool
	ill  error
}

func (f *faulty) set(deaf bool, ill error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deaf, f.ill = deaf, ill
}

func (f *faulty) Records(ctx context.Context) (subcluster.Records, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ill != nil {
		return subcluster.Records{}, f.ill
	}
	return f.Store.Records(ctx)
}

func (f *faulty) Watch(ctx context.Context, notify func(statestore.Change)) error {
	return f.Store.Watch(ctx, func(c statestore.Change) {
		f.mu.Lock()
		deaf := f.deaf
		f.mu.Unlock()
		if !deaf {
			notify(c)
		}
	})
}

// federation is a store with two members, and a watcher of it, in a bubble.
func federation(t *testing.T, cfg watch.Config, tell func(f *faulty, w *watch.Watcher)) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{Store: memory.New(memory.NewState("m", nil), time.Now)}
		for _, id := range []creel.SubclusterID{"sc-1", "sc-2"} {
			register(t, f, id)
		}
		w := watch.New(f, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		if _, err := w.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		tell(f, w)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

func register(t *testing.T, f statestore.Members, id creel.SubclusterID) {
	t.Helper()
	if err := f.Register(t.Context(), subcluster.Member{ID: id, Lease: 10 * time.Second}); err != nil {
		t.Fatal(err)
	}
}

func TestAChangeIsSeenAtOnceBySubscription(t *testing.T) {
	federation(t, watch.Config{Poll: time.Hour}, func(f *faulty, w *watch.Watcher) {
		if _, err := f.PutPolicy(
			t.Context(),
			statestore.PolicyWrite{Queue: "root", Document: []byte("x")},
		); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if p, ok := w.View().Policy("root.a"); !ok || string(p.Document) != "x" {
			t.Fatalf("policy is %+v", p)
		}
		if err := f.Drain(t.Context(), "sc-1", "alice"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if m, _ := w.View().Member("sc-1"); m.State != subcluster.StateDraining {
			t.Fatalf("member is %v", m.State)
		}
	})
}

// loaded is a store that counts reads of loads in part, with and without loads.
type loaded struct {
	*memory.Store
	mu            sync.Mutex
	with, without int
}

func (l *loaded) RecordsOf(ctx context.Context, queues []string, loads bool) (subcluster.Records, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if loads {
		l.with++
	} else {
		l.without++
	}
	return l.Store.RecordsOf(ctx, queues, loads)
}

// Thousands of proxies get a change's announcement in the same moment: they read the change, and loads when they
// would have read them anyway, or on demand.
func TestChangeDoesNotAdvanceLoadReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &loaded{Store: memory.New(memory.NewState("m", nil), time.Now)}
		register(t, l, "sc-1")
		var at []time.Time
		w := watch.New(l, watch.Config{
			Poll: time.Minute, Queues: func() []string { return []string{"a"} },
			OnView: func(*subcluster.View) { at = append(at, time.Now()) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		synctest.Wait()
		reads := func() [2]int {
			synctest.Wait()
			l.mu.Lock()
			defer l.mu.Unlock()
			return [2]int{l.with, l.without}
		}
		if began := reads(); began[0] == 0 {
			t.Fatalf("reads with loads and without are %v at first", began)
		}
		was, began := reads(), time.Now()
		for range 40 { // for longer than one pause, and never one without a change
			time.Sleep(2 * time.Second)
			if err := l.Drain(t.Context(), "sc-1", time.Now().String()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if m, _ := w.View().Member("sc-1"); m.Draining != time.Now().String() {
				t.Fatalf("%q is not seen, %q is", time.Now(), m.Draining)
			}
		}
		if is := reads(); is[0] != was[0]+1 || is[1] != was[1]+40 {
			t.Errorf("after 40 changes in %v reads with loads and without were %v and are %v", time.Since(began), was, is)
		}
		was = reads()
		w.Kick()
		if is := reads(); is[0] != was[0]+1 || is[1] != was[1] {
			t.Errorf("after a Kick reads with loads and without were %v and are %v", was, is)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

func TestPollFindsChangeAfterLostSubscription(t *testing.T) {
	federation(t, watch.Config{Poll: time.Second}, func(f *faulty, w *watch.Watcher) {
		f.set(true, nil)
		if _, err := f.PutPolicy(
			t.Context(),
			statestore.PolicyWrite{Queue: "root", Document: []byte("x")},
		); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, ok := w.View().Policy("root"); ok {
			t.Fatal("the test's subscription is not lost")
		}
		time.Sleep(1300 * time.Millisecond)
		synctest.Wait()
		if _, ok := w.View().Policy("root"); !ok {
			t.Fatal("the poll did not see the policy")
		}
	})
}

func TestAViewOutlivesTheStore(t *testing.T) {
	federation(t, watch.Config{Poll: time.Second}, func(f *faulty, w *watch.Watcher) {
		f.set(false, statestore.Unavailable("it is gone", time.Second))
		time.Sleep(time.Minute)
		synctest.Wait()
		v := w.View()
		if v.Freeze == nil || !strings.Contains(v.Freeze.Reason, "it is gone") || len(v.Active()) != 2 {
			t.Fatalf("view is %+v, active %v", v.Freeze, v.Active())
		}
		// The store returns. No member could renew meanwhile: the view does not
		// take that for their death.
		f.set(false, nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if v = w.View(); v.Freeze == nil || len(v.Active()) != 2 {
			t.Fatalf("view is %+v, active %v", v.Freeze, v.Active())
		}
		register(t, f, "sc-1")
		synctest.Wait()
		if v = w.View(); v.Freeze == nil || v.Freeze.ThawBy.IsZero() || len(v.Active()) != 2 {
			t.Fatalf("view is %+v, active %v", v.Freeze, v.Active())
		}
		time.Sleep(5 * time.Second)
		register(t, f, "sc-1")
		time.Sleep(8 * time.Second)
		synctest.Wait()
		if v = w.View(); v.Freeze != nil || len(v.Active()) != 1 {
			t.Fatalf("after its grace, view is %+v, active %v", v.Freeze, v.Active())
		}
		all, failed := w.Reads()
		if failed < 50 || failed >= all {
			t.Fatalf("%d of %d reads failed", failed, all)
		}
	})
}

func TestInvalidPolicyIsNotUsed(t *testing.T) {
	federation(t, watch.Config{Poll: time.Second, Validate: storetest.Validate}, func(f *faulty, w *watch.Watcher) {
		put := func(q creel.QueuePath, expect int64, doc string) int64 {
			t.Helper()
			p, err := f.PutPolicy(t.Context(), statestore.PolicyWrite{Queue: q, Expect: expect, Document: []byte(doc)})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return p.Version
		}
		good := put("root", 0, "good")
		put("root", good, "bad, but this store does not check")
		put("root.b", 0, "bad from the start")
		put("root.c", 0, "fine")
		v := w.View()
		for q, want := range map[creel.QueuePath]string{"root": "good", "root.b": "good", "root.c": "fine"} {
			if p, _ := v.Policy(q); string(p.Document) != want {
				t.Fatalf("policy of %s is %q, want %q", q, p.Document, want)
			}
		}
		if len(v.Problems) != 2 {
			t.Fatalf("problems are %q", v.Problems)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if p, _ := w.View().Policy("root"); string(p.Document) != "good" {
			t.Fatalf("later the policy is %q", p.Document)
		}
	})
}

func TestWithoutAStoreThereIsNoView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{Store: memory.New(memory.NewState("m", nil), time.Now), ill: errors.New("gone")}
		w := watch.New(f, watch.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		if _, err := w.Await(ctx); !errors.Is(err, watch.ErrNoView) {
			t.Fatalf("awaiting gave %v", err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

// A process with sessions reads from the plan the rows of their queues, and those of a newly wanted queue at once,
// though there is no other plan.
func TestOnlyWantedPlanPartsAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.NewState("m", nil), time.Now)
		f := &faulty{Store: store}
		register(t, f, "sc-1")
		plan := &subcluster.Plan{Queues: []subcluster.QueuePlan{
			{Queue: "root.a", Entitled: 0.25}, {Queue: "root.b", Entitled: 0.5},
		}}
		plan.Under(1, time.Hour)
		write := func(expect int64, cut bool) int64 {
			t.Helper()
			data, err := json.Marshal(plan)
			if err != nil {
				t.Fatal(err)
			}
			w := statestore.DocumentWrite{
				Class: subcluster.PlanClass, Name: subcluster.PlanName, Expect: expect, Data: data,
			}
			if cut {
				if w.Parts, err = plan.Cut(); err != nil {
					t.Fatal(err)
				}
			}
			d, err := store.PutDocument(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return d.Version
		}
		version := write(0, true)
		var mu sync.Mutex
		wanted := []string{}
		w := watch.New(f, watch.Config{Poll: time.Hour, Plan: store, Queues: func() []string {
			mu.Lock()
			defer mu.Unlock()
			return wanted
		}})
		want := func(queues ...string) {
			mu.Lock()
			wanted = queues
			mu.Unlock()
			w.Kick()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		synctest.Wait()
		knows := func(what string, version int64, a, b float64) {
			t.Helper()
			p := w.View().Plan
			if p == nil || p.Version != version {
				t.Fatalf("%s: the plan is %+v, want version %d", what, p, version)
			}
			for q, entitled := range map[creel.QueuePath]float64{"root.a": a, "root.b": b} {
				if row := p.Queue(q); (row == nil) != (entitled == 0) || row != nil && row.Entitled != entitled {
					t.Errorf("%s: the plan has of %s %+v, want %v", what, q, row, entitled)
				}
			}
		}
		knows("nothing is wanted", version, 0, 0)
		want("b")
		knows("a session's queue is known", version, 0, 0.5)
		want("a", "b")
		knows("another begins", version, 0.25, 0.5)
		want("a")
		plan.Queues[0].Entitled, plan.Queues[1].Entitled = 0.75, 0.125
		version = write(version, true)
		knows("one has ended, and there is another plan", version, 0.75, 0)
		version = write(version, false)
		knows("a rebalancer that cuts nothing has written", version, 0.75, 0.125)
		want("b")
		knows("then a session begins", version, 0.75, 0.125)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}
