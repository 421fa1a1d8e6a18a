// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"iter"
	"slices"
	"time"
)

// flow runs a sequential function of the daemons that waits for answers as a coroutine: a submission, the reading and
// saving of a record, or the launch of a UAM. While it waits it is suspended, and virtual time passes. It is also the
// function's context: its deadline is in virtual time.
type flow struct {
	w     *World
	at    *host // the host it runs on
	until time.Time
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	wait  func(resume func()) // its current wait
	dead  bool
	// between, if not nil, is called before and after each wait and decides whether the process dies there.
	between func() (dies bool)
}

// start runs do in a host for a limited time. If the host goes down, do stops where it is. then runs at its end.
func (w *World) start(at *host, most time.Duration, do func(f *flow), then func()) {
	f := &flow{w: w, at: at, until: w.now.Add(most)}
	f.next, f.stop = iter.Pull(func(yield func(struct{}) bool) {
		f.yield = yield
		do(f)
	})
	at.flows = append(at.flows, f)
	f.advance(then)
}

// advance resumes the coroutine until its next wait or its end.
func (f *flow) advance(then func()) {
	if f.dead {
		return
	}
	if _, more := f.next(); more {
		f.wait(func() { f.advance(then) })
		return
	}
	f.dead = true
	f.at.flows = slices.DeleteFunc(f.at.flows, func(o *flow) bool { return o == f })
	then()
}

// killFlows ends all flows of a host where they are: their process is gone.
func (h *host) killFlows() {
	flows := h.flows
	h.flows = nil
	for _, f := range flows {
		f.dead = true
		f.stop()
	}
}

// pause waits until resume is called; the coroutine may have been killed by then.
func (f *flow) pause(wait func(resume func())) (alive bool) {
	if f.dead {
		return false
	}
	f.wait = func(resume func()) {
		if f.between == nil || !f.between() {
			wait(resume)
		}
	}
	if !f.yield(struct{}{}) {
		f.dead = true
	}
	return !f.dead
}

// ask makes a call from a flow and waits for its answer, for a limited time within the flow's own.
func ask[T any](f *flow, to *host, most time.Duration, serve func(reply func(T, error))) (out T, err error) {
	alive := f.pause(func(resume func()) {
		call(f.w, f.at, to, min(most, f.until.Sub(f.w.now)), serve, func(v T, e error) {
			if f.between == nil || !f.between() {
				out, err = v, e
				resume()
			}
		})
	})
	if !alive {
		return out, errReset
	}
	return out, err
}

// sleep is amrmproxy.Sleep in virtual time.
func (f *flow) sleep(_ context.Context, d time.Duration) error {
	left := f.until.Sub(f.w.now)
	alive := f.pause(func(resume func()) { f.w.after(min(d, left), resume) })
	if !alive || d >= left {
		return f.Err()
	}
	return nil
}

// Deadline, Done, Err and Value make it a context.Context.
func (f *flow) Deadline() (time.Time, bool) { return f.until, true }
func (f *flow) Done() <-chan struct{}       { return nil } // never used in a select here
func (f *flow) Value(any) any               { return nil }

// Err is the error by the virtual clock.
func (f *flow) Err() error {
	switch {
	case f.dead:
		return context.Canceled
	case !f.w.now.Before(f.until):
		return context.DeadlineExceeded
	}
	return nil
}

// part is a context of the flow with an earlier deadline, from now.
func (f *flow) part(d time.Duration) context.Context {
	return part{f, f.w.now.Add(d)}
}

type part struct {
	*flow
	until time.Time
}

func (p part) Deadline() (time.Time, bool) { return p.until, true }

func (p part) Err() error {
	if !p.w.now.Before(p.until) {
		return context.DeadlineExceeded
	}
	return p.flow.Err()
}
