// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

var app = creel.ApplicationID{ClusterTimestamp: 1700000000000, ID: 7}

// homes is the obvious store: a map. Lost makes the answer of the next change
// get lost after it was made.
type homes struct {
	at   map[creel.ApplicationID]creel.SubclusterID
	lost bool
}

var errStore = &creel.Error{Kind: creel.ErrUnavailable, What: "state store unavailable", RetryAfter: time.Second}

func (h *homes) answer() error {
	if h.lost {
		h.lost = false
		return errStore
	}
	return nil
}

func (h *homes) Claim(
	_ context.Context,
	app creel.ApplicationID,
	m creel.SubclusterID,
) (creel.SubclusterID, bool, error) {
	old, there := h.at[app]
	if !there {
		h.at[app] = m
	}
	if err := h.answer(); err != nil {
		return "", false, err
	}
	if there {
		return old, false, nil
	}
	return m, true, nil
}

func (h *homes) Move(
	_ context.Context,
	app creel.ApplicationID,
	from, to creel.SubclusterID,
) (creel.SubclusterID, error) {
	if h.at[app] == from {
		h.at[app] = to
	}
	if err := h.answer(); err != nil {
		return "", err
	}
	if h.at[app] != to {
		return h.at[app], &creel.Error{Kind: creel.ErrConflict}
	}
	return to, nil
}

func (h *homes) Home(_ context.Context, app creel.ApplicationID) (creel.SubclusterID, error) {
	if m, ok := h.at[app]; ok {
		return m, nil
	}
	return "", &creel.Error{Kind: creel.ErrApplicationNotFound}
}

// member is a ResourceManager that may be dead, deaf (it takes calls, its
// answers are lost) or refusing.
type member struct {
	dead, deaf, refuses, malformed bool
	runs                           map[creel.ApplicationID]int
}

type world struct {
	store   *homes
	members map[creel.SubclusterID]*member
	view    *subcluster.View
	rnd     *rand.Rand
}

func newWorld(seed uint64) *world {
	w := &world{
		store:   &homes{at: map[creel.ApplicationID]creel.SubclusterID{}},
		members: map[creel.SubclusterID]*member{},
		rnd:     rand.New(rand.NewPCG(seed, 0)),
	}
	for _, id := range []creel.SubclusterID{"sc-a", "sc-b", "sc-c"} {
		w.members[id] = &member{runs: map[creel.ApplicationID]int{}}
	}
	w.see()
	return w
}

// see builds the view from who is alive now.
func (w *world) see() {
	var st []subcluster.Status
	for _, id := range []creel.SubclusterID{"sc-a", "sc-b", "sc-c"} {
		s := subcluster.Status{Member: subcluster.Member{ID: id}, State: subcluster.StateActive}
		s.Load.Metrics = subcluster.ClusterMetrics{
			TotalMB:               1000,
			AvailableMB:           1000,
			TotalVirtualCores:     10,
			AvailableVirtualCores: 10,
			ActiveNodes:           1,
			TotalNodes:            1,
		}
		if w.members[id].dead {
			s.State = subcluster.StateLost
		}
		st = append(st, s)
	}
	w.view = subcluster.NewView(time.Unix(1, 0), st, nil)
}

func (w *world) forward(_ context.Context, id creel.SubclusterID) (router.Verdict, error) {
	m := w.members[id]
	switch {
	case m.dead:
		return router.NotSent, fmt.Errorf("%s: connection refused", id)
	case m.runs[app] > 0: // a ResourceManager knows a repeat before it looks at it
	case m.malformed:
		return router.Refused, &creel.Error{Kind: creel.ErrInvalidRequest, What: "tag too long"}
	case m.refuses:
		return router.Refused, &creel.Error{Kind: creel.ErrQueueNotFound, What: "no queue at " + string(id)}
	}
	m.runs[app]++
	if m.deaf {
		return router.Unclear, fmt.Errorf("%s: connection reset", id)
	}
	return router.Accepted, nil
}

func (w *world) known(_ context.Context, id creel.SubclusterID, app creel.ApplicationID) (bool, error) {
	m := w.members[id]
	if m.dead || m.deaf {
		return false, fmt.Errorf("%s does not answer", id)
	}
	return m.runs[app] > 0, nil
}

func (w *world) submitter() *router.Submitter {
	uniform, err := policies.Parse([]byte(`{"home":{"policy":"uniform"}}`))
	if err != nil {
		panic(err)
	}
	return &router.Submitter{
		View:   func() *subcluster.View { return w.view },
		Policy: func(*subcluster.View, creel.QueuePath) policies.Policy { return uniform },
		Homes:  w.store, Known: w.known, Rand: func() *rand.Rand { return w.rnd },
	}
}

func (w *world) submit(t testing.TB) router.Outcome {
	return w.submitter().Submit(t.Context(), policies.Submission{Application: app, Queue: "default"}, w.forward)
}

func (w *world) places() (n int) {
	for _, m := range w.members {
		if m.runs[app] > 0 {
			n++
		}
	}
	return n
}

