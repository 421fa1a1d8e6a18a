// SPDX-License-Identifier: Apache-2.0

package durability

// Gate tracks the durability of a ResourceManager: the transaction of each save, and the responses that wait for each
// transaction. T is the driver's representation of a response, usually a function.
//
// The owner of the machine owns the Gate. The zero value is ready, with no transaction in progress.
type Gate[T any] struct {
	seq       uint64 // highest number of the machine's saves so far
	committed uint64 // transactions passed to the journal, numbered from 1
	durable   uint64 // number of the last durable transaction
	pending   []transaction
	turn      []T // responses of this turn that must wait for this turn's saves
	waiting   []waiter[T]
}

// transaction records the last save, by its sequence number, that a transaction completes.
type transaction struct{ number, seq uint64 }

// waiter is an answer that may be sent once a transaction is durable.
type waiter[T any] struct {
	number uint64
	answer T
}

// Saved records that this turn's transaction has the save with this number.
func (g *Gate[T]) Saved(seq uint64) { g.seq = max(g.seq, seq) }

// Hold delays an answer until everything saved up to the end of this turn is durable.
func (g *Gate[T]) Hold(answer T) { g.turn = append(g.turn, answer) }

// EndTurn closes this turn's transaction. written reports whether the transaction has content. If so, the caller must
// commit it under the returned number, else the number is 0. Answers of the turn that wait for nothing are appended
// to free.
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

// Durable records that the transactions up to this number are durable. It returns the highest save among them, which
// the caller passes to Machine.Saved before it sends any answer. It appends the answers that waited for them to free.
// news is false if they were already known to be durable.
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

// Waiting is the number of waiting answers.
func (g *Gate[T]) Waiting() int { return len(g.turn) + len(g.waiting) }

// drop removes the first n elements and clears their slots, so that their referents can be collected.
func drop[E any](list []E, n int) []E {
	rest := copy(list, list[n:])
	clear(list[rest:])
	return list[:rest]
}
