// SPDX-License-Identifier: Apache-2.0

package rm

import "github.com/creelrm/creel"

// issuedTable remembers the highest container number of ended UAMs that are no longer listed. The UAM of an AM that
// still runs may be submitted again. Its attempts are counted from 1 again, so its containers must not be. Another
// epoch issues other ids, so a restart need not recover the table.
type issuedTable struct {
	numbers map[creel.ApplicationID]int64
	order   []creel.ApplicationID // oldest first
}

// rememberIssued adds a UAM, and drops the oldest ones above maxDisowned.
func (m *Machine) rememberIssued(a *app) {
	number := a.issued
	for _, t := range a.attempts {
		number = max(number, t.lastSeq)
	}
	if number == 0 {
		return
	}
	d := &m.issued
	if d.numbers == nil {
		d.numbers = map[creel.ApplicationID]int64{}
	}
	if _, there := d.numbers[a.id]; !there {
		d.order = append(d.order, a.id)
	}
	d.numbers[a.id] = number
	for ; len(d.order) > maxDisowned; d.order = d.order[1:] {
		delete(d.numbers, d.order[0])
	}
}
