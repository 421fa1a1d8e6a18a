// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
)

// outside is the site of what belongs to no subcluster.
const outside = -1

// host is a process with an address: it can be up or down, and be cut off with
// its site.
type host struct {
	name    string
	number  int64 // for the log
	site    int   // subcluster it stands in, or outside
	up      bool
	life    int
	flights []*flight // calls to it that have no end yet
}

// netError says that no answer came.
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

// flight is a call under way.
type flight struct {
	to   *host
	slot int
	over bool
	fail func(error)
}

func (h *host) takeOff(f *flight) {
	f.slot = len(h.flights)
	h.flights = append(h.flights, f)
}

func (h *host) land(f *flight) {
	last := len(h.flights) - 1
	moved := h.flights[last]
	h.flights[f.slot] = moved
	moved.slot = f.slot
	h.flights[last] = nil
	h.flights = h.flights[:last]
}

// crash ends the process: nothing it had begun comes to an end, and who waits
// for it learns that the connection is gone.
func (w *World) crash(h *host) {
	h.up = false
	h.life++
	w.mark("crash", h.number, int64(h.life))
	w.say("%s is down", h.name)
	flights := h.flights
	h.flights = nil
	for _, f := range flights {
		f.slot = -1
		w.after(w.delay(), func() { f.fail(errReset) })
	}
}

func (w *World) boot(h *host) {
	h.up = true
	w.mark("boot", h.number, int64(h.life))
	w.say("%s is up", h.name)
}

// apart tells whether messages between two hosts are lost.
func (w *World) apart(a, b *host) bool {
	return a.site != b.site && (a.site >= 0 && w.cut[a.site] || b.site >= 0 && w.cut[b.site])
}

// delay of one message.
func (w *World) delay() time.Duration {
	d := 100*time.Microsecond + time.Duration(w.rnd.Uint64N(uint64(300*time.Microsecond)))
	if w.faulty && w.chance(w.faults.Late) {
		d += time.Duration(w.rnd.Int64N(int64(w.faults.Delay)))
	}
	return d
}

func (w *World) chance(p float64) bool { return p > 0 && w.rnd.Float64() < p }

// call carries a request from one host to another and the answer back. serve
// runs at the other host, twice if the message was doubled; it answers by
// reply, now or later. finish runs at the caller, once, unless the caller is
// gone; the time until then is bounded by timeout wherever a message is lost.
func call[T any](w *World, from, to *host, timeout time.Duration, serve func(reply func(T, error)), finish func(T, error)) {
	f := &flight{to: to}
	to.takeOff(f)
	caller, began := from.life, w.now
	end := func(t T, err error) {
		if f.over {
			return
		}
		f.over = true
		if f.slot >= 0 {
			to.land(f)
		}
		if from.life == caller && from.up {
			finish(t, err)
		}
	}
	f.fail = func(err error) {
		var none T
		end(none, err)
	}
	lost := func() {
		w.mark("lost", from.number, to.number)
		w.at(began.Add(timeout), func() { f.fail(errTimeout) })
	}
	reply := func(life int) func(T, error) {
		return func(t T, err error) {
			if to.life != life || f.over {
				return
			}
			if w.apart(from, to) || w.faulty && w.chance(w.faults.Loss) {
				lost()
				return
			}
			w.after(w.delay(), func() { end(t, err) })
		}
	}
	arrive := func() {
		if f.over {
			return
		}
		if !to.up {
			w.after(w.delay(), func() { f.fail(errRefused) })
			return
		}
		w.mark("call", from.number, to.number)
		serve(reply(to.life))
	}
	if w.apart(from, to) || w.faulty && w.chance(w.faults.Loss) {
		lost()
		return
	}
	w.after(w.delay(), arrive)
	if w.faulty && w.chance(w.faults.Double) {
		w.after(w.delay()+w.delay(), func() {
			if to.up && !w.apart(from, to) {
				w.mark("again", from.number, to.number)
				serve(func(T, error) {})
			}
		})
	}
}

func (h *host) String() string { return fmt.Sprintf("%s (life %d)", h.name, h.life) }
