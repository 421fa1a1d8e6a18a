// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Three members of two nodes have more waiting applications than they can start. They are drained by moving. Routers
// move waiting applications to free capacity, die between any two steps, move the same application twice at once and
// give moves up. Messages are lost, late and duplicated; members are killed and cut off. Each application runs in one
// home, once.
func TestWaitingApplicationsAreMovedUnderFaults(t *testing.T) {
	const seeds = 8
	moved, given := int64(0), int64(0)
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := faulty(t, 4000+seed)
			c.Nodes = 2
			c.Faults = &Faults{
				Loss: 0.004, Double: 0.004, Late: 0.01, Delay: 3 * time.Second, Stale: 0.005, Orphans: true, Step: 0.04,
				Subcluster: 4 * time.Minute, Router: 3 * time.Minute, Partition: 4 * time.Minute, Down: 30 * time.Second,
				Twice: 0.1, Moves: 2 * time.Minute, Again: 0.002,
			}
			r := run(t, c)
			if !r.Good() {
				t.Errorf("%d of %d ended, %d lost, %d doubled: %s",
					r.Finished+r.Failed, r.Submitted, r.Lost, r.Doubled, strings.Join(r.Broken, "\n"))
			}
			moved += r.Faults["waiting applications moved"]
			given += r.Faults["moves given up"]
		})
	}
	if moved < 5*seeds || given < seeds {
		t.Errorf("%d applications were moved in %d seeds, %d moves given up", moved, seeds, given)
	}
}
