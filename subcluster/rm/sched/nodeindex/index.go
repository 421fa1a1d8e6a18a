// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"math/bits"
	"slices"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Index finds a node with free resources without visiting full nodes. Serial numbers identify nodes. Each node is in
// a cell by its free memory (row) and free vcores (column). Bitmaps record which rows and cells have nodes, so a
// search skips 64 empty ones at a time. There is one grid for each combination of further resource types (GPUs) that
// nodes have free. Asks that need none of these types use such grids last.
//
// Levels are exact up to 128 memory steps and 32 vcore steps, and logarithmic above. Asks are whole numbers of steps,
// so below these limits a search visits only nodes that fit. BenchmarkEqualAsks of subcluster/rm justifies it: 5,000
// nodes cost nearly the same as 500 (docs/bench/scheduler.md). BenchmarkFind in this package compares it with a loop
// over all nodes.
type Index struct {
	links    *Links
	steps    [2]int64
	shift    [2]int8 // for steps that are powers of two, else -1
	checkAll bool    // vcores and further types are checked
	needMem  bool    // every container needs memory
	needCPU  bool    // every container needs vcores, and vcores are checked
	grids    []*grid // by number of extra types, then mask
	byMask   [1 << (amounts.MaxTypes - 2)]*grid
}

// New makes an empty index for asks of the given sizes. Several indexes may
// share their links if no node is in two of them at once.
func New(sizes *amounts.Sizes, links *Links) *Index {
	ix := &Index{
		links:    links,
		steps:    [2]int64{max(sizes.Step.Memory, 1), max(sizes.Step.VCores, 1)},
		checkAll: sizes.Check > 1,
		needMem:  sizes.Least.Memory > 0,
		needCPU:  sizes.Check > 1 && sizes.Least.VCores > 0,
	}
	ix.shift = [2]int8{shiftOf(ix.steps[amounts.Memory]), shiftOf(ix.steps[amounts.VCores])}
	return ix
}

const (
	rows      = 256
	cols      = 64
	exactRows = 128
	exactCols = 32
	// patience limits the nodes of one border cell that are checked before the search continues with cells whose
	// nodes all fit.
	patience = 32
)

type grid struct {
	mask  uint32
	count int
	rows  [rows / 64]uint64
	cols  [rows]uint64
	cells [rows * cols]int32 // first node, as in links
}

// Links has the positions of nodes in an index, by serial number. They are in a separate array, not in the nodes. A
// node that moves changes neighbours anywhere, and an array of tens of thousands stays in the processor's caches
// (BenchmarkChurn of subcluster/rm).
type Links struct{ of []link }

// AddNode adds the node with the next serial number.
func (l *Links) AddNode() { l.of = append(l.of, link{}) }

// link is a node's position. Neighbours are serial numbers plus 1; 0 is none.
type link struct {
	prev, next int32
	key        int32 // mask of its grid and its cell, plus 1; 0 = in none
}

// where returns the mask of the node's grid, and its cell.
func (l *link) where() (mask uint32, cell int32, in bool) {
	k := l.key - 1
	return uint32(k / (rows * cols)), k % (rows * cols), l.key != 0
}

// level maps a free amount, in steps, to a row or column.
func level(q int64, exact, per, top int) int {
	if q < int64(exact) {
		return int(max(q, 0))
	}
	// each doubling beyond exact has per levels
	b := bits.Len64(uint64(q / int64(exact))) // >= 1
	base := int64(exact) << (b - 1)
	return min(exact+(b-1)*per+int((q-base)*int64(per)/base), top-1)
}

func rowOf(q int64) int { return level(q, exactRows, 8, rows) }
func colOf(q int64) int { return level(q, exactCols, 4, cols) }

func (ix *Index) gridFor(mask uint32) *grid {
	if g := ix.byMask[mask]; g != nil {
		return g
	}
	g := &grid{mask: mask}
	ix.byMask[mask] = g
	ix.grids = append(ix.grids, g)
	slices.SortFunc(ix.grids, func(a, b *grid) int {
		if d := bits.OnesCount32(a.mask) - bits.OnesCount32(b.mask); d != 0 {
			return d
		}
		return int(a.mask) - int(b.mask)
	})
	return g
}

