// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
)

func numbered(n int) creel.ApplicationID {
	return creel.ApplicationID{ClusterTimestamp: 1, ID: int32(n)}
}

// A home is known from a successful submission or from the store, not from a failed submission; a forgotten home
// keeps its decision.
func TestARouterRemembersHomesAndDecisions(t *testing.T) {
	m := router.NewMemory(10, 10)
	app := numbered(1)
	m.Put(
		router.Outcome{
			Application: app,
			Home:        "sc-a",
			Tries:       []router.Try{{Member: "sc-a"}},
			Err:         errors.New("unclear"),
		},
	)
	if _, ok := m.Home(app); ok {
		t.Error("a failed submission's home counts")
	}
	m.Learn(app, "sc-b")
	if home, ok := m.Home(app); home != "sc-b" || !ok {
		t.Errorf("after the store told: %s, %v", home, ok)
	}
	m.Forget(app)
	if _, ok := m.Home(app); ok {
		t.Error("a forgotten home counts")
	}
	if out, ok := m.Outcome(app); !ok || len(out.Tries) != 1 {
		t.Errorf("the decision is gone: %+v", out)
	}
	if _, ok := m.Outcome(numbered(2)); ok {
		t.Error("a decision of nobody's")
	}
}

// The memory never exceeds its bounds, and has the homes and outcomes used last.
func TestMemoryKeepsTheLastUsed(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		homes, outcomes := rapid.IntRange(1, 5).Draw(t, "homes"), rapid.IntRange(1, 5).Draw(t, "outcomes")
		m := router.NewMemory(homes, outcomes)
		var used, put []int // the last used first
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			n := rapid.IntRange(1, 9).Draw(t, "application")
			_, known := m.Home(numbered(n))
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				m.Put(router.Outcome{Application: numbered(n), Home: "sc-a", Tries: make([]router.Try, 1)})
				used, put = first(used, n, homes), first(put, n, outcomes)
			case 1:
				m.Learn(numbered(n), "sc-a")
				used = first(used, n, homes)
			case 2:
				m.Forget(numbered(n))
				used = slices.DeleteFunc(used, func(other int) bool { return other == n })
			default:
				if known {
					used = first(used, n, homes)
				}
			}
		}
		if n, bound := m.Homes(); n != len(used) || bound != homes {
			t.Fatalf("%d homes of at most %d, want %d of %d", n, bound, len(used), homes)
		}
		for n := range 10 {
			if _, ok := m.Outcome(numbered(n)); ok != slices.Contains(put, n) {
				t.Fatalf("outcome %d is held: %v; last put %v", n, ok, put)
			}
			if _, ok := m.Home(numbered(n)); ok != slices.Contains(used, n) {
				t.Fatalf("home %d is held: %v; last used %v", n, ok, used)
			}
		}
	})
}

// first returns the list with n moved to its start, of at most the given length.
func first(list []int, n, most int) []int {
	list = slices.Insert(slices.DeleteFunc(list, func(other int) bool { return other == n }), 0, n)
	return list[:min(len(list), most)]
}

// Sent applications count until the member's next heartbeat, and no longer.
func TestAssumedLoadEndsWithAHeartbeat(t *testing.T) {
	var a router.AssumedLoad
	at := time.Unix(1000, 0)
	view := func(age time.Duration, now time.Time) *subcluster.View {
		return subcluster.NewView(now, []subcluster.Status{{Member: subcluster.Member{ID: "sc-a"}, Age: age}}, nil)
	}
	size := creel.NewResource(512, 1)
	a.Add(view(0, at), "sc-a", size)
	a.Add(view(time.Second, at.Add(time.Second)), "sc-a", size)
	each := make([]policies.RecentLoad, 1)
	a.Write(view(2*time.Second, at.Add(2*time.Second)), each)
	if s := each[0]; s.Apps != 2 || !s.Size.Equal(creel.NewResource(1024, 2)) {
		t.Errorf("before the heartbeat: %d of %v", s.Apps, s.Size)
	}
	a.Write(view(0, at.Add(3*time.Second)), each)
	if s := each[0]; s.Apps != 0 || !s.Size.IsZero() {
		t.Errorf("after the heartbeat: %d of %v", s.Apps, s.Size)
	}
}

// BenchmarkMemoryHome measures a look-up among as many homes as a router remembers.
func BenchmarkMemoryHome(b *testing.B) {
	const homes = 50_000
	m := router.NewMemory(2*homes, 1)
	for n := range homes {
		m.Learn(numbered(n), "sc-a")
	}
	n := 0
	for b.Loop() {
		if n++; n == homes {
			n = 0
		}
		if _, ok := m.Home(numbered(n)); !ok {
			b.Fatal(n)
		}
	}
}
