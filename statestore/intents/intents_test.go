// SPDX-License-Identifier: Apache-2.0

package intents_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
)

var app = creel.ApplicationID{ClusterTimestamp: 1_700_000_000_000, ID: 7}

// federation is a store with one application at home in "a", and a home with preset answers.
type federation struct {
	store *memory.Store

	mu     sync.Mutex // the loop runs beside the test
	state  subcluster.State
	asked  []intents.Intent
	at     []creel.SubclusterID // of each
	answer func() (bool, error)
	moving bool         // the application is on its way to another home
	log    bytes.Buffer // of the loop; warnings
}

func start(t *testing.T) (*federation, context.Context) {
	t.Helper()
	f := &federation{
		store: memory.New(memory.NewState("test", nil), time.Now),
		state: subcluster.StateActive,
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); synctest.Wait() })
	if _, _, err := f.store.Claim(ctx, app, "a", nil); err != nil {
		t.Fatal(err)
	}
	loop := intents.New(f.store, intents.Config{
		View: func() *subcluster.View {
			f.mu.Lock()
			defer f.mu.Unlock()
			return subcluster.NewView(time.Now(), []subcluster.Status{
				{Member: subcluster.Member{ID: "a"}, State: f.state},
				{Member: subcluster.Member{ID: "b"}, State: subcluster.StateActive},
			}, nil)
		},
		Do: func(_ context.Context, m *subcluster.Status, i intents.Intent) (bool, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			i.Asked, i.Age = time.Time{}, 0
			f.asked, f.at = append(f.asked, i), append(f.at, m.ID)
			return f.answer()
		},
		Moving: func(context.Context, creel.ApplicationID) (bool, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.moving, nil
		},
		Log: slog.New(slog.NewTextHandler(&f.log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	go func() { _ = loop.Run(ctx) }()
	return f, ctx
}

func kill(user, diagnostics string) intents.Intent {
	return intents.Intent{Application: app, User: user, Verb: intents.Kill, Diagnostics: diagnostics}
}

func waiting(t *testing.T, f *federation) int {
	t.Helper()
	list, err := intents.Waiting(t.Context(), f.store, app)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// is sets the home's state and its answer.
func (f *federation) is(state subcluster.State, answer func() (bool, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = state
	if answer != nil {
		f.answer = answer
	}
}

// calls are those that the home got.
func (f *federation) calls() []intents.Intent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// A kill waits as long as its home is away, even an hour. It is sent in the user's name until the home reports that
// the application ended, and is then forgotten.
func TestAKillWaitsForItsHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		f.is(subcluster.StateLost, func() (bool, error) { return len(f.asked) >= 3, nil })
		for range 2 { // the second is a repeat
			if err := intents.Record(ctx, f.store, kill("ann", "enough")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		if list, err := intents.Waiting(ctx, f.store, app); err != nil || len(list) != 1 || list[0].User != "ann" ||
			list[0].Age < time.Hour || len(f.calls()) != 0 {
			t.Fatalf("after an hour without the home: %+v, %v, asked %d times", list, err, len(f.calls()))
		}
		f.is(subcluster.StateDraining, nil)
		time.Sleep(time.Minute)
		asked := f.calls()
		if n := waiting(t, f); n != 0 || len(asked) != 3 || asked[0].User != "ann" || asked[0].Diagnostics != "enough" {
			t.Errorf("after the home came back: %d wait, asked %+v", n, asked)
		}
	})
}

// After a refusal, or for an unknown application, a kill is not sent again, and its user can read that; after silence it
// is sent again.
func TestAKillEndsWithTheHomesWord(t *testing.T) {
	for what, c := range map[string]struct {
		err     error
		refused string
		calls   int // at least
	}{
		"it does not know it": {&creel.Error{Kind: creel.ErrApplicationNotFound}, "a does not know the application any more", 2},
		"it is silent":        {&creel.Error{Kind: creel.ErrUnavailable}, "", 3},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, ctx := start(t)
				f.is(subcluster.StateActive, func() (bool, error) { return false, c.err })
				for _, user := range []string{"ann", "bob"} { // the one's refusal is not the other's
					if err := intents.Record(ctx, f.store, kill(user, "")); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Minute)
				list, err := intents.Waiting(ctx, f.store, app)
				for _, i := range list {
					if i.Refused != c.refused {
						t.Errorf("%s's kill is refused: %q, want %q", i.User, i.Refused, c.refused)
					}
				}
				if n := len(f.calls()); n < c.calls || c.refused != "" && n > c.calls {
					t.Errorf("asked %d times, want %d", n, c.calls)
				}
				if err != nil || len(list) != 2 {
					t.Errorf("%d can be read (%v), want 2 for an hour", len(list), err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		f.is(subcluster.StateLost, nil)
		if err := intents.Record(ctx, f.store, kill("ann", "")); err != nil {
			t.Fatal(err)
		}
		if err := f.store.Forget(ctx, app, "a", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := waiting(t, f); n != 0 {
			t.Errorf("%d wait for an application without a record", n)
		}
		unknown := intents.Intent{
			Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1},
			User:        "ann",
			Verb:        intents.Kill,
		}
		if err := intents.Record(ctx, f.store, unknown); !errors.Is(err, creel.ErrApplicationNotFound) {
			t.Errorf("a kill of what nobody knows: %v", err)
		}
		if err := intents.Record(ctx, f.store, kill("", "")); !errors.Is(err, creel.ErrInvalidRequest) {
			t.Errorf("a kill by nobody: %v", err)
		}
	})
}

// A refusal can be read for an hour, and is asked for no more.
func TestRefusalIsReportedForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		f.is(subcluster.StateActive, func() (bool, error) {
			return false, &creel.Error{Kind: creel.ErrNotPermitted, What: "bob may not"}
		})
		if err := intents.Record(ctx, f.store, kill("bob", "")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Minute)
		list, err := intents.Waiting(ctx, f.store, app)
		if err != nil || len(list) != 1 || list[0].Refused != "bob may not" || len(f.calls()) != 1 {
			t.Fatalf("%+v, %v; asked %d times", list, err, len(f.calls()))
		}
		time.Sleep(2 * time.Minute)
		if n := waiting(t, f); n != 0 {
			t.Errorf("%d are told after more than an hour", n)
		}
	})
}

// An intent of another version, with an unknown verb, waits for a router that knows it, is logged once, and goes with
// the application's record.
func TestUnknownVerbIsLeftInStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		f.is(subcluster.StateActive, func() (bool, error) {
			return false, fmt.Errorf("%q: %w", "suspend", intents.ErrUnknownVerb)
		})
		suspend := statestore.DocumentWrite{
			Class: "intents", Name: app.String() + "/ann/suspend", Data: []byte(`{"until":"tomorrow"}`), Author: "ann",
		}
		if _, err := f.store.PutDocument(ctx, suspend); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		set, err := f.store.Documents(ctx, suspend.Class)
		if err != nil || len(set.Documents) != 1 || string(set.Documents[0].Data) != string(suspend.Data) {
			t.Fatalf("of the intent is left: %+v, %v", set.Documents, err)
		}
		list, err := intents.Waiting(ctx, f.store, app)
		if err != nil || len(list) != 1 || list[0].String() != "suspend (this version does not know how)" {
			t.Errorf("it waits as %v, %v", list, err)
		}
		if log := f.log.String(); strings.Count(log, "left to routers of another version") != 1 {
			t.Errorf("not told once:\n%s", log)
		}
		if err := f.store.Forget(ctx, app, "a", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := waiting(t, f); n != 0 {
			t.Errorf("%d wait for an application without a record", n)
		}
	})
}

