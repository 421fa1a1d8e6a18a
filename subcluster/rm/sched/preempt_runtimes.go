// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/runtimes"

// Learns reports whether the scheduler uses Ended.
func (p *Preemption) Learns() bool { return p.on }

// Ended records that a container of an application on a node ended by itself after ms milliseconds. Estimates for its
// queue use it.
func (p *Preemption) Ended(a *App, n *Node, ms int64) {
	if n.of != p.part {
		if a = a.partIn(n.of); a == nil {
			return
		}
	}
	if a.queue == nil || a.queue.leaf == nil {
		return
	}
	l := a.queue.leaf
	if l.runtimes == nil {
		l.runtimes = &runtimes.Histogram{}
	}
	l.runtimes.Add(ms)
}
