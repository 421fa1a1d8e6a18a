// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/login"
)

// recorder is a store that records an agent's calls, with the time since the start, and returns preset answers.
type recorder struct {
	began time.Time

	mu    sync.Mutex
	lines []string
	fail  error // of the store
	serve error // of the ResourceManager
}

func (b *recorder) set(fail, serve error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail, b.serve = fail, serve
}

func (b *recorder) probe(context.Context) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return []byte("load"), b.serve
}

func (b *recorder) record(what string, id creel.SubclusterID, epoch int64, load string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id != "sc-1" || epoch != 7 {
		what += " of somebody else"
	}
	b.lines = append(b.lines, time.Since(b.began).String()+" "+what+" "+load)
	return b.fail
}

func (b *recorder) NextEpoch(
	_ context.Context,
	id creel.SubclusterID,
	previous int64,
	takeOver bool,
) (int64, error) {
	what := "epoch"
	if previous != 0 {
		what += fmt.Sprint(" after ", previous)
	}
	if takeOver {
		what += " by force"
	}
	return 7, b.record(what, id, 7, "")
}

func (b *recorder) Register(_ context.Context, m subcluster.Member) error {
	return b.record("register", m.ID, m.Epoch, m.Capability)
}

func (b *recorder) Heartbeat(_ context.Context, heartbeat subcluster.Heartbeat) error {
	return b.record("heartbeat", heartbeat.ID, heartbeat.Epoch, string(heartbeat.Load))
}

func (b *recorder) Deregister(_ context.Context, id creel.SubclusterID, epoch int64) error {
	return b.record("deregister", id, epoch, "")
}

// take returns the lines since the last call.
func (b *recorder) take() []string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := b.lines
	b.lines = nil
	return lines
}

