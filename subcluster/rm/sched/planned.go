// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// Capacities are the queues' capacities here by the federation's plan. They replace the configured guarantees until
// the plan's lease ends. The order between queues and preemption use them. Limits of users and AMs use the larger of
// the two. A queue's maximum, its number of applications and Hadoop's documents depend only on the configuration. So
// a plan reduces no limit.
type Capacities struct {
	Label   string // of their nodes, "" for nodes without a label
	Queues  []Capacity
	Until   time.Time // by the scheduler's time
	Version int64     // of the plan, for messages
}

// Capacity is the capacity of one queue.
type Capacity struct {
	Queue creel.QueuePath
	Share float64 // fraction of the cluster, for every resource type
}

// SetCapacities replaces all capacities in force; an empty list restores the configured ones. Queues that are not
// named, such as newly created ones, divide the rest of their siblings, up to their configured capacity. If siblings
// have more than their parent, SetCapacities returns an error and changes nothing. Schedule is due.
func (s *Scheduler) SetCapacities(c Capacities) error {
	p := s.partition(c.Label)
	if p == nil {
		return nil // no node here has, or had, the label
	}
	c.Label = ""
	return p.setCapacities(c)
}

// setCapacities is SetCapacities for one partition.
func (part *partition) setCapacities(c Capacities) error {
	if err := part.checkCapacities(&c); err != nil {
		return err
	}
	was := part.planned
	if was != nil {
		part.cluster.timers.stop(&was.ends)
	}
	part.planned = nil
	if len(c.Queues) > 0 && c.Until.UnixNano() > part.now {
		p := &capacities{Capacities: c, byPath: make(map[creel.QueuePath]float64, len(c.Queues))}
		for _, q := range c.Queues {
			p.byPath[q.Queue] = q.Share
		}
		p.ends = part.cluster.timers.start(c.Until.UnixNano(), func() {
			part.planned, part.resizeDue = nil, true
		})
		part.planned = p
	}
	if !was.same(part.planned) { // a longer lease of the same amounts has no effect
		part.resize()
	}
	return nil
}

func (p *capacities) same(other *capacities) bool {
	if p == nil || other == nil {
		return p == other
	}
	if len(p.byPath) != len(other.byPath) {
		return false
	}
	for path, share := range p.byPath {
		if is, ok := other.byPath[path]; !ok || is != share {
			return false
		}
	}
	return true
}

// rounding is the tolerance for sums of shares.
const rounding = 1e-6

func (p *partition) checkCapacities(c *Capacities) error {
	refuse := func(why string, args ...any) error {
		return invalid("the plan's queue capacities were rejected", fmt.Sprintf(why, args...),
			"run a rebalancer of the same version; until then the configured capacities apply")
	}
	if len(c.Queues) > 0 && !p.policy.guarantees {
		return refuse("FairScheduler has weights, and guarantees no parts of a cluster")
	}
	shares, sums := make(map[creel.QueuePath]float64, len(c.Queues)), map[creel.QueuePath]float64{}
	for _, q := range c.Queues {
		if !(q.Share >= 0 && q.Share <= 1+rounding) || q.Queue.Parent() == "" {
			return refuse("%s has %v of the cluster", q.Queue, q.Share)
		}
		shares[q.Queue] = q.Share
		sums[q.Queue.Parent()] += q.Share
	}
	shares[creel.RootQueue] = 1
	for above, sum := range sums {
		if has, ok := shares[above]; !ok || sum > has+rounding {
			return refuse("the children of %s have %.4g of the cluster together, but it has %.4g", above, sum, has)
		}
	}
	return nil
}

// Planned returns the part of a plan in force for a queue, nil without a plan.
func (q *Queue) Planned() *explain.PlannedView {
	p := q.part
	if q.sized(); p.planned == nil || q.parent == nil {
		return nil
	}
	return &explain.PlannedView{
		Label: p.label,
		Share: q.capacity.planned, Amount: p.sizes.Resource(&q.capacity.entitled),
		Version: p.planned.Version, Until: p.planned.Until,
	}
}

// Planned returns the part of a plan in force for a waiting application's queue, on the nodes where it waits, and the
// queue's configured part of them.
func (a *App) Planned() (plan *explain.PlannedView, configured float64) {
	q := a.waitsIn()
	return q.Planned(), q.capacity.absolute
}

// waitsIn returns the queue of a waiting application in the partition where it waits; the default one, if it also
// waits there.
func (a *App) waitsIn() *Queue {
	q := a.queue
	for _, x := range a.parts {
		if a.pendingCount == 0 && x.pendingCount > 0 {
			q = x.queue
		}
	}
	return q
}

// ConfiguredQueue is the configured capacity of a queue, as fractions of the cluster.
type ConfiguredQueue struct {
	Queue          creel.QueuePath
	Leaf           bool
	Share, Maximum float64
}

// Configured lists the queues below the root on the nodes of a label, parents before children. The list is empty for
// an unknown label, or if the scheduler guarantees no parts of a cluster.
func (s *Scheduler) Configured(label string) []ConfiguredQueue {
	p := s.partition(label)
	if p == nil || !p.policy.guarantees {
		return nil
	}
	out := make([]ConfiguredQueue, 0, len(p.tree.all))
	for _, q := range p.tree.all {
		if q.sized(); q.parent != nil {
			out = append(out, ConfiguredQueue{q.path, q.leaf != nil, q.capacity.absolute, q.bounds.absolute})
		}
	}
	return out
}
