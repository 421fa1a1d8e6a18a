// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Shapes are artificial days, each extreme in one way, so that tests cover more than the recorded days.
func Shapes() []string { return []string{"bursts", "tiny", "giant", "tail", "services"} }

// Made makes the jobs of a shape, by name, over the planned time, in order of submission. It returns none for a name
// outside Shapes.
//
//	bursts    nothing for two minutes, then 12 jobs within a second
//	tiny      a job of one map every two seconds
//	giant     a job of six tasks a machine every four minutes, and of one a minute
//	tail      a job every 15 s, its size by Pareto's law: most of one task, few of thousands
//	services  a job every 75 s that runs 3 to 10 tasks for 8 to 20 minutes, among tiny ones
func (p Plan) Made(shape string) ([]Job, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if !slices.Contains(Shapes(), shape) {
		return nil, fmt.Errorf("no made day is called %q; there are %v", shape, Shapes())
	}
	var out []Job
	most := p.MaxTasks
	if most <= 0 {
		most = math.MaxInt32
	}
	add := func(at time.Duration, maps, reduces int, floor time.Duration) {
		i := len(out)
		out = append(out, Job{
			Index:   i,
			Name:    fmt.Sprintf("%s%d", shape, i),
			Submit:  time.Duration(float64(at) / p.Speed),
			Queue:   p.deal(i),
			User:    p.user(i),
			Maps:    max(1, min(maps, most)),
			Reduces: min(reduces, most),
			Seed:    p.Seed,
			Speed:   p.Speed,
			Floor:   max(p.Floor, time.Duration(float64(floor)/p.Speed)),
		})
	}
	// pick draws a number from 0 to n-1 for the next job.
	pick := func(n int, purpose uint64) int { return int(p.unit(len(out), purpose) * float64(n)) }
	span := p.To - p.From
	for at := time.Duration(0); at < span; at += time.Second {
		every := func(d time.Duration) bool { return at%d == 0 }
		switch shape {
		case "bursts":
			for range 12 {
				if every(2 * time.Minute) {
					add(at+time.Duration(pick(1000, 'b'))*time.Millisecond, 1+pick(8, 'm'), pick(2, 'r'), 0)
				}
			}
		case "tiny":
			if every(2 * time.Second) {
				add(at, 1, 0, 0)
			}
		case "giant":
			if every(4 * time.Minute) {
				add(at, 6*p.Machines, p.Machines/4, 0)
			} else if every(time.Minute) {
				add(at, 1, 1, 0)
			}
		case "tail":
			if every(15 * time.Second) {
				size := math.Pow(1-p.unit(len(out), 't'), -1/1.1) // Pareto's law, of exponent 1.1
				add(at, int(min(size, float64(8*p.Machines))), int(min(size/4, float64(p.Machines))), 0)
			}
		case "services":
			if every(75 * time.Second) {
				add(at, 3+pick(8, 'm'), 0, 8*time.Minute+time.Duration(pick(12*60, 'd'))*time.Second)
			} else if every(10 * time.Second) {
				add(at, 1, 1, 0)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Job) int { return int(a.Submit - b.Submit) })
	return out, nil
}
