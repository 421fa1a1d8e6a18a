// SPDX-License-Identifier: Apache-2.0

package sched

import "slices"

// Schedule makes all due decisions and returns the grants, in order. The next Schedule overwrites the slice.
func (s *Scheduler) Schedule() []Grant {
	p := &s.main
	s.line.tries = amTries
	for p.decide(); len(s.labelled) > 0 && s.labelledDue(); p.decide() {
	}
	grants := p.grants
	p.grants = p.grants[:0]
	return grants
}

// decide makes all due decisions of a partition.
//
// Each step may cause work for the steps above it, so the cycle repeats until no work is left. It terminates, because
// each round grants or activates something, or removes work.
func (p *partition) decide() {
	for line := p.line(); ; {
		// 1. The cluster or the queues changed: recompute guarantees, and retry asks
		//    that limits stopped.
		if p.resizeDue {
			p.resizeDue = false
			p.resize()
			continue
		}
		// 2. Activate applications whose AM may run now; they ask for its container.
		if line != nil && line.start() {
			continue
		}
		// 3. Offer resources that became free on a node.
		if n, due := take(&p.nodes.dirty); due {
			n.dirty = false
			p.offer(n)
			continue
		}
		// 4. Where a limit loosened, retry the asks that it stopped, on any node.
		if q, due := p.retries.take(); due {
			for p.waiting > 0 && p.walk.next(q, nil) {
			}
			continue
		}
		// 5. Containers with tags started or ended: check constraints again.
		if p.tags.changed {
			p.tags.changed = false
			p.tags.retry()
			continue
		}
		return
	}
}

// offer offers a node's free resources to waiting asks.
func (p *partition) offer(n *Node) {
	if n.use != Open {
		return
	}
	if p.label != "" && !p.exclusive { // not n.Lends: that would read the node's cold half
		p.cluster.lending.nodes = append(p.cluster.lending.nodes, n)
	}
	// 1. Increases of containers here come before new containers.
	if p.increases.waiting > 0 {
		p.increases.growOn(n)
	}
	// 2. A reserved node collects free resources only for its reservation.
	if n.held && !p.reservations.fulfil(n) {
		return
	}
	// 3. Asks that wait for a preferred node have skipped one more.
	if p.waiting == 0 {
		return
	}
	p.delays.opportunity()
	// 4. If the first ask in order needs more than is free, reserve the node for it.
	if p.reservations.forHead(n) {
		return
	}
	// 5. Then all others, in the order of the tree, while resources last.
	for !n.held && p.waiting > 0 && p.sizes.Fits(&p.tree.root.least, &n.free) && p.walk.next(p.tree.root, n) {
	}
}

// labelledDue lets the other partitions make due decisions, collects their grants, and lends their idle resources.
// It reports whether the default partition has more decisions to make after it.
func (s *Scheduler) labelledDue() bool {
	for {
		for _, p := range s.labelled {
			p.decide()
			for _, g := range p.grants {
				g.App = g.App.whole()
				if g.Rare == nil {
					g.Rare = &GrantExtra{}
				}
				g.Rare.Label = p.label
				s.main.grants = append(s.main.grants, g)
			}
			p.grants = p.grants[:0]
		}
		if s.lending.lend(); !slices.ContainsFunc(s.labelled, (*partition).due) {
			break
		}
	}
	return s.main.due() || len(s.line.due) > 0
}

// due reports whether the partition has a decision to make.
func (p *partition) due() bool {
	return p.resizeDue || p.tags.changed || len(p.nodes.dirty)+len(p.retries.due) > 0
}
