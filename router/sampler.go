// SPDX-License-Identifier: Apache-2.0

package router

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/waitstats"
	"github.com/creelrm/creel/router/history"
	"github.com/creelrm/creel/subcluster"
)

// Waiting has the applications that wait, by the federation's list of applications.
type Waiting struct {
	All     int64
	Members map[creel.SubclusterID]int64 // by home
	Queues  map[creel.QueuePath]int64    // also of parents
}

// Sampler makes the samples of a history from a router's observations. Like Memory it is pure and has no lock.
//
// Use, entitlement and waiting applications are read once in each step. Grants and their waiting times are the
// differences of members' counts; members that do not count waiting times report a rate of grants. A member that is
// lost has no figures, and is in no sum. A frozen view has none at all.
type Sampler struct {
	step        int64 // under way
	begun       bool
	last        time.Time // of the last observation
	counted     time.Time // of the last one with a view that was not frozen
	submissions int64     // count at the start of the step
	read        bool      // the gauges of the step were read
	samples     map[history.Subject]*stepSums
	waited      map[creel.SubclusterID]*subcluster.Load // the members' counts at the last observation
}

// stepSums has the figures of one subject in the step under way.
type stepSums struct {
	values history.Values
	waits  waitstats.Histogram
}

// add adds to a count, which is known from then on.
func (s *stepSums) add(m history.Measure, n float64) {
	if !history.Known(s.values[m]) {
		s.values[m] = 0
	}
	s.values[m] += float32(n)
}

// Observe adds an observation, and records the steps of h that are complete. It is called about once a second.
func (s *Sampler) Observe(h *history.History, o Observation) {
	step := h.StepAt(o.Now)
	if !s.begun {
		s.begun, s.step, s.submissions = true, step, o.Submissions
	}
	if step > s.step {
		s.of(history.Subject{}).add(history.Submissions, float64(o.Submissions-s.submissions))
		h.Record(s.step, s.complete())
		s.step, s.submissions, s.read = step, o.Submissions, false
	}
	if o.View != nil && o.View.Freeze == nil {
		if o.Now.Sub(s.counted) > history.Step {
			s.waited = nil // after a pause or a freeze: the steps of these grants are not known
		}
		s.countGrants(o.View, min(o.Now.Sub(s.last), history.Step))
		s.counted = o.Now
		if !s.read {
			s.read = true
			s.readUse(o.View)
			s.readWaiting(o.View, o.Waiting)
		}
	}
	s.last = o.Now
}

// of returns the sums of a subject.
func (s *Sampler) of(subject history.Subject) *stepSums {
	if s.samples == nil {
		s.samples = map[history.Subject]*stepSums{}
	}
	x := s.samples[subject]
	if x == nil {
		x = &stepSums{values: history.Unknown()}
		s.samples[subject] = x
	}
	return x
}

func ofMember(id creel.SubclusterID) history.Subject {
	return history.Subject{Kind: history.Member, Name: string(id)}
}

func ofQueue(path creel.QueuePath) history.Subject {
	return history.Subject{Kind: history.Queue, Name: string(path)}
}

// complete returns the samples of the step, and begins the next one.
func (s *Sampler) complete() (out []history.Sample) {
	for subject, x := range s.samples {
		for m, q := range map[history.Measure]float64{history.GrantP50: 0.5, history.GrantP99: 0.99} {
			if d, ok := x.waits.Quantile(q); ok {
				x.values[m] = float32(d.Seconds())
			}
		}
		out = append(out, history.Sample{Subject: subject, Values: x.values})
	}
	slices.SortFunc(out, func(a, b history.Sample) int { return history.Compare(a.Subject, b.Subject) })
	s.samples = nil
	return out
}

// countGrants adds the grants since the last observation, which was a time ago. It skips the counts of a member that
// is observed for the first time or again after a gap, or whose counts fell since it restarted: the times of its grants
// are unknown.
func (s *Sampler) countGrants(view *subcluster.View, ago time.Duration) {
	now := make(map[creel.SubclusterID]*subcluster.Load, len(view.Members))
	fed := s.of(history.Subject{})
	for i := range view.Members {
		m := &view.Members[i]
		if !Counted(m) {
			continue
		}
		member, counts := s.of(ofMember(m.ID)), m.Load.Waits
		if len(counts) != len(fed.waits.Counts) {
			granted := float64(max(m.Load.Metrics.ContainersPerSecond, 0)) * ago.Seconds()
			member.add(history.Grants, granted)
			fed.add(history.Grants, granted)
			continue
		}
		now[m.ID] = &m.Load
		before := s.waited[m.ID]
		if before == nil || fewer(counts, before.Waits) {
			continue
		}
		addGrants(counts, before.Waits, member, fed)
		s.countQueues(&m.Load, before)
	}
	s.waited = now
}

