// SPDX-License-Identifier: Apache-2.0

package waitstats

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

// However asks are raised and served, the sum of the waits equals that of individual containers, each with its own
// time, served oldest first.
func TestWaitSumCountsEachContainer(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		var each []int64 // when each waiting container was asked for
		var now, since, exact int64
		var h Histogram
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			now += rapid.Int64Range(0, 1e10).Draw(t, "later")
			if n := rapid.IntRange(0, 20).Draw(t, "more"); n > 0 {
				since = Since(since, now, int64(len(each)), int64(len(each)+n))
				for range n {
					each = append(each, now)
				}
			}
			if rapid.Bool().Draw(t, "all served") {
				for _, at := range each {
					h.Add(time.Duration(now - since))
					exact += now - at
				}
				each = each[:0]
			}
		}
		if d := int64(h.Sum) - exact; d > 20*50*50 || d < -20*50*50 { // ns lost in means
			t.Fatalf("the sum is %v, should be %v", h.Sum, time.Duration(exact))
		}
	})
}

func TestBuckets(t *testing.T) {
	var h, all Histogram
	for _, d := range []time.Duration{-time.Second, 0, time.Millisecond, 2 * time.Millisecond, time.Second, 3 * time.Hour} {
		h.Add(d)
	}
	all.Merge(&h)
	all.Merge(&h)
	count, sum, by := all.Buckets()
	if count != 12 || sum != 2*(0.003+1+3*3600) || by[0.001] != 6 || by[0.005] != 8 || by[1] != 10 || by[7200] != 10 {
		t.Errorf("%d, %v, %v", count, sum, by)
	}
}

// A quantile is within the bucket of its wait, for any counts.
func TestQuantileIsInItsBucket(t *testing.T) {
	if d, ok := new(Histogram).Quantile(0.5); ok {
		t.Errorf("half of nothing waited %v", d)
	}
	propertytest.Check(t, func(t *rapid.T) {
		each := rapid.SliceOfN(rapid.Int64Range(0, int64(3*time.Hour)), 1, 200).Draw(t, "waits")
		slices.Sort(each)
		var h Histogram
		for _, d := range each {
			h.Add(time.Duration(d))
		}
		for _, q := range []float64{0, 0.5, 0.99, 1} {
			exact := time.Duration(each[max(int(math.Ceil(q*float64(len(each))))-1, 0)])
			lower, upper := time.Duration(0), Bounds[len(Bounds)-1]
			for i, bound := range Bounds {
				if exact <= bound {
					upper = bound
					break
				}
				lower = Bounds[min(i, len(Bounds)-1)]
			}
			if d, ok := h.Quantile(q); !ok || d < lower || d > upper {
				t.Fatalf("quantile %v is %v, not from %v to %v, where %v is", q, d, lower, upper, exact)
			}
		}
	})
}
