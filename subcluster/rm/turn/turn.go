// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"time"

	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/durability"
)

// MaxEvents limits the events of a batch, whose answers are sent together: enough to share a wake-up, few enough to
// cause no noticeable delay.
const MaxEvents = 256

// Event applies an event to the machine at a time. It returns a function that makes and sends the response, without
// the machine, once the response may be sent. It returns nil if there is no response or the response is held (see
// [Owner.Hold]).
type Event func(m *rm.Machine, now time.Time) (answer func())

// Owner is the machine of a ResourceManager together with the responses that wait for its journal. One goroutine at a
// time owns it.
type Owner struct {
	Machine *rm.Machine
	Records Records
	// Time computes the time of all turns. The machine compares times of the wall clock; a clock that is set back
	// would delay every deadline by the difference.
	Time pauseclock.SteadyClock
	// Volatile means that nothing is saved: no answer waits.
	Volatile bool

	gate    durability.Gate[func()]
	actions []rm.Action
	answers []func() // may be sent at the end of this batch
	left    []func() // responses of the previous batch, for reuse of their memory
	changed bool
}

// Begin starts a turn. It first adds the pause of this process to all deadlines, then passes on durable transactions,
// then due deadlines. durable is the last durable transaction of the journal. moved reports whether the machine got
// more than the pause.
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

// Take passes one event to the machine.
func (o *Owner) Take(now time.Time, e Event) {
	if answer := e(o.Machine, now); answer != nil {
		o.answers = append(o.answers, answer)
	}
}

// Hold delays an answer until everything that the machine has asked to save so far is durable. Events call it.
func (o *Owner) Hold(answer func()) { o.gate.Hold(answer) }

// Changed records that this turn changes lists, even if no action of the machine shows it.
func (o *Owner) Changed() { o.changed = true }

// BatchResult is the result of a batch of events.
type BatchResult struct {
	Commit  uint64   // number of the transaction, 0 if it is empty
	Answers []func() // may be sent after the commit; valid until the next End
	Changed bool     // lists changed
	Err     error    // a record cannot be written: the ResourceManager cannot make its responses durable
}

// End ends a batch. It writes the machine's saves into the transaction. It passes the other actions to perform, in
// order. Performing an action causes further actions only through later events.
func (o *Owner) End(tx Tx, perform func(rm.Action)) (out BatchResult) {
	o.actions = o.Machine.Actions(o.actions[:0])
	for _, a := range o.actions {
		if _, hint := a.(rm.News); !hint { // progress and similar: lists do not show it
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
