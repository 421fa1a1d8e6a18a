// SPDX-License-Identifier: Apache-2.0

package intrusive

import (
	"slices"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

type element struct {
	rank int
	slot int32
	link Link[*element]
}

// A heap returns its elements in order after any pushes, moves and removals.
func TestHeapKeepsTheOrder(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		h := Heap[*element]{
			Less: func(a, b *element) bool { return a.rank < b.rank },
			Slot: func(x *element) *int32 { return &x.slot },
		}
		all := make([]*element, 12)
		for i := range all {
			all[i] = &element{}
		}
		in := map[*element]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			x := all[rapid.IntRange(0, len(all)-1).Draw(t, "who")]
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				h.Remove(x)
				delete(in, x)
			case 1:
				x.rank = rapid.IntRange(0, 9).Draw(t, "rank")
				h.Fix(x)
			case 2:
				for y := range in {
					y.rank = 9 - y.rank
				}
				h.Rebuild()
			default:
				if !in[x] {
					h.Push(x)
					in[x] = true
				}
			}
			if at := h.Check(); at >= 0 || h.Len() != len(in) {
				t.Fatalf("element %d of %d out of place, %d should be in", at, h.Len(), len(in))
			}
			if h.Len() > 0 {
				least := 10
				for y := range in {
					least = min(least, y.rank)
				}
				if h.Top().rank != least {
					t.Fatalf("top has rank %d, least is %d", h.Top().rank, least)
				}
			}
		}
	})
}

// A list is a slice: appended elements move to the end, removed ones leave.
func TestListKeepsTheOrderOfAppends(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		l := List[*element]{Link: func(x *element) *Link[*element] { return &x.link }}
		all := make([]*element, 6)
		for i := range all {
			all[i] = &element{rank: i}
		}
		var want []*element
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			x := all[rapid.IntRange(0, len(all)-1).Draw(t, "who")]
			want = slices.DeleteFunc(want, func(y *element) bool { return y == x })
			if rapid.Bool().Draw(t, "append") {
				l.Append(x)
				want = append(want, x)
			} else {
				l.Remove(x)
			}
			if got := slices.Collect(l.All()); !slices.Equal(got, want) {
				t.Fatalf("%v, want %v", got, want)
			}
		}
	})
}