// A document that cannot be read, perhaps of a newer version, is left to other routers for as long as a refusal is
// stored.
func TestUnreadableIntentExpiresAfterHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		odd := statestore.DocumentWrite{
			Class: "intents", Name: app.String() + "/kill/a/b/c", Data: []byte(`{}`), Author: "ann",
		}
		if _, err := f.store.PutDocument(ctx, odd); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{1, 0} {
			time.Sleep(59 * time.Minute)
			set, err := f.store.Documents(ctx, odd.Class)
			if err != nil || len(set.Documents) != want {
				t.Errorf("%d are there, want %d, %v", len(set.Documents), want, err)
			}
		}
	})
}

// A ResourceManager that is back knows a container when its node has registered: until it has had the time to, its
// answer that there is no such container is not final; nor is it when it was away again meanwhile.
func TestSignalWaitsForContainersNode(t *testing.T) {
	signal := intents.Intent{
		Application: app, User: "ann", Verb: intents.Signal, Command: 2,
		Container: creel.NewContainerID(creel.AttemptID{Application: app, Attempt: 1}, 0, 3),
	}
	absent := func() (bool, error) {
		return false, &creel.Error{Kind: creel.ErrContainerNotFound, What: "an absent container"}
	}
	for what, story := range map[string]struct {
		then             func(f *federation) // after five minutes
		doubted, refused bool                // six minutes after that
		waits            int
	}{
		"its node registers": {then: func(f *federation) {
			f.is(subcluster.StateActive, func() (bool, error) { return true, nil })
		}},
		"it never does": {then: func(*federation) {}, refused: true, waits: 1},
		"the member is lost again, and back": {then: func(f *federation) {
			f.is(subcluster.StateLost, nil)
			time.Sleep(time.Minute)
			f.is(subcluster.StateActive, nil)
		}, doubted: true, waits: 1},
		"the member is silent for a while": {then: func(f *federation) {
			f.is(subcluster.StateActive, func() (bool, error) { return false, &creel.Error{Kind: creel.ErrUnavailable} })
			time.Sleep(time.Minute)
			f.is(subcluster.StateActive, absent)
		}, doubted: true, waits: 1},
		"the user may not": {then: func(f *federation) {
			f.is(subcluster.StateActive, func() (bool, error) {
				return false, &creel.Error{Kind: creel.ErrNotPermitted, What: "no"}
			})
		}, refused: true, waits: 1},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, ctx := start(t)
				f.is(subcluster.StateActive, absent)
				if err := intents.Record(ctx, f.store, signal); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Minute)
				list, err := intents.Waiting(ctx, f.store, app)
				if err != nil || len(list) != 1 || list[0].Doubted != "an absent container" || list[0].Refused != "" {
					t.Fatalf("while its node may register: %+v, %v", list, err)
				}
				story.then(f)
				time.Sleep(6 * time.Minute)
				list, err = intents.Waiting(ctx, f.store, app)
				if err != nil || len(list) != story.waits {
					t.Fatalf("%d wait, want %d, %v", len(list), story.waits, err)
				}
				for _, i := range list {
					if (i.Refused != "") != story.refused || (i.Doubted != "") != story.doubted {
						t.Errorf("it waits as %+v", i)
					}
				}
				if story.waits == 0 {
					calls := f.calls()
					time.Sleep(time.Minute)
					if again := f.calls(); len(again) != len(calls) {
						t.Errorf("it is made again %d times", len(again)-len(calls))
					}
				}
			})
		})
	}
	// A kill that a member answers like that is refused as ever.
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		f.is(subcluster.StateActive, absent)
		if err := intents.Record(ctx, f.store, kill("ann", "")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if list, err := intents.Waiting(ctx, f.store, app); err != nil || len(list) != 1 || list[0].Refused == "" {
			t.Errorf("a kill: %+v, %v", list, err)
		}
	})
}

