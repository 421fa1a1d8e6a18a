// SPDX-License-Identifier: Apache-2.0

package sched

// About prefetching: The memory that a call touches is spread over gigabytes. If the lines were read one after the
// other, each would be waited for separately. These functions only read, with few dependencies. So the processor
// fetches many cache lines at once, and the decisions afterwards find them in the cache. BenchmarkChurn of
// subcluster/rm justifies them (docs/bench/scheduler.md). The values are summed and the sum is stored, because the
// compiler would remove unused reads.

// Prefetched is the number of entries to read ahead in one batch.
const Prefetched = 16

// PrefetchApp reads the memory of its application that a call with requests of the given priority will change, up to
// the length of each list in a common call.
func (s *Scheduler) PrefetchApp(a *App, priority int32) {
	q, u := a.queue, a.user
	sum := a.used.Memory + a.pending.Memory + a.least.Memory + a.seconds.Memory + int64(a.priority)
	sum += q.used.Memory + q.pending.Memory + q.least.Memory + q.bounds.max.Memory + q.capacity.guaranteed.Memory
	sum += int64(q.slot) + int64(q.serial) + q.granted + int64(q.settings.nodes)
	sum += u.used.Memory + int64(u.slot) + int64(len(u.apps.Items)) + q.leaf.usedByActive.Memory + int64(q.leaf.active)
	asks := a.asks[:min(len(a.asks), Prefetched)]
	for _, w := range asks {
		sum += int64(w.count) + int64(len(w.named.Hosts)+len(w.named.Racks))
	}
	for _, w := range asks {
		if w.count == 0 && w.priority != priority {
			continue // not in this call
		}
		for _, p := range w.named.Hosts[:min(len(w.named.Hosts), Prefetched)] {
			sum += int64(p.Count)
		}
		for _, p := range w.named.Racks[:min(len(w.named.Racks), Prefetched)] {
			sum += int64(p.Count)
		}
	}
	s.main.prefetched += int32(sum)
}

// PrefetchNode reads a node's index entry and free memory, before a grant or a release.
func (s *Scheduler) PrefetchNode(n *Node) int32 {
	return s.main.nodes.Prefetch(n.serial)
}

// PrefetchNeighbours reads the nodes before and after a node in the index, which change when it moves. Call
// PrefetchNode before it.
func (s *Scheduler) PrefetchNeighbours(n *Node) int32 {
	return s.main.nodes.PrefetchNeighbours(n.serial)
}

// prefetchNodes reads the memory that grants for w will change: nodes of its named hosts, or the first nodes of a
// search through the cluster.
func (part *partition) prefetchNodes(w *Ask) {
	if w.count < 2 || w.size == nil {
		return
	}
	var list [Prefetched]int32
	k := 0
	if w.named.Any() {
		for _, p := range w.named.Hosts[:min(len(w.named.Hosts), Prefetched)] {
			if p.Host != nil && len(p.Host.Nodes()) > 0 {
				list[k] = p.Host.Nodes()[0].serial
				k++
			}
		}
	} else {
		k = part.nodes.Ahead(&w.size.V, nodeOrder(w.app.queue.settings.nodes), list[:min(int(w.count), Prefetched)])
	}
	sum := int32(0)
	for _, i := range list[:k] {
		sum += int32(part.nodes.At(i).free.Memory)
	}
	for _, i := range list[:k] {
		sum += part.nodes.PrefetchNeighbours(i)
	}
	part.prefetched = sum
}