// countQueues adds a member's grants since an earlier report, each to its queue and to the queues above.
func (s *Sampler) countQueues(load, before *subcluster.Load) {
	for i := range load.Queues {
		if q := &load.Queues[i]; q.Label == "" {
			s.of(ofQueue(q.Queue)).add(history.Grants, 0)
		}
	}
	was := make(map[creel.QueuePath][]uint64, len(before.QueueWaits))
	for _, w := range before.QueueWaits {
		was[w.Queue] = w.Counts
	}
	for _, w := range load.QueueWaits {
		if fewer(w.Counts, was[w.Queue]) {
			continue // the queue was removed, and made again
		}
		var all []*stepSums
		for q := w.Queue; q != ""; q = q.Parent() {
			all = append(all, s.of(ofQueue(q)))
		}
		addGrants(w.Counts, was[w.Queue], all...)
	}
}

// addGrants adds the grants between two counts to sums.
func addGrants(counts, before []uint64, sums ...*stepSums) {
	for i, n := range counts[:min(len(counts), len(waitstats.Bounds)+1)] {
		if i < len(before) {
			n -= before[i]
		}
		for _, of := range sums {
			of.waits.Counts[i] += n
			of.add(history.Grants, float64(n))
		}
	}
}

// fewer reports whether the count of any bucket fell. Buckets that are not listed are empty.
func fewer(counts, before []uint64) bool {
	for i, n := range before {
		if n > 0 && (i >= len(counts) || counts[i] < n) {
			return true
		}
	}
	return false
}

// readUse reads the shares in use, and the entitlements.
func (s *Sampler) readUse(view *subcluster.View) {
	var used, leaves creel.Resource
	total, cores := counted(view)
	for i := range view.Members {
		m := &view.Members[i]
		if !Counted(m) || m.Load.Metrics.Total().Equal(creel.Resource{}) {
			continue
		}
		all, compares, own := m.Load.Metrics.Total(), m.Load.ComparesCores(), entitledLeaves(&m.Load)
		used, leaves = used.Add(m.Load.Metrics.Allocated()), leaves.Add(own)
		member := &s.of(ofMember(m.ID)).values
		member[history.Use] = float32(dominant(m.Load.Metrics.Allocated(), all, compares))
		if len(m.Load.Queues) > 0 { // Hadoop's ResourceManagers do not report queues
			member[history.Entitlement] = float32(dominant(own, all, compares))
		}
	}
	if total.Equal(creel.Resource{}) {
		return // no member is counted, or none has nodes
	}
	fed := &s.of(history.Subject{}).values
	fed[history.Use] = float32(dominant(used, total, cores))
	fed[history.Entitlement] = float32(dominant(leaves, total, cores))
	for _, q := range queueShares(view) {
		queue := &s.of(ofQueue(q.queue)).values
		queue[history.Use], queue[history.Entitlement] = float32(q.used), float32(q.guaranteed)
	}
}

// entitledLeaves sums the entitlements of a member's leaves on the nodes without a label.
func entitledLeaves(load *subcluster.Load) (sum creel.Resource) {
	parents := map[creel.QueuePath]bool{}
	for i := range load.Queues {
		parents[load.Queues[i].Queue.Parent()] = true
	}
	for i := range load.Queues {
		if q := &load.Queues[i]; q.Label == "" && !parents[q.Queue] {
			sum = sum.Add(entitled(q))
		}
	}
	return sum
}

// readWaiting reads the waiting applications: from the list of applications, or else from the members' reports, in
// which an application with an AM does not wait.
func (s *Sampler) readWaiting(view *subcluster.View, list *Waiting) {
	w := list
	if w == nil {
		w = reported(view)
	}
	fed := false
	for i := range view.Members {
		m := &view.Members[i]
		if !Counted(m) {
			continue
		}
		fed = true
		s.of(ofMember(m.ID)).values[history.Waiting] = float32(w.Members[m.ID])
		for k := range m.Load.Queues {
			if q := &m.Load.Queues[k]; q.Label == "" {
				s.of(ofQueue(q.Queue)).values[history.Waiting] = float32(w.Queues[q.Queue])
			}
		}
	}
	if fed {
		s.of(history.Subject{}).values[history.Waiting] = float32(w.All)
	}
}

// reported sums the members' reports of waiting applications, each at its home.
func reported(view *subcluster.View) *Waiting {
	w := &Waiting{Members: map[creel.SubclusterID]int64{}, Queues: map[creel.QueuePath]int64{}}
	for i := range view.Members {
		m := &view.Members[i]
		if !Counted(m) {
			continue
		}
		pending, _ := m.Load.UAMs.TakenFrom(m.Load.Metrics.AppsPending, m.Load.Metrics.AppsRunning)
		pending = max(pending, 0)
		w.Members[m.ID] = pending
		w.All = saturate(w.All, pending)
		for k := range m.Load.Queues {
			if q := &m.Load.Queues[k]; q.Label == "" {
				n, _ := q.UAMs.TakenFrom(q.AppsPending, q.AppsRunning)
				w.Queues[q.Queue] = saturate(w.Queues[q.Queue], max(n, 0))
			}
		}
	}
	return w
}
