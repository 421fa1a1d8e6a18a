// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/statestore/storetest"
	"github.com/creelrm/creel/subcluster"
)

// request and answer of one operation in a history.
type request struct {
	op    string // claim, move, acquire, write
	key   string // its subject; histories of different keys are checked apart
	a, b  string // claim: member; move: from, to; acquire: holder
	token int64  // write: the token it carries
}

type answer struct {
	is      string // home or holder
	number  int64  // claim: its number
	token   int64
	refused bool // conflict or stale
	unknown bool // may or may not have happened
}

// state of a home (is, number) or of a lease (is, token). loose: the token is some number above token, issued by an
// Acquire whose answer was lost.
type state struct {
	is     string
	number int64
	token  int64
	loose  bool
}

// The sequential truth that a concurrent history must be explained by.
var truth = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, o := range history {
			k := o.Input.(request).key
			byKey[k] = append(byKey[k], o)
		}
		var parts [][]porcupine.Operation
		for _, p := range byKey {
			parts = append(parts, p)
		}
		return parts
	},
	Init: func() any { return state{} },
	Step: func(s, in, out any) (bool, any) {
		st, r, a := s.(state), in.(request), out.(answer)
		switch r.op {
		case "claim":
			made := st.is == ""
			if made {
				st.is = r.a
			}
			if a.unknown {
				return true, st
			}
			// Claims whose answers were lost took numbers too, so numbers rise by one or more; only the claim that
			// made the record has the first.
			ok := a.is == st.is && a.number > st.number && (made || a.number > 1)
			st.number = a.number
			return ok, st
		case "move":
			ok := st.is == r.a || st.is == r.b
			if ok && st.is != r.b {
				st.is = r.b
				st.number++
			}
			return a.unknown || a.refused == !ok && a.is == st.is, st
		case "acquire":
			switch {
			case a.unknown:
				return true, state{is: r.a, token: st.token, loose: true}
			case a.refused:
				return st.is == a.is && st.is != r.a, st
			}
			same := st.is == r.a && !st.loose && st.token == a.token
			return same || a.token > st.token, state{is: r.a, token: a.token}
		case "write":
			if a.refused {
				return r.token < st.token || st.loose && r.token <= st.token, st
			}
			return r.token > st.token || r.token == st.token && !st.loose, st
		}
		panic(r.op)
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string {
		return fmt.Sprintf("%+v -> %+v", in, out)
	},
}

// history collects operations of many clients.
type history struct {
	began time.Time
	mu    sync.Mutex
	ops   []porcupine.Operation
	acked atomic.Int64
}

func (h *history) now() int64 { return int64(time.Since(h.began)) }

// do runs one operation as one client and records it. An answer that is unknown
// may take effect at any later time.
func (h *history) do(client int, r request, run func() answer) answer {
	call := h.now()
	a := run()
	ret := h.now()
	if a.unknown {
		if r.op == "write" {
			return a // it changes nothing that we model
		}
		ret = 1 << 62
	} else {
		h.acked.Add(1)
	}
	h.record(client, r, call, a, ret)
	return a
}

func (h *history) record(client int, r request, call int64, a answer, ret int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: r, Call: call, Output: a, Return: ret})
}

// clients run random requests against stores until stop is closed.
func (h *history) clients(t *testing.T, stores []*redis.Store, stop <-chan struct{}) {
	const n, together = 8, 60
	var wg sync.WaitGroup
	var turn atomic.Int64
	for c := range n {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 42))
			s := stores[c%len(stores)]
			var lease statestore.Lease
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(r.IntN(4000)) * time.Microsecond):
				}
				ctx, cancel := context.WithTimeout(t.Context(), 800*time.Millisecond)
				// All clients work on one application and one lease, and go on to new
				// ones after a while, or when an outcome is unknown: an operation
				// that may happen at any time, now or later, doubles the orders to
				// try, so no history may have many of them.
				round := int(turn.Add(1) / together)
				app, name := storetest.App(round), fmt.Sprintf("lease-%d", round)
				unsure := false
				pick := func() string { return fmt.Sprintf("sc-%d", r.IntN(3)) }
				switch k := r.IntN(10); {
				case k < 4:
					m := pick()
					asked := request{op: "claim", key: app.String(), a: m}
					began, repeats := h.now(), s.Stats().Retries
					unsure = h.do(c, asked, func() answer {
						is, number, err := s.Claim(ctx, app, creel.SubclusterID(m), nil)
						a := outcome(t, string(is), 0, err)
						a.number = number
						return a
					}).unknown
					if s.Stats().Retries > repeats {
						// A claim that is sent again is as two claims, of which the
						// first one's answer was lost.
						h.record(c, asked, began, answer{unknown: true}, 1<<62)
						unsure = true
					}
				case k < 7:
					from, to := pick(), pick()
					unsure = h.do(c, request{op: "move", key: app.String(), a: from, b: to}, func() answer {
						is, err := s.Move(ctx, app, creel.SubclusterID(from), creel.SubclusterID(to), 0, nil)
						return outcome(t, string(is), 0, err)
					}).unknown
				case k < 8:
					holder := fmt.Sprintf("client-%d", c)
					unsure = h.do(c, request{op: "acquire", key: name, a: holder}, func() answer {
						l, err := s.Acquire(ctx, name, holder, 20*time.Millisecond)
						if err == nil {
							lease = l
						}
						return outcome(t, l.Holder, l.Token, err)
					}).unknown
				case lease.Token != 0:
					h.do(c, request{op: "write", key: lease.Name, token: lease.Token}, func() answer {
						err := s.Register(statestore.Under(ctx, lease), leaseMember)
						return outcome(t, "", 0, err)
					})
				}
				cancel()
				if next := int64(round+1) * together; unsure {
					for now := turn.Load(); now < next && !turn.CompareAndSwap(now, next); now = turn.Load() {
					}
				}
			}
		})
	}
	wg.Wait()
}

