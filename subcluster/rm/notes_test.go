// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"testing"

	"github.com/creelrm/creel"
	"pgregory.net/rapid"
)

// Every note reaches its node once and in order, and the store grows no longer
// once nodes take their notes.
func TestNotesReachTheirNodesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &Machine{}
		nodes := make([]*node, 5)
		kills, forgets := make([][]creel.ContainerID, 5), make([][]creel.ContainerID, 5)
		for i := range nodes {
			nodes[i] = &node{nodeInfo: &nodeInfo{}, state: nodeRunning}
		}
		take := func(i int) {
			k, f := m.takeNotes(nodes[i])
			if !slices.Equal(k, kills[i]) || !slices.Equal(f, forgets[i]) {
				t.Fatalf("node %d is told to kill %v and forget %v, not %v and %v", i, k, f, kills[i], forgets[i])
			}
			kills[i], forgets[i] = nil, nil
		}
		seq := int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			i := rapid.IntRange(0, 4).Draw(t, "node")
			for range rapid.SampledFrom([]int{1, 3, notesInPage/2 + 1}).Draw(t, "notes") {
				seq++
				id := creel.ContainerID{ID: seq}
				if seq%3 == 0 {
					m.tellForget(nodes[i], id)
					forgets[i] = append(forgets[i], id)
				} else {
					m.tellKill(nodes[i], id)
					kills[i] = append(kills[i], id)
				}
			}
			if rapid.Bool().Draw(t, "speaks") {
				take(rapid.IntRange(0, 4).Draw(t, "who"))
			}
		}
		for i := range nodes {
			take(i)
		}
		pages := len(m.notes.pages)
		for range 10 * notesInPage {
			m.tellKill(nodes[0], creel.ContainerID{})
			m.takeNotes(nodes[0])
		}
		if len(m.notes.pages) > max(pages, 1) {
			t.Fatalf("%d pages became %d", pages, len(m.notes.pages))
		}
	})
}
