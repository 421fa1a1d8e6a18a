// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// sharedLog is a state that another process may have opened.
type sharedLog struct {
	state.Log
	fenced error
}

func (l *sharedLog) Each(func(key string, value []byte) error) error { return nil }

func (l *sharedLog) Confirm(context.Context) error { return l.fenced }

func (l *sharedLog) Close() error { return nil }

// After a pause, in which another process may have opened the state, the first turn asks the state before it answers
// anything. A server that is fenced never answers again.
func TestFencedServerAnswersNothingAfterPause(t *testing.T) {
	for _, c := range []struct {
		name   string
		fenced error
	}{{"still the holder", nil}, {"fenced", state.ErrFenced}} {
		t.Run(c.name, func(t *testing.T) {
			log := &sharedLog{fenced: c.fenced}
			s, err := New(Config{
				ClusterID: "test", Machine: rm.Defaults(), State: func() (state.Log, error) { return log, nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			s.durability.tx.Reset() // the record of the start, which only Run commits
			s.awake.Observe(time.Now().Add(-time.Minute))
			answers := 0
			for range 2 {
				event := func(*rm.Machine, time.Time) func() { return func() { answers++ } }
				if err := s.call(event); err != nil {
					t.Fatal(err)
				}
			}
			if want := 2; c.fenced == nil && answers != want || c.fenced != nil && answers != 0 {
				t.Errorf("%d events of two were answered", answers)
			}
			if err := s.turn(nil); !errors.Is(err, c.fenced) {
				t.Errorf("the next turn returned %v", err)
			}
		})
	}
}

// A turn was made while the process led, and its lease has ended before the answer is sent, or before the next turn.
func TestServerWithoutLeaseAnswersNothing(t *testing.T) {
	leads := true
	s, err := New(Config{
		ClusterID: "test", Machine: rm.Defaults(),
		Pair: &Pair{ID: "rm1", Leads: func() bool { return leads }},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	answers := 0
	event := func(*rm.Machine, time.Time) func() { return func() { answers++ } }
	if err := s.call(event); err != nil || answers != 1 {
		t.Fatalf("the leader sent %d answers: %v", answers, err)
	}
	lost := func(*rm.Machine, time.Time) func() {
		leads = false
		return func() { answers++ }
	}
	if err := s.call(lost); err != nil {
		t.Fatal(err)
	}
	if err := s.call(event); err != nil {
		t.Fatal(err)
	}
	if answers != 1 {
		t.Errorf("%d answers were sent without the lease", answers-1)
	}
	if err := s.turn(nil); !errors.Is(err, errNotLeading) {
		t.Errorf("the next turn returned %v", err)
	}
}
