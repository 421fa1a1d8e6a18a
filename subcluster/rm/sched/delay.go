// SPDX-License-Identifier: Apache-2.0

package sched

import "github.com/creelrm/creel/subcluster/rm/sched/places"

// Delay scheduling: an ask that names places skips free resources elsewhere for a while, because local ones soon
// become free. The wait is counted in opportunities, as in Hadoop: free resources on other nodes that the ask could
// have used. Resources are offered when they become free. So an opportunity is either such an offer, or a heartbeat
// of a node that still has free resources. One counter serves all waiting asks; each stores the value at which it may
// go one level further.

func (d *delays) init(p *partition) {
	d.part = p
	d.waiting.Less = func(a, b *Ask) bool {
		return a.relaxAt < b.relaxAt || a.relaxAt == b.relaxAt && a.serial < b.serial
	}
	d.waiting.Slot = func(w *Ask) *int32 { return &w.slot }
}

// start starts the wait of an ask that found no local node, or raises its level at once if no wait is configured.
func (d *delays) start(w *Ask) {
	if w.since >= 0 || !w.named.Any() {
		return
	}
	w.since = d.count
	d.wait(w)
}

// wait arms the next level of the wait; levels without a wait are skipped.
func (d *delays) wait(w *Ask) {
	p := d.part
	for w.level < places.AtAny {
		if at := p.policy.patience(p, w); at > d.count-w.since {
			w.relaxAt = w.since + at
			if w.serial == 0 {
				d.serial++
				w.serial = d.serial
			}
			d.waiting.Push(w)
			after := p.tree.spec.NodeLocalityWait
			if w.level == places.AtRack {
				after = p.tree.spec.RackLocalityWait
			}
			if after > 0 {
				w.wake = p.cluster.timers.start(p.now+int64(after), func() { d.relax(w) })
			}
			return
		}
		w.level++
	}
}

// opportunity counts one skipped opportunity and raises the level of asks that have waited long enough.
func (d *delays) opportunity() {
	if d.waiting.Len() == 0 {
		return
	}
	d.count++
	for d.waiting.Len() > 0 && d.waiting.Top().relaxAt <= d.count {
		d.relax(d.waiting.Top())
	}
}

// relax raises the level of a waiting ask and tries it.
func (d *delays) relax(w *Ask) {
	p := d.part
	d.waiting.Remove(w)
	p.cluster.timers.stop(&w.wake)
	if w.level < places.AtAny {
		w.level++
	}
	d.wait(w)
	p.retries.add(w.app.queue)
	p.cluster.lending.mayBorrow(w.app)
}

// end ends the wait: a local container was granted, or the ask is gone.
func (d *delays) end(w *Ask) {
	w.level, w.since = places.AtNode, -1
	d.waiting.Remove(w)
	d.part.cluster.timers.stop(&w.wake)
}
