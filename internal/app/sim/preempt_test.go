// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// A crowded morning, with faults, in which queues below their guarantee take from
// others: every application ends as it must, and is audited as always.
func TestACrowdedMorningWithPreemption(t *testing.T) {
	all := int64(0)
	for _, seed := range []uint64{1, 2, 5} {
		c := faulty(t, seed)
		c.NodeSize = creel.NewResource(2048, 4)
		c.Queues.Preemption = queues.Preemption{
			On: true, Interval: time.Second, Wait: 3 * time.Second, PerRound: 0.5, IgnoredOver: 0.1, Termination: 1,
			IntraQueue: true, IntraFrom: 0.5, IntraMost: 0.2,
		}
		r := run(t, c)
		if !r.Good() {
			t.Errorf("seed %d: %d of %d finished: %v", seed, r.Finished, r.Submitted, r.Broken)
		}
		lost := int64(0)
		for _, s := range r.Subclusters {
			lost += s.Preempted
		}
		t.Logf("seed %d: %d containers were taken back; grants took %v at p99", seed, lost, Quantile(r.Waits, 0.99))
		all += lost
	}
	if all < 10 {
		t.Errorf("%d containers were taken back on three mornings: they are not crowded", all)
	}
}
