// SPDX-License-Identifier: Apache-2.0

package opportunistic

import (
	"slices"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"pgregory.net/rapid"
)

func leastFilled(c *Config) { c.Placing = LeastFilled }

// A node with free resources comes before one whose queue is empty, but that is full.
func TestLeastFilledNodeIsFirst(t *testing.T) {
	f := newFleet(t, leastFilled)
	for range 3 {
		f.node("/r", 0, 9)
	}
	f.reports[0].Guaranteed = amounts.Vec{Memory: 8192, VCores: 8}
	f.reports[1].Guaranteed = amounts.Vec{Memory: 6144, VCores: 6}
	f.reports[2].Guaranteed = amounts.Vec{Memory: 5120, VCores: 5}
	f.reportAll()
	if got := f.allocate(f.asks(&Asks{}, 1, 8)); !slices.Equal(got, []int32{2, 1, 2, 1, 2, 0, 1, 2}) {
		t.Errorf("placed on %v", got)
	}
}

func TestLeastFilledServesNamedPlacesFirst(t *testing.T) {
	f := newFleet(t, leastFilled)
	f.node("/r0", 0, 9)
	f.node("/r1", 0, 9)
	f.reports[1].Guaranteed = amounts.Vec{Memory: 8192, VCores: 8}
	f.reportAll()
	a := &Asks{}
	a.Set(&Request{Priority: 1, Size: f.size(1024), Name: "h1", Count: 1}, 0)
	a.Set(&Request{Priority: 1, Size: f.size(1024), Count: 2}, 0)
	if got := f.allocate(a); !slices.Equal(got, []int32{1, 0}) {
		t.Errorf("placed on %v", got)
	}
	f.avoids[0] = true
	if got := f.allocate(f.asks(&Asks{}, 1, 1)); !slices.Equal(got, []int32{1}) {
		t.Errorf("avoiding a node, placed on %v", got)
	}
	a = &Asks{}
	a.Set(&Request{Size: f.size(1024), Count: 2, Strict: true}, 0)
	if got := f.allocate(a); len(got) != 0 {
		t.Errorf("an ask for named places only was placed on %v", got)
	}
}

// No node gets a container while another that admits it is filled less, and none beyond what it admits.
func TestLeastFilledKeepsNodesEven(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		f := newFleet(t, func(c *Config) { leastFilled(c); c.PerCall = rapid.IntRange(-1, 6).Draw(rt, "per call") })
		for range rapid.IntRange(1, 6).Draw(rt, "nodes") {
			i := f.node("/r", rapid.Int32Range(0, 3).Draw(rt, "length"), rapid.Int32Range(0, 5).Draw(rt, "capacity"))
			used := rapid.Int64Range(0, 8).Draw(rt, "used")
			f.reports[i].Guaranteed = amounts.Vec{Memory: 1024 * used, VCores: used}
		}
		f.reportAll()
		a := f.asks(&Asks{}, 1, rapid.Int32Range(1, 30).Draw(rt, "count"))
		before := asked(a)
		got := f.allocate(a)
		if left := asked(a); before-left != len(got) {
			rt.Fatalf("%d asked for, %d granted, %d left", before, len(got), left)
		}
		size := f.size(1024).V
		for _, serial := range got {
			n := f.at(serial)
			for _, other := range f.list {
				if f.admits(other, &size) && other.part() < n.part()-0.125 {
					rt.Fatalf("node %d is filled to %v, and node %d, which admits more, to %v",
						serial, n.part(), other.serial, other.part())
				}
			}
			if n.unseen > max(0, n.capacity-n.length) {
				rt.Fatalf("node %d: %d containers for a queue of %d of %d", serial, n.unseen, n.length, n.capacity)
			}
		}
	})
}

func TestUnknownPlacingIsRandom(t *testing.T) {
	for name, want := range map[string]Placing{"random": RandomStart, "least-filled": LeastFilled, "x": RandomStart} {
		if got := ParsePlacing(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
