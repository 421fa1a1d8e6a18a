// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

var app = creel.ApplicationID{ClusterTimestamp: 1700000000000, ID: 7}

// homes is the obvious store: two maps. Lost makes the answer of the next change
// get lost after it was made.
type homes struct {
	at     map[creel.ApplicationID]creel.SubclusterID
	number map[creel.ApplicationID]int64
	lost   bool
	pause  func() // called once, after a claim was made and before its answer is read

	ended time.Time // the home reported the end
	life  int64     // in which the home accepted it

	// Of Absent.
	now     func() time.Time
	from    int64 // the first claim that was recorded
	told    map[int64]bool
	unclear map[int64]time.Time // when the call of a claim may have been on its way at latest; 0 for any recorded one
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
	placement []byte,
) (creel.SubclusterID, int64, error) {
	if _, there := h.at[app]; !there {
		h.at[app] = m
	}
	h.number[app]++
	home, number := h.at[app], h.number[app]
	if err := h.answer(); err != nil {
		return "", 0, err
	}
	if pause := h.pause; pause != nil {
		h.pause = nil
		pause()
	}
	return home, number, nil
}

func (h *homes) Move(
	_ context.Context,
	app creel.ApplicationID,
	from, to creel.SubclusterID,
	number int64,
	placement []byte,
) (creel.SubclusterID, error) {
	if h.at[app] != from || h.number[app] != number {
		return h.at[app], &creel.Error{Kind: creel.ErrConflict}
	}
	h.at[app] = to
	h.number[app]++
	h.told, h.life = nil, 0
	if err := h.answer(); err != nil {
		return "", err
	}
	return to, nil
}

// Absent is as slow and as plain as its specification: the wait counts from the last moment at which a call may have
// been on its way, of all claims up to the highest that was recorded.
func (h *homes) Absent(
	_ context.Context,
	app creel.ApplicationID,
	home creel.SubclusterID,
	number int64,
	surely bool,
) (time.Duration, error) {
	if h.at[app] != home {
		return 0, &creel.Error{Kind: creel.ErrConflict}
	}
	if h.told == nil { // earlier claims without a recorded outcome: they count as unclear now
		h.told, h.unclear, h.from = map[int64]bool{}, map[int64]time.Time{0: h.now()}, number
	}
	for n := h.from; n < number; n++ {
		if _, seen := h.unclear[n]; !seen && !h.told[n] {
			h.unclear[n] = h.now()
		}
	}
	h.told[number] = true
	delete(h.unclear, number)
	if !surely {
		h.unclear[0] = h.now() // whichever it was
	}
	var last time.Time
	for _, at := range h.unclear {
		if at.After(last) {
			last = at
		}
	}
	if err := h.answer(); err != nil {
		return 0, err
	}
	return h.now().Sub(last), nil
}

func (h *homes) Ended(context.Context, creel.ApplicationID) (time.Time, error) { return h.ended, nil }

func (h *homes) Accept(_ context.Context, app creel.ApplicationID, home creel.SubclusterID, life int64) error {
	if h.at[app] != home {
		return &creel.Error{Kind: creel.ErrConflict}
	}
	h.life = max(h.life, life)
	return h.answer()
}

func (h *homes) AcceptedIn(context.Context, creel.ApplicationID) (int64, error) { return h.life, nil }

func (h *homes) Home(_ context.Context, app creel.ApplicationID) (creel.SubclusterID, error) {
	if m, ok := h.at[app]; ok {
		return m, nil
	}
	return "", &creel.Error{Kind: creel.ErrApplicationNotFound}
}

// member is a ResourceManager that may be dead, deaf (it takes calls, its answers are lost), stalled (calls wait in
// its socket buffers until it wakes), rejecting, or Hadoop's, which cannot disown.
type member struct {
	dead, deaf, stalled, loses, refuses, malformed, hadoop bool

	runs     map[creel.ApplicationID]int
	disowned map[creel.ApplicationID]int64
	ended    bool    // it ran the application, and does not list it any more
	waiting  []int64 // claims of submissions in its sockets

	life, seen int64 // of its process, and as the routers remember it
}

func newMember() *member {
	return &member{life: 1, seen: 1, runs: map[creel.ApplicationID]int{}, disowned: map[creel.ApplicationID]int64{}}
}

