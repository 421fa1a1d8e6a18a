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
	// lows has the lowest number that a NodeManager issued, of the few applications that have one; see distributed.go.
	lows map[creel.ApplicationID]int64
}

// remember adds an application that is deleted from the list.
func (n *issuedNumbers) remember(a *app) {
	number, low := a.issued, a.issuedLow
	for _, t := range a.attempts {
		number, low = max(number, t.lastSeq), lower(low, t.lowSeq)
	}
	if number == 0 && low == 0 {
		return
	}
	if a.uam() {
		n.uams.put(a.id, number, low)
	} else {
		n.homes.put(a.id, number, low)
	}
}

// of returns the highest number that an application had here, 0 for none.
func (n *issuedNumbers) of(id creel.ApplicationID) int64 {
	return max(n.uams.numbers[id], n.homes.numbers[id])
}

// lowOf returns the lowest number that a NodeManager issued for an application here, 0 for none.
func (n *issuedNumbers) lowOf(id creel.ApplicationID) int64 {
	return lower(n.uams.lows[id], n.homes.lows[id])
}

// lower returns the lower number; 0 is none.
func lower(a, b int64) int64 {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// put adds numbers, and drops the oldest ones above maxDisowned.
func (d *issuedTable) put(id creel.ApplicationID, number, low int64) {
	if d.numbers == nil {
		d.numbers = map[creel.ApplicationID]int64{}
	}
	if _, there := d.numbers[id]; !there {
		d.order = append(d.order, id)
	}
	d.numbers[id] = number
	if low != 0 {
		if d.lows == nil {
			d.lows = map[creel.ApplicationID]int64{}
		}
		d.lows[id] = low
	}
	for ; len(d.order) > maxDisowned; d.order = d.order[1:] {
		delete(d.numbers, d.order[0])
		delete(d.lows, d.order[0])
	}
}
