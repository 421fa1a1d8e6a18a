// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/statestore/storetest"
	"github.com/creelrm/creel/subcluster"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a store's clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newClock() *clock { return &clock{now: time.UnixMilli(1800000000000).UTC()} }

func TestMemoryKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Deployment {
		c := newClock()
		state := memory.NewState("memory-1", storetest.Validate)
		m := memory.New(state, c.Now)
		return storetest.Deployment{
			Store:     m,
			Advance:   c.Advance,
			Back:      func(t *testing.T) func(...statestore.ApplicationHome) { return back(t, m, state) },
			SetSchema: func(_ *testing.T, word string) { state.SetSchemaForTest(word) },
		}
	})
}

// back takes a snapshot of a store in memory, and returns its restoration.
func back(t *testing.T, m *memory.Store, state *memory.State) func(homes ...statestore.ApplicationHome) {
	t.Helper()
	data, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return func(homes ...statestore.ApplicationHome) {
		t.Helper()
		if err := m.Restore(data); err != nil {
			t.Fatal(err)
		}
		state.Reopen("memory-2")
		if _, err := statestore.Reclaim(t.Context(), m, homes); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSnapshotIsTheWholeStore(t *testing.T) {
	c := newClock()
	state := fill(t, c)
	first, err := state.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	other := memory.NewState("other", nil)
	if err := other.Restore(first); err != nil {
		t.Fatal(err)
	}
	second, err := other.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Fatalf("a restored store differs:\n%s\n%s", first, second)
	}
	if r := other.Records(c.Now()); len(r.Members) != 2 || len(r.Policies) != 1 || r.Store != "memory-1" {
		t.Fatalf("restored records are %+v", r)
	}
	if home, err := other.Home(c.Now(), storetest.App(1)); err != nil || home != "sc-1" {
		t.Fatalf("restored home is %q, %v", home, err)
	}
	if n, err := other.Sweep(c.Now().Add(time.Hour), 10); err != nil || n != 2 {
		t.Fatalf("a restored store frees %d records, %v; want 2", n, err)
	}
	if err := other.Restore(first); err != nil {
		t.Fatal(err)
	}
	if err := other.Restore([]byte(`{"homes":[{}]}`)); err == nil {
		t.Fatal("a snapshot with an empty home was restored")
	}
	third, _ := other.Snapshot()
	if !bytes.Equal(second, third) {
		t.Fatal("a refused snapshot changed the store")
	}
}

// fill makes a store with something of everything.
func fill(t testing.TB, c *clock) *memory.State {
	t.Helper()
	state := memory.NewState("memory-1", nil)
	now := c.Now()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(state.CheckSchema())
	ok(state.Register(now, subcluster.Member{ID: "sc-1", Epoch: 1}))
	ok(state.Register(now, subcluster.Member{ID: "sc-2", Epoch: 7, Capability: `{"clusterMetrics":{}}`}))
	ok(
		state.Heartbeat(
			now,
			subcluster.Heartbeat{ID: "sc-1", Epoch: 1, Load: []byte(`{"clusterMetrics":{"appsRunning":1}}`)},
		),
	)
	ok(state.Drain("sc-2", "x"))
	for i := range 5 {
		_, _, err := state.Claim(now, storetest.App(i), "sc-1", nil)
		ok(err)
	}
	ok(state.Forget(now, storetest.App(3), "sc-1", time.Minute))
	id := creel.ReservationID{ClusterTimestamp: 1, ID: 1}
	_, _, err := state.Reservations().Claim(now, id, "sc-1", nil)
	ok(err)
	ok(state.Reservations().Forget(now, id, "sc-1", time.Minute))
	_, err = state.SaveUAMRecord(
		statestore.UAMRecord{
			Attempt: storetest.Attempt(1, 1),
			Home:    "sc-1",
			UAMs:    []statestore.UAM{{Member: "sc-2", Token: []byte("t")}},
		},
	)
	ok(err)
	_, err = state.PutPolicy(now, statestore.PolicyWrite{Queue: "root", Document: []byte("x")})
	ok(err)
	_, err = state.Acquire(now, "l", "h", time.Minute)
	ok(err)
	_, err = state.RotateKey(now, "r", 0, []byte("s"), time.Minute)
	ok(err)
	return state
}