// serve acts like a ResourceManager that reads a submission.
func (m *member) serve(claim int64) (router.Verdict, error) {
	switch {
	case m.runs[app] > 0: // it recognizes a repeat before any other check
		return router.Accepted, nil
	case m.refuses && m.ended: // it is drained, which it checks before
		return router.Refused, &creel.Error{Kind: creel.ErrUnavailable, What: "drained"}
	case m.ended:
		return router.Refused, &creel.Error{Kind: creel.ErrEnded, What: "has ended"}
	case claim <= m.disowned[app] && !m.hadoop:
		return router.Refused, &creel.Error{Kind: creel.ErrConflict, What: "disowned"}
	case m.malformed:
		return router.Refused, &creel.Error{Kind: creel.ErrInvalidRequest, What: "tag too long"}
	case m.refuses:
		return router.Refused, &creel.Error{Kind: creel.ErrQueueNotFound, What: "no such queue"}
	}
	m.runs[app]++
	return router.Accepted, nil
}

// wake serves the requests in its socket buffers, in any order.
func (m *member) wake() {
	m.stalled = false
	for _, claim := range m.waiting {
		m.serve(claim)
	}
	m.waiting = nil
}

type world struct {
	store   *homes
	members map[creel.SubclusterID]*member
	view    *subcluster.View
	rnd     *rand.Rand
	meet    func() // called in the middle of a forward: another router's turn
	now     time.Time
	paused  bool // the routers' processes were, a moment ago
}

func newWorld(seed uint64) *world {
	w := &world{
		store:   &homes{at: map[creel.ApplicationID]creel.SubclusterID{}, number: map[creel.ApplicationID]int64{}},
		members: map[creel.SubclusterID]*member{},
		rnd:     rand.New(rand.NewPCG(seed, 0)),
		now:     time.Unix(1_700_000_000, 0),
	}
	w.store.now = func() time.Time { return w.now }
	for _, id := range []creel.SubclusterID{"sc-a", "sc-b", "sc-c"} {
		w.members[id] = newMember()
	}
	w.see()
	return w
}

// see builds the view from the live members.
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

func (w *world) forward(_ context.Context, id creel.SubclusterID, claim int64) (router.Verdict, error) {
	if meet := w.meet; meet != nil {
		w.meet = nil
		meet()
	}
	m := w.members[id]
	switch {
	case m.dead:
		return router.NotSent, fmt.Errorf("%s: connection refused", id)
	case m.stalled:
		m.waiting = append(m.waiting, claim)
		return router.Unclear, fmt.Errorf("%s: no answer in time", id)
	case m.loses:
		return router.Unclear, &creel.Error{Kind: creel.ErrUnavailable, What: string(id) + " did not answer"}
	}
	v, err := m.serve(claim)
	if m.deaf {
		return router.Unclear, fmt.Errorf("%s: connection reset", id)
	}
	return v, err
}

func (w *world) disown(
	_ context.Context,
	id creel.SubclusterID,
	app creel.ApplicationID,
	claim int64,
) (router.Standing, error) {
	m := w.members[id]
	switch {
	case m.dead || m.stalled:
		return 0, fmt.Errorf("%s does not answer", id)
	case m.runs[app] == 0 && !m.hadoop:
		m.disowned[app] = max(m.disowned[app], claim)
	}
	switch {
	case m.deaf:
		return 0, fmt.Errorf("%s does not answer", id)
	case m.runs[app] > 0:
		return router.Running, nil
	case m.hadoop:
		return router.Absent, nil
	case m.ended:
		return router.Ended, nil
	}
	return router.Disowned, nil
}

func (w *world) life(_ context.Context, id creel.SubclusterID, fresh bool) (int64, error) {
	switch m := w.members[id]; {
	case !m.hadoop:
		return 0, nil
	case !fresh:
		return m.seen, nil
	case m.dead || m.stalled || m.deaf:
		return 0, fmt.Errorf("%s does not answer", id)
	default:
		m.seen = m.life
		return m.life, nil
	}
}

func (w *world) submitter(number int) *router.Submitter {
	uniform, err := policies.Parse([]byte(`{"home":{"policy":"uniform"}}`))
	if err != nil {
		panic(err)
	}
	return &router.Submitter{
		View:   func() *subcluster.View { return w.view },
		Policy: func(*subcluster.View, creel.QueuePath) policies.Policy { return uniform },
		Homes:  w.store, Disown: w.disown, Rand: func() *rand.Rand { return w.rnd },
		UnclearWait: router.UnclearWait, Now: func() time.Time { return w.now },
		Paused: func() bool { return w.paused }, Acceptances: w.store, Life: w.life,
	}
}

