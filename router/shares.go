// SPDX-License-Identifier: Apache-2.0

package router

import (
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// queueShare is a queue over all members, on the nodes without a label.
type queueShare struct {
	queue                     creel.QueuePath
	used, guaranteed, pending float64
	parent                    bool
}

// leafShares returns the leaves of queueShares.
func leafShares(view *subcluster.View) []queueShare {
	return slices.DeleteFunc(queueShares(view), func(s queueShare) bool { return s.parent })
}

// dominant returns the dominant share of a resource in a total, from 0 to 1. A scheduler that compares memory alone may
// grant more cores than exist, so its cores do not count.
func dominant(r, total creel.Resource, cores bool) float64 {
	if !cores {
		r.VCores, total.VCores = 0, 0
	}
	return max(min(r.Dominant(total), 1), 0)
}

// entitled is the amount that a queue is entitled to in a member: by the plan where it is in force.
func entitled(q *subcluster.QueueLoad) creel.Resource {
	if q.Planned != nil {
		return *q.Planned
	}
	return q.Capacity
}

// counted returns the total of all counted members, and whether all of them compare cores.
func counted(view *subcluster.View) (total creel.Resource, cores bool) {
	cores = true
	for i := range view.Members {
		if m := &view.Members[i]; Counted(m) {
			total = total.Add(m.Load.Metrics.Total())
			cores = cores && m.Load.ComparesCores()
		}
	}
	return total, cores
}

// queueShares sums the queues of all counted members, as parts of these members' total, in order.
func queueShares(view *subcluster.View) []queueShare {
	type sums struct{ used, guaranteed, pending creel.Resource }
	by, parents := map[creel.QueuePath]*sums{}, map[creel.QueuePath]bool{}
	total, cores := counted(view)
	for i := range view.Members {
		m := &view.Members[i]
		if !Counted(m) {
			continue
		}
		for k := range m.Load.Queues {
			q := &m.Load.Queues[k]
			if q.Label != "" {
				continue
			}
			parents[q.Queue.Parent()] = true
			s := by[q.Queue]
			if s == nil {
				s = &sums{}
				by[q.Queue] = s
			}
			s.used, s.pending = s.used.Add(q.Used), s.pending.Add(q.Pending)
			s.guaranteed = s.guaranteed.Add(entitled(q))
		}
	}
	share := func(r creel.Resource) float64 { return dominant(r, total, cores) }
	out := make([]queueShare, 0, len(by))
	for path, s := range by {
		out = append(out, queueShare{path, share(s.used), share(s.guaranteed), share(s.pending), parents[path]})
	}
	slices.SortFunc(out, func(a, b queueShare) int { return strings.Compare(string(a.queue), string(b.queue)) })
	return out
}
