// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
)

// At each moment each queue has been handed as much work as it wants until then, and not much more.
func TestContendedQueuesKeepTheirDemand(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		c := ContendedLoad{
			Slots: rapid.IntRange(1, 5000).Draw(t, "slots"),
			Lasts: time.Duration(rapid.IntRange(1, 60).Draw(t, "seconds")) * time.Second,
			Wants: []Share{{"root.a", 0.9}, {"root.b", rapid.Float64Range(0.1, 2).Draw(t, "wants")}, {"root.none", 0}},
			Floor: 2 * time.Second,
			Vary:  3 * time.Second,
			Users: 3,
			Seed:  rapid.Uint64().Draw(t, "seed"),
		}
		jobs := c.Jobs()
		if !reflect.DeepEqual(jobs, c.Jobs()) {
			t.Fatal("the same seed gives other jobs")
		}
		work, before := map[creel.QueuePath]float64{}, time.Duration(0)
		enough := func(until time.Duration) { // work handed in before that time
			for _, q := range c.Wants {
				wants := q.Weight * float64(c.Slots)
				mean := (c.Floor + c.Vary/2).Seconds()
				most := wants*(until+contendedStart).Seconds() + mean*float64(1+2*max(1, c.Slots/32))
				if least := wants * until.Seconds(); work[q.Queue] < least-1e-6*least || work[q.Queue] > most*(1+1e-6) {
					t.Fatalf("until %v %s is handed %.1f s of work, wanted %.1f to %.1f", until, q.Queue, work[q.Queue], least, most)
				}
			}
		}
		for _, j := range jobs {
			if j.Submit < before || j.Submit >= c.Lasts || j.Tasks() < 1 {
				t.Fatalf("job at %v after one at %v: %+v", j.Submit, before, j)
			}
			if j.Submit > before {
				enough(before)
			}
			before = j.Submit
			work[j.Queue] += float64(j.Tasks()) * (c.Floor + c.Vary/2).Seconds()
			if d := j.Duration(nil, Map, 0); d < c.Floor || d >= c.Floor+c.Vary {
				t.Fatalf("a task lasts %v", d)
			}
		}
		enough(before)
	})
}
