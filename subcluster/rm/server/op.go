// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel/subcluster/rm"
)

// Op is one call to the machine, with an answer of type T. Methods of Server that return an Op only describe it:
// Begin and Do perform it.
type Op[T any] struct {
	// Run is called by the owner. It must not block, and must copy every part of the machine that it retains (its
	// views are copies). The returned function makes the response without the machine, in a responder or the caller's
	// goroutine.
	Run func(m *rm.Machine, now time.Time) func() (T, error)

	durable bool   // answered after its changes are durable
	grows   bool   // adds a record to the journal: rejected while the disk is full
	name    string // name of a change, for its audit line
	target  string // target for that line
	again   *bool  // set by Run if the change was made and audited before: no line
}

// Then returns an Op whose response f derives from o's.
func Then[T, U any](o Op[T], f func(T) U) Op[U] {
	return Op[U]{
		durable: o.durable,
		grows:   o.grows,
		name:    o.name,
		target:  o.target,
		again:   o.again,
		Run: func(m *rm.Machine, now time.Time) func() (U, error) {
			answer := o.Run(m, now)
			return func() (u U, err error) {
				t, err := answer()
				if err != nil {
					return u, err
				}
				return f(t), nil
			}
		},
	}
}

// Failed is the answer of an Op that failed.
func Failed[T any](err error) func() (T, error) {
	return func() (t T, e error) { return t, err }
}

// Done is an immediate answer.
func Done[T any](t T) func() (T, error) { return func() (T, error) { return t, nil } }

// Begin posts an Op. It may wait for the caller's groups. finish is called once, from a responder, or at once if the Op
// is not accepted.
func Begin[T any](s *Server, who Caller, o Op[T], finish func(T, error)) {
	if !who.AM {
		s.access.learn(who.User)
	}
	err := s.box.post(func(m *rm.Machine, now time.Time) func() {
		var answer func() (T, error)
		var err error
		if o.grows {
			err = s.closed(0).ReadOnly()
		}
		if err != nil {
			answer = Failed[T](err)
		} else {
			answer = o.Run(m, now)
		}
		if o.name != "" {
			s.owner.Changed()
		} else {
			s.reads++
		}
		last := func() {
			t, err := answer()
			if o.name != "" && (err != nil || o.again == nil || !*o.again) {
				s.Audit(who, o.name, o.target, err)
			}
			finish(t, err)
		}
		if o.durable {
			s.owner.Hold(last)
			return nil
		}
		return last
	})
	if err != nil {
		var none T
		finish(none, err)
	}
}

// Do performs an Op and waits for its answer. If a durable Op was posted and got no answer, the error is ErrUnclear,
// never an error that means rejection.
func Do[T any](ctx context.Context, s *Server, who Caller, o Op[T]) (T, error) {
	type result struct {
		t   T
		err error
	}
	c := make(chan result, 1)
	Begin(s, who, o, func(t T, err error) { c <- result{t, err} })
	var none T
	var err error
	select {
	case r := <-c:
		return r.t, r.err
	case <-s.stopped:
		err = errStopping
	case <-ctx.Done():
		err = ctx.Err()
	}
	select {
	case r := <-c: // the answer arrived too, or the call was never posted
		return r.t, r.err
	default:
	}
	if o.durable {
		err = errUnclear
	}
	return none, err
}

// Query lets the owner run f and waits for it. f must not block, only reads, and must copy every part of the machine
// that it retains; the machine's views are copies. Once Query has returned f does not run any more: what f wrote is the
// caller's.
func (s *Server) Query(ctx context.Context, f func(m *rm.Machine, now time.Time)) error {
	var taken atomic.Bool // by the owner, or by the caller that gives up
	done := make(chan struct{})
	err := s.box.post(func(m *rm.Machine, now time.Time) func() {
		// Long lists are not made for clients that have gone.
		if ctx.Err() == nil && taken.CompareAndSwap(false, true) {
			f(m, now)
		}
		s.reads++
		close(done)
		return nil
	})
	if err != nil {
		return err
	}
	select {
	case <-done:
		err = ctx.Err()
	case <-s.stopped:
		err = errStopping
	case <-ctx.Done():
		err = ctx.Err()
	}
	if taken.CompareAndSwap(false, true) {
		return err
	}
	<-done
	return nil
}

// order lets the owner run f, which changes something, and returns f's error.
func (s *Server) order(ctx context.Context, f func(m *rm.Machine, now time.Time) error) error {
	var result error
	err := s.Query(ctx, func(m *rm.Machine, now time.Time) {
		result = f(m, now)
		s.changes.Add(1)
		s.moves.Add(1)
	})
	if err != nil {
		return err
	}
	return result
}
