// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// moved is an application that moves from a to b, a step at each lookup.
type moved struct {
	Homes
	steps []step
	calls []creel.SubclusterID
}

// step is the home by the store, the member that has it, and whether its move is recorded.
type step struct {
	home   creel.SubclusterID
	has    string // of "a" and "b"
	moving bool
}

func (m *moved) next() {
	if len(m.steps) > 1 {
		m.steps = m.steps[1:]
	}
}

func (m *moved) Home(context.Context, creel.ApplicationID) (creel.SubclusterID, error) {
	defer m.next()
	return m.steps[0].home, nil
}

func (m *moved) elsewhere(context.Context, creel.ApplicationID) ([]creel.SubclusterID, bool, error) {
	defer m.next()
	at := []creel.SubclusterID{m.steps[0].home}
	if m.steps[0].moving {
		at = append(at, "a", "b")
	}
	return at, m.steps[0].moving, nil
}

func (m *moved) call(_ context.Context, at *remote.Member) (creel.SubclusterID, error) {
	defer m.next()
	m.calls = append(m.calls, at.ID)
	if slices.Contains([]byte(m.steps[0].has), at.ID[0]) {
		return at.ID, nil
	}
	return "", &creel.Error{Kind: creel.ErrApplicationNotFound, What: "never heard of it"}
}

// However the steps of a move fall between a router's checks, a client finds its application; for one that no member
// has it gets that answer after a few calls.
func TestAnApplicationThatMovesIsAlwaysFound(t *testing.T) {
	view := subcluster.NewView(time.Now(), []subcluster.Status{
		{Member: subcluster.Member{ID: "a"}, State: subcluster.StateActive},
		{Member: subcluster.Member{ID: "b"}, State: subcluster.StateActive},
	}, nil)
	app := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	ask := func(m *moved) (creel.SubclusterID, error) {
		s := New(Config{
			HomesKept: 10, Homes: m, Elsewhere: m.elsewhere, Pool: remote.NewPool(remote.Config{}),
			View: func() *subcluster.View { return view },
		})
		_, home, err := AtHome(t.Context(), s, app, m.call)
		if err != nil {
			return "", err
		}
		return home.ID, nil
	}
	// The move of one application, and how many lookups each of its states lasts.
	move := []step{{"a", "a", false}, {"a", "a", true}, {"b", "a", true}, {"b", "ab", true}, {"b", "b", true}, {"b", "b", false}}
	for lasts := range 3 {
		for begins := range len(move) {
			for stays := range 4 {
				m := &moved{}
				for i := begins; i < len(move); i++ {
					n := lasts
					if i == begins {
						n = stays
					}
					for range n {
						m.steps = append(m.steps, move[i])
					}
				}
				m.steps = append(m.steps, move[len(move)-1])
				told := fmt.Sprintf("%d looks at %+v, then %d each: %+v", stays, move[begins], lasts, m.steps)
				if _, err := ask(m); err != nil {
					t.Errorf("%s: %v after calls of %v", told, err, m.calls)
				}
			}
		}
	}
	m := &moved{steps: []step{{home: "b"}}}
	if _, err := ask(m); !errors.Is(err, creel.ErrApplicationNotFound) || len(m.calls) != 2 {
		t.Errorf("one that nobody has: %v after calls of %v", err, m.calls)
	}
}

// Where the record of moves cannot be read, the home that could be is asked all the same.
func TestCurrentHomeIsAskedIfMovesAreUnreadable(t *testing.T) {
	view := subcluster.NewView(time.Now(), []subcluster.Status{
		{Member: subcluster.Member{ID: "a"}, State: subcluster.StateActive},
		{Member: subcluster.Member{ID: "b"}, State: subcluster.StateActive},
	}, nil)
	m := &moved{steps: []step{{home: "a", has: "b"}}}
	s := New(Config{
		HomesKept: 10, Homes: m, Pool: remote.NewPool(remote.Config{}), View: func() *subcluster.View { return view },
		Elsewhere: func(context.Context, creel.ApplicationID) ([]creel.SubclusterID, bool, error) {
			return []creel.SubclusterID{"b"}, false, errors.New("half a store")
		},
	})
	_, home, err := AtHome(t.Context(), s, creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, m.call)
	if err != nil || home.ID != "b" || len(m.calls) != 2 {
		t.Errorf("%v after calls of %v", err, m.calls)
	}
}

