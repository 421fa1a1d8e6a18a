// SPDX-License-Identifier: Apache-2.0

package levels_test

import (
	"slices"
	"testing"

	"github.com/creelrm/creel/subcluster/levels"
)

// serve places an ask on nodes that admit room containers each, in rounds from their first node.
func serve(a *levels.Ask, room int, most int) (got []string) {
	placed := map[string]int{}
	nodes := levels.Nodes[string]{
		Host: func(name string) []string {
			if slices.Contains([]string{"a", "b", "c"}, name) {
				return []string{name}
			}
			return nil
		},
		Rack: func(name string) []string {
			return map[string][]string{"/r": {"b", "c"}}[name]
		},
		Least: []string{"a", "b", "c"},
		Start: func(int) int { return 0 },
		More:  func() bool { return len(got) < most },
		Place: func(n string, at levels.Level) bool {
			if placed[n] == room {
				return false
			}
			placed[n]++
			got = append(got, n+string("hra"[at]))
			return true
		},
	}
	nodes.Serve(a)
	return got
}

func TestHostsThenRacksThenLeastLoaded(t *testing.T) {
	a := &levels.Ask{Count: 6, Places: []*levels.Place{{Name: "/r", Count: 2}, {Name: "c", Count: 1}}}
	if got := serve(a, 2, 9); !slices.Equal(got, []string{"ch", "br", "cr", "aa", "aa", "ba"}) || a.Count != 0 {
		t.Errorf("placed %v, %d left", got, a.Count)
	}
}

func TestStrictAskStaysAtItsPlaces(t *testing.T) {
	a := &levels.Ask{Count: 6, Strict: true, Places: []*levels.Place{{Name: "/r", Count: 9, Strict: true}, {Name: "c", Count: 9}}}
	if got := serve(a, 2, 9); !slices.Equal(got, []string{"ch", "ch"}) || a.Count != 4 || a.Places[1].Count != 7 {
		t.Errorf("placed %v, %d left, %d at its host", got, a.Count, a.Places[1].Count)
	}
}

func TestPlacedContainersStayBelowLimit(t *testing.T) {
	a := &levels.Ask{Count: 6, Places: []*levels.Place{{Name: "/r", Count: 9}, {Name: "c", Count: 9}}}
	if got := serve(a, 2, 3); len(got) != 3 || a.Count != 3 {
		t.Errorf("placed %v, %d left", got, a.Count)
	}
}