// extras returns the set of further resource types of which v has any, if they are checked.
func (ix *Index) extras(v *amounts.Vec) uint32 {
	if !ix.checkAll {
		return 0
	}
	return v.Further()
}

// full reports whether not even the smallest container fits, in the types that every container needs.
func (ix *Index) full(free *amounts.Vec) bool {
	return ix.needMem && free.Memory <= 0 || ix.needCPU && free.VCores <= 0
}

// inSteps returns a free amount in whole steps, at least 0.
func (ix *Index) inSteps(i int, v int64) int64 {
	if s := ix.shift[i]; s >= 0 {
		return max(v, 0) >> s
	}
	return max(v, 0) / ix.steps[i]
}

func shiftOf(step int64) int8 {
	if step&(step-1) != 0 {
		return -1
	}
	return int8(bits.TrailingZeros64(uint64(step)))
}

// Update moves a node to the cell of its free resources. in reports whether the node accepts containers. A full node
// is in no cell.
func (ix *Index) Update(node int32, free *amounts.Vec, in bool) {
	all := ix.links.of
	l := &all[node]
	if !in || ix.full(free) {
		ix.Drop(node)
		return
	}
	mask, cell := ix.placeOf(free)
	key := int32(mask)*(rows*cols) + cell + 1
	if l.key == key {
		return
	}
	ix.Drop(node)
	g := ix.gridFor(mask)
	l.key, l.next = key, g.cells[cell]
	if l.next != 0 {
		all[l.next-1].prev = node + 1
	} else {
		r, c := cell/cols, cell%cols
		g.cols[r] |= 1 << c
		g.rows[r/64] |= 1 << (r % 64)
	}
	g.cells[cell] = node + 1
	g.count++
}

// placeOf returns the grid and the cell of nodes with this much free.
func (ix *Index) placeOf(free *amounts.Vec) (mask uint32, cell int32) {
	row, col := rowOf(ix.inSteps(amounts.Memory, free.Memory)), colOf(ix.inSteps(amounts.VCores, free.VCores))
	return ix.extras(free), int32(row*cols + col)
}

// Drop removes a node, if it is in the index.
func (ix *Index) Drop(node int32) {
	all := ix.links.of
	l := &all[node]
	mask, cell, in := l.where()
	if !in {
		return
	}
	g := ix.byMask[mask]
	if l.prev != 0 {
		all[l.prev-1].next = l.next
	} else {
		g.cells[cell] = l.next
		if l.next == 0 {
			r, c := cell/cols, cell%cols
			g.cols[r] &^= 1 << c
			if g.cols[r] == 0 {
				g.rows[r/64] &^= 1 << (r % 64)
			}
		}
	}
	if l.next != 0 {
		all[l.next-1].prev = l.prev
	}
	g.count--
	*l = link{}
}

// Order is the search order of nodes with free resources, as precise as the cells.
type Order uint8

// The two orders.
const (
	MostRoom  Order = iota // spreads containers over nodes
	LeastRoom              // packs them onto few nodes
)

// Find returns the first node in order that may have enough free resources for need and that accepts returns true
// for, or -1.
func (ix *Index) Find(need *amounts.Vec, order Order, accepts func(node int32) bool) int32 {
	want := ix.extras(need)
	for _, g := range ix.grids {
		if g.count == 0 || g.mask&want != want {
			continue
		}
		n, skipped := ix.search(g, need, order, accepts, patience)
		if n < 0 && skipped {
			n, _ = ix.search(g, need, order, accepts, 1<<30)
		}
		if n >= 0 {
			return n
		}
	}
	return -1
}

// search checks at most limit nodes of one cell before it continues with the next; skipped reports whether it left
// any out.
func (ix *Index) search(
	g *grid,
	need *amounts.Vec,
	order Order,
	accepts func(node int32) bool,
	limit int,
) (found int32, skipped bool) {
	low, lowCol := ix.lowest(need)
	colsFrom := ^uint64(0) << lowCol
	for r := g.nextRow(low, order, -1); r >= 0; r = g.nextRow(low, order, r) {
		for c := g.cols[r] & colsFrom; c != 0; {
			col := nextCol(c, order)
			c &^= 1 << col
			looked := 0
			for at := g.cells[r*cols+col]; at != 0; at = ix.links.of[at-1].next {
				if accepts(at - 1) {
					return at - 1, skipped
				}
				if looked++; looked >= limit {
					skipped = true
					break
				}
			}
		}
	}
	return -1, skipped
}