func (w *world) submit(t testing.TB) router.Outcome { return w.through(t, 0) }

// through submits through one of the two routers.
func (w *world) through(t testing.TB, number int) router.Outcome {
	return w.submitter(number).Submit(t.Context(), policies.Submission{Application: app, Queue: "default"}, w.forward)
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

// A member orders forwards and fences by the number of their claim.
func TestEachForwardCarriesItsClaimNumber(t *testing.T) {
	w := newWorld(1)
	var numbers []int64
	submit := func() {
		t.Helper()
		out := w.submitter(0).Submit(t.Context(), policies.Submission{Application: app, Queue: "default"},
			func(ctx context.Context, id creel.SubclusterID, claim int64) (router.Verdict, error) {
				numbers = append(numbers, claim)
				return w.forward(ctx, id, claim)
			})
		if out.Err != nil {
			t.Fatal(out.Err)
		}
	}
	submit()
	submit()
	home := w.members[w.store.at[app]]
	for _, m := range w.members {
		m.dead = m != home
	}
	home.dead = true
	w.see() // no member can be chosen
	home.dead = false
	submit()
	if !slices.Equal(numbers, []int64{1, 2, 3}) {
		t.Errorf("forwarded under claims %v", numbers)
	}
}

func TestRepeatOfEndedApplicationDoesNotRun(t *testing.T) {
	for _, hadoop := range []bool{false, true} {
		w := newWorld(1)
		for _, m := range w.members {
			m.hadoop = hadoop
		}
		out := w.submit(t)
		w.store.ended = w.now
		if again := w.submit(t); again.Err != nil || again.Home != out.Home {
			t.Fatalf("hadoop %t: a repeat while the home lists the application: %+v", hadoop, again)
		}
		home := w.members[out.Home]
		delete(home.runs, app) // it forgot it
		again := w.submit(t)
		if !errors.Is(again.Err, creel.ErrEnded) || !strings.Contains(again.Err.Error(), "has ended") ||
			w.places() != 0 {
			t.Errorf("hadoop %t: it ran at %d places, %+v", hadoop, w.places(), again)
		}
		for _, m := range w.members {
			m.dead = m != home // no member can be chosen
		}
		w.see()
		if again = w.submit(t); again.Err == nil || w.places() != 0 {
			t.Errorf("hadoop %t: it ran at %d places, %+v", hadoop, w.places(), again)
		}
		home.dead = true
		if again = w.submit(t); !errors.Is(again.Err, creel.ErrUnavailable) {
			t.Errorf("hadoop %t: the home is away, %+v", hadoop, again)
		}
	}
}

// The home forgot the end of the application before the store knew it. A repeat that the home refuses for another
// reason, or does not answer, finds no other home.
func TestHomeThatForgotTheEndIsNotLeft(t *testing.T) {
	for _, away := range []bool{false, true} {
		w := newWorld(1)
		out := w.submit(t)
		home := w.members[out.Home]
		delete(home.runs, app)
		home.ended, home.refuses, home.loses = true, !away, away
		again := w.submit(t)
		if !errors.Is(again.Err, creel.ErrEnded) || again.Home != out.Home || w.places() != 0 {
			t.Errorf("its answer is lost: %t; it runs at %d places, %+v", away, w.places(), again)
		}
	}
}

// A ResourceManager of Hadoop's ran the application and forgot it before any router saw the end.
func TestRepeatOfForgottenApplicationDoesNotRun(t *testing.T) {
	hadoop := func(t *testing.T) (*world, *member) {
		w := newWorld(1)
		for _, m := range w.members {
			m.hadoop = true
		}
		out := w.submit(t)
		if out.Err != nil {
			t.Fatal(out.Err)
		}
		return w, w.members[out.Home]
	}
	ended := func(t *testing.T, w *world) {
		t.Helper()
		again := w.submit(t)
		if !errors.Is(again.Err, creel.ErrEnded) || !strings.Contains(again.Err.Error(), "how it ended is unknown") ||
			w.places() != 0 {
			t.Errorf("it ran at %d places, %+v", w.places(), again)
		}
	}
	t.Run("in the same life", func(t *testing.T) {
		w, home := hadoop(t)
		if again := w.submit(t); again.Err != nil {
			t.Errorf("while it is listed: %v", again.Err)
		}
		delete(home.runs, app)
		ended(t, w)
		for _, m := range w.members {
			m.dead = m != home // no member can be chosen
		}
		w.see()
		ended(t, w)
		home.deaf = true
		if again := w.submit(t); !errors.Is(again.Err, creel.ErrUnavailable) {
			t.Errorf("without an answer: %+v", again)
		}
		if home.deaf = false; w.places() != 0 {
			t.Error("it ran again")
		}
	})
	t.Run("accepted without an answer", func(t *testing.T) {
		w := newWorld(1)
		for _, m := range w.members {
			m.hadoop = true
			m.deaf = true
		}
		out := w.submit(t)
		home := w.members[out.Home]
		home.deaf = false
		if out.Err == nil || home.runs[app] != 1 {
			t.Fatalf("%+v", out)
		}
		w.meet = func() { home.loses = true } // the repeat gets no answer either, and the fence finds the application
		if out = w.submit(t); out.Err != nil {
			t.Fatal(out.Err)
		}
		home.loses = false
		delete(home.runs, app)
		ended(t, w)
	})
	t.Run("lost by a restart", func(t *testing.T) {
		w, home := hadoop(t)
		delete(home.runs, app)
		home.life = 2
		if again := w.submit(t); again.Err != nil || w.places() != 1 {
			t.Fatalf("it ran at %d places, %+v", w.places(), again)
		}
		delete(home.runs, app)
		ended(t, w)
	})
	t.Run("accepted after a restart that no router saw", func(t *testing.T) {
		w := newWorld(1)
		for _, m := range w.members {
			m.hadoop, m.life = true, 2
		}
		out := w.submit(t)
		delete(w.members[out.Home].runs, app)
		if again := w.submit(t); again.Err != nil || w.places() != 1 {
			t.Errorf("an acceptance of an unknown life proves nothing: %d places, %+v", w.places(), again)
		}
	})
	t.Run("never arrived", func(t *testing.T) {
		w := newWorld(1)
		for _, m := range w.members {
			m.hadoop, m.loses = true, true
		}
		out := w.submit(t)
		for _, m := range w.members {
			m.loses = false
		}
		if again := w.submit(t); again.Err != nil || again.Home != out.Home || w.places() != 1 {
			t.Errorf("it ran at %d places, %+v", w.places(), again)
		}
	})
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

func TestRefusalIsTriedElsewhereThenReported(t *testing.T) {
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

func TestUnreachableHomeIsKept(t *testing.T) {
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

// The member was paused while the submission was in its socket buffer. It is asked as soon as it wakes: a submission
// that it disowned is rejected when it reads it afterwards. Every member lost the submission and will reject it if it
// arrives after all: no member rejected the application, and the client should retry.
func TestSubmissionLostEverywhereMayBeRepeated(t *testing.T) {
	w := newWorld(3)
	for _, m := range w.members {
		m.loses = true
	}
	out := w.submit(t)
	var full *creel.Error
	if len(out.Tries) != 3 || !errors.As(out.Err, &full) || full.Kind != creel.ErrUnavailable || full.RetryAfter <= 0 {
		t.Fatalf("%+v", out)
	}
	for _, m := range w.members {
		m.loses = false
	}
	if out := w.submit(t); out.Err != nil || w.places() != 1 {
		t.Fatalf("the repeat: %+v", out)
	}
}

func TestTimedOutSubmissionRunsNowhere(t *testing.T) {
	w := newWorld(7)
	for _, m := range w.members {
		m.stalled = true
	}
	first := w.submit(t)
	if !errors.Is(first.Err, creel.ErrUnavailable) || w.places() != 0 {
		t.Fatalf("a home that does not answer must not be left: %+v", first)
	}
	home := w.members[first.Home]
	for _, m := range w.members {
		m.stalled = false
	}
	late := home.waiting
	home.waiting = nil
	home.refuses = true
	out := w.submit(t)
	if out.Err != nil || out.Home == first.Home || w.places() != 1 {
		t.Fatalf("a home that refuses and disowns is left: %+v", out)
	}
	home.refuses = false
	for _, claim := range late {
		if v, _ := home.serve(claim); v != router.Refused {
			t.Fatalf("a submission under claim %d came late and was %v", claim, v)
		}
	}
}

func TestHadoopHomeIsKeptWhileSubmissionMayArrive(t *testing.T) {
	w := newWorld(8)
	for _, m := range w.members {
		m.hadoop, m.stalled = true, true
	}
	first := w.submit(t)
	for _, m := range w.members {
		m.stalled = false
	}
	late := w.members[first.Home].waiting
	w.members[first.Home].waiting = nil
	w.members[first.Home].refuses = true
	out := w.submit(t)
	if !errors.Is(out.Err, creel.ErrUnavailable) || out.Home != first.Home ||
		!strings.Contains(out.Err.Error(), "may still be on its way") {
		t.Fatalf("%+v", out)
	}
	w.members[first.Home].refuses = false
	for _, claim := range late {
		w.members[first.Home].serve(claim)
	}
	if out := w.submit(t); out.Err != nil || w.places() != 1 {
		t.Fatalf("%+v", out)
	}
}

// hadoopThatRefuses is a world of Hadoop's ResourceManagers in which a submission got no answer and its home, which
// never reads it, rejects repeats.
func hadoopThatRefuses(t *testing.T) (w *world, home creel.SubclusterID) {
	t.Helper()
	w = newWorld(8)
	for _, m := range w.members {
		m.hadoop, m.stalled = true, true
	}
	home = w.submit(t).Home
	for _, m := range w.members {
		m.stalled, m.waiting = false, nil
	}
	w.members[home].refuses = true
	return w, home
}

// still checks that a submission waits for its home, and reports till when.
func still(t *testing.T, w *world, out router.Outcome, home creel.SubclusterID, till time.Time) {
	t.Helper()
	try := out.Tries[len(out.Tries)-1]
	if !errors.Is(out.Err, creel.ErrUnavailable) || out.Home != home || try.Verdict != router.Unclear ||
		!try.Until.Equal(till) || !strings.Contains(out.Err.Error(), till.UTC().Format(time.RFC3339)) {
		t.Fatalf("%+v, want a wait until %v", out, till)
	}
}

func TestHadoopHomeIsLeftAfterUnclearWait(t *testing.T) {
	w, home := hadoopThatRefuses(t)
	till := w.now.Add(router.UnclearWait)
	still(t, w, w.submit(t), home, till)
	w.now = till.Add(-time.Second)
	still(t, w, w.submit(t), home, till)
	w.now = till
	out := w.submit(t)
	if out.Err != nil || out.Home == home || w.places() != 1 || w.store.at[app] != out.Home {
		t.Fatalf("%+v", out)
	}
}

// The repeats of one client go through two routers in turn. They wait for one home, and the wait is the store's:
// neither router restarts the other's.
func TestAlternatingRepeatsShareOneWait(t *testing.T) {
	w, home := hadoopThatRefuses(t)
	till := w.now.Add(router.UnclearWait)
	for i := 0; w.now.Before(till); i++ {
		still(t, w, w.through(t, i%2), home, till)
		w.now = w.now.Add(10 * time.Second)
	}
	out := w.through(t, 1)
	if out.Err != nil || out.Home == home || w.places() != 1 || w.store.at[app] != out.Home {
		t.Fatalf("%+v", out)
	}
}

func TestUnclearWaitRestartsOnInFlightCall(t *testing.T) {
	for name, disturb := range map[string]func(t *testing.T, w *world, home creel.SubclusterID){
		"it cannot be asked": func(t *testing.T, w *world, home creel.SubclusterID) {
			w.members[home].dead = true
			w.submit(t)
			w.members[home].dead = false
		},
		"a repeat got no answer": func(t *testing.T, w *world, home creel.SubclusterID) {
			m := w.members[home]
			m.stalled = true
			w.submit(t)
			m.stalled, m.waiting = false, nil
		},
		"another router died with a claim": func(t *testing.T, w *world, home creel.SubclusterID) {
			if _, _, err := w.store.Claim(t.Context(), app, home, nil); err != nil {
				t.Fatal(err)
			}
		},
		"this router was paused": func(t *testing.T, w *world, home creel.SubclusterID) {
			w.paused = true
			w.submit(t)
			w.paused = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, home := hadoopThatRefuses(t)
			w.submit(t)
			w.now = w.now.Add(router.UnclearWait)
			disturb(t, w, home)
			till := w.now.Add(router.UnclearWait)
			still(t, w, w.submit(t), home, till)
			w.now = till
			if out := w.submit(t); out.Err != nil || out.Home == home || w.places() != 1 {
				t.Fatalf("%+v", out)
			}
		})
	}
}

// A router is paused between the claim and the forward for as long as another waits for a Hadoop home and leaves it.
// Hadoop's ResourceManagers know no claims, so the router itself must not send a submission that is too old.
func TestPausedRouterClaimsAgain(t *testing.T) {
	w, home := hadoopThatRefuses(t)
	w.store.pause = func() {
		w.through(t, 1)
		w.now = w.now.Add(router.UnclearWait)
		if out := w.through(t, 1); out.Err != nil || out.Home == home {
			t.Errorf("the other router: %+v", out)
		}
		w.members[home].refuses = false
	}
	if out := w.submit(t); out.Err != nil || out.Home == home || w.places() != 1 {
		t.Fatalf("%d places, %+v", w.places(), out)
	}
}

// One router claimed and is paused before it forwards; another finds that the home rejects and leaves it. The first
// one's late forward is rejected, and it follows to the new home.
func TestRouterPausedAfterClaimIsFenced(t *testing.T) {
	w := newWorld(9)
	w.meet = func() {
		for _, m := range w.members {
			m.refuses = true
		}
		if out := w.submit(t); out.Err == nil || w.places() != 0 {
			t.Errorf("%+v", out)
		}
		for _, m := range w.members {
			m.refuses = false
		}
	}
	out := w.submit(t)
	if out.Tries[0].Verdict != router.Refused {
		t.Errorf("the first forward was %v", out.Tries[0].Verdict)
	}
	if out.Err != nil || w.places() != 1 || w.store.at[app] != out.Home || w.members[out.Home].runs[app] != 1 {
		t.Fatalf("%+v", out)
	}
}

// Members and routers die, go silent, stall, reject or come back between and during the client's repeats through any
// router, and requests arrive however late. The application runs at most at one member, the store names that member,
// and once all is well a few repeats succeed.
func TestOneHomeWhateverHappens(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Uint64().Draw(t, "seed"))
		ids := []creel.SubclusterID{"sc-a", "sc-b", "sc-c"}
		for _, id := range ids {
			w.members[id].hadoop = rapid.IntRange(0, 3).Draw(t, "hadoop") == 0
		}
		events := []string{"dead", "deaf", "stalled", "wake", "refuses", "store", "see", "well", "long"}
		event := func() {
			m := w.members[rapid.SampledFrom(ids).Draw(t, "member")]
			switch rapid.SampledFrom(events).Draw(t, "event") {
			case "dead":
				m.dead = !m.dead
				m.waiting = nil // its sockets went with it
			case "deaf":
				m.deaf = !m.deaf
			case "stalled":
				m.stalled = true
			case "wake":
				m.wake()
			case "refuses":
				m.refuses = !m.refuses
			case "store":
				w.store.lost = true
			case "see":
				w.see()
			case "long":
				w.now = w.now.Add(router.UnclearWait)
			case "well":
				m.dead, m.deaf, m.refuses = false, false, false
				m.wake()
			}
		}
		submit := func() router.Outcome {
			return w.submitter(rapid.IntRange(0, 1).Draw(t, "router")).
				Submit(context.Background(), policies.Submission{Application: app}, w.forward)
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			event()
			switch rapid.IntRange(0, 2).Draw(t, "race") {
			case 1:
				w.meet = func() { event(); submit() }
			case 2:
				w.store.pause = func() { event(); submit(); event(); submit() }
			}
			out := submit()
			w.meet, w.store.pause = nil, nil
			if out.Err == nil && w.members[out.Home].runs[app] == 0 {
				t.Fatalf("success without running: %+v", out)
			}
			if w.places() > 1 {
				t.Fatalf("runs at %d members: %+v", w.places(), out)
			}
		}
		for _, id := range ids {
			m := w.members[id]
			m.dead, m.deaf, m.refuses = false, false, false
			m.wake()
		}
		w.store.lost = false
		w.see()
		out := submit()
		if out.Err != nil || w.places() != 1 || w.members[out.Home].runs[app] == 0 || w.store.at[app] != out.Home {
			t.Fatalf("all is well, yet: %+v, %d places", out, w.places())
		}
	})
}

func TestExpiredCallClaimsNothing(t *testing.T) {
	w := newWorld(6)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := w.submitter(0).Submit(ctx, policies.Submission{Application: app}, w.forward)
	if !errors.Is(out.Err, creel.ErrUnavailable) || len(w.store.at) != 0 {
		t.Fatalf("%+v, %v", out, w.store.at)
	}
}