func TestASubmissionFindsOneHome(t *testing.T) {
	w := newWorld(1)
	out := w.submit(t)
	if out.Err != nil || w.places() != 1 || w.members[out.Home].runs[app] != 1 || w.store.at[app] != out.Home {
		t.Fatalf("%+v", out)
	}
	if r := out.Tries[0].Reason; r.Policy != "uniform" || r.Chosen != out.Home || r.Because == "" {
		t.Errorf("the choice must carry its reason: %+v", r)
	}
	again := w.submit(t)
	if again.Err != nil || again.Home != out.Home || w.places() != 1 {
		t.Errorf("a repeat is success at the same home: %+v", again)
	}
}

func TestADeadChoiceIsLeftForTheNext(t *testing.T) {
	w := newWorld(2)
	w.members["sc-a"].dead = true
	w.members["sc-b"].dead = true // the view does not know yet
	out := w.submit(t)
	if out.Err != nil || out.Home != "sc-c" || w.store.at[app] != "sc-c" {
		t.Fatalf("%+v", out)
	}
}

func TestARefusalIsTriedElsewhereAndToldInTheEnd(t *testing.T) {
	w := newWorld(3)
	for _, m := range w.members {
		m.refuses = true
	}
	out := w.submit(t)
	if !errors.Is(out.Err, creel.ErrQueueNotFound) || len(out.Tries) != 3 || w.places() != 0 {
		t.Fatalf("%+v", out)
	}
	w = newWorld(3)
	for _, m := range w.members {
		m.malformed = true
	}
	if out := w.submit(t); !errors.Is(out.Err, creel.ErrInvalidRequest) || len(out.Tries) != 1 {
		t.Fatalf("a malformed submission is not offered around: %+v", out)
	}
}

func TestALostAnswerKeepsItsHome(t *testing.T) {
	w := newWorld(4)
	for _, m := range w.members {
		m.deaf = true
	}
	first := w.submit(t)
	if !errors.Is(first.Err, creel.ErrUnavailable) || w.places() != 1 {
		t.Fatalf("%+v", first)
	}
	var e *creel.Error
	if !errors.As(first.Err, &e) || e.RetryAfter <= 0 || !strings.Contains(e.Try, "same id") {
		t.Errorf("the client must hear that it may repeat: %+v", e)
	}
	for _, m := range w.members {
		m.deaf = false
	}
	if out := w.submit(t); out.Err != nil || out.Home != first.Home || w.places() != 1 {
		t.Fatalf("%+v", out)
	}
}

func TestAHomeThatCannotBeAskedIsNotLeft(t *testing.T) {
	w := newWorld(5)
	first := w.submit(t)
	w.members[first.Home].dead = true // it runs the application, and is cut off
	w.see()
	for range 5 {
		if out := w.submit(t); !errors.Is(out.Err, creel.ErrUnavailable) || w.store.at[app] != first.Home {
			t.Fatalf("%+v", out)
		}
	}
	if w.places() != 1 {
		t.Fatal("it runs twice")
	}
}

// Whatever dies, goes deaf, refuses or comes back between the client's repeats
// through any router, the application runs at most at one member, the store
// names that member, and once all is well one repeat is success.
func TestOneHomeWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Uint64().Draw(t, "seed"))
		ids := []creel.SubclusterID{"sc-a", "sc-b", "sc-c"}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			m := w.members[rapid.SampledFrom(ids).Draw(t, "member")]
			switch rapid.SampledFrom([]string{"dead", "deaf", "refuses", "store", "see", "well"}).Draw(t, "event") {
			case "dead":
				m.dead = !m.dead
			case "deaf":
				m.deaf = !m.deaf
			case "refuses":
				m.refuses = !m.refuses
			case "store":
				w.store.lost = true
			case "see":
				w.see()
			case "well":
				*m = member{runs: m.runs}
			}
			out := w.submitter().Submit(context.Background(), policies.Submission{Application: app}, w.forward)
			if out.Err == nil && w.members[out.Home].runs[app] == 0 {
				t.Fatalf("success without running: %+v", out)
			}
			if w.places() > 1 {
				t.Fatalf("runs at %d members: %+v", w.places(), out)
			}
		}
		for _, id := range ids {
			*w.members[id] = member{runs: w.members[id].runs}
		}
		w.store.lost = false
		w.see()
		out := w.submitter().Submit(context.Background(), policies.Submission{Application: app}, w.forward)
		if out.Err != nil || w.places() != 1 || w.members[out.Home].runs[app] == 0 || w.store.at[app] != out.Home {
			t.Fatalf("all is well, yet: %+v, %d places", out, w.places())
		}
	})
}

func TestNoTimeLeftIsSaidBeforeAnythingIsClaimed(t *testing.T) {
	w := newWorld(6)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := w.submitter().Submit(ctx, policies.Submission{Application: app}, w.forward)
	if !errors.Is(out.Err, creel.ErrUnavailable) || len(w.store.at) != 0 {
		t.Fatalf("%+v, %v", out, w.store.at)
	}
}
