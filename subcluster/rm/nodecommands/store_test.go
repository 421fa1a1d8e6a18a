// SPDX-License-Identifier: Apache-2.0

package nodecommands

import (
	"slices"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

// Every command reaches its node once and in order, unless the node is closed,
// and the store does not grow once nodes take their commands.
func TestCommandsReachTheirNodesInOrder(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		s := &Store{}
		kills, forgets := make([][]creel.ContainerID, 5), make([][]creel.ContainerID, 5)
		for range 5 {
			s.AddNode()
		}
		take := func(i int) {
			k, f := s.Take(int32(i))
			if !slices.Equal(k, kills[i]) || !slices.Equal(f, forgets[i]) {
				t.Fatalf("node %d is told to kill %v and forget %v, not %v and %v", i, k, f, kills[i], forgets[i])
			}
			kills[i], forgets[i] = nil, nil
		}
		seq, closed := int64(0), [5]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			i := rapid.IntRange(0, 4).Draw(t, "node")
			for range rapid.SampledFrom([]int{1, 3, perPage/2 + 1}).Draw(t, "commands") {
				seq++
				id := creel.ContainerID{ID: seq}
				list, tell := &kills[i], s.Kill
				if seq%3 == 0 {
					list, tell = &forgets[i], s.Forget
				}
				if tell(int32(i), id); !closed[i] {
					*list = append(*list, id)
				}
			}
			if rapid.IntRange(0, 5).Draw(t, "turns") == 0 {
				closed[i] = !closed[i]
				s.Open(int32(i), !closed[i])
				kills[i], forgets[i] = nil, nil
			}
			if rapid.Bool().Draw(t, "speaks") {
				take(rapid.IntRange(0, 4).Draw(t, "who"))
			}
		}
		for i := range 5 {
			take(i)
			s.Open(int32(i), true)
		}
		pages := len(s.pages)
		for range 10 * perPage {
			s.Kill(0, creel.ContainerID{})
			s.Take(0)
		}
		if len(s.pages) > max(pages, 1) {
			t.Fatalf("%d pages became %d", pages, len(s.pages))
		}
	})
}
