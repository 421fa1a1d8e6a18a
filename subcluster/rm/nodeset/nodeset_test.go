// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"slices"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

// A change of one set does not affect the other.
func TestTheTwoSetsAreIndependent(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		var b Sets
		models := [kinds]map[int32]bool{{}, {}}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.Int32Range(0, 300).Draw(t, "i")
			k := rapid.SampledFrom([]Kind{Ran, Token}).Draw(t, "kind")
			switch rapid.IntRange(0, 20).Draw(t, "what") {
			case 0:
				b.DropAll(k)
				clear(models[k])
			case 1, 2, 3, 4, 5:
				b.Drop(k, i)
				delete(models[k], i)
			default:
				b.Add(k, i)
				models[k][i] = true
			}
			if j := rapid.Int32Range(0, 300).Draw(t, "j"); b.Has(k, j) != models[k][j] {
				t.Fatalf("%d: %v, want %v", j, b.Has(k, j), models[k][j])
			}
		}
		for k, model := range models {
			all := slices.Collect(b.All(Kind(k)))
			if len(all) != len(model) || !slices.IsSorted(all) {
				t.Fatal(all, model)
			}
			for _, i := range all {
				if !model[i] {
					t.Fatalf("%d is no member", i)
				}
			}
		}
	})
}