// outcome sorts an error into the kinds that the model knows.
func outcome(t *testing.T, is string, token int64, err error) answer {
	switch {
	case err == nil:
		return answer{is: is, token: token}
	case errors.Is(err, creel.ErrConflict),
		errors.Is(err, creel.ErrStale),
		errors.Is(err, creel.ErrApplicationNotFound):
		return answer{is: is, refused: true}
	case errors.Is(err, creel.ErrUnavailable):
		return answer{unknown: true}
	}
	t.Errorf("a fault gave %v, which is not creel.ErrUnavailable", err)
	return answer{unknown: true}
}

// explain fails unless a sequential order explains the history.
func (h *history) explain(t *testing.T) {
	t.Helper()
	unknown := 0
	for _, o := range h.ops {
		if o.Output.(answer).unknown {
			unknown++
		}
	}
	t.Logf("%d operations, %d with unknown outcome", len(h.ops), unknown)
	if h.acked.Load() < 100 {
		t.Fatalf("only %d operations were acknowledged: the test shows nothing", h.acked.Load())
	}
	for _, part := range truth.Partition(h.ops) {
		switch porcupine.CheckOperationsTimeout(truth, part, time.Minute) {
		case porcupine.Unknown:
			t.Fatalf("the history of %s has too many unknown outcomes to be checked", part[0].Input.(request).key)
		case porcupine.Illegal:
			for _, o := range part {
				t.Logf(
					"client %d [%d..%d] %s",
					o.ClientId,
					o.Call/1000,
					o.Return/1000,
					truth.DescribeOperation(o.Input, o.Output),
				)
			}
			t.Fatalf("no sequential order explains the history of %s", part[0].Input.(request).key)
		}
	}
}

// progress waits until n more operations are acknowledged.
func (h *history) progress(t *testing.T, n int64) {
	t.Helper()
	for want := h.acked.Load() + n; h.acked.Load() < want; time.Sleep(time.Millisecond) {
		if t.Context().Err() != nil {
			t.Fatal("the clients make no progress")
		}
	}
}

// Claims, moves and leases stay linearizable while the one server, which writes
// its log through, is killed, paused and partitioned.
func TestHistoriesAreLinearizableThroughFaults(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	paths := []*redistest.Proxy{redistest.NewProxy(t, server.Addr), redistest.NewProxy(t, server.Addr)}
	var stores []*redis.Store
	for _, p := range paths {
		stores = append(stores, open(t, redis.Config{URL: "redis://" + p.Addr, Timeout: 100 * time.Millisecond}))
	}
	if err := stores[0].CheckSchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := &history{began: time.Now()}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { h.clients(t, stores, stop) })
	end := sync.OnceFunc(func() {
		close(stop)
		wg.Wait()
	})
	defer end()
	for range 2 {
		h.progress(t, 150)
		server.Kill()
		time.Sleep(50 * time.Millisecond)
		server.Restart()
		h.progress(t, 150)
		server.Pause()
		time.Sleep(250 * time.Millisecond)
		server.Resume()
		h.progress(t, 150)
		paths[0].Cut()
		h.progress(t, 100) // the other half goes on
		paths[0].Heal()
		paths[1].Silence()
		h.progress(t, 100)
		paths[1].Heal()
	}
	h.progress(t, 150)
	end()
	h.explain(t)
}

// With Wait=1 histories stay linearizable also through a failover, whatever ended the primary.
func TestHistoriesAreLinearizableThroughFailover(t *testing.T) {
	t.Parallel()
	faults := map[string]func(s *redistest.Sentinels){
		"killed":      func(s *redistest.Sentinels) { s.Primary.Kill() },
		"paused":      func(s *redistest.Sentinels) { s.Primary.Pause() },
		"partitioned": func(s *redistest.Sentinels) { s.Via.Cut() },
	}
	for _, name := range []string{"killed", "paused", "partitioned"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.StartSentinels(t)
			cfg := redis.Config{
				URL:         s.URL(),
				Wait:        1,
				WaitTimeout: 200 * time.Millisecond,
				Timeout:     200 * time.Millisecond,
			}
			stores := []*redis.Store{open(t, cfg), open(t, cfg)}
			for _, s := range stores {
				if err := s.CheckSchema(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			h := &history{began: time.Now()}
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() { h.clients(t, stores, stop) })
			end := sync.OnceFunc(func() {
				close(stop)
				wg.Wait()
			})
			defer end()
			h.progress(t, 200)
			faults[name](s)
			s.AwaitFailover()
			if name == "killed" {
				// The old primary comes back, and becomes the new one's replica.
				s.Primary.Restart()
			}
			s.Primary.Resume()
			s.Via.Heal()
			h.progress(t, 200) // needs a replica again, as Wait is 1
			end()
			h.explain(t)
		})
	}
}

var leaseMember = subcluster.Member{ID: "sc-0"}
