// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/nodeindex"
	"pgregory.net/rapid"
)

// node is an owner's node.
type node struct {
	serial int32
	free   amounts.Vec
	usable bool
	host   *Host[node]
	rack   *Rack
	here   bool // in the map
}

type world struct {
	Map[node]
	all []*node
}

func newWorld(t testing.TB) *world {
	t.Helper()
	types, err := amounts.NewTypes(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	least := creel.NewResource(1024, 1)
	sizes, err := amounts.NewSizes(types, least, creel.NewResource(64<<10, 64), least)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{}
	w.Init(&sizes, func(n *node) (*amounts.Vec, bool) { return &n.free, n.usable })
	return w
}

func gib(n int64) amounts.Vec { return amounts.Vec{Memory: n << 10, VCores: n} }

func (w *world) add(host, rack string, free amounts.Vec) *node {
	n := &node{serial: int32(len(w.all)), free: free, usable: true, here: true}
	w.all = append(w.all, n)
	w.Skip()
	w.put(n, host, rack)
	return n
}

func (w *world) put(n *node, host, rack string) {
	n.host, n.rack = w.Put(n.serial, n, host, rack)
	w.update(n)
}

func (w *world) update(n *node) { w.Update(n.serial, n.rack, &n.free, n.usable) }

// find searches for a node with need free, as the scheduler does.
func (w *world) find(r *Rack, need amounts.Vec, order nodeindex.Order) *node {
	return w.Find(r, &need, order, func(i int32) bool { return w.sizes.Fits(&need, &w.At(i).free) })
}

func TestSmallRackIsSearchedInOrderOfMemory(t *testing.T) {
	w := newWorld(t)
	w.add("elsewhere", "/r2", gib(64))
	for i, free := range []int64{4, 2, 8, 1} {
		w.add(fmt.Sprint("h", i), "/r1", gib(free))
	}
	r := w.Rack("/r1")
	if n := w.find(r, gib(2), nodeindex.MostRoom); n.free.Memory != 8<<10 {
		t.Errorf("most room: %v", n.free)
	}
	if n := w.find(r, gib(2), nodeindex.LeastRoom); n.free.Memory != 2<<10 {
		t.Errorf("least room: %v", n.free)
	}
	if n := w.find(r, gib(9), nodeindex.MostRoom); n != nil {
		t.Errorf("9 GiB on %v", n.free)
	}
	if n := w.find(nil, gib(9), nodeindex.MostRoom); n != w.all[0] {
		t.Errorf("9 GiB anywhere on %v", n)
	}
}

func TestRackIsIndexedFrom64NodesBesideAnother(t *testing.T) {
	w := newWorld(t)
	for i := range bigRack {
		w.add(fmt.Sprint("h", i), "", gib(4))
	}
	r := w.Rack(DefaultRack)
	if r.index != nil {
		t.Error("the only rack has an index of its own")
	}
	w.add("beside", "/r2", gib(4))
	if r.index == nil {
		t.Fatal("a rack of 64 nodes beside another has no index")
	}
	for _, n := range w.all {
		if wrong := w.Check(n.serial, n.rack, &n.free, n.usable); wrong != "" {
			t.Errorf("node %d %s", n.serial, wrong)
		}
	}
}

func TestHostListsItsNodesOnly(t *testing.T) {
	w := newWorld(t)
	a, b, other := w.add("h", "", gib(1)), w.add("h", "", gib(1)), w.add("o", "", gib(1))
	if got := w.Host("h").Nodes(); !slices.Equal(got, []*node{a, b}) {
		t.Errorf("h has %v", got)
	}
	w.Update(a.serial, a.rack, &a.free, false)
	w.Remove(a.serial, a.host, a.rack)
	if got := w.Host("h").Nodes(); !slices.Equal(got, []*node{b}) || w.At(a.serial) != nil {
		t.Errorf("after the first left: %v, and the entry %v", got, w.At(a.serial))
	}
	if w.Host("unknown") != nil || w.Rack("/unknown") != nil || w.At(other.serial) != other {
		t.Error("an unknown place is known, or a known node is not")
	}
}

func TestCheckReportsMisplacedNode(t *testing.T) {
	w := newWorld(t)
	for i := range bigRack {
		w.add(fmt.Sprint("h", i), "/r1", gib(4))
	}
	n := w.add("n", "/r2", gib(4))
	first := w.all[0]
	for want, change := range map[string]func(){
		"has room for 4096 MiB, known as 5120": func() {
			w.Update(n.serial, n.rack, &amounts.Vec{Memory: 5120, VCores: 4}, true)
		},
		"not where it belongs in the index": func() {
			w.Update(n.serial, n.rack, &amounts.Vec{Memory: 4096, VCores: 1}, true)
		},
		"not where it belongs in the index of its rack": func() { first.rack.index.Drop(first.serial) },
	} {
		change()
		found := []string{w.Check(n.serial, n.rack, &n.free, true), w.Check(first.serial, first.rack, &first.free, true)}
		if !slices.Contains(found, want) {
			t.Errorf("found %q, want %q", found, want)
		}
		w.update(n)
		w.Move(first.serial, first.rack, first.rack)
		w.update(first)
	}
}

// Nodes come, go, move and change at random over racks of both kinds. A search finds a node if and only if one has
// enough free resources there, and the saved position of a node can be restored.
func TestFindAgreesWithLoopOverNodes(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		racks := []string{"/big", "/small", "/late"}
		for i := range bigRack + rapid.IntRange(-2, 2).Draw(rt, "nodes of the big rack") {
			w.add(fmt.Sprint("h", i), "/big", gib(int64(i%5)))
		}
		amount := func() amounts.Vec {
			return amounts.Vec{
				Memory: int64(rapid.IntRange(0, 6).Draw(rt, "GiB")) << 10, VCores: int64(rapid.IntRange(0, 6).Draw(rt, "vcores")),
			}
		}
		for range rapid.IntRange(1, 40).Draw(rt, "events") {
			n := rapid.SampledFrom(w.all).Draw(rt, "node")
			to := rapid.SampledFrom(racks).Draw(rt, "rack")
			switch event := rapid.IntRange(0, 5).Draw(rt, "event"); {
			case event == 0:
				w.add(fmt.Sprint("n", len(w.all)%7), to, amount())
			case !n.here:
				n.here = true
				w.put(n, "back", to)
			case event == 1:
				w.Update(n.serial, n.rack, &n.free, false)
				w.Remove(n.serial, n.host, n.rack)
				n.here = false
			case event == 2:
				was := n.rack
				n.rack = w.Named(to)
				w.Move(n.serial, was, n.rack)
				w.update(n)
			case event == 3:
				at, free := w.Position(n.serial, n.rack), n.free
				n.free = amount()
				w.update(n)
				n.free = free
				w.update(n)
				w.Restore(n.serial, n.rack, at)
			default:
				n.free, n.usable = amount(), event == 4
				w.update(n)
			}
			w.compare(rt, amount())
		}
	})
}