// A user's later word takes the place of the earlier one; words on other matters, and of other
// users, stand beside it, and are carried out in the order in which they came.
func TestTheLastWordCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		f.is(subcluster.StateLost, func() (bool, error) { return true, nil })
		said := []intents.Intent{
			{User: "ann", Verb: intents.Move, Queue: "root.a"},
			{User: "ann", Verb: intents.Priority, Level: 3},
			{User: "bob", Verb: intents.Move, Queue: "root.b"},
			{User: "ann", Verb: intents.Move, Queue: "root.c"},
			{
				User:   "ann",
				Verb:   intents.Timeouts,
				Expiry: map[string]string{"LIFETIME": "2026-01-01T00:00:00.000+0000"},
			},
		}
		for i := range said {
			said[i].Application = app
			if err := intents.Record(ctx, f.store, said[i]); err != nil {
				t.Fatal(err)
			}
		}
		f.is(subcluster.StateActive, nil)
		time.Sleep(time.Minute)
		said[3].Another = true // the first was in its place
		if asked := f.calls(); !reflect.DeepEqual(asked, said[1:]) {
			t.Errorf("carried out: %+v", asked)
		}
		if n := waiting(t, f); n != 0 {
			t.Errorf("%d wait still", n)
		}
	})
}

// A change that the home has made is made where the application has UAMs too, each in its own time.
func TestAMoveReachesTheUAMs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		f.is(subcluster.StateActive, func() (bool, error) { return true, nil })
		_, err := f.store.SaveUAMRecord(ctx, statestore.UAMRecord{
			Attempt: creel.AttemptID{Application: app, Attempt: 1}, Home: "a",
			UAMs: []statestore.UAM{{Member: "b", Phase: "running"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []intents.Intent{
			{Application: app, User: "ann", Verb: intents.Move, Queue: "root.x"},
			{Application: app, User: "ann", Verb: intents.Fail, Attempt: 1},
			{Application: app, User: "ann", Verb: intents.Timeouts, Expiry: map[string]string{"LIFETIME": "then"}},
		} {
			if err := intents.Record(ctx, f.store, i); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		var told []string
		for k, i := range f.calls() {
			told = append(told, string(f.at[k])+": "+i.String())
		}
		want := []string{
			"a: move to queue root.x", "a: fail attempt 1", "a: change the timeout LIFETIME to then",
			"b: move to queue root.x", "b: change the timeout LIFETIME to then",
		}
		if n := waiting(t, f); n != 0 || !slices.Equal(told, want) {
			t.Errorf("%d wait; told %q, want %q", n, told, want)
		}
	})
}

// A move of a waiting application to another home may begin and end between the two steps of a round, looking up its
// home and asking it, whose answer may take long. The intent waits for the new home.
func TestIntentFollowsMovedApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		moved := false
		f.is(subcluster.StateActive, func() (bool, error) {
			if at := f.at[len(f.at)-1]; at == "b" {
				return true, nil
			}
			if !moved {
				moved = true
				if _, err := f.store.Move(ctx, app, "a", "b", 1, nil); err != nil {
					t.Error(err)
				}
			}
			return false, &creel.Error{Kind: creel.ErrApplicationNotFound, What: "no such application"}
		})
		if err := intents.Record(ctx, f.store, kill("ann", "enough")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if n := waiting(t, f); n != 0 || !slices.Equal(f.at, []creel.SubclusterID{"a", "b"}) {
			t.Errorf("%v were asked, and %d intents wait", f.at, n)
		}
	})
}

