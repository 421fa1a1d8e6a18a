// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"math/bits"
	"slices"

	"github.com/creelrm/creel/subcluster/rm/queues"
)

// index finds a node with room without looking at those that have none. Nodes
// lie in cells by free memory (rows) and free vcores (columns); bitmaps say
// which rows and cells have nodes, so a search skips the empty ones in words.
// Nodes with free units of further resource types (GPUs) lie in a grid of
// their own per combination, and asks that need none are sent there last.
//
// Levels are exact up to 128 memory steps and 32 vcore steps and logarithmic
// above; an ask is a whole number of steps, so below that only nodes that fit
// are ever looked at.
type index struct {
	all      *[]*node // by serial number, as are the next
	links    *[]links
	steps    [2]int64
	shift    [2]int8 // of steps that are powers of two, else -1
	checkAll bool    // vcores and further types are looked at
	needMem  bool    // no container is without memory
	needCPU  bool    // none without vcores, and vcores are checked
	grids    []*grid // by number of extra types, then mask
	byMask   [1 << (MaxTypes - 2)]*grid
}

const (
	rows      = 256
	cols      = 64
	exactRows = 128
	exactCols = 32
	// patience bounds how many nodes of one border cell are looked at before
	// the search goes on to cells where every node fits.
	patience = 32
)

type grid struct {
	mask  uint32
	count int
	rows  [rows / 64]uint64
	cols  [rows]uint64
	cells [rows * cols]int32 // first node, as in links
}

// links hold a node's place in an index. Neighbours are serial numbers plus 1;
// 0 is none. They lie in an array of their own, beside those of other nodes and
// not in the node: a node that moves changes neighbours that are anywhere, and
// the array of tens of thousands stays near the processor.
type links struct {
	prev, next int32
	key        int32 // mask of its grid and cell in it, plus 1; 0 = in none
}

// where gives the mask of the grid and the cell in it.
func (l *links) where() (mask uint32, cell int32, in bool) {
	k := l.key - 1
	return uint32(k / (rows * cols)), k % (rows * cols), l.key != 0
}

// level maps a free amount, in steps, to a row or column.
func level(q int64, exact, per, top int) int {
	if q < int64(exact) {
		return int(max(q, 0))
	}
	// per levels for each doubling beyond exact
	b := bits.Len64(uint64(q / int64(exact))) // >= 1
	base := int64(exact) << (b - 1)
	return min(exact+(b-1)*per+int((q-base)*int64(per)/base), top-1)
}

func rowOf(q int64) int { return level(q, exactRows, 8, rows) }
func colOf(q int64) int { return level(q, exactCols, 4, cols) }

