// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// ContendedLoad describes a workload in which queues always want more than is available.
type ContendedLoad struct {
	Slots       int           // simultaneous containers when the cluster is full
	Lasts       time.Duration // the time over which jobs are submitted
	Wants       []Share       // each queue's share of all slots: 0.5 is half of them, all the time
	Floor, Vary time.Duration // a task runs for Floor and up to Vary more
	Users       int
	Seed        uint64
}

// contendedStart is the amount of work submitted at once at the start, so that the cluster is soon full.
const contendedStart = 2 * time.Second

// Jobs makes the jobs, in order of submission. Each job has about 1/32 of the slots as tasks, so that no single job
// fills a queue.
func (c *ContendedLoad) Jobs() []Job {
	var out []Job
	task := c.Floor + c.Vary/2
	mean := max(1, c.Slots/32)
	p := Plan{Users: c.Users, Seed: c.Seed}
	for _, q := range c.Wants {
		// Work is counted in slots times time. It is submitted as soon as the previous jobs would be done.
		work, each := 0.0, q.Weight*float64(c.Slots)
		for each > 0 {
			i := len(out)
			at := max(0, time.Duration(work/each)-contendedStart)
			if at >= c.Lasts {
				break
			}
			tasks := max(1, mean/2+int(p.unit(i, 'c')*float64(mean)))
			work += float64(tasks) * float64(task)
			out = append(out, Job{Index: i, Name: fmt.Sprintf("contended%d", i), Submit: at, Queue: q.Queue,
				User: p.user(i), Maps: tasks, Seed: c.Seed, Speed: 1, Floor: c.Floor, Vary: c.Vary})
		}
	}
	slices.SortStableFunc(out, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
	return out
}
