// SPDX-License-Identifier: Apache-2.0

package sched

// mayBorrow records a waiting application of the default partition.
func (l *lending) mayBorrow(a *App) {
	if l.shared > 0 && a.main == nil && a.waits {
		l.borrowers = append(l.borrowers, a)
	}
}

// lendAgain retries the asks that a cap prevented from borrowing.
func (p *partition) lendAgain() {
	if p.stinted {
		p.stinted = false
		p.nodes.roomEverywhere()
	}
}
