// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// An opportunistic container needs no free capacity but a place in a node's queue. So headroom does not show where it
// starts soon. Members report the lengths of the queues on their least loaded nodes, among which they, or a proxy with
// their list, choose. If all these queues are long at home, containers go to members with shorter ones.

// toShortQueues assigns up to n opportunistic containers to members with short queues, if home has none: first to those
// where the application is, then to new ones. A new member is drawn by its places, because all proxies read the same
// report. Containers with known places follow these.
func (d *splitDecision) toShortQueues(n int64, rnd *rand.Rand) (placed int64, text string) {
	if places, known := d.queuePlaces(d.home); !known || places > 0 || d.atKnownPlaces() {
		return 0, ""
	}
	rooms := make([]int64, len(d.reach))
	var inside, fresh []int
	for _, i := range d.open {
		places, _ := d.queuePlaces(i)
		if rooms[i] = places - d.reach[i].Pending - d.newHere(i); i == d.home || rooms[i] <= 0 {
			continue
		}
		if d.fresh(i) {
			fresh = append(fresh, i)
		} else {
			inside = append(inside, i)
		}
	}
	var at []string
	give := func(i int) {
		k := min(n-placed, rooms[i])
		if k <= 0 || !d.mayHave(i, k) {
			return
		}
		d.shares[i] += k
		placed += k
		at = append(at, fmt.Sprintf("%d at %s", k, d.reach[i].Member))
	}
	from := d.from()
	slices.SortStableFunc(inside, func(x, y int) int {
		return cmp.Or(cmp.Compare(btoi(y == from), btoi(x == from)), cmp.Compare(rooms[y], rooms[x]))
	})
	for _, i := range inside {
		give(i)
	}
	for placed < n && len(fresh) > 0 {
		k := drawn(fresh, func(i int) float64 { return float64(rooms[i]) }, rnd.Float64())
		give(fresh[k])
		fresh = slices.Delete(fresh, k, k+1)
	}
	return placed, fmt.Sprintf("in short queues: %s; at home all have at least %d containers",
		strings.Join(at, ", "), d.group.LongQueue)
}

// queuePlaces is the number of opportunistic containers that a member's reported queues take until all are long. It is
// unknown without a report, and for asks to which queues do not matter or which name a label.
func (d *splitDecision) queuePlaces(i int) (places int64, known bool) {
	m, ok := d.view.Member(d.reach[i].Member)
	if !ok || d.group.LongQueue <= 0 || d.label(i) != "" || m.Load.NodeQueues == nil {
		return 0, false
	}
	for _, length := range m.Load.NodeQueues {
		places += int64(max(d.group.LongQueue-max(length, 0), 0))
	}
	return places, true
}

// atKnownPlaces reports whether a member has hosts or racks that the asks name.
func (d *splitDecision) atKnownPlaces() bool {
	return slices.ContainsFunc(d.open, func(i int) bool { return d.localAt(i) > 0 })
}
