// SPDX-License-Identifier: Apache-2.0

package durability

import (
	"slices"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

func TestAnAnswerWaitsForItsTurnsTransaction(t *testing.T) {
	var g Gate[string]
	g.Saved(7)
	g.Hold("submitted")
	number, free := g.EndTurn(true, nil)
	if number != 1 || len(free) != 0 {
		t.Fatalf("transaction %d, answers %q left before it is durable", number, free)
	}
	seq, free, news := g.Durable(1, nil)
	if seq != 7 || !news || !slices.Equal(free, []string{"submitted"}) {
		t.Fatalf("save %d, answers %q, news %t", seq, free, news)
	}
	if _, free, news = g.Durable(1, nil); news || len(free) != 0 {
		t.Fatalf("the same transaction is durable twice: %q", free)
	}
}

func TestUnsavedAnswerWaitsForEarlierSaves(t *testing.T) {
	var g Gate[string]
	g.Saved(1)
	g.EndTurn(true, nil)
	g.Hold("already known") // about an application with a save under way
	if number, free := g.EndTurn(false, nil); number != 0 || len(free) != 0 {
		t.Fatalf("transaction %d, answers %q left", number, free)
	}
	if _, free, _ := g.Durable(1, nil); len(free) != 1 {
		t.Fatalf("answers %q left", free)
	}
}

func TestAnswerLeavesAtOnceWithoutSaves(t *testing.T) {
	var g Gate[string]
	g.Hold("nothing is kept")
	if number, free := g.EndTurn(false, nil); number != 0 || len(free) != 1 || g.Waiting() != 0 {
		t.Fatalf("transaction %d, answers %q left, %d wait", number, free, g.Waiting())
	}
}

// An answer leaves when, and only when, the transaction of its turn and all
// before it are durable: held against the obvious list of turns.
func TestAnswersLeaveInOrderAndNeverEarly(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		type held struct{ id, after int } // after: transactions that must be durable
		var (
			g                      Gate[int]
			want                   []held
			left                   []int
			next, commits, durable int
			seqOf                  = []uint64{0} // of each transaction
			seq                    uint64
			release                = func(free []int) { left = append(left, free...) }
		)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "turn") {
				holds := rapid.IntRange(0, 3).Draw(t, "holds")
				saves := rapid.IntRange(0, 2).Draw(t, "saves")
				other := rapid.Bool().Draw(t, "other") // a record that is not the machine's
				for range saves {
					seq++
					g.Saved(seq)
				}
				var ids []int
				for range holds {
					next++
					g.Hold(next)
					ids = append(ids, next)
				}
				number, free := g.EndTurn(saves > 0 || other, nil)
				if saves > 0 || other {
					commits++
					seqOf = append(seqOf, seq)
				}
				if want := uint64(commits); number != 0 && number != want {
					t.Fatalf("transaction %d is numbered %d", want, number)
				}
				for _, id := range ids {
					want = append(want, held{id, commits})
				}
				release(free)
			} else if durable < commits {
				durable = rapid.IntRange(durable, commits).Draw(t, "durable")
				got, free, news := g.Durable(uint64(durable), nil)
				if news && got != seqOf[durable] {
					t.Fatalf("after transaction %d save %d is durable, not %d", durable, got, seqOf[durable])
				}
				release(free)
			}
			var may []int
			for _, h := range want {
				if h.after <= durable {
					may = append(may, h.id)
				}
			}
			if !slices.Equal(left, may) {
				t.Fatalf("answers %v left, %v may: %d of %d transactions are durable", left, may, durable, commits)
			}
			if g.Waiting() != len(want)-len(left) {
				t.Fatalf("%d answers wait, not %d", g.Waiting(), len(want)-len(left))
			}
		}
	})
}
