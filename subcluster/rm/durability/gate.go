// SPDX-License-Identifier: Apache-2.0

package durability

// Gate tracks the durability of a ResourceManager: which of the machine's saves are in which transaction of the
// journal, and which responses wait for which transaction. T is the driver's representation of a response, usually a
// function.
//
// A Gate belongs to the owner of the machine. The zero value is ready, with nothing under way.
type Gate[T any] struct {
	seq       uint64 // highest number of the machine's saves so far
	committed uint64 // transactions handed to the journal, numbered from 1
	durable   uint64 // of which so many are known to be durable
	pending   []transaction
	turn      []T // responses of this turn that must wait for this turn's saves
	waiting   []waiter[T]
}

// transaction records up to which sequence number the machine's saves are complete with it.
type transaction struct{ number, seq uint64 }

// waiter is an answer that must not leave before a transaction is durable.
type waiter[T any] struct {
	number uint64
	answer T
}

// Saved records that the machine's save of this number is in the transaction of
// this turn.
func (g *Gate[T]) Saved(seq uint64) { g.seq = max(g.seq, seq) }

// Hold keeps an answer back until everything that was saved up to the end of
// this turn is durable.
func (g *Gate[T]) Hold(answer T) { g.turn = append(g.turn, answer) }

// EndTurn closes the transaction of this turn. The caller passes whether it
// holds anything; if so the transaction has the number that is returned and the
// caller must commit it, else the number is 0. Answers of the turn that wait for
// nothing are appended to free.
func (g *Gate[T]) EndTurn(written bool, free []T) (number uint64, _ []T) {
	if written {
		g.committed++
		number = g.committed
		g.pending = append(g.pending, transaction{number: number, seq: g.seq})
	}
	if g.committed == g.durable {
		free = append(free, g.turn...)
	} else {
		for _, a := range g.turn {
			g.waiting = append(g.waiting, waiter[T]{number: g.committed, answer: a})
		}
	}
	clear(g.turn)
	g.turn = g.turn[:0]
	return number, free
}

// Durable records that the transactions up to this number are durable. It
// returns the highest of the machine's saves among them, to be passed to
// Machine.Saved before any answer leaves, and appends the answers that waited
// for them to free. It reports false when that was known.
func (g *Gate[T]) Durable(number uint64, free []T) (seq uint64, _ []T, news bool) {
	number = min(number, g.committed)
	if number <= g.durable {
		return 0, free, false
	}
	g.durable = number
	n := 0
	for ; n < len(g.pending) && g.pending[n].number <= number; n++ {
		seq = g.pending[n].seq
	}
	g.pending = drop(g.pending, n)
	for n = 0; n < len(g.waiting) && g.waiting[n].number <= number; n++ {
		free = append(free, g.waiting[n].answer)
	}
	g.waiting = drop(g.waiting, n)
	return seq, free, true
}

// Waiting reports how many answers wait.
func (g *Gate[T]) Waiting() int { return len(g.turn) + len(g.waiting) }

// drop removes the first n elements and clears their slots, so that their referents can be collected.
func drop[E any](list []E, n int) []E {
	rest := copy(list, list[n:])
	clear(list[rest:])
	return list[:rest]
}