// silentHomes is a store that does not answer.
type silentHomes struct{ Homes }

func (silentHomes) Home(context.Context, creel.ApplicationID) (creel.SubclusterID, error) {
	return "", statestore.Unavailable("it is away", 0)
}

// Without the store a read goes to the home in the last list. A change does not: the application may have moved.
func TestListedHomeServesReadsOnly(t *testing.T) {
	view := subcluster.NewView(time.Now(), []subcluster.Status{
		{Member: subcluster.Member{ID: "a"}, State: subcluster.StateActive},
	}, nil)
	s := New(Config{
		HomesKept: 10, Homes: silentHomes{}, Pool: remote.NewPool(remote.Config{}), View: func() *subcluster.View { return view },
	})
	listed := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	s.ListedBy(func(app creel.ApplicationID) (creel.SubclusterID, bool) { return "a", app == listed })
	reads := statestore.WithPatience(t.Context(), 0)
	if m, err := s.Home(reads, listed); err != nil || m.ID != "a" {
		t.Errorf("a read: %v", err)
	}
	if _, err := s.Home(t.Context(), listed); !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("a change: %v", err)
	}
	if _, err := s.Home(reads, creel.ApplicationID{ClusterTimestamp: 1, ID: 2}); !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("a read of another application: %v", err)
	}
}

// All members were asked, and the remembered home is a former one: the present home's part is the home's answer.
func TestPartOfPresentHomeIsHomesAnswer(t *testing.T) {
	view := subcluster.NewView(time.Now(), []subcluster.Status{
		{Member: subcluster.Member{ID: "a"}, State: subcluster.StateActive},
		{Member: subcluster.Member{ID: "b"}, State: subcluster.StateActive},
	}, nil)
	m := &moved{steps: []step{{home: "a"}, {home: "b"}}}
	s := New(Config{
		HomesKept: 10, Homes: m, Elsewhere: m.elsewhere, Pool: remote.NewPool(remote.Config{}),
		View: func() *subcluster.View { return view },
	})
	app := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	parts := []router.Part[int]{{Member: "a", Err: creel.ErrApplicationNotFound}, {Member: "b", Value: 7}}
	if part, home, err := partOfHome(t.Context(), s, app, parts); err != nil || part != 7 || home.ID != "b" {
		t.Errorf("part %d of %v, %v", part, home, err)
	}
	parts[1] = router.Part[int]{Member: "b", Err: creel.ErrApplicationNotFound}
	if _, _, err := partOfHome(t.Context(), s, app, parts); !errors.Is(err, creel.ErrApplicationNotFound) {
		t.Errorf("no member knows it: %v", err)
	}
}

// recordedHome is a store with one home that counts the reads.
type recordedHome struct {
	Homes
	home  creel.SubclusterID
	reads int
	away  bool
}

func (r *recordedHome) Home(context.Context, creel.ApplicationID) (creel.SubclusterID, error) {
	if r.reads++; r.away {
		return "", &creel.Error{Kind: creel.ErrUnavailable, What: "the store does not answer"}
	}
	return r.home, nil
}

// A home is read once, and again after its change was announced. It is known without the store too.
func TestHomeIsReadAgainAfterAnnouncedChange(t *testing.T) {
	view := subcluster.NewView(time.Now(), []subcluster.Status{
		{Member: subcluster.Member{ID: "a"}, State: subcluster.StateActive},
		{Member: subcluster.Member{ID: "b"}, State: subcluster.StateActive},
	}, nil)
	store := &recordedHome{home: "a"}
	s := New(Config{
		Homes: store, Pool: remote.NewPool(remote.Config{}), View: func() *subcluster.View { return view },
	})
	app := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	home := func() creel.SubclusterID {
		t.Helper()
		m, err := s.Home(t.Context(), app)
		if err != nil {
			t.Fatal(err)
		}
		return m.ID
	}
	if first := home(); first != "a" {
		t.Fatalf("home is %s", first)
	}
	store.home, store.away = "b", true
	s.Changed(statestore.Change{Kind: statestore.ChangePolicies})
	if again := home(); again != "a" || store.reads != 1 {
		t.Fatalf("home is %s after %d reads", again, store.reads)
	}
	store.away = false
	s.Changed(statestore.Change{Kind: statestore.ChangeHome, Application: app})
	if moved := home(); moved != "b" || store.reads != 2 {
		t.Fatalf("home is %s after %d reads", moved, store.reads)
	}
}