// On its way to another home an application may be nowhere for a moment: its intents wait.
func TestIntentWaitsDuringMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		f.moving = true
		f.is(subcluster.StateActive, func() (bool, error) {
			return false, &creel.Error{Kind: creel.ErrApplicationNotFound, What: "no such application"}
		})
		if err := intents.Record(ctx, f.store, kill("ann", "enough")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := waiting(t, f); n != 1 {
			t.Fatalf("%d intents wait while the application is being moved", n)
		}
		f.is(subcluster.StateActive, func() (bool, error) { return true, nil })
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if n := waiting(t, f); n != 0 {
			t.Errorf("%d intents wait when it has arrived", n)
		}
	})
}

// Fields written by another version are preserved in an intent: when its member doubts, and for the UAMs.
func TestFieldsOfAnotherVersionGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		record := statestore.UAMRecord{
			Attempt: creel.AttemptID{Application: app, Attempt: 1}, Home: "a",
			UAMs: []statestore.UAM{{Member: "b", Phase: "running"}},
		}
		if _, err := f.store.SaveUAMRecord(ctx, record); err != nil {
			t.Fatal(err)
		}
		put := func(name, data string) {
			t.Helper()
			if _, err := f.store.PutDocument(ctx, statestore.DocumentWrite{
				Class: "intents", Name: name, Data: []byte(data), Author: "ann",
			}); err != nil {
				t.Fatal(err)
			}
		}
		find := func(name string) string {
			t.Helper()
			set, err := f.store.Documents(ctx, "intents")
			if err != nil {
				t.Fatal(err)
			}
			d, _ := set.Find(name)
			return string(d.Data)
		}
		f.is(subcluster.StateActive, func() (bool, error) {
			switch i := f.asked[len(f.asked)-1]; {
			case i.Verb == intents.Signal:
				return false, &creel.Error{Kind: creel.ErrContainerNotFound, What: "not yet"}
			case f.at[len(f.at)-1] == "b":
				return false, &creel.Error{Kind: creel.ErrBusy, What: "later"}
			}
			return true, nil
		})
		put(app.String()+"/ann/move", `{"queue":"root.b","whether":{"newer":[1]}}`)
		id := creel.ContainerID{Attempt: record.Attempt, ID: 3}
		put(app.String()+"/ann/signal:"+id.String(), `{"container":"`+id.String()+`","command":1,"loudly":true}`)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if got, want := find(app.String()+"/ann/move/b"), `{"queue":"root.b","whether":{"newer":[1]}}`; got != want {
			t.Errorf("to the UAM goes %s, want %s", got, want)
		}
		got := find(app.String() + "/ann/signal:" + id.String())
		if !strings.Contains(got, `"doubted":"`) || !strings.Contains(got, `"loudly":true`) {
			t.Errorf("the signal that is doubted is %s", got)
		}
	})
}

