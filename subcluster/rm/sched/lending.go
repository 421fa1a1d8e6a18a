// SPDX-License-Identifier: Apache-2.0

package sched

// lending has the idle resources of shared partitions, and the asks that may borrow them. The default partition lends;
// of another one only later is used.
type lending struct {
	s         *Scheduler
	shared    int     // number of partitions that are not exclusive
	nodes     []*Node // of shared ones, with resources left by their own asks
	borrowers []*App  // with new asks, waiting
	later     bool    // a cap of this partition prevented borrowing
}

// mayBorrow records a waiting application of the default partition.
func (l *lending) mayBorrow(a *App) {
	if l.shared > 0 && a.waits {
		l.borrowers = append(l.borrowers, a)
	}
}

// again retries the asks that a cap prevented from borrowing.
func (l *lending) again() {
	if l.later {
		l.later = false
		l.s.nodes.roomEverywhere()
	}
}
