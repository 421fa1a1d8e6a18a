// SPDX-License-Identifier: Apache-2.0

package pagemap

import (
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

type value struct{ id int64 }

// After a restart nodes register in any order, so numbers of an earlier epoch
// come back high ones first.
func TestAPageMapIsAMap(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		var l Map[value]
		model := map[int64]*value{}
		ids := rapid.Custom(func(t *rapid.T) int64 {
			return rapid.Int64Range(0, 2).
				Draw(t, "epoch")<<
				EpochBits | rapid.OneOf(rapid.Int64Range(1, 200), rapid.Int64Range(1, 200_000)).
				Draw(t, "number")
		})
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			id := ids.Draw(t, "id")
			switch _, there := model[id]; {
			case !there:
				c := &value{id}
				l.Put(id, c)
				model[id] = c
			default:
				l.Drop(id)
				delete(model, id)
			}
			for id, c := range model {
				if l.Get(id) != c {
					t.Fatalf("container %d:%d is not found", id>>EpochBits, id&(1<<EpochBits-1))
				}
			}
			if other := ids.Draw(t, "other"); l.Get(other) != model[other] {
				t.Fatalf(
					"container %d:%d: found %v, want %v",
					other>>EpochBits,
					other&(1<<EpochBits-1),
					l.Get(other),
					model[other],
				)
			}
			if l.n != len(model) {
				t.Fatalf("%d counted, %d live", l.n, len(model))
			}
		}
	})
}
