// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
)

// outside is the site of hosts outside all subclusters.
const outside = -1

// host is a process with an address: it can be up or down, and be cut off with
// its site.
type host struct {
	name    string
	number  int64 // for the log
	site    int   // its subcluster, or outside
	up      bool
	epoch   int
	slept   time.Duration // time of pauses in this epoch
	paused  time.Time     // until then the process does not run and receives nothing
	flights []flight      // unfinished calls to it
	flows   []*flow       // unfinished flows that run in it
}

// netError reports that no answer arrived.
type netError struct {
	text string
	sent bool // the request may have reached the other side
}

func (e *netError) Error() string        { return e.text }
func (e *netError) Is(target error) bool { return target == creel.ErrUnavailable }

var (
	errRefused = &netError{text: "connection refused"}
	errReset   = &netError{text: "connection lost before the answer", sent: true}
	errTimeout = &netError{text: "no answer in time", sent: true}
)

// flight is a call in flight, with any type of answer.
type flight interface {
	fail(error)
	seat() *int // index among its host's flights, -1 for none
}

func (h *host) takeOff(f flight) {
	*f.seat() = len(h.flights)
	h.flights = append(h.flights, f)
}

func (h *host) land(f flight) {
	last, slot := len(h.flights)-1, *f.seat()
	moved := h.flights[last]
	h.flights[slot] = moved
	*moved.seat() = slot
	h.flights[last] = nil
	h.flights = h.flights[:last]
}

// crash ends the process: its unfinished work is lost, and waiting callers see the connection closed.
func (w *World) crash(h *host) {
	h.up = false
	h.epoch++
	w.mark("crash", h.number, int64(h.epoch))
	w.audit.hostEnds(h)
	w.say("%s is down", h.name)
	h.killFlows()
	flights := h.flights
	h.flights = nil
	for _, f := range flights {
		*f.seat() = -1
		w.after(w.delay(), func() { f.fail(errReset) })
	}
}

// pause stops a process for d. Events and messages due meanwhile are delivered in order when it resumes; woken is
// called before all of them.
func (w *World) pause(h *host, d time.Duration, woken func()) {
	epoch := h.epoch
	h.paused = w.now.Add(d)
	w.mark("pause", h.number, d.Milliseconds())
	w.say("%s does not run for %v", h.name, d)
	w.at(h.paused, func() {
		if h.epoch == epoch && h.up {
			h.slept += d
			woken()
		}
	})
}

// awake runs something that a process does by itself: now, or when its pause ends.
func (w *World) awake(h *host, do func()) {
	if w.asleep(h) {
		w.at(h.paused, func() { w.awake(h, do) })
		return
	}
	do()
}

// asleep reports whether a process is paused.
func (w *World) asleep(h *host) bool { return h.up && w.now.Before(h.paused) }

func (w *World) boot(h *host) {
	h.paused, h.slept = time.Time{}, 0
	h.up = true
	w.mark("boot", h.number, int64(h.epoch))
	w.say("%s is up", h.name)
}

// between is the index in World.cuts of the path from one site to another.
func (w *World) between(from, to int) int { return (from+1)*(len(w.clusters)+1) + to + 1 }

// apart reports whether messages from one host to another are lost.
func (w *World) apart(from, to *host) bool {
	return from.site != to.site && w.cuts[w.between(from.site, to.site)]
}

// lane is a connection: messages in one direction arrive in order, if the seed draws that. A restarted process makes
// a new one.
type lane struct {
	from, to           int64
	fromEpoch, toEpoch int
}

// inOrder returns the arrival time of a message that would otherwise arrive at a given time.
func (w *World) inOrder(from, to *host, at time.Time) time.Time {
	if !w.faults.Ordered {
		return at
	}
	l := lane{from.number, to.number, from.epoch, to.epoch}
	ns := max(at.UnixNano(), w.lanes[l])
	w.lanes[l] = ns
	return time.Unix(0, ns).UTC()
}

// staleDelay is the largest delay of a message beyond all callers' patience.
const staleDelay = 25 * time.Second

// latest is the largest delay of a second delivery of a message.
const latest = 5 * time.Minute

// delay draws the delay of one message.
func (w *World) delay() time.Duration {
	d := 100*time.Microsecond + time.Duration(w.rnd.Uint64N(uint64(300*time.Microsecond)))
	if w.faulty && w.chance(w.faults.Late) {
		d += time.Duration(w.rnd.Int64N(int64(w.faults.Delay)))
	}
	if w.faulty && w.chance(w.faults.Stale) {
		d += time.Duration(w.rnd.Int64N(int64(staleDelay)))
	}
	return d
}

