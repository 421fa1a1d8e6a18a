// SPDX-License-Identifier: Apache-2.0

package shares

import (
	"slices"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

func parts(total int64, claims []Claim) (list []int64) {
	level := Level(total, claims)
	for i := range claims {
		list = append(list, claims[i].At(level))
	}
	return list
}

func TestLevelDividesByWeightWithinBounds(t *testing.T) {
	const much = 1 << 50
	for _, c := range []struct {
		name   string
		total  int64
		claims []Claim
		want   []int64
	}{
		{"equal weights", 100, []Claim{{1, 0, much}, {1, 0, much}}, []int64{50, 50}},
		{"unequal weights", 400, []Claim{{1, 0, much}, {3, 0, much}}, []int64{100, 300}},
		{"a minimum costs the others", 100, []Claim{{1, 80, much}, {1, 0, much}}, []int64{80, 20}},
		{"a maximum leaves more", 100, []Claim{{1, 0, 10}, {1, 0, much}}, []int64{10, 90}},
		{"minima above the total", 100, []Claim{{1, 80, much}, {1, 70, much}}, []int64{80, 70}},
		{"maxima below the total", 100, []Claim{{1, 0, 10}, {1, 0, 20}}, []int64{10, 20}},
		{"no children", 100, nil, nil},
	} {
		if got := parts(c.total, c.claims); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A level is right if lower ones leave some of the total, apart from rounding, and no child leaves its bounds.
func TestLevelUsesTheWholeAmount(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(1, 1<<40).Draw(t, "total")
		var claims []Claim
		var least, most int64
		for range rapid.IntRange(1, 8).Draw(t, "children") {
			c := Claim{Weight: float64(rapid.IntRange(1, 100).Draw(t, "weight")), Least: rapid.Int64Range(0, total).Draw(t, "least")}
			c.Most = c.Least + rapid.Int64Range(0, total).Draw(t, "room")
			least, most = least+c.Least, most+c.Most
			claims = append(claims, c)
		}
		sum := int64(0)
		for i, part := range parts(total, claims) {
			if sum += part; part < claims[i].Least || part > claims[i].Most {
				t.Fatalf("child %d gets %d of %+v", i, part, claims[i])
			}
		}
		want := max(least, min(most, total))
		if slack := int64(len(claims)) + want>>14; sum < want-slack || sum > want+slack {
			t.Fatalf("the children get %d, want %d, of %v", sum, want, claims)
		}
	})
}