func (ix *index) gridFor(mask uint32) *grid {
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

// extras is the set of further resource types v has any of, if they are looked
// at.
func (ix *index) extras(v *vec) uint32 {
	if v.more == nil || !ix.checkAll {
		return 0
	}
	var mask uint32
	for i, x := range v.more {
		if x > 0 {
			mask |= 1 << i
		}
	}
	return mask
}

// full: not even the smallest container fits, in the types every container has
// some of.
func (ix *index) full(free *vec) bool {
	return ix.needMem && free.mem <= 0 || ix.needCPU && free.cpu <= 0
}

// inSteps is a free amount in whole steps, not below 0.
func (ix *index) inSteps(i int, v int64) int64 {
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

// update puts n where its free room belongs; in says whether it takes
// containers at all. A node without room is in no cell.
func (ix *index) update(n *node, in bool) {
	all := *ix.links
	l := &all[n.serial]
	if !in || ix.full(&n.free) {
		ix.drop(n)
		return
	}
	mask := ix.extras(&n.free)
	cell := int32(rowOf(ix.inSteps(mem, n.free.mem))*cols + colOf(ix.inSteps(cpu, n.free.cpu)))
	key := int32(mask)*(rows*cols) + cell + 1
	if l.key == key {
		return
	}
	ix.drop(n)
	g := ix.gridFor(mask)
	l.key, l.next = key, g.cells[cell]
	if l.next != 0 {
		all[l.next-1].prev = n.serial + 1
	} else {
		r, c := cell/cols, cell%cols
		g.cols[r] |= 1 << c
		g.rows[r/64] |= 1 << (r % 64)
	}
	g.cells[cell] = n.serial + 1
	g.count++
}

func (ix *index) drop(n *node) {
	all := *ix.links
	l := &all[n.serial]
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
	*l = links{}
}

// find gives a node with room for need that the blacklist allows, nil for
// none: the one with most room (Spread) or with least (Pack), to the grain of
// the cells.
func (ix *index) find(t *types, need *vec, order queues.NodeOrder, black *blacklist) *node {
	want := ix.extras(need)
	for _, g := range ix.grids {
		if g.count == 0 || g.mask&want != want {
			continue
		}
		n, skipped := ix.search(g, t, need, order, black, patience)
		if n == nil && skipped {
			n, _ = ix.search(g, t, need, order, black, 1<<30)
		}
		if n != nil {
			return n
		}
	}
	return nil
}

func (ix *index) search(
	g *grid,
	t *types,
	need *vec,
	order queues.NodeOrder,
	black *blacklist,
	limit int,
) (found *node, skipped bool) {
	low, lowCol := ix.lowest(need)
	colsFrom := ^uint64(0) << lowCol
	for r := g.nextRow(low, order, -1); r >= 0; r = g.nextRow(low, order, r) {
		for c := g.cols[r] & colsFrom; c != 0; {
			col := nextCol(c, order)
			c &^= 1 << col
			looked := 0
			for at := g.cells[r*cols+col]; at != 0; at = (*ix.links)[at-1].next {
				n := (*ix.all)[at-1]
				if t.fits(need, &n.free) && !black.bars(n) {
					return n, skipped
				}
				if looked++; looked >= limit {
					skipped = true
					break
				}
			}
		}
	}
	return nil, skipped
}

// ahead gives the nodes that find comes to first, as far as one cell and list
// have them, whether they fit or not.
func (ix *index) ahead(need *vec, order queues.NodeOrder, list []*node) int {
	want, k := ix.extras(need), 0
	for _, g := range ix.grids {
		if g.count == 0 || g.mask&want != want {
			continue
		}
		r, col := g.first(ix, need, order)
		if r < 0 {
			continue
		}
		for at := g.cells[r*cols+col]; at != 0 && k < len(list); at = (*ix.links)[at-1].next {
			list[k] = (*ix.all)[at-1]
			k++
		}
		break
	}
	return k
}

// first gives the cell that a search looks at first, row -1 for none.
func (g *grid) first(ix *index, need *vec, order queues.NodeOrder) (r, col int) {
	low, lowCol := ix.lowest(need)
	for r = g.nextRow(low, order, -1); r >= 0; r = g.nextRow(low, order, r) {
		if c := g.cols[r] & (^uint64(0) << lowCol); c != 0 {
			return r, nextCol(c, order)
		}
	}
	return -1, 0
}

// lowest is the least row and column whose nodes may have room for need.
func (ix *index) lowest(need *vec) (row, col int) {
	row = rowOf(need.mem / ix.steps[mem])
	if ix.checkAll {
		col = colOf(need.cpu / ix.steps[cpu])
	}
	return row, col
}

// nextCol is the column to look at first of those in a set.
func nextCol(c uint64, order queues.NodeOrder) int {
	if order == queues.Pack {
		return bits.TrailingZeros64(c)
	}
	return 63 - bits.LeadingZeros64(c)
}

// nextRow is the next row with nodes after r (-1 to begin) in the given order,
// not below low; -1 at the end.
func (g *grid) nextRow(low int, order queues.NodeOrder, r int) int {
	if order == queues.Pack {
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

// restore puts a node back to where it stood before it was moved: between the
// neighbours it had, which must be where they were.
func (ix *index) restore(n *node, was links) {
	ix.drop(n)
	mask, cell, in := was.where()
	if !in {
		return
	}
	g := ix.byMask[mask]
	all, this := *ix.links, n.serial+1
	all[n.serial] = was
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
