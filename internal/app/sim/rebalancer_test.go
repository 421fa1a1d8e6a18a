// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/workload"
)

// crowded is a federation in which two queues fill all members, while the third's
// applications all have their home in the first: what it is guaranteed in the other
// two is used by the others, unless somebody asks for it there.
func crowded(seed uint64) Config {
	c := Config{
		Seed:        seed,
		Durations:   &workload.Durations{Maps: []time.Duration{40 * time.Second, time.Minute, 80 * time.Second}},
		Subclusters: 3,
		Nodes:       20,
		NodeSize:    creel.NewResource(4096, 4),
		Queues:      demoQueues(),
		Policies: []Policy{{
			Queue:    "root.research",
			Document: `{"home":{"policy":"weighted","weights":{"sc-1":1}}}`,
		}},
		MemberHeartbeat: time.Second,
		Poll:            time.Second,
	}
	c.Durations.Reduces = c.Durations.Maps
	for minute := range 8 {
		for _, q := range []struct {
			queue creel.QueuePath
			jobs  int
			maps  int
		}{{"root.prod", 4, 40}, {"root.default", 3, 40}, {"root.research", 3, 30}} {
			for j := range q.jobs {
				i := len(c.Jobs)
				c.Jobs = append(c.Jobs, workload.Job{
					Index:  i,
					Name:   fmt.Sprintf("job%d", i),
					Queue:  q.queue,
					User:   fmt.Sprintf("user%d", i%4),
					Maps:   q.maps,
					Submit: time.Duration(minute)*time.Minute + time.Duration(j)*10*time.Second,
					Seed:   seed,
					Speed:  1,
				})
			}
		}
	}
	return c
}

// shortage is what queues lacked of their federation-wide entitlement.
func shortage(r *Result) (mean, p99 float64) {
	for _, s := range r.Short {
		mean += s / float64(len(r.Short))
	}
	return mean, Quantile(r.Short, 0.99)
}

// Where load is skewed, queues lack less of what the whole federation guarantees
// them when routers and proxies follow the rebalancer's plan.
func TestFollowingThePlanBringsQueuesNearerToTheirEntitlement(t *testing.T) {
	m0, m1 := 0.0, 0.0
	for seed := range uint64(2) { // of one alone the figure is chance: 0.4 to 0.9
		c := crowded(seed + 1)
		without := run(t, c)
		c.Rebalancer = true
		with := run(t, c)
		for _, r := range []*Result{without, with} {
			if len(r.Broken) > 0 || r.Finished != len(c.Jobs) {
				t.Fatalf("%d of %d finished, broken: %v", r.Finished, len(c.Jobs), r.Broken)
			}
		}
		w0, p0 := shortage(without)
		w1, p1 := shortage(with)
		t.Logf("short by %.2f%% on average and %.1f%% at p99 without the plan, by %.2f%% and %.1f%% with it",
			100*w0, 100*p0, 100*w1, 100*p1)
		m0, m1 = m0+w0/2, m1+w1/2
	}
	if m1 > 0.75*m0 {
		t.Errorf("queues lack %.2f%% of their entitlement with the plan and %.2f%% without", 100*m1, 100*m0)
	}
}
