// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel/internal/authorizer"
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
// is not accepted. If the Op needs an answer of the outside authoriser, it runs again after that answer.
func Begin[T any](s *Server, who Caller, o Op[T], finish func(T, error)) {
	if !who.AM {
		s.access.learn(who.User)
	}
	begin(s, who, o, finish, 1)
}

func begin[T any](s *Server, who Caller, o Op[T], finish func(T, error), round int) {
	err := s.box.post(func(m *rm.Machine, now time.Time) func() {
		var answer func() (T, error)
		var err error
		s.access.rights.begin()
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
		open, why := s.access.rights.end()
		if len(open) > 0 && round < mostRounds {
			return func() { // a responder must not wait either
				go func() {
					s.cfg.Outside.Ask(open)
					begin(s, who, o, finish, round+1)
				}()
			}
		}
		last := func() {
			t, err := answer()
			err = explained(err, why)
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
// caller's. If f needs answers of the outside authoriser, f runs again after them, and must write all its results
// again.
func (s *Server) Query(ctx context.Context, f func(m *rm.Machine, now time.Time)) error {
	for round := 1; ; round++ {
		open, err := query(ctx, s, f)
		if err != nil || len(open) == 0 || round == mostRounds {
			return err
		}
		s.cfg.Outside.Ask(open)
	}
}

// query is one run of Query. It returns the questions to the outside authoriser without an answer.
func query(
	ctx context.Context, s *Server, f func(m *rm.Machine, now time.Time),
) (open []authorizer.Question, err error) {
	var taken atomic.Bool // by the owner, or by the caller that gives up
	done := make(chan struct{})
	err = s.box.post(func(m *rm.Machine, now time.Time) func() {
		// Long lists are not made for clients that have gone.
		if ctx.Err() == nil && taken.CompareAndSwap(false, true) {
			s.access.rights.begin()
			f(m, now)
			open, _ = s.access.rights.end()
		}
		s.reads++
		close(done)
		return nil
	})
	if err != nil {
		return nil, err
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
		return nil, err
	}
	<-done
	return open, nil
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
