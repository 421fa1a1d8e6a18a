// SPDX-License-Identifier: Apache-2.0

package opportunistic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// fleet is a set of nodes with their next reports.
type fleet struct {
	*Nodes
	t       testing.TB
	sizes   *amounts.Sizes
	now     int64
	reports []Report
	draw    func(n int) int
	avoids  map[int32]bool
	closed  map[int32]bool
}

func newFleet(t testing.TB, change func(*Config)) *fleet {
	types, err := amounts.NewTypes(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	sizes, err := amounts.NewSizes(types, creel.NewResource(1024, 1), creel.NewResource(65536, 64), creel.NewResource(1024, 1))
	if err != nil {
		t.Fatal(err)
	}
	cfg := Defaults()
	if change != nil {
		change(&cfg)
	}
	f := &fleet{
		t: t, sizes: &sizes, draw: func(int) int { return 0 }, avoids: map[int32]bool{}, closed: map[int32]bool{},
	}
	f.Nodes = NewNodes(cfg, &sizes, func(n int32) bool { return !f.closed[n] })
	return f
}

// node adds a node of 8 GiB and 8 vcores with a queue.
func (f *fleet) node(rack string, length, capacity int32) int32 {
	serial := int32(len(f.reports))
	f.Add(serial, fmt.Sprintf("h%d", serial), rack)
	f.reports = append(f.reports, Report{
		Length: length, Capacity: capacity, Total: amounts.Vec{Memory: 8192, VCores: 8},
	})
	return serial
}

// reportAll lets all nodes send a heartbeat after the period, so that the nodes are sorted at the last one.
func (f *fleet) reportAll() {
	f.now += int64(time.Hour)
	for i := range f.reports {
		f.Nodes.sorted = i < len(f.reports)-1
		f.sortedAt = f.now
		f.Report(int32(i), &f.reports[i], f.now)
	}
}

func (f *fleet) size(mb int64) *amounts.Size { return f.sizes.Of(amounts.Vec{Memory: mb, VCores: 1}) }

// allocate returns the nodes of the containers that the asks get.
func (f *fleet) allocate(a *Asks) (nodes []int32) {
	call := &Call{Now: f.now, Draw: f.draw, Suits: func(n int32, label string) bool { return !f.avoids[n] }}
	for _, p := range f.Allocate(a, call, nil) {
		nodes = append(nodes, p.Node)
	}
	return nodes
}

// asks returns an ask for containers of 1 GiB at a priority and at places, as NAME=COUNT.
func (f *fleet) asks(a *Asks, priority, count int32, names ...string) *Asks {
	for _, name := range names {
		a.Set(&Request{Priority: priority, Size: f.size(1024), Name: name, Count: count}, f.now)
	}
	a.Set(&Request{Priority: priority, Size: f.size(1024), Count: count}, f.now)
	return a
}

func (f *fleet) serials() (out []int32) {
	for _, n := range f.order {
		out = append(out, n.serial)
	}
	return out
}

func TestNodesAreSortedByLoad(t *testing.T) {
	for _, x := range []struct {
		by   Comparator
		want []int32
	}{
		// Node 3 is full, and node 4 takes no containers. Of nodes 0 and 2, equally loaded, 2 reported later.
		{QueueLength, []int32{1, 2, 0}},
		{QueueLengthThenResources, []int32{1, 0, 2}}, // node 0 has more free resources than 2
		{QueueWaitTime, []int32{3, 0, 2}},            // node 1 reports no estimate
	} {
		f := newFleet(t, func(c *Config) { c.Comparator = x.by })
		f.node("/r", 3, 9)
		f.node("/r", 1, 9)
		f.node("/r", 3, 9)
		f.node("/r", 9, 9)
		f.node("/r", 0, 9)
		for i, wait := range []int32{20, -1, 30, 10, 0} {
			f.reports[i].Wait = wait
		}
		f.reports[2].Guaranteed = amounts.Vec{Memory: 1024, VCores: 1}
		f.closed[4] = true
		for i := range f.reports {
			f.Nodes.sorted = i < len(f.reports)-1
			f.sortedAt = 0
			f.Nodes.cfg.Period = time.Hour
			f.Report(int32(i), &f.reports[i], int64(i))
		}
		if got := f.serials(); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", x.by, got, x.want)
		}
	}
}

func TestNodesAreSortedOncePerPeriod(t *testing.T) {
	f := newFleet(t, nil)
	f.node("/r", 4, 9)
	f.node("/r", 2, 9)
	second := int64(time.Second)
	f.Report(0, &f.reports[0], 5*second)
	f.Report(1, &f.reports[1], 6*second-1)
	if got := f.serials(); !slices.Equal(got, []int32{0}) {
		t.Errorf("before the period is over: %v", got)
	}
	f.Report(0, &f.reports[0], 6*second)
	if got := f.serials(); !slices.Equal(got, []int32{1, 0}) {
		t.Errorf("after the period: %v", got)
	}
	f.closed[1] = true
	if got := f.allocate(f.asks(&Asks{}, 1, 2)); !slices.Equal(got, []int32{0, 0}) {
		t.Errorf("after node 1 was lost: %v", got)
	}
	f.Report(0, &f.reports[0], 7*second)
	if got := f.serials(); !slices.Equal(got, []int32{0}) {
		t.Errorf("after the next sort: %v", got)
	}
}

