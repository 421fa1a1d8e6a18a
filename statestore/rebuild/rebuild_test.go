// SPDX-License-Identifier: Apache-2.0

package rebuild_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/rebuild"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/statestore/storetest"
	"github.com/creelrm/creel/statestore/watch"
	"github.com/creelrm/creel/subcluster"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// managers are the members' ResourceManagers: their applications, and which are silent.
type managers struct {
	mu     sync.Mutex
	run    map[creel.SubclusterID][]statestore.ReportedApplication
	silent map[creel.SubclusterID]bool
	asked  map[creel.SubclusterID]int
	ended  []string
}

func (m *managers) ask(_ context.Context, s *subcluster.Status) ([]statestore.ReportedApplication, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[s.ID]++
	if m.silent[s.ID] {
		return nil, errors.New("it does not answer")
	}
	return m.run[s.ID], nil
}

func (m *managers) end(_ context.Context, s *subcluster.Status, app creel.ApplicationID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = append(m.ended, string(s.ID)+" "+app.String())
	return nil
}

// text is a writer for concurrent loggers.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// late is a store whose lease to rebuild comes to one router only when another has rebuilt it since the router asked
// whether it is lost.
type late struct {
	*redis.Store
	rebuilt func() bool
}

func (l late) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (statestore.Lease, error) {
	for !l.rebuilt() {
		if lost, err := l.Store.Lost(ctx); err != nil || !lost {
			break // the look was before the store was emptied
		}
		time.Sleep(time.Millisecond)
	}
	for {
		lease, err := l.Store.Acquire(ctx, name, holder, ttl)
		if !errors.Is(err, creel.ErrConflict) {
			return lease, err
		}
		time.Sleep(time.Millisecond) // the other is about to release it
	}
}

// looks counts a rebuilder's looks by the view with which each begins.
type looks struct {
	view  func() *subcluster.View
	began atomic.Int64
}

func (l *looks) View() *subcluster.View {
	l.began.Add(1)
	return l.view()
}

// await waits until a look that begins from now on is over.
func (l *looks) await(t *testing.T) {
	t.Helper()
	n := l.began.Load()
	until(t, "a look at the store", func() bool { return l.began.Load() >= n+2 })
}

// held is a clock that stands still until it is released. Then each reading is a tenth of a second later.
type held struct {
	released atomic.Bool
	ticks    atomic.Int64
}

func (h *held) read() time.Time {
	if h.released.Load() {
		h.ticks.Add(1)
	}
	return time.Unix(1_700_000_000, 0).Add(time.Duration(h.ticks.Load()) * 100 * time.Millisecond)
}

