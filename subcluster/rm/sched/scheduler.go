// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
	"github.com/creelrm/creel/subcluster/rm/sched/leases"
)

// Config is a Scheduler's configuration.
type Config struct {
	ResourceTypes []string       // beyond memory and vcores
	MinAllocation creel.Resource // smallest container
	MaxAllocation creel.Resource // largest
	Increment     creel.Resource // sizes are whole multiples of it; zero = MinAllocation
	Queues        queues.Spec
	ReservedNodes float64    // share 0..1 of nodes that may be reserved at once, at least one node
	Containers    Containers // preemption's source; nil: no preemption, whatever Queues configures
	PortInNames   bool       // asks name a node by host:port, not by host
}

// New makes a scheduler from a configuration, after checking it.
func New(cfg *Config) (*Scheduler, error) {
	types, err := amounts.NewTypes(cfg.ResourceTypes, cfg.Queues.Calculator == queues.MemoryOnly)
	if err != nil {
		return nil, err
	}
	step := cfg.Increment
	if step.IsZero() {
		step = cfg.MinAllocation
	}
	sizes, err := amounts.NewSizes(types, cfg.MinAllocation, cfg.MaxAllocation, step)
	if err != nil {
		return nil, err
	}
	if err := cfg.Queues.Validate(); err != nil {
		return nil, err
	}
	s := &Scheduler{main: partition{
		sizes:        sizes,
		reservations: reservations{share: cfg.ReservedNodes},
		nodes:        nodes{portInNames: cfg.PortInNames},
		tags:         Tags{counts: &constraints.Tags{}},
	}}
	s.timers.init()
	s.line, s.lending.s = Line{s: s, running: map[string]*int{}}, s
	p, spec := &s.main, cfg.Queues
	p.leases = leases.NewBook(&p.sizes)
	p.init(s, &spec)
	p.tree.plant()
	p.preempt.from = cfg.Containers
	p.preempt.configure(spec.Preemption)
	return s, nil
}

// At sets the time of the following calls, in ns since the epoch. Time does not run backwards: an earlier time counts
// as the latest seen.
func (s *Scheduler) At(now int64) {
	s.main.now = max(s.main.now, now)
	for _, p := range s.labelled {
		p.now = s.main.now
	}
}

// NextDeadline is the time at which Tick is due next, in ns since the epoch; 0 if nothing waits.
func (s *Scheduler) NextDeadline() int64 { return s.timers.next() }

// Tick runs the deadlines reached by the time of At. Schedule is due after it.
func (s *Scheduler) Tick() { s.timers.run(s.main.now) }

// Sizes are the container sizes in use and the rules for new ones.
func (s *Scheduler) Sizes() *amounts.Sizes { return &s.main.sizes }

// Total returns the sum and number of the nodes that run containers.
func (s *Scheduler) Total() (amounts.Vec, int) {
	total, active := s.main.total, s.main.active
	for _, p := range s.labelled {
		total.Add(&p.total)
		active += p.active
	}
	return total, active
}

// Waiting is the number of applications that ask for containers and may get some; one that does in two partitions
// counts twice.
func (s *Scheduler) Waiting() int {
	waiting := s.main.waiting
	for _, p := range s.labelled {
		waiting += p.waiting
	}
	return waiting
}

func invalid(what, why, try string) error {
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: what, Why: why, Try: try}
}

func noQueue(path string) error {
	return &creel.Error{Kind: creel.ErrQueueNotFound, What: "Unknown queue: " + path}
}
