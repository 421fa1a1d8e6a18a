// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
)

// A node can estimate how long a further opportunistic container would wait. Hadoop's nodes do not: its message has the
// field, and its ResourceManager can sort nodes by it. The estimate starts the waiting containers in their order, while
// the running ones end as those of the same application did. It does not count lent resources.

// unknownRun is the expected run time before any container of the node has ended.
const unknownRun = 10 * time.Second

// tasks are the mean run times of the node's containers that exited by themselves.
type tasks struct {
	all  time.Duration // 0 before the first end
	each map[creel.ApplicationID]time.Duration
}

func (t *tasks) ran(app creel.ApplicationID, d time.Duration) {
	if t.each == nil {
		t.each = map[creel.ApplicationID]time.Duration{}
	}
	t.each[app] = average(t.each[app], d)
	t.all = average(t.all, d)
}

// expected is the run time of one more container of an application.
func (t *tasks) expected(app creel.ApplicationID) time.Duration {
	switch mean := t.each[app]; {
	case mean > 0:
		return mean
	case t.all > 0:
		return t.all
	}
	return unknownRun
}

// remaining is the expected rest of a running container. One that outlives its mean is expected to run for another
// quarter of its time.
func (t *tasks) remaining(x *Item, now time.Time) time.Duration {
	if x.stopping {
		return 0
	}
	ran := max(now.Sub(x.Started), 0)
	if rest := t.expected(x.ID.Attempt.Application) - ran; rest > 0 {
		return rest
	}
	return ran / 4
}

// Forget drops the run times of an application that has ended.
func (s *Scheduler) Forget(app creel.ApplicationID) { delete(s.tasks.each, app) }

// Wait estimates how long a further opportunistic container of the mean size waits. It is false if the node does not
// estimate.
func (s *Scheduler) Wait(now time.Time) (wait time.Duration, ok bool) {
	if !s.cfg.Estimates {
		return 0, false
	}
	f := forecast{free: s.total.Sub(s.used)}
	for _, x := range s.running {
		f.ends = append(f.ends, end{s.tasks.remaining(x, now), x.Size})
	}
	slices.SortFunc(f.ends, end.compare)
	for _, list := range [][]*Item{s.guaranteed, s.opportunistic} {
		for _, x := range list {
			rest := s.tasks.expected(x.ID.Attempt.Application)
			if x.paused {
				rest = s.tasks.remaining(x, x.Since)
			}
			f.start(x.Size, rest)
		}
	}
	f.start(s.meanSize(), 0)
	return f.now, true
}

// meanSize is the mean size of the node's containers.
func (s *Scheduler) meanSize() (mean creel.Resource) {
	n := int64(0)
	for _, list := range [][]*Item{s.running, s.guaranteed, s.opportunistic} {
		for _, x := range list {
			mean = mean.Add(creel.NewResource(x.Size.MemoryMB, x.Size.VCores))
			n++
		}
	}
	n = max(n, 1)
	return creel.NewResource(mean.MemoryMB/n, mean.VCores/n)
}

// forecast is the future of a node.
type forecast struct {
	now  time.Duration // from the present
	free creel.Resource
	ends []end // of running containers, the next first
}

type end struct {
	at   time.Duration
	size creel.Resource
}

func (e end) compare(other end) int { return int(min(max(e.at-other.at, -1), 1)) }

// start waits for the resources of a container, and runs it. A container that does not fit into the empty node is left
// out.
func (f *forecast) start(size creel.Resource, run time.Duration) {
	after, free, n := f.now, f.free, 0
	for ; !size.Fits(free); n++ {
		if n == len(f.ends) {
			return
		}
		after, free = max(after, f.ends[n].at), free.Add(f.ends[n].size)
	}
	f.now, f.free, f.ends = after, free.Sub(size), f.ends[n:]
	e := end{after + run, size}
	at, _ := slices.BinarySearchFunc(f.ends, e, end.compare)
	f.ends = slices.Insert(f.ends, at, e)
}
