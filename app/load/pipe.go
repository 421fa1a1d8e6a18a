// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/creelrm/creel/internal/hrpc"
)

// pipedRequests is a kind of request that needs no separate goroutine, so that the generator costs a fraction of the
// measured server. In a closed loop one goroutine per connection sends the next request when a response arrives. In
// an open loop the timekeeper sends due requests, and one goroutine per connection reads.
type pipedRequests struct {
	target hrpc.Target
	// own, if set, assigns a separate connection to each slot, with its own target.
	own    []hrpc.Target
	method string
	// slots is the number of callers or nodes that make requests, each one at a time. Slots on one connection take
	// turns.
	slots int
	// request appends a slot's next encoded request to b.
	request func(b []byte, slot int, ticket int64) ([]byte, error)
	// next, if set, makes the call that follows an answer within the same request; an empty method ends the request.
	next func(b []byte, slot int, ticket int64, body []byte) (method string, request []byte, err error)
	// answer processes the last response; body is valid until it returns.
	answer func(ctx context.Context, slot int, ticket int64, body []byte) error
	// grain is the interval of the timekeeper's checks in an open loop: requests that became due meanwhile are sent
	// together. Their latency counts from their due times. 0: 500 us.
	grain time.Duration
	// behind limits the requests of a slot that may become due in an open loop while another one is in flight; they
	// are made late. 0: one.
	behind int
	// start is the due time of ticket 0 of an open loop; zero: now.
	start time.Time
}

// drivePiped makes a closed plan's requests, a share on each connection.
func drivePiped(ctx context.Context, p Plan, m *meter, clients []*hrpc.Client, kind pipedRequests) error {
	if err := p.Validate(); err != nil {
		return err
	}
	calls, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &driver{plan: p, meter: m, limit: p.Count, start: time.Now()}
	lanes := d.lanes(min(len(clients), p.InFlight, kind.slots), clients, kind)
	m.begin(p, d.start)
	var work sync.WaitGroup
	for _, l := range lanes {
		work.Go(func() { l.run(calls) })
	}
	ended := make(chan struct{})
	go func() { work.Wait(); close(ended) }()
	if p.Duration > 0 {
		waitFor(ctx, ended, p.Duration)
		waitFor(ctx, ended, p.grace())
	} else {
		<-ended
	}
	m.end(time.Now())
	cancel()
	<-ended
	return ctx.Err()
}

// inRow is the maximum number of successive slots on the same connection. In an open loop requests due together share
// a write, and the next ones use another connection, which the server serves on another core.
const inRow = 8

// lanes distributes the slots over n connections.
func (d *driver) lanes(n int, clients []*hrpc.Client, kind pipedRequests) []*lane {
	if kind.own != nil {
		n = kind.slots
	}
	lanes := make([]*lane, n)
	for i := range lanes {
		target := kind.target
		if kind.own != nil {
			target = kind.own[i]
		}
		lanes[i] = &lane{
			d:      d,
			kind:   kind,
			target: target,
			client: clients[i%len(clients)],
			number: i,
			window: share(min(d.plan.InFlight, kind.slots), n, i),
		}
	}
	row := max(min(inRow, kind.slots/n), 1)
	for slot := range kind.slots {
		l := lanes[slot/row%n]
		l.slots = append(l.slots, slot)
		l.idle = append(l.idle, int32(len(l.idle)))
	}
	for _, l := range lanes {
		l.sent = make([]sentRequest, len(l.slots))
	}
	return lanes
}

// share is the i-th of n parts of a total.
func share(total, n, i int) int {
	if i < total%n {
		return total/n + 1
	}
	return total / n
}

// lane is a connection with its callers.
type lane struct {
	d      *driver
	kind   pipedRequests
	target hrpc.Target
	client *hrpc.Client
	number int
	window int
	slots  []int         // by call id
	sent   []sentRequest // by call id
	idle   []int32       // call ids that are not in flight, a ring
	first  int           // index of the first in idle
	free   int           // number in idle
	buf    []byte
}

type sentRequest struct {
	at     time.Time
	ticket int64
	open   bool
}

// retryAfter is a lane's pause after its connection is refused.
const retryAfter = 10 * time.Millisecond

// run makes requests until the time or the count is used up and the last one is answered.
func (l *lane) run(ctx context.Context) {
	l.free = len(l.idle)
	for ctx.Err() == nil {
		pipe, err := l.client.Pipe(ctx, l.target)
		if err == nil {
			err = l.through(ctx, pipe)
			pipe.Close()
			if err == nil {
				return
			}
			l.lost(err)
			continue
		}
		_, ok := l.ticket(time.Now())
		if !ok {
			return
		}
		l.record(time.Now(), time.Now(), err)
		_ = pause(ctx, retryAfter)
	}
}

// through uses one connection; nil at the end of the load.
func (l *lane) through(ctx context.Context, pipe *hrpc.Pipe) error {
	now, on := time.Now(), 0
	for {
		for on < l.window && l.free > 0 {
			ticket, ok := l.ticket(now)
			if !ok || ctx.Err() != nil {
				break
			}
			id := l.idle[l.first]
			l.first, l.free = (l.first+1)%len(l.idle), l.free-1
			body, err := l.kind.request(l.buf[:0], l.slots[id], ticket)
			if err != nil {
				return err
			}
			l.buf = body
			l.sent[id] = sentRequest{at: now, ticket: ticket, open: true}
			on++
			if err := pipe.Put(id, l.kind.method, body); err != nil {
				return err
			}
		}
		if on == 0 {
			return nil
		}
		fresh := !pipe.Buffered()
		id, body, refused, err := pipe.Take()
		if err != nil {
			return err
		}
		if fresh {
			now = time.Now()
		}
		if id < 0 || int(id) >= len(l.sent) || !l.sent[id].open {
			return errors.New("an answer without a request")
		}
		s := &l.sent[id]
		if refused == nil && l.kind.next != nil {
			method, request, err := l.kind.next(l.buf[:0], l.slots[id], s.ticket, body)
			if err == nil && method != "" {
				l.buf = request
				if err := pipe.Put(id, method, request); err != nil {
					return err
				}
				continue
			}
			refused = err
		}
		if refused == nil {
			refused = l.kind.answer(ctx, l.slots[id], s.ticket, body)
		}
		l.record(s.at, now, refused)
		l.release(id)
		on--
	}
}

// release makes a slot wait for its next turn.
func (l *lane) release(id int32) {
	l.sent[id].open = false
	l.idle[(l.first+l.free)%len(l.idle)] = id
	l.free++
}

// lost fails the requests in flight when the connection ends.
func (l *lane) lost(err error) {
	now := time.Now()
	for id := range l.sent {
		if l.sent[id].open {
			l.record(l.sent[id].at, now, err)
			l.release(int32(id))
		}
	}
}

// ticket is the number of the next request; ok is false if there is none.
func (l *lane) ticket(now time.Time) (int64, bool) {
	p := &l.d.plan
	if p.Duration > 0 && now.Sub(l.d.start) >= p.Duration {
		return 0, false
	}
	ticket := l.d.next.Add(1) - 1
	return ticket, l.d.limit == 0 || ticket < l.d.limit
}

func (l *lane) record(due, now time.Time, err error) {
	l.d.meter.done(l.number, due, now, err)
}
