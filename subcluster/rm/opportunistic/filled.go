// SPDX-License-Identifier: Apache-2.0

package opportunistic

import (
	"container/heap"

	"github.com/creelrm/creel/subcluster/levels"
)

// filled is a heap of the nodes that admit a container of an ask, the least filled first.
type filled struct {
	nodes []*node
	parts []float64
}

func (f *filled) Len() int { return len(f.nodes) }
func (f *filled) Less(i, k int) bool {
	if f.parts[i] != f.parts[k] {
		return f.parts[i] < f.parts[k]
	}
	return f.nodes[i].serial < f.nodes[k].serial
}

func (f *filled) Swap(i, k int) {
	f.nodes[i], f.nodes[k] = f.nodes[k], f.nodes[i]
	f.parts[i], f.parts[k] = f.parts[k], f.parts[i]
}

func (f *filled) Push(x any) {
	n := x.(*node)
	f.nodes, f.parts = append(f.nodes, n), append(f.parts, n.part())
}

func (f *filled) Pop() any {
	last := len(f.nodes) - 1
	n := f.nodes[last]
	f.nodes, f.parts = f.nodes[:last], f.parts[:last]
	return n
}

// part is the part of a node's size that all its containers fill, the waiting ones included: above 1 if some wait. It
// is the larger one of memory and vcores.
func (n *node) part() float64 {
	free := n.free()
	least := func(free, total int64) float64 { return 1 - float64(free)/float64(max(total, 1)) }
	return max(least(free.Memory, n.total.Memory), least(free.VCores, n.total.VCores))
}

// leastFilled places an ask's containers that need no place, each on the node that is filled least with those placed
// before.
func (r *round) leastFilled(w *ask) {
	if w.Strict || w.Count <= 0 || len(r.out) >= r.most {
		return
	}
	f := &filled{nodes: make([]*node, 0, len(r.l.list)), parts: make([]float64, 0, len(r.l.list))}
	for _, n := range r.l.list {
		if n != nil && r.l.admits(n, &w.size.V) {
			f.nodes, f.parts = append(f.nodes, n), append(f.parts, n.part())
		}
	}
	for heap.Init(f); w.Count > 0 && len(r.out) < r.most && f.Len() > 0; {
		n := f.nodes[0]
		if !r.try(w, n, levels.Anywhere) {
			heap.Pop(f)
			continue
		}
		w.Count--
		f.parts[0] = n.part()
		heap.Fix(f, 0)
	}
}
