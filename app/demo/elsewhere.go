// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/shell"
	"github.com/creelrm/creel/internal/workload"
)

// Submission is the outcome of a day submitted to a federation that runs elsewhere.
type Submission struct {
	Jobs      int     `json:"jobs"`
	Accepted  int     `json:"accepted"`
	Refused   int     `json:"refused"`
	FirstText string  `json:"first_refusal,omitempty"`
	Wall      float64 `json:"wall_s"`
}

// SubmitElsewhere submits the jobs of a day, at their times, to a federation that runs elsewhere on simulated nodes,
// through its routers' web addresses. It prints its progress every ten seconds. That federation has no data about the
// day, so each job is submitted as by `creel run`. It requests one container per task, all at once, and each runs as
// long as the job's average task.
func SubmitElsewhere(ctx context.Context, day Day, routers []string, out io.Writer) (*Submission, error) {
	jobs, durations, err := day.Plan()
	if err != nil {
		return nil, err
	}
	sub := newSubmitter(routers, func(j workload.Job, _ int) (string, string) {
		return shell.EnvSpec, asCommand(j, durations).Encode()
	})
	defer sub.http.CloseIdleConnections()
	result := &Submission{Jobs: len(jobs)}
	var mu sync.Mutex
	began := time.Now()
	line := func() {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "%6.0fs %6d of %d submitted, %d refused\n", time.Since(began).Seconds(),
			result.Accepted, result.Jobs, result.Refused)
	}
	ended := make(chan struct{})
	var told sync.WaitGroup
	told.Go(func() {
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				line()
			}
		}
	})
	sub.submitAll(ctx, jobs, began, func(_ creel.ApplicationID, _ time.Time, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			result.Accepted++
		case ctx.Err() == nil:
			result.Refused++
			if result.FirstText == "" {
				result.FirstText = err.Error()
			}
		}
	})
	close(ended)
	told.Wait()
	line()
	result.Wall = math.Round(10*time.Since(began).Seconds()) / 10
	return result, nil
}

// asCommand returns the specification with which creel run would submit a job.
func asCommand(j workload.Job, d *workload.Durations) shell.Spec {
	var all time.Duration
	for i := range j.Maps {
		all += j.Duration(d, workload.Map, i)
	}
	for i := range j.Reduces {
		all += j.Duration(d, workload.Reduce, i)
	}
	tasks := max(1, j.Tasks())
	seconds := (all / time.Duration(tasks)).Seconds()
	return shell.Spec{
		Command:    []string{"sleep", strconv.FormatFloat(seconds, 'f', 3, 64)},
		Containers: min(tasks, shell.MaxContainers),
		MemoryMB:   1024,
		VCores:     1,
	}
}