func (w *World) chance(p float64) bool { return p > 0 && w.rnd.Float64() < p }

// call sends a request from one host to another and the answer back. serve runs at the other host, twice if the
// message was doubled; it calls reply once, now or later. finish runs once at the caller, unless the caller is gone;
// if a message is lost, it runs after timeout.
func call[T any](
	w *World,
	from, to *host,
	timeout time.Duration,
	serve func(reply func(T, error)),
	finish func(T, error),
) {
	x := &exchange[T]{
		w:      w,
		from:   from,
		to:     to,
		caller: from.epoch,
		giveUp: w.now.Add(timeout),
		serve:  serve,
		finish: finish,
	}
	to.takeOff(x)
	if x.dropped(from, to) {
		x.lost()
		return
	}
	x.travel(from, to)
}

// copy serves a request a second time. It represents a caller that called again while its first call was in flight.
// creel's clients never resend on their own, and no client repeats a rejected request. The copy is lost with the
// process whose socket contains it.
func (x *exchange[T]) copy() {
	late := x.w.delay() + x.w.delay()
	if x.w.faults.Again > 0 {
		late += time.Duration(x.w.rnd.Int64N(int64(latest)))
	}
	x.w.after(late, func() {
		if x.err == nil && x.to.epoch == x.callee && x.to.up && !x.w.asleep(x.to) && !x.w.apart(x.from, x.to) {
			x.w.mark("again", x.from.number, x.to.number)
			x.serve(func(T, error) {})
		}
	})
}

// exchange is a flight with both of its messages: in the event heap it is first the request, then the answer. Most
// events are exchanges, so one allocation has all parts.
type exchange[T any] struct {
	w        *World
	from, to *host
	serve    func(reply func(T, error))
	finish   func(T, error)
	giveUp   time.Time
	caller   int // epoch of the caller
	callee   int // epoch of the receiver, or of the intended receiver when the caller timed out
	slot     int
	arrived  bool
	answered bool
	over     bool
	answer   T
	err      error
}

func (x *exchange[T]) seat() *int { return &x.slot }

func (x *exchange[T]) run() {
	switch {
	case x.answered:
		x.end(x.answer, x.err)
	case x.arrived || x.over && !x.w.faults.Orphans:
	case x.over && (!x.to.up || x.to.epoch != x.callee):
		// A caller that times out closes the connection, and a connection ends with its process.
	case !x.to.up:
		x.w.after(x.w.delay(), func() { x.fail(errRefused) })
	case x.w.asleep(x.to):
		x.w.push(x.to.paused, x) // it waits in the socket
	default:
		x.arrived, x.callee = true, x.to.epoch
		x.w.mark("call", x.from.number, x.to.number)
		x.serve(x.reply)
		if x.w.faulty && (x.w.chance(x.w.faults.Double) || x.w.chance(x.w.faults.Again)) {
			x.copy()
		}
	}
}

func (x *exchange[T]) reply(t T, err error) {
	switch {
	case x.to.epoch != x.callee || x.over || x.answered:
	case x.dropped(x.to, x.from):
		x.lost()
	default:
		x.answered, x.answer, x.err = true, t, err
		x.travel(x.to, x.from)
	}
}

// travel sends the request or the answer. A message arrives even if its caller has timed out.
func (x *exchange[T]) travel(from, to *host) {
	late := x.w.late[x.w.between(from.site, to.site)]
	at := x.w.inOrder(from, to, x.w.now.Add(x.w.delay()+late))
	x.w.push(at, x)
	if at.After(x.giveUp) {
		x.w.at(x.giveUp, func() { x.fail(errTimeout) })
	}
}

func (x *exchange[T]) dropped(from, to *host) bool {
	return x.w.apart(from, to) || x.w.faulty && x.w.chance(x.w.faults.Loss)
}

func (x *exchange[T]) lost() {
	x.w.mark("lost", x.from.number, x.to.number)
	x.w.at(x.giveUp, func() { x.fail(errTimeout) })
}

func (x *exchange[T]) fail(err error) {
	var none T
	x.end(none, err)
}

func (x *exchange[T]) end(t T, err error) {
	if x.over {
		return
	}
	if x.from.epoch == x.caller && x.w.asleep(x.from) {
		x.w.at(x.from.paused, func() { x.end(t, err) })
		return
	}
	if x.over = true; !x.arrived {
		x.callee = x.to.epoch
	}
	if x.slot >= 0 {
		x.to.land(x)
	}
	if x.from.epoch == x.caller && x.from.up {
		x.finish(t, err)
	}
}

func (h *host) String() string { return fmt.Sprintf("%s (epoch %d)", h.name, h.epoch) }