// For verbs that set a value the last intent counts, of any user: once a member carries it out, earlier ones are no
// longer recorded for that member. One recorded meanwhile is not earlier, and is carried out after it.
func TestExecutedIntentReplacesEarlier(t *testing.T) {
	ctx := t.Context()
	s := memory.New(memory.NewState("test", nil), time.Now)
	record := statestore.UAMRecord{
		Attempt: creel.AttemptID{Application: app, Attempt: 1}, Home: "a",
		UAMs: []statestore.UAM{{Member: "b", Phase: "running"}, {Member: "c", Phase: "running"}},
	}
	if _, _, err := s.Claim(ctx, app, "a", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveUAMRecord(ctx, record); err != nil {
		t.Fatal(err)
	}
	move := func(user, queue string, member creel.SubclusterID) intents.Intent {
		return intents.Intent{Application: app, User: user, Verb: intents.Move, Queue: queue, Member: member}
	}
	say := func(words ...intents.Intent) {
		t.Helper()
		for _, i := range words {
			if err := intents.Record(ctx, s, i); err != nil {
				t.Fatal(err)
			}
		}
	}
	say(move("ann", "root.a", ""), move("bob", "root.b", ""), move("bob", "root.b", "b"), move("bob", "root.b", "c"),
		intents.Intent{Application: app, User: "ann", Verb: intents.Priority, Level: 3})
	now := move("cleo", "root.c", "")
	earlier, err := intents.Earlier(ctx, s, now)
	if err != nil {
		t.Fatal(err)
	}
	say(move("ann", "root.d", "")) // while home carries out cleo's
	err = intents.AtOthers(ctx, s, now, "a", earlier, func(_ context.Context, p intents.Part) error {
		if p.Member == "c" {
			return &creel.Error{Kind: creel.ErrUnavailable, What: "silent"}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	left, err := intents.Waiting(ctx, s, app)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, i := range left {
		told = append(told, fmt.Sprintf("%s at %q: %s", i.User, i.Member, &i))
	}
	want := []string{
		`bob at "c": move to queue root.b`, `ann at "": change the priority to 3`, `ann at "": move to queue root.d`,
		`cleo at "c": move to queue root.c`,
	}
	if !slices.Equal(told, want) {
		t.Errorf("on record are\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}

// The home is busy when it is asked for bob's word, and does ann's, which is newer: bob's is over.
func TestAWordThatWasPassedOverIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		f.is(subcluster.StateActive, func() (bool, error) {
			if len(f.asked) == 1 {
				return false, &creel.Error{Kind: creel.ErrBusy, What: "later"}
			}
			return true, nil
		})
		for _, i := range []intents.Intent{
			{Application: app, User: "bob", Verb: intents.Priority, Level: 3},
			{Application: app, User: "ann", Verb: intents.Priority, Level: 9},
		} {
			if err := intents.Record(ctx, f.store, i); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		asked := f.calls()
		if n := waiting(t, f); n != 0 || len(asked) != 2 || asked[1].Level != 9 {
			t.Errorf("%d wait; asked for %+v", n, asked)
		}
	})
}

// A round over many intents takes long. Intents removed meanwhile, since a newer one was carried out, are not carried
// out by it.
func TestDeletedIntentIsNotExecuted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		later := intents.Intent{Application: app, User: "ann", Verb: intents.Priority, Level: 3}
		f.is(subcluster.StateActive, func() (bool, error) {
			if f.asked[len(f.asked)-1].Verb == intents.Kill { // meanwhile
				words, err := intents.Earlier(ctx, f.store, later)
				if err == nil {
					err = intents.AtOthers(ctx, f.store, later, "a", words, nil)
				}
				if err != nil {
					t.Error(err)
				}
			}
			return true, nil
		})
		for _, i := range []intents.Intent{kill("bob", ""), later} {
			if err := intents.Record(ctx, f.store, i); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if asked := f.calls(); len(asked) != 1 {
			t.Errorf("carried out were %+v", asked)
		}
	})
}

// A home that comes back with a full disk accepts no change until there is space; the intent waits. It also waits if
// a member with a UAM is full, for a change that home made at once.
func TestIntentWaitsOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ctx := start(t)
		full := &creel.Error{Kind: creel.ErrReadOnly, What: "the ResourceManager is read-only"}
		f.is(subcluster.StateActive, func() (bool, error) { return false, full })
		later := intents.Intent{Application: app, User: "ann", Verb: intents.Priority, Level: 3}
		if err := intents.Record(ctx, f.store, later); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		list, err := intents.Waiting(ctx, f.store, app)
		if err != nil || len(list) != 1 || list[0].Refused != "" {
			t.Fatalf("while the disk is full: %+v, %v", list, err)
		}
		f.is(subcluster.StateActive, func() (bool, error) { return true, nil })
		time.Sleep(time.Minute)
		if n := waiting(t, f); n != 0 {
			t.Errorf("%d wait when there is room", n)
		}
		_, err = f.store.SaveUAMRecord(ctx, statestore.UAMRecord{
			Attempt: creel.AttemptID{Application: app, Attempt: 1}, Home: "a",
			UAMs: []statestore.UAM{{Member: "b", Phase: "running"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		err = intents.AtOthers(ctx, f.store, later, "a", nil, func(context.Context, intents.Part) error { return full })
		if list, e := intents.Waiting(ctx, f.store, app); err != nil || e != nil || len(list) != 1 || list[0].Member != "b" {
			t.Errorf("on record for the UAM: %+v, %v, %v", list, err, e)
		}
	})
}

// An intent for a removed subcluster is refused, which can be read for an hour; an intent for one that is merely
// silent waits.
func TestIntentForRemovedSubclusterEnds(t *testing.T) {
	ctx := t.Context()
	now := time.Now()
	s := memory.New(memory.NewState("test", nil), func() time.Time { return now })
	if _, _, err := s.Claim(ctx, app, "gone", nil); err != nil {
		t.Fatal(err)
	}
	if err := intents.Record(ctx, s, kill("ann", "")); err != nil {
		t.Fatal(err)
	}
	var view *subcluster.View
	loop := intents.New(s, intents.Config{
		View: func() *subcluster.View { return view },
		Do: func(context.Context, *subcluster.Status, intents.Intent) (bool, error) {
			return false, creel.ErrUnavailable
		},
	})
	is := func(when, want string, of ...subcluster.Status) {
		t.Helper()
		view = subcluster.NewView(now, append(of, subcluster.Status{
			Member: subcluster.Member{ID: "there"}, State: subcluster.StateActive,
		}), nil)
		for range 2 {
			if err := loop.Round(ctx); err != nil {
				t.Fatal(err)
			}
		}
		list, err := intents.Waiting(ctx, s, app)
		if err != nil || len(list) != 1 || list[0].Refused != want {
			t.Errorf("%s: %+v, %v; want it refused by %q", when, list, err, want)
		}
	}
	is("it is silent", "", subcluster.Status{Member: subcluster.Member{ID: "gone"}, State: subcluster.StateLost})
	is("the store has lost it", "")
	if err := statestore.NoteRemoval(ctx, s, "gone", "ann"); err != nil {
		t.Fatal(err)
	}
	is("it has come back", "", subcluster.Status{Member: subcluster.Member{ID: "gone"}, State: subcluster.StateDraining})
	is("it is removed, and routers remember it", "subcluster gone was removed from the federation",
		subcluster.Status{Member: subcluster.Member{ID: "gone"}, State: subcluster.StateLost, Forgotten: true})
	now = now.Add(59 * time.Minute)
	is("an hour later", "subcluster gone was removed from the federation")
	now = now.Add(2 * time.Minute)
	if err := loop.Round(ctx); err != nil {
		t.Fatal(err)
	}
	if list, err := intents.Waiting(ctx, s, app); err != nil || len(list) != 0 {
		t.Errorf("after that there is %+v, %v", list, err)
	}
}
