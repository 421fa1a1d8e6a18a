// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/creelrm/creel/internal/workload"
)

// Class is the length of a job's tasks.
type Class uint8

// Classes by the mean run time of a job's tasks.
const (
	Second Class = iota // below 3 s
	Five                // below 10 s
	Medium              // below 60 s
	Long
	classes
)

var classNames = [...]string{"1 s", "5 s", "10-60 s", "60 s and more"}

func (c Class) String() string { return classNames[c] }

func classOf(mean time.Duration) Class {
	switch {
	case mean < 3*time.Second:
		return Second
	case mean < 10*time.Second:
		return Five
	case mean < time.Minute:
		return Medium
	}
	return Long
}

// Job is a job of a day: stages of tasks, given by their run times. A stage begins when the one before has ended.
type Job struct {
	Submit time.Duration
	Stages [][]time.Duration
}

// totals returns the number of a job's tasks and the sum of their run times.
func (j *Job) totals() (n int, work time.Duration) {
	for _, s := range j.Stages {
		n += len(s)
		for _, d := range s {
			work += d
		}
	}
	return n, work
}

// Class is the class of the job's tasks.
func (j *Job) Class() Class {
	n, work := j.totals()
	return classOf(work / time.Duration(max(n, 1)))
}

// Day is the jobs of a run, in the order of their submissions, all before the span ends.
type Day struct {
	Jobs []Job
	Span time.Duration
}

// Load is the work of the day over the capacity of the slots in its span.
func (d *Day) Load(slots int) float64 {
	var all time.Duration
	for i := range d.Jobs {
		_, work := d.Jobs[i].totals()
		all += work
	}
	return all.Seconds() / (d.Span.Seconds() * float64(slots))
}

// Only returns the day without the jobs of other classes.
func (d *Day) Only(c Class) *Day {
	out := &Day{Span: d.Span}
	for _, j := range d.Jobs {
		if j.Class() == c {
			out.Jobs = append(out.Jobs, j)
		}
	}
	return out
}

// mix is one class of a synthetic day.
type mix struct {
	share       float64 // of the day's work
	least, most int     // tasks of a job
	short, long time.Duration
}

var mixes = [...]mix{
	{0.15, 10, 100, 800 * time.Millisecond, 1200 * time.Millisecond},
	{0.25, 10, 100, 4 * time.Second, 6 * time.Second},
	{0.60, 4, 40, 60 * time.Second, 180 * time.Second},
}

// Synthetic draws a day of tasks of about 1 s, about 5 s, and 60 to 180 s, whose work is a load of the slots. Jobs of
// each class arrive independently, at exponential gaps.
func Synthetic(seed uint64, slots int, load float64, span time.Duration) *Day {
	d := &Day{Span: span}
	for i, m := range mixes {
		rnd := rand.New(rand.NewPCG(seed, 0xda7+uint64(i)))
		work := (m.short + m.long).Seconds() / 2 * float64(m.least+m.most) / 2
		gap := work / (load * m.share * float64(slots))
		for at := rnd.ExpFloat64() * gap; at < span.Seconds(); at += rnd.ExpFloat64() * gap {
			tasks := make([]time.Duration, m.least+rnd.IntN(m.most-m.least+1))
			for k := range tasks {
				tasks[k] = (m.short + time.Duration(rnd.Int64N(int64(m.long-m.short)))).Round(time.Millisecond)
			}
			d.Jobs = append(d.Jobs, Job{time.Duration(at * float64(time.Second)), [][]time.Duration{tasks}})
		}
	}
	slices.SortStableFunc(d.Jobs, func(a, b Job) int { return int(a.Submit - b.Submit) })
	return d
}

// Recorded converts recorded jobs. A job's reduces begin when its maps have ended.
func Recorded(jobs []workload.Job, durations *workload.Durations, span time.Duration) *Day {
	d := &Day{Span: span}
	for _, j := range jobs {
		out := Job{Submit: j.Submit}
		for kind, n := range tasksOf(j) {
			if n == 0 {
				continue
			}
			tasks := make([]time.Duration, n)
			for i := range tasks {
				run := j.Duration(durations, workload.TaskKind(kind), i)
				tasks[i] = max(run.Round(time.Millisecond), time.Millisecond)
			}
			out.Stages = append(out.Stages, tasks)
		}
		if len(out.Stages) > 0 && out.Submit < span {
			d.Jobs = append(d.Jobs, out)
		}
	}
	return d
}

// tasksOf is the number of a job's tasks by their kind.
func tasksOf(j workload.Job) [2]int { return [2]int{workload.Map: j.Maps, workload.Reduce: j.Reduces} }