// compare compares searches for an amount with a loop over all nodes.
func (w *world) compare(t *rapid.T, need amounts.Vec) {
	need.Memory = max(need.Memory, 1024) // asks need memory
	need.VCores = max(need.VCores, 1)
	fits := func(r *Rack) (list []*node) {
		for _, n := range w.all {
			if n.here && n.usable && (r == nil || n.rack == r) && w.sizes.Fits(&need, &n.free) {
				list = append(list, n)
			}
		}
		return list
	}
	for _, r := range append([]*Rack{nil}, w.list...) {
		for _, order := range []nodeindex.Order{nodeindex.MostRoom, nodeindex.LeastRoom} {
			got, want := w.find(r, need, order), fits(r)
			if got == nil && len(want) > 0 || got != nil && !slices.Contains(want, got) {
				t.Fatalf("%v on rack %v in order %d: found %v of %d nodes", need, r, order, got, len(want))
			}
		}
	}
	for _, n := range w.all {
		if n.here {
			if wrong := w.Check(n.serial, n.rack, &n.free, n.usable); wrong != "" {
				t.Fatalf("node %d %s", n.serial, wrong)
			}
		}
	}
}

func TestSearchAndUpdateAllocateNothing(t *testing.T) {
	w := newWorld(t)
	for i := range 2 * bigRack {
		w.add(fmt.Sprint("h", i), fmt.Sprint("/r", i%2), gib(int64(i%8)))
	}
	n, need := w.all[0], gib(3)
	if allocs := testing.AllocsPerRun(100, func() {
		for _, r := range []*Rack{nil, n.rack} {
			if w.find(r, need, nodeindex.MostRoom) == nil {
				t.Fatal("found none")
			}
		}
		n.free.Memory ^= 1 << 10
		w.update(n)
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
