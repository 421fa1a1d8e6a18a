// SPDX-License-Identifier: Apache-2.0

package rm

// outbox has the actions for the caller, and what continues when a save is durable.
type outbox struct {
	volatile bool // nothing is saved
	actions  []Action
	seq      uint64 // of the last Save action
	saves    []pendingSave
}

// pendingSave is the continuation after a Save action is durable.
type pendingSave struct {
	seq  uint64
	then func()
}

func (o *outbox) act(a Action) { o.actions = append(o.actions, a) }

// take appends the actions since the last call to out, in their order.
func (o *outbox) take(out []Action) []Action {
	out = append(out, o.actions...)
	clear(o.actions)
	o.actions = o.actions[:0]
	return out
}

// save emits a Save action and calls then once it is durable; at once if nothing is saved.
func (o *outbox) save(make func(seq uint64) Action, then func()) {
	if o.volatile {
		then()
		return
	}
	o.seq++
	o.act(make(o.seq))
	o.saves = append(o.saves, pendingSave{o.seq, then})
}

// store emits a Save action for which nothing waits, unless nothing is saved.
func (o *outbox) store(a Action) {
	if !o.volatile {
		o.act(a)
	}
}

// saved continues after all saves up to seq.
func (o *outbox) saved(seq uint64) {
	n := 0
	for n < len(o.saves) && o.saves[n].seq <= seq {
		then := o.saves[n].then
		n++
		then()
	}
	o.saves = append(o.saves[:0], o.saves[n:]...)
}
