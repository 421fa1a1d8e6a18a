// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/creelrm/creel"
)

// QueueResult is a queue's use of the whole federation.
type QueueResult struct {
	Queue        creel.QueuePath
	Applications int
	Refused      int             // of them, rejected by policies or the queue
	Failed       int             // of them
	Containers   int64           // reported to its AMs
	Waits        []time.Duration // from ask to grant, sorted
	Starts       []time.Duration // from a submission's due time to the start of its first AM, sorted
	Reached      float64         // members with containers of an application, average over those with any
	Preempted    int64           // preempted containers
	Lost         creel.Resource  // their resources times the seconds of their runs
	Samples      []Sample        // one per entitlementEvery, while work remained
}

// Sample is a queue's state at a moment, as fractions of the federation (dominant share).
type Sample struct {
	Used     float64
	Entitled float64 // the smaller of guarantee and demand
}

// grantRecord is one grant that was reported to an AM.
type grantRecord struct {
	wait        time.Duration
	job, member int32
}

// sample records the current use of a queue.
func (u *usage) sample(q creel.QueuePath, s Sample) {
	of := u.samples[q]
	// A queue created later had zero use before.
	u.samples[q] = append(of, append(make([]Sample, u.sampled-len(of)), s)...)
}

// sampleMembers ends a round of samples.
func (u *usage) sampleMembers(members []*cluster) {
	u.sampled++
	for i, c := range members {
		used := 0.0
		if s := c.m.Cluster(); c.up && !s.Total.IsZero() {
			used = c.counted(s.Used).Dominant(s.Total)
		}
		u.filled[i] = append(u.filled[i], used)
	}
}

// result returns the outcome of a run that has ended.
func (w *World) result() *Result {
	a := &w.audit
	r := &Result{
		Hash:    w.hash,
		Events:  w.count,
		Fullest: a.fullest, Invariants: a.tally,
		Virtual:    w.now.Sub(origin),
		Submitted:  len(w.cfg.Jobs),
		Granted:    a.granted,
		Checked:    a.checked,
		Broken:     a.breaches,
		Faults:     a.faults,
		Unreceived: a.unreceived(),
		Submits:    a.submits,
		Short:      a.short,

		Opportunistic: a.w.opportune.Counts(),
		Overcommit:    a.w.opportune.Lends().Counts(),
	}
	if w.planner != nil {
		r.Reported = w.planner.reported()
	}
	slices.Sort(r.Submits)
	slices.Sort(r.Short)
	ended := 0
	for _, id := range a.ids {
		switch app := a.apps[id]; {
		case app.played > 1 && !a.forgetful():
			r.Doubled++
			ended++
		case app.refused:
			r.Refused++
			ended++
		case app.ended.IsZero():
		case app.state == creel.AppFinished:
			r.Finished++
			ended++
		default:
			r.Failed++
			ended++
		}
	}
	r.Lost = r.Submitted - ended
	for _, c := range w.clusters {
		s := SubclusterResult{ID: c.id, Nodes: len(c.nodes), Containers: c.m.Cluster().Granted,
			Preempted: c.m.Cluster().Preempted}
		for v := range c.m.Apps {
			s.Records++
			if !v.Unmanaged {
				s.Applications++
			}
		}
		r.Subclusters = append(r.Subclusters, s)
	}
	w.figures(r)
	return r
}

// figures fills in the use of each queue and each member.
func (w *World) figures(r *Result) {
	a := &w.audit
	queues := map[creel.QueuePath]*QueueResult{}
	of := func(q creel.QueuePath) *QueueResult {
		if queues[q] == nil {
			queues[q] = &QueueResult{Queue: q, Samples: a.samples[q]}
		}
		return queues[q]
	}
	for _, g := range a.grants {
		r.Waits = append(r.Waits, g.wait)
		q := of(w.cfg.Jobs[g.job].Queue)
		q.Waits = append(q.Waits, g.wait)
		m := &r.Subclusters[g.member]
		m.Waits = append(m.Waits, g.wait)
	}
	spanned := map[creel.QueuePath]int{}
	for _, id := range a.ids {
		app := a.apps[id]
		job := &w.cfg.Jobs[app.job]
		q := of(job.Queue)
		q.Applications++
		switch {
		case app.refused:
			q.Refused++
		case !app.ended.IsZero() && app.state != creel.AppFinished:
			q.Failed++
		}
		if !app.runs.IsZero() {
			q.Starts = append(q.Starts, app.runs.Sub(origin.Add(warmUp+job.Submit)))
		}
		if n := len(app.told); n > 0 {
			spanned[job.Queue]++
			q.Reached += float64(n)
		}
	}
	for _, c := range w.clusters {
		for v := range c.m.Queues {
			if !v.Leaf || v.ContainersPreempted == 0 && len(a.samples[v.Path]) == 0 {
				continue
			}
			q := of(v.Path)
			q.Preempted += v.ContainersPreempted
			q.Lost = q.Lost.Add(v.PreemptedSeconds)
		}
	}
	for path, q := range queues {
		q.Containers = int64(len(q.Waits))
		q.Reached /= max(1, float64(spanned[path]))
		slices.Sort(q.Waits)
		slices.Sort(q.Starts)
		q.Samples = append(q.Samples, make([]Sample, max(0, a.sampled-len(q.Samples)))...)
		r.Queues = append(r.Queues, *q)
	}
	slices.SortFunc(r.Queues, func(x, y QueueResult) int { return cmp.Compare(x.Queue, y.Queue) })
	slices.Sort(r.Waits)
	for i := range r.Subclusters {
		slices.Sort(r.Subclusters[i].Waits)
		r.Subclusters[i].Used = a.filled[i]
	}
}
