// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/member/membertest"
)

func published(t *testing.T, store *memory.Store) (p subcluster.Plan, by string) {
	t.Helper()
	set, err := store.Documents(t.Context(), rebalancer.PlanClass)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := set.Find(rebalancer.PlanName)
	if !ok {
		return p, ""
	}
	if err := json.Unmarshal(d.Data, &p); err != nil {
		t.Fatal(err)
	}
	return p, d.Author
}

func TestOneLeadsAndTheOtherTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := membertest.New(t, 2, 8*1024, membertest.Quick)
		defer f.Close()
		lead := func(name string) (*Leader, context.CancelFunc) {
			l := &Leader{
				Name: name, Store: f.Store, Every: time.Second, Lease: 3 * time.Second, Terms: membertest.Quick,
				Log: slog.New(slog.DiscardHandler),
			}
			ctx, cancel := context.WithCancel(t.Context())
			f.Running.Go(func() {
				if err := l.Run(ctx); err != nil {
					t.Error(err)
				}
			})
			return l, cancel
		}
		a, stopA := lead("a")
		time.Sleep(10 * time.Millisecond)
		b, stopB := lead("b")
		defer stopB()
		f.Members[0].Want(t, 60)
		f.Pass(time.Second, 8)
		for _, x := range f.Members {
			x.Report(t, f.Store)
		}
		f.Pass(3*time.Second, 8)
		p, by := published(t, f.Store)
		if by != "a" || a.Counts.Leads.Load() != 1 || b.Counts.Leads.Load() != 0 {
			t.Fatalf("the plan is by %q; a leads: %d, b leads: %d", by, a.Counts.Leads.Load(), b.Counts.Leads.Load())
		}
		q := p.Queue("root.default")
		// 8 GiB of two times 64 is a sixteenth of the federation.
		if q == nil || math.Abs(q.Entitled-1.0/16) > 1e-9 || q.Members[0].Weight < 0.9 {
			t.Fatalf("plan of the queue: %+v", q)
		}
		set, err := f.Store.Documents(t.Context(), rebalancer.EscrowClass)
		if err != nil || len(set.Documents) != 1 {
			t.Fatal(len(set.Documents), err)
		}
		former := a.lease
		stopA()
		f.Pass(5*time.Second, 8)
		after, by := published(t, f.Store)
		if by != "b" || after.Term <= p.Term {
			t.Fatalf("after the leader went, the plan is by %q in term %d, before it was %d", by, after.Term, p.Term)
		}
		_, err = f.Store.PutDocument(statestore.Under(t.Context(), former), statestore.DocumentWrite{
			Class: rebalancer.PlanClass, Name: "other", Data: []byte("late"),
		})
		if !errors.Is(err, creel.ErrStale) {
			t.Fatalf("a deposed leader's write: %v", err)
		}
		stopB()
	})
}

// A leader recomputes the percentages of a queue tree; the history has only the operator's version.
func TestRecomputedPercentagesAreNoVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := membertest.New(t, 2, 8*1024, membertest.Quick)
		defer f.Close()
		f.Remove(f.Tree().Version)
		applied, err := f.Store.PutDocument(t.Context(), statestore.DocumentWrite{
			Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Author: "ann", Comment: "half", Keep: 10,
			Data: []byte(`{"queues":[{"queue":"root.default","maximum":"50%"}]}`), Text: []byte("# half"),
		})
		if err != nil {
			t.Fatal(err)
		}
		l := &Leader{
			Name: "a", Store: f.Store, Every: time.Second, Lease: 3 * time.Second, Terms: membertest.Quick,
			Log: slog.New(slog.DiscardHandler),
		}
		ctx, cancel := context.WithCancel(t.Context())
		f.Running.Go(func() {
			if err := l.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		for _, x := range f.Members {
			x.Report(t, f.Store)
		}
		time.Sleep(3 * time.Second)
		cancel()
		d := f.Tree()
		if !strings.Contains(string(d.Data), `"memory":65536`) || d.Author != "ann" || d.Comment != "half" ||
			string(d.Text) != "# half" || d.Version <= applied.Version || d.Authored() != applied.Version {
			t.Fatalf("recomputed tree: %+v, %s", d, d.Data)
		}
		h, err := f.Store.DocumentHistory(t.Context(), rebalancer.TreeClass, rebalancer.TreeName, 0, 1)
		if err != nil || len(h) != 1 || h[0].Version != applied.Version {
			t.Fatalf("history: %+v, %v", h, err)
		}
	})
}

// A change after a quiet time gets a plan at the leader's next look; the plan for a change soon after that is not
// made before 200 ms have passed.
func TestAPlanFollowsAChangeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := membertest.New(t, 2, 64*1024, membertest.Quick)
		defer f.Close()
		l := &Leader{
			Name: "a", Store: f.Store, Every: 10 * time.Second, Lease: 15 * time.Second, Terms: membertest.Quick,
			Log: slog.New(slog.DiscardHandler),
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		f.Running.Go(func() { _ = l.Run(ctx) })
		plans := func(after time.Duration) int64 {
			time.Sleep(after)
			synctest.Wait()
			return l.Counts.Plans.Load()
		}
		for _, x := range f.Members {
			x.Report(t, f.Store)
		}
		before := plans(2 * time.Second)
		for i, x := range f.Members { // the second's change 60 ms after the first's
			x.Want(t, 30)
			x.Report(t, f.Store)
			if n := plans(60 * time.Millisecond); n != before+1 {
				t.Errorf("60 ms after change %d there are %d plans, not one", i+1, n-before)
			}
		}
		if n := plans(150 * time.Millisecond); n != before+2 {
			t.Errorf("270 ms after the first change there are %d plans, not two", n-before)
		}
		stop()
	})
}

// A process that takes the lead, and its first plan, are events.
func TestLeaderRecordsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := membertest.New(t, 2, 8*1024, membertest.Quick)
		defer f.Close()
		var kinds []statestore.EventKind
		l := &Leader{
			Name: "a", Store: f.Store, Every: time.Second, Lease: 3 * time.Second, Terms: membertest.Quick,
			Log:    slog.New(slog.DiscardHandler),
			Record: func(_ context.Context, e statestore.Event) { kinds = append(kinds, e.Kind) },
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		f.Members[0].Want(t, 6)
		f.Pass(time.Second, 8)
		for _, x := range f.Members {
			x.Report(t, f.Store)
		}
		time.Sleep(10 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if len(kinds) != 2 || kinds[0] != statestore.EventLeader || kinds[1] != statestore.EventPlan {
			t.Errorf("events: %v", kinds)
		}
	})
}
