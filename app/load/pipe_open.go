// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/creelrm/creel/internal/hrpc"
)

// driveOpenPiped makes an open plan's requests: ticket t is due at its time, and slot t modulo the number of slots
// makes it. A slot whose last request is unanswered makes its next one late, after the response. If more than
// kind.behind become due meanwhile, the rest count as unsent.
func driveOpenPiped(ctx context.Context, p Plan, m *meter, clients []*hrpc.Client, kind pipedRequests) error {
	if err := p.Validate(); err != nil {
		return err
	}
	limit, grace := p.limit(), p.grace()
	calls, cancel := context.WithCancel(ctx)
	defer cancel()
	kind.behind = max(kind.behind, 1)
	d := &driver{plan: p, meter: m, limit: limit, start: kind.start}
	if d.start.IsZero() {
		d.start = time.Now()
	}
	lanes := make([]*openLane, 0, len(clients))
	owners := make([]owner, kind.slots)
	for _, l := range d.lanes(min(len(clients), kind.slots), clients, kind) {
		o := &openLane{lane: *l, late: make([][]int64, len(l.slots)), open: map[int32]bool{}}
		for id, slot := range l.slots {
			owners[slot] = owner{o, int32(id)}
		}
		lanes = append(lanes, o)
	}
	m.begin(p, d.start)
	var work sync.WaitGroup
	for _, l := range lanes {
		work.Go(func() { l.read(calls) })
	}
	err := d.send(ctx, owners, cmp.Or(kind.grain, 500*time.Microsecond))
	for until := time.Now().Add(grace); time.Now().Before(until) && ctx.Err() == nil && anyWaits(lanes); {
		_ = pause(ctx, time.Millisecond)
	}
	m.end(time.Now())
	cancel()
	work.Wait()
	for _, l := range lanes {
		l.giveUp()
	}
	return errors.Join(err, ctx.Err())
}

// owner is a slot's connection, with its call id there.
type owner struct {
	lane *openLane
	id   int32
}

// send releases tickets as they become due.
func (d *driver) send(ctx context.Context, owners []owner, grain time.Duration) error {
	clock, err := newClock()
	if err != nil {
		return err
	}
	defer clock.close()
	var wanted []*openLane
	for ticket := int64(0); ticket < d.limit && ctx.Err() == nil; {
		now := time.Now()
		if due := d.due(ticket); now.Before(due) {
			if next := now.Add(grain); due.Before(next) {
				due = next
			}
			if err := clock.until(ctx, due); err != nil {
				return err
			}
			now = time.Now()
		}
		d.meter.lag(now.Sub(d.due(ticket)))
		wanted = wanted[:0]
		for ; ticket < d.limit && !d.due(ticket).After(now); ticket++ {
			o := &owners[ticket%int64(len(owners))]
			o.lane.want(o.id, ticket, now)
			if n := len(wanted); n == 0 || wanted[n-1] != o.lane {
				wanted = append(wanted, o.lane)
			}
		}
		for _, l := range wanted {
			l.flush()
		}
	}
	return nil
}

func anyWaits(lanes []*openLane) bool {
	for _, l := range lanes {
		l.mu.Lock()
		n := len(l.open)
		l.mu.Unlock()
		if n > 0 {
			return true
		}
	}
	return false
}

// openLane is a connection of an open loop. Its lock guards the data shared by the timekeeper and the reader. An open
// slot belongs to the reader.
type openLane struct {
	lane
	mu   sync.Mutex
	pipe *hrpc.Pipe
	open map[int32]bool // slots that wait for an answer or for the connection
	late [][]int64      // by slot: tickets that became due meanwhile
}

// want makes a slot's request, or records it if the slot waits.
func (l *openLane) want(id int32, ticket int64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.open[id]:
		l.open[id] = true
		l.put(id, ticket)
	case len(l.late[id]) < l.kind.behind:
		l.late[id] = append(l.late[id], ticket)
	default:
		l.d.meter.unsent(l.d.due(ticket), now)
	}
}

// put sends a request, or stores it while there is no connection. The caller holds the lock.
func (l *openLane) put(id int32, ticket int64) {
	l.sent[id] = sentRequest{at: l.d.due(ticket), ticket: ticket}
	if l.pipe == nil {
		return
	}
	body, err := l.kind.request(l.buf[:0], l.slots[id], ticket)
	if err == nil {
		l.buf, l.sent[id].open = body, true
		err = l.pipe.Put(id, l.kind.method, body)
	}
	if err != nil {
		l.pipe.Break() // the reader notices
	}
}

func (l *openLane) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pipe != nil && l.pipe.Flush() != nil {
		l.pipe.Break()
	}
}

// read processes answers until the load ends, on one connection after the other.
func (l *openLane) read(ctx context.Context) {
	for ctx.Err() == nil {
		pipe, err := l.client.Pipe(ctx, l.target)
		if err != nil {
			_ = pause(ctx, retryAfter)
			continue
		}
		l.mu.Lock()
		l.pipe = pipe
		for id := range l.open { // requests that waited for the connection
			l.put(id, l.sent[id].ticket)
		}
		l.mu.Unlock()
		l.flush()
		err = l.answers(ctx, pipe)
		l.mu.Lock()
		l.pipe = nil
		now := time.Now()
		for id := range l.sent {
			if l.sent[id].open {
				l.record(l.sent[id].at, now, err)
				l.done(int32(id))
			}
		}
		l.mu.Unlock()
		pipe.Close()
	}
}

// answers processes the responses of one connection.
func (l *openLane) answers(ctx context.Context, pipe *hrpc.Pipe) error {
	now := time.Now()
	for {
		fresh := !pipe.Buffered()
		if fresh {
			l.flush() // late requests
		}
		id, body, refused, err := pipe.Receive()
		if err != nil {
			return err
		}
		if fresh {
			now = time.Now()
		}
		if id < 0 || int(id) >= len(l.sent) {
			return errors.New("an answer without a request")
		}
		l.mu.Lock()
		s := l.sent[id]
		l.mu.Unlock()
		if !s.open {
			return errors.New("an answer without a request")
		}
		if refused == nil && l.kind.next != nil {
			var more bool
			if more, refused, err = l.follow(pipe, id, s.ticket, body); err != nil {
				return err
			}
			if more {
				continue
			}
		}
		if refused == nil {
			refused = l.kind.answer(ctx, l.slots[id], s.ticket, body)
		}
		l.record(s.at, now, refused)
		l.mu.Lock()
		l.done(id)
		l.mu.Unlock()
	}
}

// follow makes the call that follows an answer, if there is one.
func (l *openLane) follow(pipe *hrpc.Pipe, id int32, ticket int64, body []byte) (more bool, refused, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	method, request, refused := l.kind.next(l.buf[:0], l.slots[id], ticket, body)
	if refused != nil || method == "" {
		return false, refused, nil
	}
	l.buf = request
	return true, nil, pipe.Put(id, method, request)
}

// done ends a slot's request and makes the next one if that is already late. The caller holds the lock.
func (l *openLane) done(id int32) {
	l.sent[id].open = false
	if late := l.late[id]; len(late) > 0 {
		ticket := late[0]
		l.late[id] = slices.Delete(late, 0, 1)
		l.put(id, ticket)
		return
	}
	delete(l.open, id)
}

// giveUp counts requests that were never sent.
func (l *openLane) giveUp() {
	now := time.Now()
	for id := range l.open {
		l.d.meter.unsent(l.sent[id].at, now)
		for _, ticket := range l.late[id] {
			l.d.meter.unsent(l.d.due(ticket), now)
		}
	}
}
