// SPDX-License-Identifier: Apache-2.0

package pairs

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"
)

var start = time.UnixMilli(1_700_000_000_000).UTC()

// world is a run. All that happens is an event of its queue.
type world struct {
	now    time.Time
	rnd    *rand.Rand
	queue  events
	events int64 // numbered, for the order of equal times
	log    func(format string, args ...any)
	broken string // the first broken promise

	running *routine
	cfg     config
	redis   *server
	halves  [2]*half
	nodes   []*node
	apps    []*app
	audit   audit
	faulty  bool
	slow    time.Time // until then calls to Redis take up to slowest
}

type event struct {
	at     time.Time
	number int64
	do     func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].number < q[j].number
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(e any)   { *q = append(*q, e.(event)) }
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return e
}

// after runs do in the world, whichever processes live.
func (w *world) after(d time.Duration, do func()) {
	w.events++
	heap.Push(&w.queue, event{w.now.Add(max(d, 0)), w.events, do})
}

// run lets time pass until a moment, or until a promise is broken.
func (w *world) run(until time.Time, enough func() bool) {
	for len(w.queue) > 0 && w.broken == "" && !w.queue[0].at.After(until) {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		if e.do(); enough != nil && enough() {
			return
		}
	}
	if w.broken == "" && w.now.Before(until) {
		w.now = until
	}
}

func (w *world) say(format string, args ...any) {
	if w.log != nil {
		w.log("%8.3f  %s", w.now.Sub(start).Seconds(), fmt.Sprintf(format, args...))
	}
}

// breach records the first broken promise.
func (w *world) breach(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf("at %v: %s", w.now.Sub(start), fmt.Sprintf(format, args...))
		w.say("BROKEN: %s", w.broken)
	}
}

func (w *world) chance(p float64) bool { return w.rnd.Float64() < p }

// upTo draws a duration.
func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rnd.Int64N(int64(d))) }

func (w *world) between(a, b time.Duration) time.Duration { return a + w.upTo(b-a) }

// process is one start of a program. It may be paused, as by a signal: its events wait, and time passes.
type process struct {
	w        *world
	name     string
	dead     bool
	paused   bool
	waiting  []func()
	routines map[*routine]bool
}

// on runs do in the process after a time by the clock, or later if it is paused then.
func (p *process) on(d time.Duration, do func()) { p.w.after(d, func() { p.now(do) }) }

// now runs do in the process, or when it is resumed.
func (p *process) now(do func()) {
	switch {
	case p.dead:
	case p.paused:
		p.waiting = append(p.waiting, do)
	default:
		do()
	}
}

// pause stops the process for a time. Afterwards everything that was due happens in any order.
func (p *process) pause(d time.Duration) {
	if p.dead || p.paused {
		return
	}
	p.w.say("%s is paused for %v", p.name, d)
	p.paused = true
	p.w.after(d, func() {
		if p.dead {
			return
		}
		p.paused = false
		p.w.say("%s is resumed", p.name)
		due := p.waiting
		p.waiting = nil
		p.w.rnd.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
		for _, do := range due {
			p.now(do)
		}
	})
}

// kill ends the process where it is.
func (p *process) kill() {
	p.dead, p.waiting = true, nil
	routines := p.routines
	p.routines = nil
	for r := range routines {
		before := p.w.running
		p.w.running = r
		r.dead = true
		r.stop()
		p.w.running = before
	}
}

var (
	errKilled  = errors.New("the process is killed")
	errSilence = errors.New("no answer in time")
)

// routine is a goroutine of the product, as a coroutine in virtual time. It is also its context.
type routine struct {
	p     *process
	until time.Time // zero: without an end
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	wait  func(resume func())
	dead  bool
}

// start runs do as a goroutine of the process, with a context of a time; 0: without an end.
func (p *process) start(d time.Duration, do func(r *routine)) {
	r := &routine{p: p}
	if d > 0 {
		r.until = p.w.now.Add(d)
	}
	r.next, r.stop = iter.Pull(func(yield func(struct{}) bool) {
		r.yield = yield
		do(r)
	})
	if p.routines == nil {
		p.routines = map[*routine]bool{}
	}
	p.routines[r] = true
	r.advance()
}

func (r *routine) advance() {
	if r.dead {
		return
	}
	before := r.p.w.running
	r.p.w.running = r
	_, more := r.next()
	r.p.w.running = before
	if !more {
		r.dead = true
		delete(r.p.routines, r)
		return
	}
	r.wait(func() { r.p.now(r.advance) })
}

// suspend waits until resume is called. It returns an error if the process was killed.
func (r *routine) suspend(wait func(resume func())) error {
	if r.dead {
		return errKilled
	}
	r.wait = wait
	if !r.yield(struct{}{}) {
		r.dead = true
		return errKilled
	}
	return nil
}

// sleep waits, at most until the end of the context.
func (r *routine) sleep(d time.Duration) error {
	if !r.until.IsZero() {
		d = min(d, r.until.Sub(r.p.w.now))
	}
	if err := r.suspend(func(resume func()) { r.p.w.after(d, resume) }); err != nil {
		return err
	}
	return r.Err()
}

func (r *routine) Deadline() (time.Time, bool) { return r.until, !r.until.IsZero() }
func (r *routine) Done() <-chan struct{}       { return nil }
func (r *routine) Value(any) any               { return nil }
func (r *routine) Err() error {
	switch {
	case r.dead:
		return errKilled
	case !r.until.IsZero() && !r.p.w.now.Before(r.until):
		return context.DeadlineExceeded
	}
	return nil
}
