// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// A node label makes a partition of the cluster: a node has one label or none, and belongs to one partition. Each
// partition is a separate Scheduler over its nodes, with the same queues, which have the label's capacities
// (queues.Partition). The owner calls the default partition's, which calls the others. So a queue's guarantee,
// maximum, use, demand and AM limit, and a user's limit, are per partition without further code in the decisions.
// Without labels the only cost is the check that there are none.
//
// An application that asks in a partition, or has a container there, has a separate App in it (App.parts), with the
// partition's queue and user. Numbers of applications, their activation and their priority belong to the default
// partition.
//
// A shared partition (one that is not exclusive) lends idle resources to asks without a label: see lend.go.

// Partition is the owner's description of a label.
type Partition struct {
	Label     string
	Exclusive bool // its nodes never serve asks without the label
}

// SetPartitions sets the existing labels. The partition of a removed label stays, without nodes, for asks that still
// name it. With FairScheduler, which does not support labels, the list is empty.
func (s *Scheduler) SetPartitions(list []Partition) error {
	for _, x := range list {
		p := s.partition(x.Label)
		if p == nil {
			var err error
			if p, err = s.newPartition(x.Label); err != nil {
				return err
			}
		}
		if p.exclusive != x.Exclusive {
			p.exclusive = x.Exclusive
			p.nodes.roomEverywhere()
		}
	}
	s.lending.shared = 0
	for _, p := range s.parts {
		if !p.exclusive {
			s.lending.shared++
		}
	}
	return nil
}

func (s *Scheduler) newPartition(label string) (*Scheduler, error) {
	p, err := partitionOf(s, label)
	if err != nil {
		return nil, err
	}
	p.preempt.configure(p.tree.spec.Preemption)
	s.parts, s.further = append(s.parts, p), true
	slices.SortFunc(s.parts, func(a, b *Scheduler) int { return strings.Compare(a.label, b.label) })
	return p, nil
}

// partitionOf makes the partition of a label without adding it, and without deadlines.
func partitionOf(s *Scheduler, label string) (*Scheduler, error) {
	spec := s.tree.spec.Partition(label)
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	p := &Scheduler{
		sizes:        s.sizes, // only the default partition makes new sizes
		label:        label,
		exclusive:    true,
		main:         s,
		reservations: reservations{share: s.reservations.share},
		nodes:        nodes{portInNames: s.nodes.portInNames},
		now:          s.now,
		changes:      s.changes,
		leases:       s.leases,
		timers:       s.timers,
		tags:         Tags{counts: s.tags.counts},
	}
	p.init(&spec)
	if s.preempt.from != nil {
		p.preempt.from = partitionContainers{p}
	}
	p.tree.plant()
	p.mirrorMade()
	for range s.nodes.All() {
		p.nodes.Skip()
	}
	return p, nil
}

// partition returns the partition of a label, nil for none; the partition without a label is s.
func (s *Scheduler) partition(label string) *Scheduler {
	if label == "" {
		return s
	}
	for _, p := range s.parts {
		if p.label == label {
			return p
		}
	}
	return nil
}

// whole returns the default partition's scheduler, which has all nodes.
func (s *Scheduler) whole() *Scheduler {
	if s.main != nil {
		return s.main
	}
	return s
}

// FindOn returns the queue with exactly this path, in the partition of a label; nil if there is no such queue, or no
// such label.
func (t *Tree) FindOn(path creel.QueuePath, label string) *Queue {
	if p := t.s.partition(label); p != nil {
		return p.tree.at(path)
	}
	return nil
}

// partitionOr is partition for a label that existed, and may have no nodes now.
func (s *Scheduler) partitionOr(label string) *Scheduler {
	if p := s.partition(label); p != nil {
		return p
	}
	p, err := s.newPartition(label)
	if err != nil {
		panic("partition of queues that were checked: " + err.Error())
	}
	return p
}

// Partitioned reports whether any node labels exist.
func (s *Scheduler) Partitioned() bool { return len(s.parts) > 0 }

// appIn returns the App of an application of the default partition s in partition p, and creates it the first time.
func (s *Scheduler) appIn(a *App, p *Scheduler) *App {
	if x := a.partIn(p); x != nil {
		return x
	}
	x := &App{
		id: a.id, owner: a.owner, priority: a.priority, seq: a.seq, accrued: p.ms(),
		main: a, open: a.open, activated: a.activated, black: a.black,
	}
	p.Enter(x, p.counterpart(a.queue), a.user.name)
	a.parts = append(a.parts, x)
	return x
}

// on returns the partition of a node and the App that has a's containers there.
func (s *Scheduler) on(a *App, n *Node) (*Scheduler, *App) {
	if n.of == s {
		return s, a
	}
	return n.of, s.appIn(a, n.of)
}

