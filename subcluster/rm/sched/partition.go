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
// partition decides over its own nodes and its own copies of the queues, which have the label's capacities
// (queues.Partition). So a queue's guarantee, maximum, use, demand and AM limit, and a user's limit, are per partition
// without further code in the decisions. Without labels the only cost is the check that there are none.
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
			if p, err = s.addPartition(x.Label); err != nil {
				return err
			}
		}
		if p.exclusive != x.Exclusive {
			p.exclusive = x.Exclusive
			p.nodes.roomEverywhere()
		}
	}
	s.lending.shared = 0
	for _, p := range s.labelled {
		if !p.exclusive {
			s.lending.shared++
		}
	}
	return nil
}

func (s *Scheduler) addPartition(label string) (*partition, error) {
	p, err := s.partitionOf(label)
	if err != nil {
		return nil, err
	}
	p.preempt.configure(p.tree.spec.Preemption)
	s.labelled = append(s.labelled, p)
	slices.SortFunc(s.labelled, func(a, b *partition) int { return strings.Compare(a.label, b.label) })
	return p, nil
}

// partitionOf makes the partition of a label without adding it, and without deadlines.
func (s *Scheduler) partitionOf(label string) (*partition, error) {
	m := &s.main
	spec := m.tree.spec.Partition(label)
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	p := &partition{
		sizes:        m.sizes, // only the default partition makes new sizes
		label:        label,
		exclusive:    true,
		reservations: reservations{share: m.reservations.share},
		nodes:        nodes{portInNames: m.nodes.portInNames},
		now:          m.now,
		changes:      m.changes,
		leases:       m.leases,
		tags:         Tags{counts: m.tags.counts},
	}
	p.init(s, &spec)
	if m.preempt.from != nil {
		p.preempt.from = partitionContainers{p}
	}
	p.tree.plant()
	p.mirrorMade()
	for range m.nodes.All() {
		p.nodes.Skip()
	}
	return p, nil
}

// others returns the partitions of labels for the one without a label, and none for the others.
func (p *partition) others() []*partition {
	if p.label != "" {
		return nil
	}
	return p.cluster.labelled
}

// line returns the line of applications for the partition without a label, where they are activated; nil for others.
func (p *partition) line() *Line {
	if p.label != "" {
		return nil
	}
	return &p.cluster.line
}

// ms returns the time of the latest event in ms since the epoch.
func (p *partition) ms() int64 { return p.now / 1e6 }

// partition returns the partition of a label, nil for none; "" is that of the nodes without a label.
func (s *Scheduler) partition(label string) *partition {
	if label == "" {
		return &s.main
	}
	for _, p := range s.labelled {
		if p.label == label {
			return p
		}
	}
	return nil
}

// FindOn returns the queue with exactly this path, in the partition of a label; nil if there is no such queue, or no
// such label.
func (t *Tree) FindOn(path creel.QueuePath, label string) *Queue {
	if p := t.part.cluster.partition(label); p != nil {
		return p.tree.at(path)
	}
	return nil
}

// partitionOr is partition for a label that existed, and may have no nodes now.
func (s *Scheduler) partitionOr(label string) *partition {
	if p := s.partition(label); p != nil {
		return p
	}
	p, err := s.addPartition(label)
	if err != nil {
		panic("partition of queues that were checked: " + err.Error())
	}
	return p
}

// Partitioned reports whether any node labels exist.
func (s *Scheduler) Partitioned() bool { return len(s.labelled) > 0 }

// appIn returns the App of an application of the default partition in partition p, and creates it the first time.
func (s *Scheduler) appIn(a *App, p *partition) *App {
	if x := a.partIn(p); x != nil {
		return x
	}
	x := &App{
		id: a.id, owner: a.owner, priority: a.priority, seq: a.seq, accrued: p.ms(),
		main: a, open: a.open, activated: a.activated, black: a.black,
	}
	p.enter(x, p.counterpart(a.queue), a.user.name)
	a.parts = append(a.parts, x)
	return x
}

// on returns the partition of a node and the App that has a's containers there.
func (s *Scheduler) on(a *App, n *Node) (*partition, *App) {
	if n.of == &s.main {
		return n.of, a
	}
	return n.of, s.appIn(a, n.of)
}

// partitionContainers is preemption's interface to the owner, for one partition.
type partitionContainers struct{ p *partition }

// Apps calls yield for each application's App in the partition.
func (k partitionContainers) Apps(yield func(*App) bool) {
	k.p.cluster.main.preempt.from.Apps(func(a *App) bool {
		x := a.partIn(k.p)
		return x == nil || yield(x)
	})
}

// Newest returns the containers in all partitions: a round skips those of others.
func (k partitionContainers) Newest(x *App, out []Container) []Container {
	return k.p.cluster.main.preempt.from.Newest(x.main, out)
}

// Weight returns the weight of the whole application.
func (k partitionContainers) Weight(x *App) float64 {
	return k.p.cluster.main.preempt.from.Weight(x.main)
}

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
		p.changes.charged(x.queue)
	}
	to.nodes.setUse(n, use)
}

// Label is the node's label, "" for none.
func (n *Node) Label() string { return n.of.label }

// Lends reports whether the node may run containers that did not ask for its label.
func (n *Node) Lends() bool { return n.of.label != "" && !n.of.exclusive }

// init creates the initially empty parts, for a tree of queues.
func (p *partition) init(cluster *Scheduler, spec *queues.Spec) {
	p.cluster = cluster
	p.places.Nodes = &p.nodes.Map
	p.nodes.Init(&p.sizes, func(n *Node) (*amounts.Vec, bool) { return &n.free, n.roomy() })
	p.delays.init(p)
	p.preempt.part, p.tags.part, p.walk.part = p, p, p
	p.nodes.part, p.reservations.part, p.increases.part = p, p, p
	p.policy = policyOf(spec)
	p.tree = newTree(p, spec)
}

// absent returns the partitions of labels that the cluster lacks, for the one without a label; none for the others.
func (p *partition) absent() []*partition {
	if p.label != "" {
		return nil
	}
	return p.cluster.absentPartitions()
}

// absentPartitions returns the partitions of labels that queues list and the cluster lacks, by label.
func (s *Scheduler) absentPartitions() []*partition {
	spec := s.main.tree.spec
	if !s.main.policy.knowsLabels {
		return nil
	}
	if s.absents.of != spec {
		s.absents = absentLabels{of: spec}
		for _, label := range spec.ListedLabels() {
			// An invalid share is reported when the label is added.
			if p, err := s.partitionOf(label); err == nil {
				s.absents.parts = append(s.absents.parts, p)
			}
		}
	}
	if len(s.absents.parts) == 0 {
		return nil
	}
	known := func(p *partition) bool { return s.partition(p.label) != nil }
	return slices.DeleteFunc(slices.Clone(s.absents.parts), known)
}