// play runs an agent in made time: heartbeats every second, lease nine.
func play(t *testing.T, change func(*Agent), story func(b *recorder, ended <-chan error)) string {
	t.Helper()
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		b := &recorder{began: time.Now()}
		a := &Agent{
			Member: subcluster.Member{ID: "sc-1", Lease: 9 * time.Second},
			Store:  b,
			Every:  time.Second,
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Probe:  b.probe,
		}
		if change != nil {
			change(a)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		story(b, ended)
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

func TestAgentRegistersAndSendsHeartbeats(t *testing.T) {
	log := play(t, nil, func(b *recorder, _ <-chan error) {
		time.Sleep(2500 * time.Millisecond)
		same(t, b.take(), "0s epoch ", "0s register load", "0s heartbeat load", "1s heartbeat ", "2s heartbeat ")
	})
	if log != "" {
		t.Errorf("logged %s", log)
	}
}

// A load is sent again only when it is another, and each tenth time, for a store that
// may have lost it.
func TestAgentSendsALoadThatChanged(t *testing.T) {
	play(t, nil, func(b *recorder, _ <-chan error) {
		time.Sleep(22500 * time.Millisecond)
		var sent []string
		for _, line := range b.take() {
			if at, ok := strings.CutSuffix(line, " heartbeat load"); ok {
				sent = append(sent, at)
			}
		}
		same(t, sent, "0s", "10s", "20s")
	})
}

// A large change after a quiet period is sent at the next check, and repeated changes at most four times from one
// heartbeat to the next.
func TestAgentPublishesLargeChangesAtOnce(t *testing.T) {
	began := time.Now()
	var told time.Duration // since the start, when the load was read last
	changes := []time.Duration{1320, 1400, 1700, 2760}
	play(t, func(a *Agent) {
		began = time.Now()
		probe := a.Probe
		a.Probe = func(ctx context.Context) ([]byte, error) {
			told = time.Since(began)
			return probe(ctx)
		}
		a.Changed = func(context.Context) bool {
			return slices.ContainsFunc(changes, func(ms time.Duration) bool {
				at := ms * time.Millisecond
				return told < at && at <= time.Since(began)
			})
		}
	}, func(b *recorder, _ <-chan error) {
		time.Sleep(3100 * time.Millisecond)
		var sent []string
		for _, line := range b.take() {
			if at, ok := strings.CutSuffix(line, " heartbeat "); ok {
				sent = append(sent, at)
			}
		}
		same(t, sent, "1s", "1.35s", "1.6s", "1.85s", "2s", "2.8s", "3s")
	})
}

// Without a time of its own it sends three heartbeats a lease.
func TestAgentSendsThreeHeartbeatsALease(t *testing.T) {
	play(t, func(a *Agent) { a.Every = 0 }, func(b *recorder, _ <-chan error) {
		time.Sleep(7 * time.Second)
		same(t, b.take(), "0s epoch ", "0s register load", "0s heartbeat load", "3s heartbeat ", "6s heartbeat ")
	})
}

// A ResourceManager that falls silent makes the agent silent: its lease must
// run out. One that never served is not registered.
func TestAgentIsSilentWithItsResourceManager(t *testing.T) {
	log := play(t, nil, func(b *recorder, _ <-chan error) {
		b.take()
		b.set(nil, errors.New("connection refused"))
		time.Sleep(5500 * time.Millisecond)
		same(t, b.take())
		b.set(nil, nil)
		time.Sleep(time.Second)
		same(t, b.take(), "6s heartbeat ")
	})
	if strings.Count(log, "its ResourceManager does not serve: connection refused") != 1 ||
		strings.Count(log, "membership restored") != 1 {
		t.Errorf("trouble is told once and its end once:\n%s", log)
	}
}

// While the store is away the agent goes on trying. It registers again when the store does not know it.
func TestAgentAndTheStore(t *testing.T) {
	play(t, nil, func(b *recorder, _ <-chan error) {
		time.Sleep(500 * time.Millisecond)
		b.take()
		b.set(&creel.Error{Kind: creel.ErrUnavailable, What: "the store is away"}, nil)
		time.Sleep(2 * time.Second)
		same(t, b.take(), "1s heartbeat ", "2s heartbeat load")
		b.set(&creel.Error{Kind: creel.ErrNotRegistered, What: "no such member"}, nil)
		time.Sleep(time.Second)
		same(t, b.take(), "3s heartbeat load")
		b.set(nil, nil)
		time.Sleep(2 * time.Second)
		same(t, b.take(), "4s register load", "4s heartbeat load", "5s heartbeat ")
	})
	// Nor is a registration that failed taken for done.
	away := func(a *Agent) {
		a.Store.(*recorder).set(&creel.Error{Kind: creel.ErrUnavailable, What: "the store is away"}, nil)
	}
	play(t, away, func(b *recorder, _ <-chan error) {
		time.Sleep(1500 * time.Millisecond)
		b.set(nil, nil)
		time.Sleep(2 * time.Second)
		same(t, b.take(), "0s epoch ", "1s epoch ", "2s epoch ", "2s register load", "2s heartbeat load", "3s heartbeat ")
	})
}

// A later epoch of the member is there: this one must stop.
func TestAgentStopsForALaterEpoch(t *testing.T) {
	later := func(a *Agent) {
		a.Store.(*recorder).set(&creel.Error{Kind: creel.ErrStale, What: "epoch 8 is registered"}, nil)
	}
	play(t, later, func(_ *recorder, ended <-chan error) {
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if len(ended) != 1 {
			t.Fatal("it goes on")
		}
	})
}

// A planned stop may deregister; a crash leaves the member to its lease.
func TestAgentLeaves(t *testing.T) {
	for _, leave := range []bool{false, true} {
		var b2 *recorder
		play(t, func(a *Agent) { a.Leave = leave }, func(b *recorder, _ <-chan error) {
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

// The successor of a process proves it by the stored epoch; its new one is durable before it is used.
func TestAgentKeepsItsEpochBeforeItRegisters(t *testing.T) {
	var kept []int64
	change := func(a *Agent) {
		a.Previous, a.TakeOver = 5, true
		a.Keep = func(_ context.Context, epoch int64) error {
			kept = append(kept, epoch)
			if len(kept) == 1 {
				return errors.New("the disk is full")
			}
			return nil
		}
	}
	play(t, change, func(b *recorder, _ <-chan error) {
		time.Sleep(1500 * time.Millisecond)
		same(t, b.take(), "0s epoch after 5 by force ", "1s epoch after 5 by force ",
			"1s register load", "1s heartbeat load")
	})
	if !slices.Equal(kept, []int64{7, 7}) {
		t.Errorf("kept %v", kept)
	}
}

// Errors of calls are logged in words.
func TestAgentLogsAnUnreachableManagerInWords(t *testing.T) {
	web := &WebMember{Web: NewWebPort(subcluster.Addresses{Web: closedAddress}, login.Login{}, nil)}
	log := play(t, func(a *Agent) {
		a.Probe = func(context.Context) ([]byte, error) {
			_, err := web.Probe(context.Background())
			return nil, err
		}
	}, func(*recorder, <-chan error) { time.Sleep(500 * time.Millisecond) })
	if !strings.Contains(log, "connection refused: no server listens there") {
		t.Errorf("the log lacks the cause: %s", log)
	}
	for _, raw := range []string{"Get ", "http://", "dial tcp"} {
		if strings.Contains(log, raw) {
			t.Errorf("the log has %q: %s", raw, log)
		}
	}
}
