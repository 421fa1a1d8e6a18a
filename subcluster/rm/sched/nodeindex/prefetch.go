// SPDX-License-Identifier: Apache-2.0

package nodeindex

// Prefetch and PrefetchNeighbours read the memory that an Update of a node will change, so that many later updates do
// not wait for one cache line after the other. The caller must add the results to a sum that it uses, because the
// compiler would remove unused reads. BenchmarkChurn of subcluster/rm justifies them.

// Prefetch reads a node's position.
func (l *Links) Prefetch(node int32) int32 { return l.of[node].key }

// PrefetchNeighbours reads the positions before and after a node's.
func (l *Links) PrefetchNeighbours(node int32) int32 {
	sum, at := int32(0), l.of[node]
	if at.prev != 0 {
		sum += l.of[at.prev-1].next
	}
	if at.next != 0 {
		sum += l.of[at.next-1].prev
	}
	return sum
}