// Ahead returns the nodes that Find visits first, up to one cell and the capacity of list, even if they do not fit.
func (ix *Index) Ahead(need *amounts.Vec, order Order, list []int32) int {
	want, k := ix.extras(need), 0
	for _, g := range ix.grids {
		if g.count == 0 || g.mask&want != want {
			continue
		}
		r, col := g.first(ix, need, order)
		if r < 0 {
			continue
		}
		for at := g.cells[r*cols+col]; at != 0 && k < len(list); at = ix.links.of[at-1].next {
			list[k] = at - 1
			k++
		}
		break
	}
	return k
}

// first returns the first cell of a search, or row -1.
func (g *grid) first(ix *Index, need *amounts.Vec, order Order) (r, col int) {
	low, lowCol := ix.lowest(need)
	for r = g.nextRow(low, order, -1); r >= 0; r = g.nextRow(low, order, r) {
		if c := g.cols[r] & (^uint64(0) << lowCol); c != 0 {
			return r, nextCol(c, order)
		}
	}
	return -1, 0
}

// lowest returns the lowest row and column whose nodes may have enough free resources for need.
func (ix *Index) lowest(need *amounts.Vec) (row, col int) {
	row = rowOf(need.Memory / ix.steps[amounts.Memory])
	if ix.checkAll {
		col = colOf(need.VCores / ix.steps[amounts.VCores])
	}
	return row, col
}

// nextCol returns the first column to search of a set.
func nextCol(c uint64, order Order) int {
	if order == LeastRoom {
		return bits.TrailingZeros64(c)
	}
	return 63 - bits.LeadingZeros64(c)
}

// nextRow returns the next row with nodes after r (-1 at the start) in this order, not below low; -1 at the end.
func (g *grid) nextRow(low int, order Order, r int) int {
	if order == LeastRoom {
		from := low
		if r >= 0 {
			from = r + 1
		}
		for w := from / 64; w < len(g.rows); w++ {
			word := g.rows[w]
			if w == from/64 {
				word &= ^uint64(0) << (from % 64)
			}
			if word != 0 {
				return w*64 + bits.TrailingZeros64(word)
			}
		}
		return -1
	}
	to := rows - 1
	if r >= 0 {
		to = r - 1
	}
	for w := to / 64; to >= 0 && w >= 0; w-- {
		word := g.rows[w]
		if w == to/64 {
			word &= ^uint64(0) >> (63 - to%64)
		}
		if word != 0 {
			if at := w*64 + 63 - bits.LeadingZeros64(word); at >= low {
				return at
			}
			return -1
		}
	}
	return -1
}

// Position is a node's cell and its neighbours in the cell's list.
type Position struct{ at link }

// Position returns a node's position.
func (ix *Index) Position(node int32) Position { return Position{ix.links.of[node]} }

// Restore returns a node to a saved position, between its old neighbours, which must not have moved.
func (ix *Index) Restore(node int32, to Position) {
	ix.Drop(node)
	was := to.at
	mask, cell, in := was.where()
	if !in {
		return
	}
	g := ix.byMask[mask]
	all, this := ix.links.of, node+1
	all[node] = was
	if was.prev != 0 {
		all[was.prev-1].next = this
	} else {
		if g.cells[cell] == 0 {
			r, c := cell/cols, cell%cols
			g.cols[r] |= 1 << c
			g.rows[r/64] |= 1 << (r % 64)
		}
		g.cells[cell] = this
	}
	if was.next != 0 {
		all[was.next-1].prev = this
	}
	g.count++
}

// Cell returns a node's grid and cell, or false if it is in none.
func (ix *Index) Cell(node int32) (mask uint32, cell int32, in bool) {
	return ix.links.of[node].where()
}

// Check reports whether a node is where Update would put it with this much free.
func (ix *Index) Check(node int32, free *amounts.Vec, in bool) bool {
	mask, cell, is := ix.Cell(node)
	if want := in && !ix.full(free); !want || !is {
		return want == is
	}
	wantMask, wantCell := ix.placeOf(free)
	return mask == wantMask && cell == wantCell
}
