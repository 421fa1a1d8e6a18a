// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"testing"

	"github.com/creelrm/creel"
	"pgregory.net/rapid"
)

// Every note reaches its node once and in order, but one that does not listen,
// and the store grows no longer once nodes take their notes.
func TestNotesReachTheirNodesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &Machine{}
		nodes := make([]*node, 5)
		kills, forgets := make([][]creel.ContainerID, 5), make([][]creel.ContainerID, 5)
		for i := range nodes {
			nodes[i] = &node{nodeInfo: &nodeInfo{}, serial: int32(i)}
			m.notes.heads = append(m.notes.heads, 0)
		}
		take := func(i int) {
			k, f := m.takeNotes(nodes[i])
			if !slices.Equal(k, kills[i]) || !slices.Equal(f, forgets[i]) {
				t.Fatalf("node %d is told to kill %v and forget %v, not %v and %v", i, k, f, kills[i], forgets[i])
			}
			kills[i], forgets[i] = nil, nil
		}
		seq, deaf := int64(0), [5]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			i := rapid.IntRange(0, 4).Draw(t, "node")
			for range rapid.SampledFrom([]int{1, 3, notesInPage/2 + 1}).Draw(t, "notes") {
				seq++
				id := creel.ContainerID{ID: seq}
				list, tell := &kills[i], m.tellKill
				if seq%3 == 0 {
					list, tell = &forgets[i], m.tellForget
				}
				if tell(nodes[i].serial, id); !deaf[i] {
					*list = append(*list, id)
				}
			}
			if rapid.IntRange(0, 5).Draw(t, "turns") == 0 {
				deaf[i] = !deaf[i]
				m.notes.listen(nodes[i].serial, !deaf[i])
				kills[i], forgets[i] = nil, nil
			}
			if rapid.Bool().Draw(t, "speaks") {
				take(rapid.IntRange(0, 4).Draw(t, "who"))
			}
		}
		for i := range nodes {
			take(i)
			m.notes.listen(nodes[i].serial, true)
		}
		pages := len(m.notes.pages)
		for range 10 * notesInPage {
			m.tellKill(nodes[0].serial, creel.ContainerID{})
			m.takeNotes(nodes[0])
		}
		if len(m.notes.pages) > max(pages, 1) {
			t.Fatalf("%d pages became %d", pages, len(m.notes.pages))
		}
	})
}
