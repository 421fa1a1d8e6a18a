// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// book is a store that writes down what an agent says, with the time since the
// start, and answers as it is told. One goroutine at a time uses it.
type book struct {
	began time.Time
	lines []string
	fail  error
}

func (b *book) note(what string, id creel.SubclusterID, epoch int64, load string) error {
	if id != "sc-1" || epoch != 7 {
		what += " of somebody else"
	}
	b.lines = append(b.lines, time.Since(b.began).String()+" "+what+" "+load)
	return b.fail
}

func (b *book) Register(_ context.Context, m subcluster.Member) error {
	return b.note("register", m.ID, m.Epoch, m.Capability)
}

func (b *book) Beat(_ context.Context, beat subcluster.Beat) error {
	return b.note("beat", beat.ID, beat.Epoch, string(beat.Load))
}

func (b *book) Deregister(_ context.Context, id creel.SubclusterID, epoch int64) error {
	return b.note("deregister", id, epoch, "")
}

// take gives the lines since the last call.
func (b *book) take() []string {
	synctest.Wait()
	lines := b.lines
	b.lines = nil
	return lines
}

// play runs an agent in made time: beats every second, lease nine.
func play(t *testing.T, change func(*Agent), story func(b *book, serve *error, ended <-chan error)) string {
	t.Helper()
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		b := &book{began: time.Now()}
		var serve error
		a := &Agent{Member: subcluster.Member{ID: "sc-1", Epoch: 7, Lease: 9 * time.Second}, Store: b, Every: time.Second,
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Probe:  func(context.Context) ([]byte, error) { return []byte("load"), serve }}
		if change != nil {
			change(a)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		story(b, &serve, ended)
		cancel()
		synctest.Wait()
		if len(ended) == 0 {
			t.Error("the agent did not end")
		}
	})
	return log.String()
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestAgentRegistersAndBeats(t *testing.T) {
	log := play(t, nil, func(b *book, _ *error, _ <-chan error) {
		time.Sleep(2500 * time.Millisecond)
		same(t, b.take(), "0s register load", "1s beat load", "2s beat load")
	})
	if log != "" {
		t.Errorf("logged %s", log)
	}
}

// Without a time of its own it beats three times a lease.
func TestAgentBeatsThriceALease(t *testing.T) {
	play(t, func(a *Agent) { a.Every = 0 }, func(b *book, _ *error, _ <-chan error) {
		time.Sleep(7 * time.Second)
		same(t, b.take(), "0s register load", "3s beat load", "6s beat load")
	})
}

// A ResourceManager that falls silent makes the agent silent: its lease must
// run out. One that never served is not registered.
func TestAgentIsSilentWithItsResourceManager(t *testing.T) {
	log := play(t, nil, func(b *book, serve *error, _ <-chan error) {
		synctest.Wait()
		*serve = errors.New("connection refused")
		b.take()
		time.Sleep(5500 * time.Millisecond)
		same(t, b.take())
		*serve = nil
		time.Sleep(time.Second)
		same(t, b.take(), "6s beat load")
	})
	if strings.Count(log, "its ResourceManager does not serve: connection refused") != 1 || strings.Count(log, "well again") != 1 {
		t.Errorf("trouble is told once and its end once:\n%s", log)
	}
}

// The store away: it goes on trying, and registers again when the store says
// that it does not know it.
func TestAgentAndTheStore(t *testing.T) {
	play(t, nil, func(b *book, _ *error, _ <-chan error) {
		time.Sleep(500 * time.Millisecond)
		b.fail = &creel.Error{Kind: creel.ErrUnavailable, What: "the store is away"}
		b.take()
		time.Sleep(2 * time.Second)
		same(t, b.take(), "1s beat load", "2s beat load")
		b.fail = &creel.Error{Kind: creel.ErrNotRegistered, What: "no such member"}
		time.Sleep(time.Second)
		same(t, b.take(), "3s beat load")
		b.fail = nil
		time.Sleep(2 * time.Second)
		same(t, b.take(), "4s register load", "5s beat load")
	})
	// Nor is a registration that failed taken for done.
	play(t, nil, func(b *book, _ *error, _ <-chan error) {
		b.fail = &creel.Error{Kind: creel.ErrUnavailable, What: "the store is away"}
		time.Sleep(1500 * time.Millisecond)
		b.fail = nil
		time.Sleep(2 * time.Second)
		same(t, b.take(), "0s register load", "1s register load", "2s register load", "3s beat load")
	})
}

// A later life of the member is there: this one must stop.
func TestAgentStopsForALaterLife(t *testing.T) {
	play(t, nil, func(b *book, _ *error, ended <-chan error) {
		b.fail = &creel.Error{Kind: creel.ErrStale, What: "epoch 8 is registered"}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if len(ended) != 1 {
			t.Fatal("it goes on")
		}
	})
}

// A planned stop may say goodbye; a crash leaves the member to its lease.
func TestAgentLeaves(t *testing.T) {
	for _, leave := range []bool{false, true} {
		var b2 *book
		play(t, func(a *Agent) { a.Leave = leave }, func(b *book, _ *error, _ <-chan error) {
			time.Sleep(500 * time.Millisecond)
			b.take()
			b2 = b
		})
		want := []string(nil)
		if leave {
			want = []string{"500ms deregister "}
		}
		same(t, b2.lines, want...)
	}
}
