// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"math"
	"testing"

	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Size-based weight is FairOrderingPolicy's getMagnitude and FairScheduler's getAppWeight:
// memory used over log1p(memory used and asked for)/log(2).
func TestSizeBasedWeightIsHadoopsFormula(t *testing.T) {
	for _, c := range []struct {
		used, pending int64
		weight        bool
		want          float64
	}{
		{0, 0, true, 0},
		{0, 4096, true, 0},
		{1024, 0, true, 1024 / (math.Log(1025) / math.Log(2))},
		{1024, 64512, true, 1024 / (math.Log(65537) / math.Log(2))},
		{1, 0, true, 1},
		{1024, 64512, false, 1024},
	} {
		q := &Queue{ordering: orderings[queues.FairShare], settings: settings{sizeWeight: c.weight}}
		a := &App{queue: q, used: amounts.Vec{Memory: c.used}, pending: amounts.Vec{Memory: c.pending}}
		if got := q.share(a); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d used, %d asked for, weight %v: %v, want %v", c.used, c.pending, c.weight, got, c.want)
		}
	}
	fifo := &Queue{ordering: orderings[queues.Fifo], settings: settings{sizeWeight: true}}
	if fifo.share(&App{queue: fifo}) != 0 {
		t.Error("an order by submission compares use")
	}
}
