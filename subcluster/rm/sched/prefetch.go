// SPDX-License-Identifier: Apache-2.0

package sched

// Prefetching. The memory that a call touches is spread over gigabytes. Read one after the other, each cache line is
// waited for alone. These functions only read, and depend on little, so that the processor fetches many lines at
// once, and the decisions that follow find them in the cache. BenchmarkChurn of subcluster/rm needs them
// (docs/bench/scheduler.md). The values go into a sum that is used, or the compiler would remove the reads.

// Prefetched is how much is read ahead at once, and so of use to do at once.
const Prefetched = 16

// PrefetchApp reads the memory of its application that a call with requests of the given priority will change: no
// more of each list than a common call has.
func (s *Scheduler) PrefetchApp(a *App, priority int32) {
	q, u := a.queue, a.user
	sum := a.used.Memory + a.pending.Memory + a.least.Memory + a.seconds.Memory + int64(a.priority)
	sum += q.used.Memory + q.pending.Memory + q.least.Memory + q.max.Memory + q.guaranteed.Memory
	sum += int64(q.slot) + int64(q.serial) + q.granted
	sum += u.used.Memory + int64(u.slot) + int64(len(u.apps.Items)) + q.leaf.usedByActive.Memory + int64(q.leaf.active)
	asks := a.asks[:min(len(a.asks), Prefetched)]
	for _, w := range asks {
		sum += int64(w.count) + int64(len(w.hosts)+len(w.racks))
	}
	for _, w := range asks {
		if w.count == 0 && w.priority != priority {
			continue // it is not spoken of
		}
		for _, p := range w.hosts[:min(len(w.hosts), Prefetched)] {
			sum += int64(p.count)
		}
		for _, p := range w.racks[:min(len(w.racks), Prefetched)] {
			sum += int64(p.count)
		}
	}
	s.prefetched += int32(sum)
}

// PrefetchNode reads a node's place in the index and its room, for a grant or a
// release soon after.
func (s *Scheduler) PrefetchNode(n *Node) int32 {
	return s.links.Prefetch(n.serial) + int32(s.room[n.serial])
}

// PrefetchNeighbours reads the nodes before and after it in the index, which
// move when it does. PrefetchNode comes first.
func (s *Scheduler) PrefetchNeighbours(n *Node) int32 { return s.links.PrefetchNeighbours(n.serial) }

// prefetchNodes reads the memory that grants for w will change: of the nodes on the hosts it names, or of the first
// nodes of a search through the cluster.
func (s *Scheduler) prefetchNodes(w *Ask) {
	if w.count < 2 || w.size == nil {
		return
	}
	var list [Prefetched]int32
	k := 0
	if w.placed() {
		for _, p := range w.hosts[:min(len(w.hosts), Prefetched)] {
			if p.host != nil && len(p.host.nodes) > 0 {
				list[k] = p.host.nodes[0].serial
				k++
			}
		}
	} else {
		k = s.index.Ahead(&w.size.V, nodeOrder(w.app.queue.nodes), list[:min(int(w.count), Prefetched)])
	}
	sum := int32(0)
	for _, i := range list[:k] {
		sum += int32(s.nodes[i].free.Memory)
	}
	for _, i := range list[:k] {
		sum += s.links.PrefetchNeighbours(i)
	}
	s.prefetched = sum
}
