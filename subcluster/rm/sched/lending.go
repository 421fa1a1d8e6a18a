// SPDX-License-Identifier: Apache-2.0

package sched

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
