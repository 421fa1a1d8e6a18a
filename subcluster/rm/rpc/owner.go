// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/journal"
)

// batchEvents bounds how many events the machine takes in before their answers
// leave: enough to share a wake-up, few enough not to be felt.
const batchEvents = 256

// event is something for the owner to do. It must not block. What it
// returns, if anything, is run by a responder afterwards.
type event func(m *rm.Machine, now time.Time) (after func())

// mailbox is what waits for the owner.
type mailbox struct {
	mu     sync.Mutex
	events []event
	closed bool
	limit  int
	wake   chan struct{}
}

var errStopping = &creel.Error{
	Kind: creel.ErrUnavailable,
	What: "the ResourceManager is stopping",
	Try:  "try again in a moment",
}

// post hands an event to the owner; an error means that it will not run.
func (b *mailbox) post(e event) error {
	err := b.add(e)
	if err == nil {
		b.poke()
	}
	return err
}

// add is post without waking anybody.
func (b *mailbox) add(e event) error {
	b.mu.Lock()
	switch {
	case b.closed:
		b.mu.Unlock()
		return errStopping
	case len(b.events) >= b.limit:
		b.mu.Unlock()
		return &creel.Error{
			Kind: creel.ErrBusy,
			What: "the ResourceManager is busy",
			Why:  fmt.Sprintf("%d events wait", b.limit),
			Try:  "try again in a moment",
		}
	}
	b.events = append(b.events, e)
	b.mu.Unlock()
	return nil
}

func (b *mailbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.events) == 0
}

// must posts what may not be lost and is bounded by its own nature: news from
// the launcher. When the owner is gone it is dropped.
func (b *mailbox) must(e event) {
	b.mu.Lock()
	if !b.closed {
		b.events = append(b.events, e)
	}
	b.mu.Unlock()
	b.poke()
}

func (b *mailbox) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take empties the box into spare's memory.
func (b *mailbox) take(spare []event) []event {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events = spare[:0]
	return events
}

func (b *mailbox) close() []event {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	events := b.events
	b.events = nil
	return events
}

// saving is the state of durability, the owner's but for durable and failed.
type saving struct {
	journal *journal.Journal // nil: nothing is kept
	tx      journal.Tx       // of this turn
	seq     uint64           // highest of the machine's sequence numbers in tx
	commits uint64           // transactions handed to the journal
	settled uint64           // of which so many are known to be durable
	marks   []mark
	waiters []waiter

	durable atomic.Uint64 // transactions that are durable
	failed  atomic.Pointer[error]
}

// mark tells which of the machine's saves a transaction completes.
type mark struct{ commit, seq uint64 }

// waiter is an answer that must not leave before a transaction is durable.
type waiter struct {
	commit uint64
	run    func()
}

// owning is who owns the machine, and everything that is said to be the owner's:
// whoever holds the lock, one at a time. Who lets go of it looks into the mailbox
// once more, so that who found it held need not wake anybody.
type owning struct {
	sync.Mutex
	events []event   // of the turn
	armed  time.Time // when own wakes at the latest; zero: never
	asks   bool      // the owner is one who asks,
	answer func()    // and gives this answer himself
}

// own owns the machine from time to time: when something was posted, and when
// time is due to bring something. Once it has returned nobody owns it any more.
func (d *Daemon) own(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	defer d.refuseRest()
	o := &d.owner
	for {
		o.Lock()
		for more := true; more; {
			var err error
			if more, err = d.empty(); err != nil {
				return err
			}
		}
		wait := time.Hour
		if o.armed = d.m.NextDeadline(); !o.armed.IsZero() {
			wait = max(time.Until(o.armed), time.Millisecond)
		}
		o.Unlock()
		if !d.box.empty() {
			continue
		}
		timer.Reset(wait)
		select {
		case <-d.box.wake:
		case <-timer.C:
		case <-ctx.Done():
			o.Lock() // for good
			return nil
		}
	}
}

// empty is a turn with everything that waits in the mailbox; it tells whether
// anything did.
func (d *Daemon) empty() (some bool, err error) {
	o := &d.owner
	o.events = d.box.take(o.events)
	err = d.turn(o.events)
	clear(o.events)
	return len(o.events) > 0, err
}

// ask is post for a caller that has nothing else to do before the answer comes:
// when nobody owns the machine he does for one turn, and a single answer he gives
// himself when he has let go of it. That spares waking one goroutine for the
// event and another one for the answer.
func (d *Daemon) ask(e event) error {
	if err := d.box.add(e); err != nil {
		return err
	}
	o := &d.owner
	if !o.TryLock() {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			// The machine is of no use any more: nobody may catch this.
			go panic(fmt.Sprintf("%v\n%s", p, debug.Stack()))
			select {}
		}
	}()
	o.asks = true
	_, err := d.empty()
	next := d.m.NextDeadline()
	sooner := !next.IsZero() && (o.armed.IsZero() || next.Before(o.armed))
	answer := o.answer
	o.asks, o.answer = false, nil
	o.Unlock()
	if err != nil || sooner || !d.box.empty() {
		d.box.poke() // own finds the same error, sets its timer, or goes on
	}
	if answer != nil {
		answer()
	}
	return nil
}

