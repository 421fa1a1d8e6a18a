// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/workload"
	"github.com/creelrm/creel/internal/workload/traces"
)

// Day describes the replayed part of a recorded day, and the nodes.
type Day struct {
	Trace       string  // a recorded day's built-in name, one of workload.Shapes, or a file with SWIM's columns
	Hours       string  // FROM-TO
	Speed       float64 // compression of time; Plan replaces 0 by a value for about two minutes
	Subclusters int
	Nodes       int // of each subcluster
	Machines    int // number for scaling the recorded bytes [all nodes]
	Seed        uint64
	Steady      time.Duration // time after the day in which queues want more than exists; 0: none
}

// demoSeconds is the default duration of a demo's submissions.
const demoSeconds = 100

// steadyLasts is the run time of tasks in the steady part.
const steadyLasts = 30 * time.Second

// Plan makes the jobs to submit.
func (d *Day) Plan() ([]workload.Job, *workload.Durations, error) {
	from, to, ok := strings.Cut(d.Hours, "-")
	a, err1 := strconv.ParseFloat(from, 64)
	b, err2 := strconv.ParseFloat(to, 64)
	if !ok || err1 != nil || err2 != nil || a < 0 || b <= a {
		return nil, nil, settings.Invalid(fmt.Errorf("--hours %q: expected FROM-TO, such as 9-17", d.Hours))
	}
	if d.Subclusters < 1 || d.Subclusters > 100 || d.Nodes < 1 || d.Nodes > 20_000 {
		return nil, nil, settings.Invalid(fmt.Errorf("give 1 to 100 subclusters of 1 to 20,000 nodes"))
	}
	if d.Speed == 0 {
		d.Speed = (b - a) * 3600 / demoSeconds
	}
	durations, err := readTrace(traces.Yahoo, workload.ReadAttempts)
	if err != nil {
		return nil, nil, err
	}
	p := workload.Plan{
		From:      time.Duration(a * float64(time.Hour)),
		To:        time.Duration(b * float64(time.Hour)),
		Speed:     d.Speed,
		Machines:  cmp.Or(d.Machines, d.Subclusters*d.Nodes),
		BlockSize: 64 << 20,
		MaxTasks:  4000,
		Users:     12,
		Seed:      d.Seed,
		Floor:     5 * time.Millisecond,
		// Deliberately skewed against the guarantees (prod 50, research 30, default 20).
		Queues: []workload.Share{
			{Queue: "root.research", Weight: 55},
			{Queue: "root.prod", Weight: 25},
			{Queue: "root.default", Weight: 20},
		},
	}
	var jobs []workload.Job
	if slices.Contains(workload.Shapes(), d.Trace) {
		jobs, err = p.Made(d.Trace)
	} else if day, unread := readTrace(d.Trace, workload.ReadSWIM); unread != nil {
		err = unread
	} else {
		jobs, err = p.Jobs(day)
	}
	if err != nil {
		return nil, nil, settings.Invalid(err)
	}
	if len(jobs) == 0 {
		return nil, nil, settings.Invalid(fmt.Errorf("no job of %s was submitted between %s", d.Trace, d.Hours))
	}
	return jobs, durations, nil
}

// steady makes the jobs of the steady part. Tasks last seconds, so a missing container that was requested a second
// ago is late. There are always more tasks than free resources. Each queue wants more than its guarantee (prod 50,
// research 30, default 20). Research, whose applications are mostly in the first subclusters, exceeds it least and
// stays below its maximum.
func (d *Day) steady() []workload.Job {
	c := workload.ContendedLoad{
		Slots: d.Subclusters * d.Nodes * int(nodeSize.VCores),
		Lasts: d.Steady,
		Wants: []workload.Share{
			{Queue: "root.prod", Weight: 0.7},
			{Queue: "root.research", Weight: 0.4},
			{Queue: "root.default", Weight: 0.4},
		},
		Floor: 2 * time.Second,
		Vary:  3 * time.Second,
		Users: 12,
		Seed:  d.Seed,
	}
	return c.Jobs()
}

func readTrace[T any](name string, read func(io.Reader) (T, error)) (T, error) {
	var none T
	r, err := traces.Open(name)
	if err != nil {
		return none, err
	}
	defer r.Close()
	return read(r)
}