func TestQueueWithoutCapacityGetsNone(t *testing.T) {
	f := newFleet(t, nil)
	f.node("/r", 0, 0)
	f.reportAll()
	if got := f.allocate(f.asks(&Asks{}, 1, 1, "h0", "/r")); len(got) > 0 {
		t.Errorf("placed on %v", got)
	}
}

// The capacity of the last report counts, and containers that the node has not reported yet.
func TestQueueIsFilledToItsCapacity(t *testing.T) {
	f := newFleet(t, nil)
	n := f.node("/r", 1, 2)
	f.reportAll()
	f.reports[n].Capacity = 4
	f.reportAll()
	a := f.asks(&Asks{}, 1, 9)
	if got := f.allocate(a); len(got) != 3 {
		t.Fatalf("placed on %v", got)
	}
	f.reportAll() // the AM has not started them
	if got := f.allocate(a); len(got) > 0 {
		t.Errorf("more on %v", got)
	}
	v := f.size(1024).V
	f.Take(n, &v, false) // released before its start
	f.Seen(n)
	f.reports[n].Length = 2
	f.reportAll()
	if got := f.allocate(a); len(got) != 1 {
		t.Errorf("after a release and a start: %v", got)
	}
	placed, containers, unseen := f.Booked(n)
	if containers != 3 || unseen != 2 || placed.Memory != 3072 {
		t.Errorf("booked %v in %d containers, %d not reported", placed, containers, unseen)
	}
}

func TestFreeResourcesAdmitBesidesQueue(t *testing.T) {
	f := newFleet(t, func(c *Config) { c.Comparator = QueueLengthThenResources })
	n := f.node("/r", 0, 1)
	f.reports[n].Guaranteed = amounts.Vec{Memory: 5120, VCores: 1}
	f.reportAll()
	a := f.asks(&Asks{}, 1, 9)
	if got := f.allocate(a); len(got) != 3 { // of 3 GiB
		t.Fatalf("placed on %v", got)
	}
	a = &Asks{}
	a.Set(&Request{Priority: 1, Size: f.size(9216), Count: 1}, f.now)
	if got := f.allocate(a); len(got) > 0 {
		t.Errorf("a container larger than the node is on %v", got)
	}
}

func TestWaitTimeOrderNeverOverfillsNodes(t *testing.T) {
	f := newFleet(t, func(c *Config) { c.Comparator = QueueWaitTime })
	f.node("/r", 0, 3)
	f.reportAll()
	if got := f.allocate(f.asks(&Asks{}, 1, 1<<30)); len(got) != 8 {
		t.Errorf("%d containers on a node for 8", len(got))
	}
}

func TestQueueLimitIsMeanPlusDeviations(t *testing.T) {
	for _, x := range []struct {
		lengths []int32
		sigma   float64
		want    int32
	}{
		{nil, 1, 5},
		{[]int32{0, 0, 0}, 1, 5},
		{[]int32{8, 8, 8}, 1, 8},
		{[]int32{2, 10}, 1, 10},       // mean 6, deviation 4
		{[]int32{2, 10}, 0.5, 8},      // half of it
		{[]int32{7, 8, 8}, 1, 7},      // mean 7, variance 2/3, in whole numbers 0
		{[]int32{90, 90}, 1, 15},      // bounded
		{[]int32{20, 100, 8}, 0, 14},  // without the full node
		{[]int32{10, 10, 10}, -3, 10}, // no deviation
	} {
		f := newFleet(t, func(c *Config) { c.Sigma = x.sigma })
		for _, n := range x.lengths {
			f.node("/r", n, 99)
		}
		f.reportAll()
		if length, wait := f.Limit(); length != x.want || wait != -1 {
			t.Errorf("%v, sigma %v: %d and %d ms, want %d", x.lengths, x.sigma, length, wait, x.want)
		}
	}
	f := newFleet(t, func(c *Config) { c.Comparator = QueueWaitTime })
	if length, wait := f.Limit(); length != -1 || wait != 10 {
		t.Errorf("before the first heartbeat: %d and %d ms", length, wait)
	}
}

func BenchmarkSort(b *testing.B) {
	f := newFleet(b, nil)
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		f.node(fmt.Sprintf("/r%d", r.IntN(250)), int32(r.IntN(10)), 10)
	}
	f.reportAll()
	b.ReportAllocs()
	for b.Loop() {
		f.sort()
	}
}

func BenchmarkAllocate(b *testing.B) {
	f := newFleet(b, nil)
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		f.node(fmt.Sprintf("/r%d", r.IntN(250)), int32(r.IntN(10)), 10)
	}
	f.reportAll()
	f.draw = r.IntN
	v := f.size(1024).V
	var out []Placement
	call := &Call{Draw: f.draw, Suits: func(int32, string) bool { return true }}
	b.ReportAllocs()
	for b.Loop() {
		out = f.Allocate(f.asks(&Asks{}, 1, 10), call, out[:0])
		for _, p := range out {
			f.Take(p.Node, &v, false)
		}
	}
}
