// SPDX-License-Identifier: Apache-2.0

package opportunistic

import (
	"fmt"
	"slices"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

func TestMostUrgentPriorityIsServedFirst(t *testing.T) {
	f := newFleet(t, nil)
	f.node("/r", 0, 3)
	f.reportAll()
	a := f.asks(f.asks(&Asks{}, 7, 2), 2, 2)
	call := &Call{Draw: f.draw, Suits: func(int32, string) bool { return true }}
	var got []int32
	for _, p := range f.Allocate(a, call, nil) {
		got = append(got, p.Priority)
	}
	if !slices.Equal(got, []int32{2, 2, 7}) {
		t.Errorf("served priorities %v", got)
	}
}

func TestAsksAreServedByLocality(t *testing.T) {
	f := newFleet(t, nil)
	f.node("/r0", 0, 9) // the least loaded
	f.node("/r1", 5, 6)
	f.node("/r1", 5, 6)
	f.node("/r1", 5, 6)
	f.reportAll()
	a := f.asks(&Asks{}, 1, 4, "h1", "/r1")
	if got := f.allocate(a); !slices.Equal(got, []int32{1, 2, 3, 0}) {
		t.Errorf("placed on %v", got) // its host, its rack, anywhere
	}
}

// A named place is used for the number asked there, and not beyond.
func TestNamedPlaceHasItsOwnNumber(t *testing.T) {
	f := newFleet(t, nil)
	f.node("/r0", 0, 9)
	f.node("/r1", 5, 9)
	f.reportAll()
	a := f.asks(&Asks{}, 1, 3)
	a.Set(&Request{Priority: 1, Size: f.size(1024), Name: "h1", Count: 1}, 0)
	if got := f.allocate(a); !slices.Equal(got, []int32{1, 0, 0}) {
		t.Errorf("placed on %v", got)
	}
}

func TestStrictAskGetsOnlyNamedPlaces(t *testing.T) {
	f := newFleet(t, nil)
	f.node("/r0", 0, 9)
	f.node("/r1", 0, 1)
	f.reportAll()
	a := &Asks{}
	for _, r := range []Request{{Name: "h1", Count: 3}, {Name: "/r0", Count: 3, Strict: true}, {Count: 3, Strict: true}} {
		r.Size = f.size(1024)
		a.Set(&r, 0)
	}
	if got := f.allocate(a); !slices.Equal(got, []int32{1}) {
		t.Errorf("placed on %v", got)
	}
	a.Set(&Request{Size: f.size(1024), Count: 2}, 0)
	if got := f.allocate(a); !slices.Equal(got, []int32{0, 0}) {
		t.Errorf("relaxed, placed on %v", got)
	}
}

func TestAvoidedNodeGetsNone(t *testing.T) {
	f := newFleet(t, nil)
	f.node("/r", 0, 9)
	f.node("/r", 5, 9)
	f.reportAll()
	f.avoids[0] = true
	if got := f.allocate(f.asks(&Asks{}, 1, 2, "h0", "/r")); !slices.Equal(got, []int32{1, 1}) {
		t.Errorf("placed on %v", got)
	}
}

func TestAskStaysInsideItsLabel(t *testing.T) {
	f := newFleet(t, nil)
	f.node("/r", 0, 9)
	f.node("/r", 5, 9)
	f.reports[1].Label = "x"
	f.reportAll()
	a := &Asks{}
	a.Set(&Request{Size: f.size(1024), Count: 2, Label: "x"}, 0)
	if got := f.allocate(a); !slices.Equal(got, []int32{1, 1}) {
		t.Errorf("placed on %v", got)
	}
}

func TestNodesAreTriedFromRandomStart(t *testing.T) {
	f := newFleet(t, func(c *Config) { c.NodesUsed = 3 })
	for range 5 {
		f.node("/r", 0, 9)
	}
	f.reportAll()
	draws := []int{2, 0, 1, 1}
	f.draw = func(n int) int {
		if n != 3 {
			t.Fatalf("a draw of %d nodes", n)
		}
		next := draws[0]
		draws = draws[1:]
		return next
	}
	// The nodes are sorted by the age of their reports: all are of one time, so by number.
	if got := f.allocate(f.asks(&Asks{}, 1, 4)); !slices.Equal(got, []int32{2, 0, 1, 1}) {
		t.Errorf("placed on %v", got)
	}
}

func TestCallHasAMaximum(t *testing.T) {
	f := newFleet(t, func(c *Config) { c.PerCall = 3 })
	f.node("/r", 0, 99)
	f.reportAll()
	a := f.asks(f.asks(&Asks{}, 1, 2, "h0"), 2, 5, "/r")
	for i, want := range []int{3, 3, 1, 0} {
		if got := f.allocate(a); len(got) != want {
			t.Errorf("call %d: %d containers, want %d", i, len(got), want)
		}
	}
}

// asked is the sum of the numbers for any place.
func asked(a *Asks) (n int) {
	for r := range a.Each {
		if r.Name == "" {
			n += int(r.Count)
		}
	}
	return n
}

// Whatever is asked, no call grants more than is outstanding, fills a queue beyond its capacity, or leaves a wanting
// ask while a least loaded node admits more.
func TestAllocationKeepsItsPromises(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		f := newFleet(t, func(c *Config) { c.PerCall = rapid.IntRange(-1, 6).Draw(rt, "per call") })
		f.draw = func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "draw") }
		for range rapid.IntRange(1, 8).Draw(rt, "nodes") {
			capacity := rapid.Int32Range(0, 5).Draw(rt, "capacity")
			f.node(fmt.Sprintf("/r%d", rapid.IntRange(0, 2).Draw(rt, "rack")),
				rapid.Int32Range(0, 6).Draw(rt, "length"), capacity)
		}
		f.reportAll()
		a := &Asks{}
		for range rapid.IntRange(1, 8).Draw(rt, "entries") {
			name := rapid.SampledFrom([]string{"", "", "h0", "h3", "/r0", "/r1"}).Draw(rt, "name")
			a.Set(&Request{
				Priority: rapid.Int32Range(1, 2).Draw(rt, "priority"), Size: f.size(1024), Name: name,
				Count: rapid.Int32Range(0, 9).Draw(rt, "count"), Strict: rapid.Bool().Draw(rt, "strict"),
			}, 0)
		}
		before := asked(a)
		got := f.allocate(a)
		if after := asked(a); before-after != len(got) {
			rt.Fatalf("%d asked for, %d granted, %d left", before, len(got), after)
		}
		for i, r := range f.reports {
			n := f.at(int32(i))
			if n.unseen > max(0, r.Capacity-r.Length) {
				rt.Fatalf("node %d: %d containers for a queue of %d of %d", i, n.unseen, r.Length, r.Capacity)
			}
		}
		if most := f.cfg.PerCall; most > 0 && len(got) >= most {
			return
		}
		for _, w := range a.list {
			for _, n := range f.order {
				if w.Count > 0 && !w.Strict && f.admits(n, &w.size.V) {
					rt.Fatalf("%d containers are wanted, and node %d admits more", w.Count, n.serial)
				}
			}
		}
	})
}
