// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/subcluster/rm"
)

// unowned returns a server that does not run yet.
func unowned(t *testing.T) *Server {
	t.Helper()
	s, err := New(Config{
		ClusterID:         "test",
		Machine:           rm.Defaults(),
		HeartbeatInterval: time.Second,
		Groups:            groups.New(func(user string) []string { return []string{user} }, time.Minute),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Server) poked() bool {
	select {
	case <-s.box.wake:
		return true
	default:
		return false
	}
}

// A caller that finds the machine without an owner has the response when call returns. It wakes the owner's goroutine
// only for a deadline that the goroutine would miss.
func TestACallerOwnsTheMachineForATurn(t *testing.T) {
	s := unowned(t)
	defer s.Close()
	var answered []string
	answer := func(what string) event {
		return func(*rm.Machine, time.Time) func() { return func() { answered = append(answered, what) } }
	}
	call := func(e event) {
		t.Helper()
		if err := s.call(e); err != nil {
			t.Fatal(err)
		}
	}
	call(answer("one"))
	if len(answered) != 1 || s.poked() {
		t.Errorf("answered %q; the owner must not be woken", answered)
	}

	// A node that must send a heartbeat sets a deadline of the machine.
	if !s.owner.Machine.NextDeadline().IsZero() {
		t.Fatal("an empty machine has a deadline")
	}
	node := func(m *rm.Machine, now time.Time) func() {
		if _, err := m.RegisterNode(
			now,
			&rm.RegisterNode{ID: creel.NodeID{Host: "n", Port: 1}, Resource: creel.NewResource(1024, 1)},
		); err != nil {
			t.Error(err)
		}
		return nil
	}
	call(node)
	if !s.poked() {
		t.Error("nobody will wake for the node's end")
	}
	s.owner.armed = s.owner.Machine.NextDeadline()
	call(answer("two"))
	if len(answered) != 2 || s.poked() {
		t.Errorf("answered %q; the owner knows the deadline", answered)
	}

	// While another owns the machine the event waits for that one.
	s.owner.Lock()
	call(answer("three"))
	if len(answered) != 2 || s.box.empty() || s.poked() {
		t.Errorf("answered %q while another owned the machine", answered)
	}
	s.owner.Unlock()
	// That one had to look into the mailbox. Of two answers the responders have both.
	call(answer("four"))
	if len(answered) != 2 || !s.box.empty() {
		t.Errorf("answered %q; two answers are the responders'", answered)
	}
	for _, send := range <-s.answers {
		send()
	}
	if len(answered) != 4 || answered[2] != "three" || answered[3] != "four" {
		t.Errorf("answered %q", answered)
	}
}

// Many call and post at a time: each event is run once and answered, and no two
// are run at a time.
func TestManyCallAndPost(t *testing.T) {
	s := unowned(t)
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-s.Ready()
	const callers, each = 16, 300
	turns := 0 // no lock: the owner's
	var work sync.WaitGroup
	for w := range callers {
		work.Go(func() {
			hand := s.call
			if w%4 == 0 {
				hand = s.box.post
			}
			for range each {
				done := make(chan struct{})
				if err := hand(
					func(*rm.Machine, time.Time) func() { turns++; return func() { close(done) } },
				); err != nil {
					t.Error(err)
					return
				}
				<-done
			}
		})
	}
	work.Wait()
	s.owner.Lock()
	if turns != callers*each {
		t.Errorf("%d events ran, %d were handed in", turns, callers*each)
	}
	s.owner.Unlock()
}

// Three hundred clients ask for a list and reset their connections before the owner gets to it.
func TestQueryOfGoneClientRunsNothing(t *testing.T) {
	s := unowned(t)
	defer s.Close()
	gone, leave := context.WithCancel(t.Context())
	made := 0
	list := func(*rm.Machine, time.Time) { made++ }
	var clients sync.WaitGroup
	for range 300 {
		clients.Go(func() {
			if err := s.Query(gone, list); err == nil {
				t.Error("a query of a client that has gone is answered")
			}
		})
	}
	leave()
	clients.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	if err := s.Query(ctx, list); err != nil || made != 1 {
		t.Errorf("%d lists were made, %v", made, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A client gives up while the owner makes its list.
func TestQueryEndsAfterItsFunction(t *testing.T) {
	s := unowned(t)
	defer s.Close()
	running, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(running) }()
	asked, leave := context.WithCancel(t.Context())
	made := false
	err := s.Query(asked, func(*rm.Machine, time.Time) {
		leave()
		time.Sleep(10 * time.Millisecond) // the client has the time to return too early
		made = true
	})
	if !made {
		t.Errorf("the query returned %v before its function", err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
