// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/turn"
)

// ownership protects the machine and the owner's state: the goroutine that holds the lock is the owner. A goroutine
// checks the mailbox once more after it unlocks, so that another goroutine that found the lock taken need not wake
// the owner's goroutine.
type ownership struct {
	sync.Mutex
	turn.Owner
	events []event   // of the current turn
	armed  time.Time // latest wake-up time of own; zero: never
	calls  bool      // the owner is a caller of call
	answer func()    // and sends this answer itself
}

// own owns the machine repeatedly: when an event was posted, and when a deadline is due. After it has returned, the
// machine has no owner any more.
func (s *Server) own(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	defer s.refuseRest()
	o := &s.owner
	for {
		o.Lock()
		for more := true; more; {
			var err error
			if more, err = s.takeAll(); err != nil {
				return err
			}
		}
		wait := pauseclock.Interval // wakes regularly to detect a pause of this process
		if o.armed = s.owner.Machine.NextDeadline(); !o.armed.IsZero() {
			wait = min(wait, max(o.armed.Sub(s.now(time.Now())), time.Millisecond))
		}
		o.Unlock()
		if !s.box.empty() {
			continue
		}
		timer.Reset(wait)
		select {
		case <-s.box.wake:
		case <-timer.C:
		case <-ctx.Done():
			o.Lock() // never unlocked
			return nil
		}
	}
}

// takeAll runs a turn with all events in the mailbox; some reports whether there were any.
func (s *Server) takeAll() (some bool, err error) {
	o := &s.owner
	o.events = s.box.take(o.events)
	err = s.turn(o.events)
	clear(o.events)
	return len(o.events) > 0, err
}

// call is post for a goroutine that only waits for the response. If the machine has no owner, the goroutine becomes
// the owner for one turn, and then sends a single response itself. That avoids one wake-up for the event and another
// for the response (BenchmarkContainers in rm/rpc).
func (s *Server) call(e event) error {
	if err := s.box.add(e); err != nil {
		return err
	}
	o := &s.owner
	if !o.TryLock() {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			// The machine may be inconsistent: no caller may recover from this panic.
			go panic(fmt.Sprintf("%v\n%s", p, debug.Stack()))
			select {}
		}
	}()
	o.calls = true
	_, err := s.takeAll()
	next := s.owner.Machine.NextDeadline()
	sooner := !next.IsZero() && (o.armed.IsZero() || next.Before(o.armed))
	answer := o.answer
	o.calls, o.answer = false, nil
	o.Unlock()
	if err != nil || sooner || !s.box.empty() {
		s.box.poke() // own finds the same error, sets its timer, or continues
	}
	if answer != nil && s.cfg.Pair.mayAnswer() {
		answer()
	}
	return nil
}

// now returns the machine's time. It moves forward even if the wall clock is set back.
func (s *Server) now(read time.Time) time.Time {
	wall := read
	if s.wall != nil {
		wall = s.wall(read)
	}
	now := s.owner.Time.Now(read, wall)
	ahead, before := s.owner.Time.Ahead(wall), s.ahead
	if s.ahead = ahead; ahead-before > minLoggedStep {
		s.log.Warn("system clock was set back: internal time runs on, a tenth slower until the clock has caught up", "ahead", ahead.Round(time.Millisecond))
	}
	return now
}

// minLoggedStep is the minimum step back of the clock that is logged.
const minLoggedStep = time.Second

// turn runs one turn: newly durable transactions, due deadlines, posted events, and then the actions of all of them.
func (s *Server) turn(events []event) error {
	if failed := s.durability.failed.Load(); failed != nil {
		return *failed
	}
	if !s.cfg.Pair.mayAnswer() {
		s.fail(errNotLeading)
		return errNotLeading
	}
	read := time.Now()
	now, d := s.now(read), s.awake.Observe(read)
	if d > 0 {
		s.metrics.Paused.Add(int64(d))
		pauseclock.Tell(s.log, d)
		if err := s.durability.confirm(); err != nil {
			s.fail(err)
			return err
		}
	}
	if s.owner.Begin(now, d, s.durability.reported.Load()) {
		s.moves.Add(1)
	}
	for first := true; first || len(events) > 0; first = false {
		n := min(len(events), turn.MaxEvents)
		s.reads = 0
		for _, e := range events[:n] {
			s.owner.Take(now, e)
		}
		events = events[n:]
		if s.reads < n {
			s.moves.Add(1) // before any caller can learn of the change
		}
		s.respond(s.end())
		if n > 0 {
			now = s.now(time.Now())
		}
	}
	return nil
}

// end carries out the results of a batch and returns the responses that may be sent.
func (s *Server) end() []func() {
	ended := s.owner.End(&s.durability.tx, s.perform)
	if ended.Err != nil {
		s.fail(ended.Err)
	}
	if ended.Changed {
		s.changes.Add(1) // before any caller can learn of the change
	}
	s.commit(ended.Commit)
	return ended.Answers
}

// perform carries out an action of the machine, except saves.
func (s *Server) perform(action rm.Action) {
	switch a := action.(type) {
	case rm.SaveApp:
		if a.Deleted {
			s.secrets.forgetApp(a.Record.Submission.ID)
			s.Renewer.Forget(a.Record.Submission.ID) // it has ended before, or moved to another subcluster
		}
	case rm.LaunchAM:
		s.secrets.perform(a)
		s.traces.launching(a)
		s.launchAM(a)
	case rm.StopAM:
		s.launcher.stop(a)
	case rm.AppEnded:
		s.traces.ended(a.App)
		s.secrets.forgetApp(a.App)
		s.Renewer.Release(a.App)
	case rm.AttemptEnded:
		s.secrets.perform(a)
	case rm.Preempted:
		if a.What == rm.TakenBack {
			s.metrics.Preempted.Add(1)
		}
		s.auditVictim(a)
	}
}

// respond passes finished responses to the responders, a few at a time so that every core takes part. A full queue
// blocks the owner, so that the mailbox fills and callers get "busy". A caller that owns the machine sends a single
// response itself.
func (s *Server) respond(answers []func()) {
	const chunk = 16
	if o := &s.owner; o.calls && o.answer == nil && len(answers) == 1 {
		o.answer, answers = answers[0], nil
	}
	for out := answers; len(out) > 0; {
		n := min(chunk, len(out))
		s.answers <- append([]func(){}, out[:n]...)
		out = out[n:]
	}
}

func (s *Server) responder() {
	for answers := range s.answers {
		for _, answer := range answers {
			if s.cfg.Pair.mayAnswer() { // this process may have been paused since the turn
				answer()
			}
		}
	}
}

// errNotLeading ends a server that may not answer any more.
var errNotLeading = errors.New("resource manager: the lease of the pair has ended")

// mayAnswer reports whether this process may answer. Outside a pair it always may.
func (p *Pair) mayAnswer() bool { return p == nil || p.Leads() }

// refuseRest drops all waiting events: the machine has no owner any more. Events with a response do not run; their
// callers see the connection end.
func (s *Server) refuseRest() {
	s.box.close()
	close(s.stopped)
}
