// SPDX-License-Identifier: Apache-2.0

package opportunistic

import (
	"cmp"
	"slices"
)

// A node above the queue limit ends its last waiting containers, and their AMs ask again. Hadoop's ResourceManager
// sends the limit to each node, so containers also end where all other queues are as long. With Config.Moves, each
// sort divides the free places of the queues below the limit among the nodes above it, and a node sheds no more than
// its share.

// LimitOf returns the queue limit for the next answer to a node. The other figure is -1: no limit. A share of places
// is used once.
func (l *Nodes) LimitOf(serial int32) (length, waitMS int32) {
	n := l.at(serial)
	if !l.cfg.Moves || l.cfg.Comparator == QueueWaitTime || n == nil {
		return l.Limit()
	}
	if n.sheds == 0 {
		return -1, -1
	}
	length, n.sheds = max(n.length-n.sheds, l.limit), 0
	return length, -1
}

// share divides the free places of the shorter queues, the longest queue first.
func (l *Nodes) share() {
	if !l.cfg.Moves || l.cfg.Comparator == QueueWaitTime {
		return
	}
	places := map[string]int32{}
	for _, n := range l.order {
		places[n.label] += max(min(l.limit, n.capacity)-n.queued(), 0)
	}
	var long []*node
	for _, n := range l.list {
		if n == nil {
			continue
		}
		if n.sheds = 0; n.candidate && n.length > l.limit {
			long = append(long, n)
		}
	}
	slices.SortFunc(long, func(a, b *node) int {
		return cmp.Or(cmp.Compare(b.length, a.length), cmp.Compare(a.serial, b.serial))
	})
	for _, n := range long {
		n.sheds = min(n.length-l.limit, places[n.label])
		places[n.label] -= n.sheds
	}
}
