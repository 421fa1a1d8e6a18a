// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"sync"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/turn"
)

// event is a task for the owner. It must not block. A responder then runs the function it returns, if any.
type event = turn.Event

// mailbox has the events that wait for the owner.
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

// ErrUnclear is the kind of a posted operation that got no answer: its record may be in the journal, and then takes
// effect at the next start.
var ErrUnclear = fmt.Errorf("outcome unknown: %w", creel.ErrUnavailable)

var errUnclear = &creel.Error{
	Kind: ErrUnclear,
	What: "the ResourceManager is stopping and may have accepted the call",
	Why:  "its journal did not confirm the change",
	Try:  "repeat the same call at this ResourceManager when it is back",
}

// post passes an event to the owner; an error means that the event will not run.
func (b *mailbox) post(e event) error {
	err := b.add(e)
	if err == nil {
		b.poke()
	}
	return err
}

// add is post without a wake-up.
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

// postAlways posts an event that must not be lost and whose number is bounded: the result of a launch. After the
// owner has ended the event is dropped.
func (b *mailbox) postAlways(e event) {
	b.mu.Lock()
	if !b.closed {
		b.events = append(b.events, e)
	}
	b.mu.Unlock()
	b.poke()
}

// poke wakes the owner's goroutine.
func (b *mailbox) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *mailbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.events) == 0
}

// take empties the mailbox into spare's memory.
func (b *mailbox) take(spare []event) []event {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events = spare[:0]
	return events
}

// close rejects later events and drops the waiting ones.
func (b *mailbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.events = nil
}
