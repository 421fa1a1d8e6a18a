// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
)

// Whatever comes in whatever order, of more attempts and epochs than are told apart by
// their highest id: a container is known while it lives and when it has ended, and ends once.
func TestContainersAreKnownAndEndOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &member{}
		c := newContainers()
		live, ended := map[creel.ContainerID]*heldContainer{}, map[creel.ContainerID]bool{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			id := creel.ContainerID{ID: int64(rapid.IntRange(0, highestKept).Draw(t, "epoch"))<<40 |
				int64(rapid.IntRange(1, 20).Draw(t, "sequence"))}
			id.Attempt.Attempt = int32(rapid.IntRange(1, 2).Draw(t, "attempt"))
			if known, want := c.knows(id), live[id] != nil || ended[id]; known != want {
				t.Fatalf("%v is known: %v; it lives: %v, has ended: %v", id, known, live[id] != nil, ended[id])
			}
			if rapid.Bool().Draw(t, "granted") {
				if !c.knows(id) {
					live[id] = &heldContainer{by: m}
					c.hold(id, live[id])
				}
			} else {
				o, first := c.complete(id)
				if first == ended[id] || o != live[id] {
					t.Fatalf("%v ends for the first time: %v, before it had ended: %v; known of it: %v, want %v",
						id, first, ended[id], o, live[id])
				}
				delete(live, id)
				ended[id] = true
			}
			if m.live != len(live) {
				t.Fatalf("%d live of the member, want %d", m.live, len(live))
			}
		}
	})
}
