// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/creelrm/creel/subcluster/rm/opportunistic"
)

// Result is the outcome of one way on one day.
type Result struct {
	Way        string
	Seed       uint64
	Span       time.Duration
	Tasks      int           // ended within the span
	Used       time.Duration // run time of successful tasks within the span
	Slots      int
	Classes    [classes]ClassResult
	Waits      []time.Duration // of long tasks, from ask to start, sorted
	Killed     int             // containers that ran
	KilledTime time.Duration   // that they had run for
	Dropped    int             // containers that waited, or were rejected
	Unfinished int             // jobs
	Broken     string          // the broken rule, "" for none
}

// ClassResult is the jobs of one class.
type ClassResult struct {
	Times []time.Duration // from a job's submission to the end of its last task, sorted
}

// ended counts a task that has ended.
func (r *Result) ended(w *world, t *task) {
	end := origin.Add(w.day.Span)
	if !w.now.After(end) {
		r.Tasks++
	}
	if t.started.Before(end) {
		r.Used += min(w.now.Sub(t.started), end.Sub(t.started))
	}
	if t.job.class == Long {
		r.Waits = append(r.Waits, t.started.Sub(t.asked))
	}
}

// PerHour is the number of tasks that ended in an hour of the span.
func (r *Result) PerHour() float64 { return float64(r.Tasks) / r.Span.Hours() }

// Utilisation is the part of the slots that ran successful tasks within the span.
func (r *Result) Utilisation() float64 {
	return r.Used.Seconds() / (r.Span.Seconds() * float64(r.Slots))
}

// Quantile returns a quantile of the completion times of a class; 0 for none.
func (r *Result) Quantile(c Class, q float64) time.Duration { return quantile(r.Classes[c].Times, q) }

// Wait returns the mean and a quantile of the long tasks' waits.
func (r *Result) Wait(q float64) (mean, at time.Duration) {
	for _, d := range r.Waits {
		mean += d
	}
	return mean / time.Duration(max(len(r.Waits), 1)), quantile(r.Waits, q)
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

var makers = map[string]func(*world) way{
	"heartbeat":    newHeartbeat,
	"push":         func(w *world) way { return newProduct(w, false, opportunistic.RandomStart) },
	"mercury":      newMercury,
	"yaq-c":        func(w *world) way { return newYaq(w, false) },
	"yaq-c-prompt": func(w *world) way { return newYaq(w, true) },
	"batch":        newBatch,
	"ours":         func(w *world) way { return newProduct(w, true, opportunistic.LeastFilled) },
	"ours-random":  func(w *world) way { return newProduct(w, true, opportunistic.RandomStart) },
	"alone":        func(w *world) way { return newProduct(w, true, opportunistic.LeastFilled) },
}

// Names are the known ways.
func Names() []string {
	return []string{"heartbeat", "push", "mercury", "yaq-c", "yaq-c-prompt", "batch", "ours", "ours-random", "alone"}
}

// Play plays a day by one way. The seed determines the random choices of the way.
func Play(name string, c Cluster, d *Day, seed uint64) (*Result, error) {
	begin := makers[name]
	if begin == nil {
		return nil, fmt.Errorf("no way is called %q; there are %v", name, Names())
	}
	if name == "alone" {
		d = d.Only(Long)
	}
	w := &world{Cluster: c, day: d, now: origin, rnd: rand.New(rand.NewPCG(seed, 0x3a75)), busy: make([]int, c.Nodes)}
	w.result = Result{Way: name, Seed: seed, Span: d.Span, Slots: c.Nodes * c.Slots}
	w.way = begin(w)
	w.play()
	for i := range w.result.Classes {
		slices.Sort(w.result.Classes[i].Times)
	}
	slices.Sort(w.result.Waits)
	return &w.result, nil
}
