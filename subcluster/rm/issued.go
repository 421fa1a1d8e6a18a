// SPDX-License-Identifier: Apache-2.0

package rm

import "github.com/creelrm/creel"

// issuedNumbers remembers the highest container number of ended applications that are no longer listed. The UAM of an
// AM that still runs may be submitted again. After the store has lost an application's home, the application itself
// may arrive where its UAM was, or its UAM where it ran. Attempts are counted from 1 again, so containers must not be.
// Another epoch issues other ids, so a restart need not recover the tables.
type issuedNumbers struct {
	// There are far more ended applications than UAMs of living ones, which they must not push out.
	uams, homes issuedTable
}

// issuedTable has the numbers of one kind.
type issuedTable struct {
	numbers map[creel.ApplicationID]int64
	order   []creel.ApplicationID // oldest first
}

// remember adds an application that is deleted from the list.
func (n *issuedNumbers) remember(a *app) {
	number := a.issued
	for _, t := range a.attempts {
		number = max(number, t.lastSeq)
	}
	if number == 0 {
		return
	}
	if a.uam() {
		n.uams.put(a.id, number)
	} else {
		n.homes.put(a.id, number)
	}
}

// of returns the highest number that an application had here, 0 for none.
func (n *issuedNumbers) of(id creel.ApplicationID) int64 {
	return max(n.uams.numbers[id], n.homes.numbers[id])
}

// put adds a number, and drops the oldest ones above maxDisowned.
func (d *issuedTable) put(id creel.ApplicationID, number int64) {
	if d.numbers == nil {
		d.numbers = map[creel.ApplicationID]int64{}
	}
	if _, there := d.numbers[id]; !there {
		d.order = append(d.order, id)
	}
	d.numbers[id] = number
	for ; len(d.order) > maxDisowned; d.order = d.order[1:] {
		delete(d.numbers, d.order[0])
	}
}