// turn is one round: what became durable, what time brought, what was posted,
// and then the actions of all of it.
func (d *Daemon) turn(events []event) error {
	if failed := d.save.failed.Load(); failed != nil {
		return *failed
	}
	now := time.Now()
	d.settle(now)
	if deadline := d.m.NextDeadline(); !deadline.IsZero() && !now.Before(deadline) {
		d.m.Tick(now)
		d.changed = true
		d.moves.Add(1)
	}
	for first := true; first || len(events) > 0; first = false {
		n := min(len(events), batchEvents)
		d.reads = 0
		for _, e := range events[:n] {
			if after := e(d.m, now); after != nil {
				d.out = append(d.out, after)
			}
		}
		events = events[n:]
		if d.reads < n {
			d.moves.Add(1) // before anyone is answered who could look for the move
		}
		d.act(now)
		d.respond()
		if n > 0 {
			now = time.Now()
		}
	}
	return nil
}

// whenSaved runs an answer when everything the machine has so far asked to be
// saved is durable. Events call it.
func (d *Daemon) whenSaved(run func()) { d.unsaved = append(d.unsaved, run) }

// act performs the machine's actions. Performing may give rise to more only
// through later events.
func (d *Daemon) act(now time.Time) {
	d.actions = d.m.Actions(d.actions[:0])
	for _, a := range d.actions {
		if _, hint := a.(rm.News); !hint {
			d.changed = true
		}
		switch a := a.(type) {
		case rm.SaveApp:
			d.saveApp(a)
		case rm.SaveAttempt:
			d.saveAttempt(a)
		case rm.SaveDisowned:
			d.saveDisowned(a)
		case rm.LaunchMaster:
			d.launchMaster(now, a)
		case rm.StopMaster:
			d.launcher.stop(a)
		case rm.AppEnded:
			d.appEnded(a)
		case rm.AttemptEnded:
			d.secrets.forgetAttempt(a.Attempt)
		case rm.News:
		}
	}
	clear(d.actions)
	if d.changed {
		d.changed = false
		d.changes.Add(1) // before anyone is answered who could look for the change
	}
	d.commit()
	for _, run := range d.unsaved {
		if d.save.commits == d.save.settled {
			d.out = append(d.out, run)
			continue
		}
		d.save.waiters = append(d.save.waiters, waiter{commit: d.save.commits, run: run})
	}
	clear(d.unsaved)
	d.unsaved = d.unsaved[:0]
}

// commit hands what this turn wants kept to the journal, as one transaction.
func (d *Daemon) commit() {
	s := &d.save
	defer s.tx.Reset()
	if s.tx.Len() == 0 || s.journal == nil {
		return
	}
	s.commits++
	s.marks = append(s.marks, mark{commit: s.commits, seq: s.seq})
	number := s.commits
	s.journal.Commit(&s.tx, func(err error) {
		if err != nil {
			s.failed.CompareAndSwap(nil, &err)
		} else {
			s.durable.Store(number) // transactions become durable in order
		}
		d.box.poke()
	})
}

// settle takes note of what has become durable: the machine goes on, and those
// who waited are answered.
func (d *Daemon) settle(now time.Time) {
	s := &d.save
	durable := s.durable.Load()
	if durable == s.settled {
		return
	}
	s.settled = durable
	d.changed = true
	d.moves.Add(1)
	n := 0
	for n < len(s.marks) && s.marks[n].commit <= durable {
		n++
	}
	d.m.Saved(now, s.marks[n-1].seq)
	s.marks = slices.Delete(s.marks, 0, n)
	for n = 0; n < len(s.waiters) && s.waiters[n].commit <= durable; n++ {
		d.out = append(d.out, s.waiters[n].run)
	}
	s.waiters = slices.Delete(s.waiters, 0, n)
}

// respond hands finished answers to the responders, a few at a time so that
// every core takes part. A full queue holds the owner back, which fills the
// mailbox, which tells callers to come again. One who asks takes one himself.
func (d *Daemon) respond() {
	const chunk = 16
	if o := &d.owner; o.asks && o.answer == nil && len(d.out) == 1 {
		o.answer, d.out[0], d.out = d.out[0], nil, d.out[:0]
	}
	for out := d.out; len(out) > 0; {
		n := min(chunk, len(out))
		d.answers <- append([]func(){}, out[:n]...)
		out = out[n:]
	}
	clear(d.out)
	d.out = d.out[:0]
}

func (d *Daemon) responder() {
	for answers := range d.answers {
		for _, answer := range answers {
			answer()
		}
	}
}

// refuseRest lets everything that still waits end: nobody owns the machine any
// more. Events that would answer somebody are not run; their callers see the
// connection end.
func (d *Daemon) refuseRest() {
	d.box.close()
	close(d.stopped)
}

// Query has the owner run f and waits for it. f must not block, only
// reads, and what it keeps of the machine must be copies (its views are).
func (d *Daemon) Query(ctx context.Context, f func(m *rm.Machine, now time.Time)) error {
	done := make(chan struct{})
	err := d.box.post(func(m *rm.Machine, now time.Time) func() {
		f(m, now)
		d.reads++
		close(done)
		return nil
	})
	if err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-d.stopped:
		select {
		case <-done:
			return nil
		default:
			return errStopping
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}
