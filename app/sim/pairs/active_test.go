// SPDX-License-Identifier: Apache-2.0

package pairs

import (
	"errors"
	"maps"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/redisstate"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/turn"
)

// active has the services of a leader: the owner of the machine and its log, as package rm/server.
type active struct {
	p          *manager
	serial     int64 // of the opening
	epoch      string
	identifier int64 // by which nodes know it
	log        *redisstate.Log
	owner      turn.Owner
	live       turn.Live
	tx         state.Tx
	box        []turn.Event
	watch      pauseclock.Watch
	next       int64 // number of the timer

	reported   uint64 // the last durable transaction
	pending    int    // transactions
	groups     int64  // number of the last acknowledged one
	failed     error
	serving    bool
	stopped    bool
	turning    bool // a turn is due
	confirming bool
	writer     *routine
	idle       func() // called when the writer ends
}

const keyStarts = "starts"

var errNotLeading = errors.New("the lease of the pair has ended")

// open makes the process the holder of the state, and recovers the machine.
func (p *manager) open(r *routine) (*active, error) {
	w := p.w
	failovers := w.redis.failovers
	for p.follows { // the follower's lock
		if err := r.sleep(10 * time.Millisecond); err != nil {
			return nil, err
		}
	}
	opened, err := p.follower.Lead(r)
	if err != nil {
		return nil, err
	}
	a := &active{p: p, log: opened.(*redisstate.Log), serial: p.conn.open, epoch: p.conn.epoch}
	if p.conn.ahead && !p.said {
		w.breach("%s takes over a state that lacks groups of its copy, and says nothing", p.name)
	}
	p.said = false
	entries, starts := map[string]string{}, int64(0)
	err = a.log.Each(func(key string, value []byte) error {
		entries[key] = string(value)
		if key == keyStarts {
			starts = number(string(value))
			return nil
		}
		_, err := a.owner.Records.Read(key, value)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, a.log.Close())
	}
	if d := w.redis.of(p.h.index).data; d.meta["epoch"] == a.epoch && w.redis.failovers == failovers &&
		!maps.Equal(entries, d.entries) {
		w.breach("%s takes over with %d entries, and the state has %d others", p.name, len(entries), len(d.entries))
	}
	conf := rm.Defaults()
	conf.Epoch = starts + 1
	a.identifier = w.now.UnixMilli()
	conf.ClusterTimestamp = a.identifier
	if a.owner.Machine, err = rm.New(conf); err != nil {
		return nil, err
	}
	recovered := a.owner.Records.Recovered()
	w.audit.recovers(a, recovered)
	if err := a.owner.Machine.Recover(w.now, recovered); err != nil {
		return nil, err
	}
	for i := range recovered.Apps {
		a.live.Recovered(&recovered.Apps[i])
	}
	a.tx.Put(keyStarts, []byte(text(starts+1)))
	a.log.Commit(&a.tx, func(e error) { err = e })
	a.tx.Reset()
	if e := a.log.Flush(r); e != nil {
		a.learns(e)
		return nil, errors.Join(e, a.log.Close())
	}
	a.groups = p.conn.number + 1
	a.watch.Observe(w.now)
	w.say("%s has taken over: start %d, %d applications", p.name, starts+1, len(recovered.Apps))
	return a, err
}

// post passes an event to the owner.
func (a *active) post(e turn.Event) {
	if !a.stopped {
		a.box = append(a.box, e)
		a.wake()
	}
}

// wake causes a turn soon.
func (a *active) wake() {
	if !a.turning && !a.stopped {
		a.turning = true
		a.p.on(a.p.w.upTo(time.Millisecond), a.turn)
	}
}

// turn is a turn of the owner.
func (a *active) turn() {
	if a.turning = false; a.stopped || a.confirming {
		return
	}
	if a.failed == nil && !a.p.leads() {
		a.fail(errNotLeading)
	}
	if a.failed != nil {
		return
	}
	now := a.p.w.now
	paused := a.watch.Observe(now)
	if paused == 0 {
		a.take(now, 0)
		return
	}
	a.confirming = true
	a.p.start(10*time.Second, func(r *routine) {
		err := a.log.Confirm(r)
		if a.confirming = false; err != nil {
			a.fail(err)
			return
		}
		if !a.stopped {
			a.take(now, paused)
		}
	})
}

func (a *active) take(now time.Time, paused time.Duration) {
	w := a.p.w
	events := a.box
	a.box = nil
	a.owner.Begin(now, paused, a.reported)
	for first := true; first || len(events) > 0; first = false {
		n := min(len(events), turn.MaxEvents)
		for _, e := range events[:n] {
			a.owner.Take(now, e)
		}
		events = events[n:]
		ended := a.owner.End(&a.tx, a.perform)
		if ended.Err != nil {
			w.breach("%s cannot write a record: %v", a.p.name, ended.Err)
		}
		a.commit(ended.Commit)
		for _, answer := range ended.Answers {
			a.p.on(w.upTo(2*time.Millisecond), func() {
				if a.p.leads() { // this process may have been paused since the turn
					w.audit.answers(a)
					answer()
				}
			})
		}
	}
	wait := pauseclock.Interval
	if d := a.owner.Machine.NextDeadline(); !d.IsZero() {
		wait = min(wait, max(d.Sub(now), time.Millisecond))
	}
	a.next++
	n := a.next
	a.p.on(wait, func() {
		if n == a.next {
			a.turn()
		}
	})
}

