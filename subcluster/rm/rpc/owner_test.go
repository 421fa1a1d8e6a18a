// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
)

// unowned is a daemon that does not run yet.
func unowned(t *testing.T) *Daemon {
	t.Helper()
	d, err := New(Config{
		Client:            "127.0.0.1:0",
		Scheduler:         "127.0.0.1:0",
		Tracker:           "127.0.0.1:0",
		Admin:             "127.0.0.1:0",
		ClusterID:         "test",
		Machine:           rm.Defaults(),
		HeartbeatInterval: time.Second,
		Groups:            func(user string) []string { return []string{user} },
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *Daemon) poked() bool {
	select {
	case <-d.box.wake:
		return true
	default:
		return false
	}
}

// Who asks while nobody owns the machine has his answer when he returns, and
// wakes the owner's goroutine only for what it would sleep through.
func TestWhoAsksOwnsForATurn(t *testing.T) {
	d := unowned(t)
	defer d.Close()
	var said []string
	say := func(what string) event {
		return func(*rm.Machine, time.Time) func() { return func() { said = append(said, what) } }
	}
	ask := func(e event) {
		t.Helper()
		if err := d.ask(e); err != nil {
			t.Fatal(err)
		}
	}
	ask(say("one"))
	if len(said) != 1 || d.poked() {
		t.Errorf("answered %q; the owner must not be woken", said)
	}

	// A node that must beat again gives the machine something to do in time.
	if !d.m.NextDeadline().IsZero() {
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
	ask(node)
	if !d.poked() {
		t.Error("nobody will wake for the node's end")
	}
	d.owner.armed = d.m.NextDeadline()
	ask(say("two"))
	if len(said) != 2 || d.poked() {
		t.Errorf("answered %q; the owner knows the deadline", said)
	}

	// While another owns the machine he asks that one.
	d.owner.Lock()
	ask(say("three"))
	if len(said) != 2 || d.box.empty() || d.poked() {
		t.Errorf("answered %q while another owned the machine", said)
	}
	d.owner.Unlock()
	// That one had to look into the mailbox. Of two answers the responders have both.
	ask(say("four"))
	if len(said) != 2 || !d.box.empty() {
		t.Errorf("answered %q; two answers are the responders'", said)
	}
	for _, answer := range <-d.answers {
		answer()
	}
	if len(said) != 4 || said[2] != "three" || said[3] != "four" {
		t.Errorf("answered %q", said)
	}
}

// Many ask and post at a time: each event is run once and answered, and no two
// are run at a time.
func TestManyAskAndPost(t *testing.T) {
	d := unowned(t)
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- d.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-d.Ready()
	const callers, each = 16, 300
	turns := 0 // no lock: the owner's
	var work sync.WaitGroup
	for w := range callers {
		work.Go(func() {
			hand := d.ask
			if w%4 == 0 {
				hand = d.box.post
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
	d.owner.Lock()
	if turns != callers*each {
		t.Errorf("%d events ran, %d were handed in", turns, callers*each)
	}
	d.owner.Unlock()
}
