// SPDX-License-Identifier: Apache-2.0

package opportunistic

import (
	"slices"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

func moving(c *Config) { c.Moves, c.Lengths = true, Range{2, 2} }

// limits returns the limits that the nodes get with their next answers.
func (f *fleet) limits() (out []int32) {
	for i := range f.reports {
		length, _ := f.LimitOf(int32(i))
		out = append(out, length)
	}
	return out
}

func TestNodeShedsOnlyForPlacesElsewhere(t *testing.T) {
	for _, x := range []struct {
		name    string
		lengths []int32
		label   string // of the first node
		want    []int32
	}{
		{"equally long queues", []int32{6, 6}, "", []int32{-1, -1}},
		{"a shorter queue with one place", []int32{6, 1}, "", []int32{5, -1}},
		{"the longest queue is first", []int32{4, 7, 1}, "", []int32{-1, 6, -1}},
		{"places beyond the limit", []int32{3, 0, 0}, "", []int32{2, -1, -1}},
		{"places of another label", []int32{6, 0}, "gpu", []int32{-1, -1}},
		{"no queue is long", []int32{2, 1}, "", []int32{-1, -1}},
	} {
		f := newFleet(t, moving)
		for _, n := range x.lengths {
			f.node("/r", n, 9)
		}
		f.reports[0].Label = x.label
		f.reportAll()
		if got := f.limits(); !slices.Equal(got, x.want) {
			t.Errorf("%s: limits %v, want %v", x.name, got, x.want)
		}
	}
}

// Without Moves each node has the limit, and with QUEUE_WAIT_TIME a limit of the wait, as in Hadoop.
func TestEachNodeHasLimitWithoutMoves(t *testing.T) {
	f := newFleet(t, func(c *Config) { c.Lengths = Range{2, 2} })
	f.node("/r", 6, 9)
	f.node("/r", 6, 9)
	f.reportAll()
	if got := f.limits(); !slices.Equal(got, []int32{2, 2}) {
		t.Errorf("limits %v", got)
	}
	f = newFleet(t, func(c *Config) { moving(c); c.Comparator, c.Waits = QueueWaitTime, Range{7, 7} })
	f.node("/r", 6, 9)
	f.reportAll()
	if length, wait := f.LimitOf(0); length != -1 || wait != 7 {
		t.Errorf("limits %d and %d ms", length, wait)
	}
}

// For each container that leaves a queue, a queue of the same label below the limit has a place of its own.
func TestShedContainersHavePlaces(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		most := rapid.Int32Range(0, 6).Draw(rt, "limit")
		f := newFleet(t, func(c *Config) { c.Moves, c.Lengths = true, Range{most, most} })
		for range rapid.IntRange(1, 8).Draw(rt, "nodes") {
			n := f.node("/r", rapid.Int32Range(0, 12).Draw(rt, "length"), rapid.Int32Range(0, 12).Draw(rt, "capacity"))
			f.reports[n].Label = rapid.SampledFrom([]string{"", "gpu"}).Draw(rt, "label")
			f.closed[n] = rapid.IntRange(0, 4).Draw(rt, "closed") == 0
		}
		f.reportAll()
		places, shed := map[string]int32{}, map[string]int32{}
		for i, r := range f.reports {
			if !f.closed[int32(i)] {
				places[r.Label] += max(min(most, r.Capacity)-r.Length, 0)
			}
		}
		for range 2 { // the second answer sheds nothing more
			for i, limit := range f.limits() {
				r := &f.reports[i]
				if limit < 0 || limit >= r.Length {
					continue
				}
				if limit < most {
					rt.Fatalf("node %d has the limit %d, below %d", i, limit, most)
				}
				shed[r.Label] += r.Length - limit
			}
		}
		for label, n := range shed {
			if n > places[label] {
				rt.Fatalf("label %q: %d shed for %d places", label, n, places[label])
			}
		}
		for label, n := range places {
			var long int32
			for _, r := range f.reports {
				if r.Label == label {
					long += max(r.Length-most, 0)
				}
			}
			if shed[label] != min(n, long) {
				rt.Fatalf("label %q: %d shed, %d places, %d above the limit", label, shed[label], n, long)
			}
		}
	})
}
