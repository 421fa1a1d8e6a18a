// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"github.com/creelrm/creel/subcluster/rm/nodeset"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// This file prefetches the machine's own memory; sched/prefetch.go explains prefetching and covers the scheduler's
// memory. BenchmarkChurn justifies it.

// prefetchCompletions reads the memory that the completions of containers will change.
func (l *containerLife) prefetchCompletions(list []*container) {
	m := l.m
	sum := int32(0)
	for _, c := range list {
		sum += c.slot
	}
	for _, c := range list {
		if n := c.node; n != nil {
			sum += n.count + m.sched.PrefetchNode(&n.Node) + m.nodes.commands.Prefetch(n.Serial())
		}
	}
	for _, c := range list {
		if n := c.node; n != nil && n.live[c.slot] == c {
			sum += m.sched.PrefetchNeighbours(&n.Node)
			if c.wait != 0 && l.unlaunched.Get(c.wait) == c {
				sum++
			}
		}
	}
	m.prefetched = sum
}

// prefetchGrants reads the memory that booking grants will change: the containers' places on their nodes.
func (l *containerLife) prefetchGrants(grants []sched.Grant) {
	m := l.m
	if len(grants) < 2 {
		return
	}
	sum := int32(0)
	for i := range grants {
		n := m.nodes.list[grants[i].Node.Serial()]
		sum += n.count
		if n.at != nil {
			sum++
		}
	}
	for i := range grants {
		n := m.nodes.list[grants[i].Node.Serial()]
		if at := int(n.hole) - 1; at >= 0 && n.live[at] == nil {
			sum++
		}
	}
	m.prefetched = sum
}

// prefetchTokens reads whether an attempt has tokens for the nodes in its next answer.
func (l *attemptLife) prefetchTokens(t *attempt) {
	sum := int32(0)
	for _, c := range t.fresh {
		if t.nodeSets.Has(nodeset.Token, c.node.Serial()) {
			sum++
		}
	}
	l.m.prefetched = sum
}

// prefetchAcks reads the memory of the nodes' forget commands.
func (l *attemptLife) prefetchAcks(acks []ack) {
	sum := int32(0)
	for _, k := range acks {
		sum += l.m.nodes.commands.Prefetch(k.node)
	}
	l.m.prefetched = sum
}
