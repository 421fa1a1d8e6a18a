// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/creelrm/creel/subcluster/rm/pair"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a lease and services that record their events.
type world struct {
	mu     sync.Mutex
	events []string
	holder string        // of the lease, if another process
	silent chan struct{} // not nil: the lease does not answer before it is closed
	begin  error
	failed chan error
	change chan struct{} // receives after each event, if the test waits
}

func newWorld() *world { return &world{failed: make(chan error, 1), change: make(chan struct{}, 1000)} }

func (w *world) add(event string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event)
	w.change <- struct{}{}
}

func (w *world) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

// await waits until the last events are as given.
func (w *world) await(t *testing.T, events ...string) {
	t.Helper()
	for {
		if got := w.list(); len(got) >= len(events) && slices.Equal(got[len(got)-len(events):], events) {
			return
		}
		select {
		case <-w.change:
		case <-t.Context().Done():
			t.Fatalf("the events are %q", w.list())
		}
	}
}

func (w *world) Ask(ctx context.Context, claim bool) pair.Answer {
	w.mu.Lock()
	holder, silent := w.holder, w.silent
	w.mu.Unlock()
	if silent != nil {
		select {
		case <-silent:
		case <-ctx.Done():
			return pair.Answer{Err: ctx.Err()}
		}
	}
	if holder != "" {
		return pair.Answer{Holder: holder, Left: time.Hour}
	}
	return pair.Answer{Won: claim}
}

func (w *world) Release(context.Context) error { w.add("release"); return nil }
func (w *world) Failed() <-chan error          { return w.failed }
func (w *world) Stop() error                   { w.add("stop"); return nil }
func (w *world) Follow(context.Context) error  { return nil }
func (w *world) Begin() (Services, error)      { w.add("begin"); return w, w.begin }
func (w *world) set(change func(w *world))     { w.mu.Lock(); defer w.mu.Unlock(); change(w) }
func (w *world) run(t *testing.T, c pair.Config) (s *Server, end func()) {
	s = New(Config{Pair: c, ID: "rm1", Lease: w, Follow: w.Follow, Begin: w.Begin})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	end = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return s, end
}

// awaitRole waits until the driver's status has a role.
func awaitRole(t *testing.T, s *Server, role pair.Role) {
	t.Helper()
	for s.Status().Role != role {
		if t.Context().Err() != nil {
			t.Fatalf("its role is %v", s.Status().Role)
		}
		time.Sleep(time.Millisecond)
	}
}

// The end of the process, and an order, end the services before the lease is released.
func TestServicesEndBeforeLeaseIsReleased(t *testing.T) {
	t.Run("end of the process", func(t *testing.T) {
		w := newWorld()
		s, end := w.run(t, pair.Config{Automatic: true, Lease: time.Hour})
		awaitRole(t, s, pair.Active)
		if !s.Leads() {
			t.Error("the active one does not lead")
		}
		end()
		if got := w.list(); !slices.Equal(got, []string{"begin", "stop", "release"}) {
			t.Errorf("the events are %q", got)
		}
		if s.Leads() {
			t.Error("it leads after its end")
		}
	})
	t.Run("order", func(t *testing.T) {
		w := newWorld()
		s, _ := w.run(t, pair.Config{Lease: time.Hour})
		if err := s.Lead(t.Context()); err != nil || s.Status().Role != pair.Active {
			t.Fatalf("ordered to lead it is %v: %v", s.Status().Role, err)
		}
		if err := s.StandBy(t.Context()); err != nil || s.Status().Role != pair.Standby || s.Leads() {
			t.Fatalf("ordered to stand by it is %v: %v", s.Status().Role, err)
		}
		w.await(t, "begin", "stop", "release")
	})
}

// The lease falls silent. The services end although no answer says that the lease is lost.
func TestSilentLeaseEndsTheServices(t *testing.T) {
	w := newWorld()
	s, _ := w.run(t, pair.Config{Automatic: true, Lease: 400 * time.Millisecond})
	w.await(t, "begin")
	silent := make(chan struct{})
	w.set(func(w *world) { w.silent = silent })
	w.await(t, "stop", "release")
	if s.Leads() {
		t.Error("it leads after its services have ended")
	}
}

func TestFailedServicesReleaseTheLease(t *testing.T) {
	w := newWorld()
	s, _ := w.run(t, pair.Config{Automatic: true, Lease: time.Hour})
	awaitRole(t, s, pair.Active)
	w.failed <- errors.New("fenced")
	w.await(t, "begin", "stop", "release")
	awaitRole(t, s, pair.Standby)
}

func TestServicesThatDoNotStartReleaseTheLease(t *testing.T) {
	w := newWorld()
	w.begin = errors.New("a port is in use")
	s, _ := w.run(t, pair.Config{Automatic: true, Lease: time.Hour})
	w.await(t, "begin", "release")
	awaitRole(t, s, pair.Standby)
	if s.Leads() {
		t.Error("it leads without services")
	}
}

// An order to lead fails while another process has the lease, and names it.
func TestOrderToLeadNamesTheHolder(t *testing.T) {
	w := newWorld()
	w.holder = "rm2"
	s, _ := w.run(t, pair.Config{Lease: 50 * time.Millisecond})
	if err := s.Lead(t.Context()); err == nil || !strings.Contains(err.Error(), "rm2") {
		t.Errorf("the answer is %v", err)
	}
	if got := w.list(); len(got) > 0 {
		t.Errorf("the events are %q", got)
	}
}