// partitionContainers is preemption's interface to the owner, for one partition.
type partitionContainers struct{ p *Scheduler }

// Apps calls yield for each application's App in the partition.
func (k partitionContainers) Apps(yield func(*App) bool) {
	k.p.main.preempt.from.Apps(func(a *App) bool {
		x := a.partIn(k.p)
		return x == nil || yield(x)
	})
}

// Newest returns the containers in all partitions: a round skips those of others.
func (k partitionContainers) Newest(x *App, out []Container) []Container {
	return k.p.main.preempt.from.Newest(x.main, out)
}

// Weight returns the weight of the whole application.
func (k partitionContainers) Weight(x *App) float64 { return k.p.main.preempt.from.Weight(x.main) }

// HeldContainer is a container on a node whose label changes.
type HeldContainer struct {
	App  *App
	Size *amounts.Size
}

// SetLabel moves a node with its containers to the partition of a label, "" for the default one; an unknown label
// changes nothing. Containers keep running: they are charged to their queues and users there, regardless of limits.
// AMs count against the AM limit of the partition they were asked in. Orders and Schedule are due.
func (s *Scheduler) SetLabel(n *Node, label string, held []HeldContainer) {
	from, to := n.of, s.partition(label)
	if to == nil || to == from {
		return
	}
	from.preempt.dropClaims(func(c *claim) bool { return c.node == n })
	use := n.use
	from.nodes.setUse(n, Off)
	for i := range held {
		h := &held[i]
		p, x := s.on(h.App, n)
		p.charge(x, h.Size, -1)
	}
	if n.dirty {
		n.dirty = false
		from.nodes.dirty = slices.DeleteFunc(from.nodes.dirty, func(x *Node) bool { return x == n })
	}
	from.increases.waiting -= len(n.increases)
	rack := n.rack.Name()
	from.nodes.Remove(n.serial, n.host, n.rack)

	n.of = to
	to.increases.waiting += len(n.increases)
	to.nodes.locate(n, rack)
	for i := range held {
		h := &held[i]
		p, x := s.on(h.App, n)
		p.charge(x, h.Size, 1)
		s.changes.charged(x.queue)
	}
	to.nodes.setUse(n, use)
}

// Label is the node's label, "" for none.
func (n *Node) Label() string { return n.of.label }

// Lends reports whether the node may run containers that did not ask for its label.
func (n *Node) Lends() bool { return n.of.main != nil && !n.of.exclusive }

// partitionsDue lets the other partitions make due decisions, collects their grants, and lends their idle resources.
// It reports whether the default partition has more decisions to make after it.
func (s *Scheduler) partitionsDue() bool {
	for {
		for _, p := range s.parts {
			for _, g := range p.Schedule() {
				g.App = g.App.whole()
				if g.Rare == nil {
					g.Rare = &GrantExtra{}
				}
				g.Rare.Label = p.label
				s.grants = append(s.grants, g)
			}
		}
		if s.lending.lend(); !slices.ContainsFunc(s.parts, (*Scheduler).due) {
			break
		}
	}
	return s.due()
}

// due reports whether Schedule has a decision to make.
func (s *Scheduler) due() bool {
	return s.resizeDue || s.tags.changed || len(s.line.due)+len(s.nodes.dirty)+len(s.retries.due) > 0
}

// init creates the initially empty parts, for a tree of queues.
func (s *Scheduler) init(spec *queues.Spec) {
	s.places.Nodes = &s.nodes.Map
	s.nodes.Init(&s.sizes, func(n *Node) (*amounts.Vec, bool) { return &n.free, n.roomy() })
	s.delays.init(s)
	s.preempt.s, s.tags.s, s.lending.s, s.walk.s = s, s, s, s
	s.nodes.s, s.reservations.s, s.increases.s = s, s, s
	s.line = Line{s: s, running: map[string]*int{}}
	s.policy = policyOf(spec)
	s.tree = newTree(s, spec)
}

// absentPartitions returns the partitions of labels that queues list and the cluster lacks, by label.
func absentPartitions(s *Scheduler) []*Scheduler {
	if s.main != nil || !s.policy.knowsLabels {
		return nil
	}
	if s.absents.of != s.tree.spec {
		s.absents = absentLabels{of: s.tree.spec}
		for _, label := range s.tree.spec.ListedLabels() {
			// An invalid share is reported when the label is added.
			if p, err := partitionOf(s, label); err == nil {
				s.absents.parts = append(s.absents.parts, p)
			}
		}
	}
	if len(s.absents.parts) == 0 {
		return nil
	}
	known := func(p *Scheduler) bool { return s.partition(p.label) != nil }
	return slices.DeleteFunc(slices.Clone(s.absents.parts), known)
}