func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Redis comes back empty. Two routers watch it; one rebuilds it from the members' applications, once all of them
// answer; the other, which saw it lost too, comes too late and leaves it alone. Two members claim one application,
// and the one that accepted it later has to end it.
func TestLostStoreIsRebuiltFromMembers(t *testing.T) {
	server := redistest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	noon := time.Unix(1_700_000_000, 0)
	rms := &managers{
		asked:  map[creel.SubclusterID]int{},
		silent: map[creel.SubclusterID]bool{"sc-2": true},
		run: map[creel.SubclusterID][]statestore.ReportedApplication{
			"sc-1": {
				{ID: storetest.App(1), Attempt: 1, Submitted: noon},
				{ID: storetest.App(2), Attempt: 1, Submitted: noon.Add(time.Minute)},
			},
			"sc-2": {
				{ID: storetest.App(2), Attempt: 1, Submitted: noon},
				{ID: storetest.App(1), Unmanaged: true, Attempt: 1},
			},
		},
	}
	var log text
	defer func() {
		if t.Failed() {
			t.Log(log.String())
		}
	}()
	var stores []*redis.Store
	var views []func() *subcluster.View
	var all []*looks
	for _, name := range []string{"router-1", "router-2"} {
		s, err := redis.Open(redis.Config{URL: server.URL()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			cancel()
			wg.Wait()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		w := watch.New(s, watch.Config{Poll: 20 * time.Millisecond})
		var through rebuild.Store = s
		if name == "router-2" {
			through = late{s, func() bool { return strings.Contains(log.String(), "state store rebuilt") }}
		}
		look := &looks{view: w.View}
		all = append(all, look)
		r := rebuild.New(
			through,
			rebuild.Config{View: look.View, Ask: rms.ask, End: rms.end, Name: name, Every: 20 * time.Millisecond,
				Log: slog.New(slog.NewTextHandler(&log, nil))},
		)
		wg.Go(func() { _ = w.Run(ctx) })
		wg.Go(func() { _ = r.Run(ctx) })
		stores, views = append(stores, s), append(views, w.View)
	}
	members := []subcluster.Member{{ID: "sc-1", Lease: time.Hour}, {ID: "sc-2", Lease: time.Hour}}
	for _, m := range members {
		if err := stores[0].Register(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stores[0].PutPolicy(
		ctx,
		statestore.PolicyWrite{Queue: "root", Document: []byte("{}"), Author: "alice"},
	); err != nil {
		t.Fatal(err)
	}
	if err := stores[0].Drain(ctx, "sc-2", "stop, by alice"); err != nil {
		t.Fatal(err)
	}
	for i, home := range []creel.SubclusterID{"sc-1", "sc-2"} {
		if _, number, err := stores[i].Claim(ctx, storetest.App(i+1), home, nil); err != nil || number != 1 {
			t.Fatal(number, err)
		}
	}
	for _, view := range views {
		until(t, "the routers see both members, the drain and the policy", func() bool {
			v := view()
			return v != nil && len(v.Members) == 2 && len(v.Active()) == 1 && len(v.Policies.All()) == 1
		})
	}
	reads := func() int { rms.mu.Lock(); defer rms.mu.Unlock(); return rms.asked["sc-1"] }
	if reads() != 0 {
		t.Fatal("a whole store is rebuilt")
	}
	// The looks that saw the policy's view must be over before the store is lost.
	for _, look := range all {
		look.await(t)
	}

	server.Do("FLUSHALL")
	until(t, "sc-1 is asked", func() bool { return reads() > 2 })
	if _, _, err := stores[1].Claim(ctx, storetest.App(1), "sc-2", nil); !errors.Is(err, creel.ErrUnavailable) {
		t.Fatalf("while sc-2 has not answered a claim gave %v", err)
	}
	if strings.Contains(log.String(), "state store rebuilt") {
		t.Fatal("the store was rebuilt without sc-2")
	}
	rms.mu.Lock()
	rms.silent["sc-2"] = false
	rms.mu.Unlock()

	want := map[int]creel.SubclusterID{1: "sc-1", 2: "sc-2"}
	for _, s := range stores {
		for app, home := range want {
			until(t, "a claim is served again", func() bool {
				is, number, err := s.Claim(ctx, storetest.App(app), "sc-3", nil)
				if err == nil && (is != home || number == 1) {
					t.Fatalf("application %d has home %q, claim number %d", app, is, number)
				}
				return err == nil
			})
		}
	}
	until(t, "the loser is ended", func() bool {
		rms.mu.Lock()
		defer rms.mu.Unlock()
		return slices.Equal(rms.ended, []string{"sc-1 " + storetest.App(2).String()})
	})
	audit := `msg=audit operation=rebuild target=` + storetest.App(2).
		String() +
		` result=success home=sc-2 others=[sc-1] rule="it was accepted there first"`
	if n := strings.Count(log.String(), "state store rebuilt"); n != 1 {
		t.Errorf("it was rebuilt %d times", n)
	}
	if strings.Count(log.String(), audit) != 1 {
		t.Fatalf("the audit line %q is not there once:\n%s", audit, log.String())
	}
	until(t, "the policy is back", func() bool {
		r, err := stores[0].Records(ctx)
		return err == nil && len(r.Policies) == 1 && string(r.Policies[0].Document) == "{}" &&
			r.Policies[0].Author == "alice"
	})
	time.Sleep(50 * time.Millisecond) // the member registers later than the homes are back
	if err := stores[1].Register(ctx, members[1]); err != nil {
		t.Fatal(err)
	}
	until(t, "the drain is back", func() bool {
		r, err := stores[0].Records(ctx)
		return err == nil && len(r.Members) == 1 && r.Members[0].Draining == "stop, by alice"
	})
}

// The store is emptied while every router is down. A router that starts then has never seen it whole: it waits for
// processes that have, and asks the members they knew, also one that has not registered again. A member that was
// removed, and one that an operator gave up, need not answer.
func TestNewRouterUsesOthersKnownMembers(t *testing.T) {
	server := redistest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	open := func() *redis.Store {
		s, err := redis.Open(redis.Config{URL: server.URL(), Confirm: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	rms := &managers{
		asked:  map[creel.SubclusterID]int{},
		silent: map[creel.SubclusterID]bool{"sc-2": true, "sc-gone": true},
		run: map[creel.SubclusterID][]statestore.ReportedApplication{
			"sc-2": {{ID: storetest.App(2), Attempt: 1, Submitted: time.Unix(1_700_000_000, 0)}},
		},
	}
	router := func(s *redis.Store, log *text, clock *pauseclock.Clock) (stop func()) {
		ctx, cancel := context.WithCancel(ctx)
		w := watch.New(s, watch.Config{Poll: 20 * time.Millisecond})
		r := rebuild.New(s, rebuild.Config{View: w.View, Ask: rms.ask, End: rms.end, Name: "router",
			Every: 20 * time.Millisecond, Settle: 2 * time.Second, Clock: clock,
			Log: slog.New(slog.NewTextHandler(log, nil))})
		var mine sync.WaitGroup
		mine.Go(func() { _ = w.Run(ctx) })
		mine.Go(func() { _ = r.Run(ctx) })
		return func() { cancel(); mine.Wait() }
	}
	register := func(s *redis.Store, ids ...creel.SubclusterID) {
		for _, id := range ids {
			if err := s.Register(ctx, subcluster.Member{ID: id, Lease: time.Hour, Epoch: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A new federation: no router serves homes until its members were asked.
	first, member := open(), open()
	var log text
	stop := router(first, &log, nil)
	if _, _, err := first.Claim(ctx, storetest.App(1), "sc-1", nil); !errors.Is(err, creel.ErrUnavailable) ||
		!strings.Contains(err.Error(), "is new or came back empty") {
		t.Fatalf("in a store that nobody confirmed a claim gave %v", err)
	}
	register(member, "sc-1")
	until(
		t,
		"the new store is open",
		func() bool { _, _, err := first.Claim(ctx, storetest.App(1), "sc-1", nil); return err == nil },
	)
	until(t, "it is told that the store is new", func() bool { return strings.Contains(log.String(), "state store is new") })
	if strings.Contains(log.String(), "state store rebuilt") {
		t.Errorf("a new store is taken for one that was lost: %s", log.String())
	}
	if n := strings.Count(log.String(), "reading applications from"); n < 1 || n > 2 { // without a member, and with one
		t.Errorf("that members are asked was told %d times", n)
	}
	stop()

	// A ResourceManager's witness sees it whole, with a member that is removed.
	register(member, "sc-2", "sc-removed", "sc-gone")
	w := watch.New(member, watch.Config{Poll: 20 * time.Millisecond})
	wg.Go(func() { _ = w.Run(ctx) })
	look := &looks{view: w.View}
	wg.Go(func() { _ = rebuild.Witness(member, look.View, 20*time.Millisecond).Run(ctx) })
	until(t, "the witness sees four", func() bool { v := w.View(); return v != nil && len(v.Members) == 4 })
	if err := member.Deregister(ctx, "sc-removed", 1); err != nil {
		t.Fatal(err)
	}
	if err := member.RemoveMember(ctx, "sc-removed"); err != nil {
		t.Fatal(err)
	}
	until(t, "the witness sees that one was removed", func() bool {
		m, ok := w.View().Member("sc-removed")
		return !ok || m.Forgotten
	})
	look.await(t)
	if err := member.AcceptMissing(ctx, "sc-2"); !errors.Is(err, creel.ErrConflict) {
		t.Errorf("giving up a member of a whole store is answered %v", err)
	}

	server.Do("FLUSHALL")
	register(member, "sc-1")
	second := open()
	log = text{}
	var settle held
	stop = router(second, &log, pauseclock.NewClock(settle.read, nil))
	defer stop()
	until(t, "the witness reports the members that it knew", func() bool {
		members, _, err := second.Remembered(ctx)
		return err == nil && slices.ContainsFunc(members, func(m subcluster.Member) bool { return m.ID == "sc-gone" })
	})
	settle.released.Store(true)
	asked := func(id creel.SubclusterID) int { rms.mu.Lock(); defer rms.mu.Unlock(); return rms.asked[id] }
	until(
		t,
		"the members that only the witness knew are asked",
		func() bool { return asked("sc-2") > 1 && asked("sc-gone") > 1 },
	)
	if _, _, err := second.Claim(ctx, storetest.App(2), "sc-1", nil); !errors.Is(err, creel.ErrUnavailable) {
		t.Fatalf("while sc-2 has not answered a claim gave %v", err)
	}
	rms.mu.Lock()
	rms.silent["sc-2"] = false
	rms.mu.Unlock()
	tries := asked("sc-gone")
	until(t, "sc-gone is asked again", func() bool { return asked("sc-gone") > tries+1 })
	if strings.Contains(log.String(), "state store rebuilt") {
		t.Fatal("it was rebuilt without sc-gone")
	}
	if err := member.AcceptMissing(ctx, "sc-gone"); err != nil {
		t.Fatal(err)
	}
	until(t, "a claim is served again, by what sc-2 said", func() bool {
		home, _, err := second.Claim(ctx, storetest.App(2), "sc-1", nil)
		if err == nil && home != "sc-2" {
			t.Fatalf("its home is %s", home)
		}
		return err == nil
	})
	if asked("sc-removed") > 0 {
		t.Error("a member that was removed had to answer")
	}
}
