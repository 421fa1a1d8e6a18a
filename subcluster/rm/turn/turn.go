// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"time"

	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/durability"
)

// MaxEvents bounds how many events the machine takes in before their answers
// leave: enough to share a wake-up, few enough not to be felt.
const MaxEvents = 256

// Event applies an event to the machine at a time. It returns a function that makes and sends the response once it
// may leave, without the machine. It returns nil if there is no response or the response is held (see [Owner.Hold]).
type Event func(m *rm.Machine, now time.Time) (answer func())

// Owner is the machine of a ResourceManager together with the responses that wait for its journal. One goroutine at a
// time owns it.
type Owner struct {
	Machine *rm.Machine
	Records Records
	// Time derives the now of all turns. The machine uses moments of the wall clock; a clock that is set back would
	// delay every deadline by the difference.
	Time pauseclock.SteadyClock
	// Volatile is set where nothing is kept: no answer waits.
	Volatile bool

	gate    durability.Gate[func()]
	actions []rm.Action
	answers []func() // that may leave at the end of this batch
	left    []func() // responses of the previous batch, for reuse of their memory
	changed bool
}

// Begin begins a turn. First it credits the pause of this process to all deadlines, then it passes on durable
// transactions, then due deadlines. durable is the last durable transaction of the journal. Begin reports whether the
// machine was given more than the pause.
func (o *Owner) Begin(now time.Time, paused time.Duration, durable uint64) (moved bool) {
	if paused > 0 {
		o.Machine.Paused(now, paused)
	}
	seq, answers, news := o.gate.Durable(durable, o.answers)
	if o.answers = answers; news {
		o.Machine.Saved(now, seq)
		moved = true
	}
	if deadline := o.Machine.NextDeadline(); !deadline.IsZero() && !now.Before(deadline) {
		o.Machine.Tick(now)
		moved = true
	}
	o.changed = o.changed || moved
	return moved
}

// Take has the machine take in one event.
func (o *Owner) Take(now time.Time, e Event) {
	if answer := e(o.Machine, now); answer != nil {
		o.answers = append(o.answers, answer)
	}
}

// Hold keeps an answer back until everything that the machine has so far asked to
// be saved is durable. Events call it.
func (o *Owner) Hold(answer func()) { o.gate.Hold(answer) }

// Changed records that this turn changes lists, even if no action of the machine shows it.
func (o *Owner) Changed() { o.changed = true }

// BatchResult is the result of a batch of events.
type BatchResult struct {
	Commit  uint64   // the number of the transaction, 0 when it is empty
	Answers []func() // that may leave, once it is handed to the journal; valid until the next End
	Changed bool     // lists show something else than before
	Err     error    // a record that cannot be written: the ResourceManager cannot make its responses durable
}

// End ends a batch. The machine's saves go into the transaction. Its other actions are passed to perform, in order.
// Performing an action causes further actions only through later events.
func (o *Owner) End(tx Tx, perform func(rm.Action)) (out BatchResult) {
	o.actions = o.Machine.Actions(o.actions[:0])
	for _, a := range o.actions {
		if _, hint := a.(rm.News); !hint { // progress and the like: no change that lists show
			o.changed = true
		}
		switch a.(type) {
		case rm.SaveApp, rm.SaveAttempt, rm.SaveDisowned, rm.SaveLabels, rm.SaveAttributes:
			seq, err := o.Records.save(tx, a)
			if err != nil && out.Err == nil {
				out.Err = err
			}
			o.gate.Saved(seq)
		}
		perform(a)
	}
	clear(o.actions)
	out.Changed, o.changed = o.changed, false
	out.Commit, o.answers = o.gate.EndTurn(tx.Len() > 0 && !o.Volatile, o.answers)
	clear(o.left)
	out.Answers, o.answers, o.left = o.answers, o.left[:0], o.answers
	return out
}
