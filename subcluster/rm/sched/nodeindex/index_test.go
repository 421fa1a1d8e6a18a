// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"pgregory.net/rapid"
)

func newSizes(t interface{ Fatal(...any) }, further ...string) *amounts.Sizes {
	types, err := amounts.NewTypes(further, false)
	if err != nil {
		t.Fatal(err)
	}
	sizes, err := amounts.NewSizes(
		types,
		creel.Resource{MemoryMB: 1024, VCores: 1},
		creel.Resource{MemoryMB: 1 << 20, VCores: 1 << 10},
		creel.Resource{MemoryMB: 1024, VCores: 1},
	)
	if err != nil {
		t.Fatal(err)
	}
	return &sizes
}

// After any sequence of moves the index finds a node exactly if a loop over all nodes does, and in the requested
// order as far as cells distinguish nodes.
func TestIndexMatchesLoop(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		sizes := newSizes(t, "gpu")
		var links Links
		ix := New(sizes, &links)
		const nodes = 40
		free, in := make([]amounts.Vec, nodes), make([]bool, nodes)
		for range nodes {
			links.AddNode()
		}
		amount := func(what string) amounts.Vec {
			v := amounts.Vec{
				Memory: rapid.SampledFrom([]int64{0, 1, 2, 3, 100, 127, 128, 129, 140, 1000}).
					Draw(t, what+" memory") *
					1024,
				VCores: rapid.SampledFrom([]int64{0, 1, 2, 31, 32, 33, 60, 500}).Draw(t, what+" vcores"),
			}
			v.Set(2, rapid.SampledFrom([]int64{0, 0, 1, 4}).Draw(t, what+" gpus"))
			return v
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			n := rapid.Int32Range(0, nodes-1).Draw(t, "node")
			free[n], in[n] = amount("free"), rapid.IntRange(0, 4).Draw(t, "in") > 0
			before := make([]Position, nodes)
			for i := range before {
				before[i] = ix.Position(int32(i))
			}
			was := ix.Position(n)
			ix.Update(n, &free[n], in[n])
			if rapid.Bool().Draw(t, "undo") { // and again: Restore puts back exactly
				ix.Restore(n, was)
				for i := range before {
					if ix.Position(int32(i)) != before[i] {
						t.Fatalf("node %d stands elsewhere after Restore", i)
					}
				}
				ix.Update(n, &free[n], in[n])
			}
			for i := range free {
				if !ix.Check(int32(i), &free[i], in[i]) {
					t.Fatalf("node %d is in the wrong place", i)
				}
			}
			need := amount("need")
			barred := rapid.Int32Range(-1, nodes-1).Draw(t, "barred")
			fits := func(i int32) bool { return in[i] && i != barred && sizes.Fits(&need, &free[i]) }
			exists := false
			least, most := int64(1<<40), int64(-1)
			for i := range free {
				if fits(int32(i)) && free[i].Memory > 0 && free[i].VCores > 0 {
					exists = true
					if free[i].Further() == need.Further() { // one grid: rows compare
						least, most = min(least, free[i].Memory), max(most, free[i].Memory)
					}
				}
			}
			for _, order := range []Order{MostRoom, LeastRoom} {
				found := ix.Find(&need, order, fits)
				if (found >= 0) != exists {
					t.Fatalf("found %d, but a loop finds one: %v", found, exists)
				}
				if found < 0 || free[found].Further() != need.Further() {
					continue
				}
				row := func(mb int64) int { return rowOf(mb / 1024) }
				if got := row(free[found].Memory); order == MostRoom && got != row(most) ||
					order == LeastRoom && got != row(least) {
					t.Fatalf(
						"order %d: found one with %d MiB; there are %d to %d",
						order,
						free[found].Memory,
						least,
						most,
					)
				}
			}
		}
	})
}

// BenchmarkFind searches 5,000 nodes, nine tenths of them full, by the index and by a loop.
func BenchmarkFind(b *testing.B) {
	sizes := newSizes(b)
	var links Links
	ix := New(sizes, &links)
	free := make([]amounts.Vec, 5000)
	for i := range free {
		if i%10 == 9 {
			free[i] = amounts.Vec{Memory: int64(1+i%64) * 1024, VCores: int64(1 + i%16)}
		}
		links.AddNode()
		ix.Update(int32(i), &free[i], true)
	}
	need := amounts.Vec{Memory: 4096, VCores: 2}
	fits := func(i int32) bool { return sizes.Fits(&need, &free[i]) }
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			if ix.Find(&need, LeastRoom, fits) < 0 {
				b.Fatal("none")
			}
		}
	})
	b.Run("loop", func(b *testing.B) {
		for b.Loop() {
			best := -1
			for i := range free {
				if fits(int32(i)) && (best < 0 || free[i].Memory < free[best].Memory) {
					best = i
				}
			}
			if best < 0 {
				b.Fatal("none")
			}
		}
	})
}