// perform carries out an action of the machine, except saves.
func (a *active) perform(action rm.Action) {
	a.live.Perform(action)
	switch x := action.(type) {
	case rm.LaunchAM:
		a.p.w.audit.launches(a, x.Attempt)
		a.launch(x, &turn.Launch{Until: a.p.w.now.Add(3 * time.Minute)})
	case rm.StopAM:
		a.p.w.after(time.Millisecond, func() { a.p.w.node(x.Node).kill(x.Container) })
	}
}

// launch starts an AM on its node.
func (a *active) launch(x rm.LaunchAM, tries *turn.Launch) {
	w := a.p.w
	told := func(err error) {
		a.post(func(m *rm.Machine, now time.Time) func() {
			if err != nil {
				m.AMLaunchFailed(now, x.Attempt, err.Error())
			} else {
				m.AMLaunched(now, x.Attempt)
			}
			return nil
		})
	}
	if !a.live.Has(x.Attempt) {
		told(turn.ErrAttemptOver)
		return
	}
	w.after(w.between(time.Millisecond, 3*time.Millisecond), func() {
		err := w.node(x.Container.Node).startAM(a.identifier, x.Attempt, &x.Container)
		a.p.on(time.Millisecond, func() {
			if a.stopped {
				return
			}
			if pause, again := tries.Again(w.now, err); again {
				a.p.on(pause, func() {
					if !a.stopped {
						a.launch(x, tries)
					}
				})
				return
			}
			told(err)
		})
	})
}

func (a *active) commit(number uint64) {
	if number > 0 {
		a.pending++
		a.log.Commit(&a.tx, func(err error) {
			if a.pending--; err == nil {
				a.reported = number
			}
			a.wake()
		})
		a.write()
	}
	a.tx.Reset()
}

// write runs the log until all is written. It is Log.Run in virtual time.
func (a *active) write() {
	if a.writer != nil {
		return
	}
	a.p.start(0, func(r *routine) {
		a.writer = r
		for a.pending > 0 && a.failed == nil {
			if err := a.log.Flush(r); err != nil {
				a.fail(err)
				break
			}
			a.groups++
		}
		a.writer = nil
		if a.idle != nil {
			a.idle()
		}
	})
}

// check is the question of an idle holder, every second.
func (a *active) check() {
	if a.stopped || a.failed != nil {
		return
	}
	if a.writer == nil {
		a.p.start(0, func(r *routine) {
			a.writer = r
			if err := a.log.Check(r); err != nil {
				a.fail(err)
			}
			if a.writer = nil; a.idle != nil {
				a.idle()
			} else if a.pending > 0 {
				a.write()
			}
		})
	}
	a.p.on(time.Second, a.check)
}

// fail ends the services.
func (a *active) fail(err error) {
	if a.learns(err); a.failed == nil {
		a.failed = err
		a.p.on(0, func() {
			if a.p.services == a {
				a.p.event(func(time.Time) { a.p.machine.Failed(err) })
			}
		})
	}
}

// stop ends the services: what was committed is written, for a limited time.
func (a *active) stop(ended func()) {
	a.stopped, a.box = true, nil
	finish := func() {
		a.idle = nil
		a.p.start(5*time.Second, func(r *routine) {
			if err := a.log.Flush(r); err != nil {
				a.learns(err)
			}
			_ = a.log.Close()
			ended()
		})
	}
	if a.writer == nil {
		finish()
		return
	}
	a.writer.until = a.p.w.now.Add(5 * time.Second)
	a.idle = finish
}

// learns checks that a holder that the state refuses says whether the state lacks groups that it was acknowledged.
func (a *active) learns(err error) {
	w := a.p.w
	lost := w.redis.lacks(a.epoch, a.groups)
	if errors.Is(err, state.ErrLost) {
		w.say("%s reports: %v", a.p.name, err)
		w.audit.reported++
		if !lost {
			w.breach("%s reports a loss, and there was none: %v", a.p.name, err)
		}
	}
	if errors.Is(err, state.ErrFenced) && !errors.Is(err, state.ErrLost) && lost {
		w.audit.silent(a)
	}
}

func isOneOf(err error, list ...error) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

var errRefused = errors.New("connection refused")

// request sends a call to a half. then gets the answer, or an error.
func request[T any](
	w *world, to int, do func(a *active, m *rm.Machine, now time.Time) (T, error), durable bool, then func(T, error),
) {
	over := false
	end := func(v T, err error) {
		if !over {
			over = true
			then(v, err)
		}
	}
	var none T
	w.after(2*time.Second, func() { end(none, errSilence) })
	h := w.halves[to]
	if w.now.Before(h.shut) {
		return
	}
	reply := func(v T, err error) {
		if !w.now.Before(h.shut) {
			w.after(w.between(time.Millisecond, 3*time.Millisecond), func() { end(v, err) })
		}
	}
	w.after(w.between(time.Millisecond, 3*time.Millisecond), func() {
		p := h.proc
		if p == nil || p.dead {
			reply(none, errRefused)
			return
		}
		p.now(func() {
			a := p.services
			if a == nil || !a.serving {
				reply(none, creel.ErrStandby)
				return
			}
			a.post(func(m *rm.Machine, now time.Time) func() {
				v, err := do(a, m, now)
				answer := func() { reply(v, err) }
				if durable {
					a.owner.Hold(answer)
					return nil
				}
				return answer
			})
		})
	})
}
