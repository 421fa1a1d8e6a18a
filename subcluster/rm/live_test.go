// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"

	"pgregory.net/rapid"
)

// A living is a map. After a restart nodes register in any order, so numbers
// of an earlier life come back high ones first.
func TestLivingIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l living
		twin := map[int64]*container{}
		ids := rapid.Custom(func(t *rapid.T) int64 {
			return rapid.Int64Range(0, 2).
				Draw(t, "epoch")<<
				epochBits | rapid.OneOf(rapid.Int64Range(1, 200), rapid.Int64Range(1, 200_000)).
				Draw(t, "number")
		})
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			id := ids.Draw(t, "id")
			switch _, there := twin[id]; {
			case !there:
				c := &container{seq: id}
				l.put(id, c)
				twin[id] = c
			default:
				l.drop(id)
				delete(twin, id)
			}
			for id, c := range twin {
				if l.get(id) != c {
					t.Fatalf("container %d:%d is not found", id>>epochBits, id&(1<<epochBits-1))
				}
			}
			if other := ids.Draw(t, "other"); l.get(other) != twin[other] {
				t.Fatalf(
					"container %d:%d: found %v, want %v",
					other>>epochBits,
					other&(1<<epochBits-1),
					l.get(other),
					twin[other],
				)
			}
			if l.n != len(twin) {
				t.Fatalf("%d counted, %d live", l.n, len(twin))
			}
		}
	})
}
