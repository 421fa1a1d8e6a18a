// SPDX-License-Identifier: Apache-2.0

package redisstate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/state/statetest"
)

// writer saves one key after the other until it is stopped. acknowledged is complete when stop returns.
type writer struct {
	acknowledged map[string]string
	err          error
	saved        chan int // number of the last key, if the test receives it
	stop         chan struct{}
	ended        chan struct{}
}

func write(h *statetest.Holder) *writer {
	w := &writer{
		acknowledged: map[string]string{}, saved: make(chan int),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go func() {
		defer close(w.ended)
		for i := 0; ; i++ {
			key := fmt.Sprint("key", i)
			if w.err = h.Save(statetest.Put(key, key)); w.err != nil {
				return
			}
			w.acknowledged[key] = key
			select {
			case w.saved <- i:
			case <-w.stop:
				return
			default:
			}
		}
	}()
	return w
}

// some waits until a few keys more are saved.
func (w *writer) some(t *testing.T) {
	t.Helper()
	for first := <-w.saved; <-w.saved < first+20; {
	}
}

func (w *writer) end(t *testing.T) {
	t.Helper()
	close(w.stop)
	<-w.ended
	if w.err != nil {
		t.Fatal(w.err)
	}
}

func expect(t *testing.T, d statetest.Deployment, want map[string]string) {
	t.Helper()
	if got := d.Content(t); !maps.Equal(got, want) {
		t.Fatalf("the next holder reads %d entries, and %d were acknowledged", len(got), len(want))
	}
}

// A server with appendfsync always is killed and paused under load. The holder continues, and nothing that was
// acknowledged is missing.
func TestKilledServerLosesNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	d := deployment(server.URL(), 0, 10*time.Millisecond)
	h := d.Start(t)
	w := write(h)
	for range 3 {
		w.some(t)
		server.Kill()
		server.Restart()
		w.some(t)
		server.Pause()
		time.Sleep(1500 * time.Millisecond) // longer than the time of an exchange
		server.Resume()
	}
	w.some(t)
	w.end(t)
	if err := h.End(); err != nil {
		t.Fatal(err)
	}
	expect(t, d, w.acknowledged)
}

// With wait=1, a primary that dies takes nothing with it that was acknowledged.
func TestFailoverWithWaitLosesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	d := deployment(s.URL(), 1, 10*time.Millisecond)
	h := d.Start(t)
	w := write(h)
	w.some(t)
	s.Primary.Kill()
	s.AwaitFailover()
	s.Primary.Restart() // as a replica: without one nothing is acknowledged
	s.Primary.Do("REPLICAOF", "127.0.0.1", s.Replica.Port())
	w.some(t)
	w.end(t)
	if err := h.End(); err != nil {
		t.Fatal(err)
	}
	expect(t, d, w.acknowledged)
}

// A server that comes back with older data, or empty, ends the holder: later changes would rest on lost ones.
func TestLostWritesEndTheHolder(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(s *redistest.Server, older []byte){
		"older":   func(s *redistest.Server, older []byte) { s.GoBack(older) },
		"emptied": func(s *redistest.Server, _ []byte) { s.Do("FLUSHALL") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			d := deployment(server.URL(), 0, time.Hour)
			h := d.Start(t)
			if err := h.Save(statetest.Put("a", "1")); err != nil {
				t.Fatal(err)
			}
			older := server.Snapshot()
			if err := h.Save(statetest.Put("a", "2")); err != nil {
				t.Fatal(err)
			}
			lose(server, older)
			if err := h.Confirm(t.Context()); !errors.Is(err, state.ErrLost) {
				t.Errorf("the holder was confirmed with %v", err)
			}
			if err := h.Save(statetest.Put("b", "1")); !errors.Is(err, state.ErrLost) {
				t.Errorf("a transaction was answered %v", err)
			}
			if err := h.Ended(); !errors.Is(err, state.ErrLost) {
				t.Errorf("Run returned %v", err)
			}
			if got := d.Content(t); got["b"] != "" {
				t.Errorf("the refused transaction is there: %v", got)
			}
		})
	}
}

// A holder that writes nothing notices that another process has opened the state. The error names that process.
func TestIdleHolderNoticesItsFence(t *testing.T) {
	t.Parallel()
	d := deployment(redistest.Start(t).URL(), 0, 10*time.Millisecond)
	first := d.Start(t)
	second := d.Start(t)
	if err := first.Ended(); !errors.Is(err, state.ErrFenced) || !strings.Contains(err.Error(), "holder 2") {
		t.Errorf("Run returned %v", err)
	}
	if err := second.End(); err != nil {
		t.Fatal(err)
	}
}

// The holder is cut off with a transaction under way, and another process opens the state. When the path is whole
// again, the transaction is refused.
func TestHolderThatWasCutOffIsFenced(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	path := redistest.NewProxy(t, server.Addr)
	name := fmt.Sprint("cut", names.Add(1))
	through := func(address, holder string) statetest.Deployment {
		return statetest.Deployment{Open: func() (state.Log, error) {
			conf := redis.Config{URL: "redis://" + address, Timeout: 100 * time.Millisecond}
			return Open(context.Background(), Config{Redis: conf, Name: name, Holder: holder, Check: time.Hour})
		}}
	}
	first := through(path.Addr, "first").Start(t)
	if err := first.Save(statetest.Put("a", "1")); err != nil {
		t.Fatal(err)
	}
	path.Cut()
	late := make(chan error, 1)
	var tx state.Tx
	tx.Put("a", []byte("too late"))
	first.Commit(&tx, func(err error) { late <- err })
	direct := through(server.Addr, "second")
	second := direct.Start(t)
	if err := second.Save(statetest.Put("b", "2")); err != nil {
		t.Fatal(err)
	}
	path.Heal()
	if err := <-late; !errors.Is(err, state.ErrFenced) {
		t.Errorf("the late transaction was answered %v", err)
	}
	if err := first.Ended(); !errors.Is(err, state.ErrFenced) {
		t.Errorf("Run of the first holder returned %v", err)
	}
	if err := second.End(); err != nil {
		t.Fatal(err)
	}
	expect(t, direct, map[string]string{"a": "1", "b": "2"})
}

// A group whose answer was lost is sent again, and applied once.
func TestRepeatedGroupIsAppliedOnce(t *testing.T) {
	t.Parallel()
	d := deployment(redistest.Start(t).URL(), 0, time.Hour)
	opened, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	l := opened.(*Log)
	group := func(number int64, value string) error {
		var tx state.Tx
		tx.Put("a", []byte(value))
		return l.write(t.Context(), number, tx.Bytes())
	}
	for _, value := range []string{"first", "repeated"} {
		if err := group(1, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := group(3, "after a missing group"); !errors.Is(err, state.ErrLost) {
		t.Errorf("a group after a missing one was answered %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, d, map[string]string{"a": "first"})
}

// A state that a newer version wrote is left alone.
func TestUnknownLayoutIsRefused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := deployment(server.URL(), 0, time.Hour)
	h := d.Start(t)
	if err := h.End(); err != nil {
		t.Fatal(err)
	}
	meta := h.Log.(*Log).keys[0]
	epoch := server.Do("HGET", meta, "epoch")
	server.Do("HSET", meta, "layout", "2")
	if _, err := d.Open(); err == nil || !strings.Contains(err.Error(), "layout 2") {
		t.Fatalf("Open returned %v", err)
	}
	if now := server.Do("HGET", meta, "epoch"); now != epoch {
		t.Errorf("the epoch was %v and is %v", epoch, now)
	}
}
