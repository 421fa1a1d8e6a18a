// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/nm/overallocate"
)

// Policy decides whether an opportunistic container may wait.
type Policy int8

// Policies, by the names of yarn.nodemanager.opportunistic-containers-queue-policy.
const (
	ByLength    Policy = iota // BY_QUEUE_LEN: fewer containers wait than Config.Length
	ByResources               // BY_RESOURCES: the waiting containers and the new one fit into the free resources
)

// Config is a node's configuration for opportunistic containers. The zero value permits none.
type Config struct {
	Length int // of the opportunistic queue; ByResources uses 0
	Policy Policy
	Pause  bool // pause running opportunistic containers instead of killing them

	// Adaptive shortens the opportunistic queue to the length that keeps the node busy, see Bound.
	Adaptive bool
	// ByWork orders the opportunistic queue by Item.Work. A container that has waited for Patience is not passed.
	ByWork   bool
	Patience time.Duration
	// Estimates computes how long a further container would wait, see Scheduler.Wait.
	Estimates bool
}

// Enabled reports whether the node may run opportunistic containers. If not, it needs no Scheduler: guaranteed
// containers start at once, and opportunistic ones are rejected.
func (c Config) Enabled() bool { return c.Length > 0 || c.Policy == ByResources }

// Capacity is the opportunistic queue's length as reported to the ResourceManager.
func (c Config) Capacity() int {
	if c.Policy == ByResources {
		return 0
	}
	return max(c.Length, 0)
}

// Item is a container of the node. Outside the Scheduler its fields are read-only after Arrive, except its times.
type Item struct {
	ID            creel.ContainerID
	Size          creel.Resource
	Opportunistic bool
	Work          time.Duration       // what remains of its job
	Since         time.Time           // it waits; set before Arrive and Paused
	Started       time.Time           // zero before its first start
	Use           overallocate.Amount // measured last; before, its size

	place    place
	paused   bool // it waits with a process
	stopping bool // it runs, and its kill or its pause was decided
}

type place int8

const (
	absent place = iota
	waiting
	running
)

// Waiting reports whether the container waits for resources.
func (x *Item) Waiting() bool { return x.place == waiting }

// Verb is an action on a container.
type Verb int8

// Actions on containers.
const (
	Start Verb = iota
	Resume
	Kill
	Pause
)

var verbs = [...]string{"start", "resume", "kill", "pause"}

func (v Verb) String() string { return verbs[v] }

// Decision is one action for the caller.
type Decision struct {
	Verb Verb
	Item *Item
}

// Status is the state of the node's opportunistic containers, for the ResourceManager.
type Status struct {
	Running  int            // opportunistic containers
	Used     creel.Resource // their size
	Queued   int            // waiting opportunistic containers
	Waiting  int            // waiting containers of both types
	Capacity int
}

// Scheduler decides which containers of one node run. One owner calls it.
type Scheduler struct {
	cfg           Config
	total, used   creel.Resource // used by running containers
	guaranteed    []*Item        // waiting, in order of arrival
	opportunistic []*Item        // likewise
	running       []*Item        // by start
	pace          pace
	tasks         tasks
	urgent        []*Item // guaranteed containers that got a place in their queue since the last Settle
	decisions     []Decision
	lent          overallocate.Amount // see Lend
	looks         bool                // the node measures its use
}

// New makes the scheduler of a node that offers a total.
func New(cfg Config, total creel.Resource) *Scheduler { return &Scheduler{cfg: cfg, total: total} }

// SetTotal changes the resources that the node offers. No running container ends for that.
func (s *Scheduler) SetTotal(total creel.Resource) { s.total = total }

// fits reports whether a size fits into the free resources.
func (s *Scheduler) fits(size creel.Resource) bool { return s.used.Add(size).Fits(s.total) }

// forced reports whether guaranteed containers start without a check of resources, as on nodes whose queue has no
// capacity.
func (s *Scheduler) forced() bool { return s.cfg.Capacity() == 0 }

// Arrive adds a localized container to its queue. It reports false if the container is opportunistic and may not
// wait.
func (s *Scheduler) Arrive(x *Item) bool {
	if x.Opportunistic && !s.accepts(x) {
		return false
	}
	s.wait(x)
	return true
}

func (s *Scheduler) accepts(x *Item) bool {
	if s.cfg.Policy != ByResources {
		return len(s.opportunistic) < s.capacity()
	}
	sum := x.Size
	for _, w := range s.opportunistic {
		sum = sum.Add(w.Size)
	}
	return s.fits(sum)
}

// wait puts a container into its queue: at the end, unless the order is by work.
func (s *Scheduler) wait(x *Item) {
	x.place = waiting
	if x.Opportunistic {
		at := len(s.opportunistic)
		if s.cfg.ByWork {
			at = position(s.opportunistic, x, s.cfg.Patience)
		}
		s.opportunistic = slices.Insert(s.opportunistic, at, x)
		return
	}
	s.guaranteed = append(s.guaranteed, x)
	s.urgent = append(s.urgent, x)
}

// Remove takes out a container that has ended. It does nothing for a container that is not here.
func (s *Scheduler) Remove(x *Item) {
	switch x.place {
	case waiting:
		s.leave(x)
	case running:
		s.running = without(s.running, x)
		s.used = s.used.Sub(x.Size)
	}
	x.place, x.paused, x.stopping = absent, false, false
}

// leave takes a container out of its queue.
func (s *Scheduler) leave(x *Item) {
	if x.Opportunistic {
		s.opportunistic = without(s.opportunistic, x)
	} else {
		s.guaranteed = without(s.guaranteed, x)
	}
}

func without(list []*Item, x *Item) []*Item {
	if i := slices.Index(list, x); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// Paused records that a running container's process has paused: it waits at the end of its queue.
func (s *Scheduler) Paused(x *Item) {
	if x.place != running {
		return
	}
	s.Remove(x)
	x.paused = true
	s.wait(x)
}

// Resize changes a container's size. A running container that grows takes no resources of others.
func (s *Scheduler) Resize(x *Item, size creel.Resource) {
	if x.place == running {
		s.used = s.used.Sub(x.Size).Add(size)
	}
	x.Size = size
}

// Retype promotes or demotes a container. A running container runs on; a waiting one goes to the end of the other
// queue, which may exceed its length.
func (s *Scheduler) Retype(x *Item, opportunistic bool) {
	if x.Opportunistic == opportunistic {
		return
	}
	if x.place != waiting {
		x.Opportunistic = opportunistic
		return
	}
	s.leave(x)
	x.Opportunistic = opportunistic
	s.wait(x)
}

// Shed shortens the opportunistic queue to a length and returns the removed containers: the last ones. Paused
// containers stay and do not count. A negative length removes none.
func (s *Scheduler) Shed(length int) []*Item {
	if length < 0 || length >= len(s.opportunistic) {
		return nil
	}
	var gone []*Item
	s.opportunistic = slices.DeleteFunc(s.opportunistic, func(x *Item) bool {
		if x.paused {
			return false
		}
		length--
		if length >= 0 {
			return false
		}
		x.place = absent
		gone = append(gone, x)
		return true
	})
	return gone
}

// Settle returns the next decisions, which are then in force. The slice is valid until the next call.
func (s *Scheduler) Settle() []Decision {
	s.decisions = s.decisions[:0]
	all := false
	if s.guaranteed, all = s.start(s.guaranteed, s.forced()); all {
		s.opportunistic, _ = s.start(s.opportunistic, false)
	}
	for _, x := range s.urgent {
		if x.Waiting() && !x.Opportunistic {
			s.reclaim(x)
		}
	}
	clear(s.urgent)
	s.urgent = s.urgent[:0]
	return s.decisions
}

// start starts containers in order, up to the first that does not fit. all reports whether all have started.
func (s *Scheduler) start(list []*Item, force bool) (left []*Item, all bool) {
	n := 0
	for n < len(list) && (force || s.admits(list[n].Size)) {
		x := list[n]
		verb := Start
		if x.paused {
			verb = Resume
		}
		x.place, x.paused = running, false
		x.Use = overallocate.Of(x.Size) // until it is measured
		s.running = append(s.running, x)
		s.used = s.used.Add(x.Size)
		s.lent = s.lent.Sub(overallocate.Of(x.Size)).Positive()
		s.decisions = append(s.decisions, Decision{verb, x})
		n++
	}
	return slices.Delete(list, 0, n), n == len(list)
}

// reclaim ends or pauses running opportunistic containers, the last started first, until a waiting guaranteed
// container fits after those ahead of it, or the node lends it its size. If all of them do not suffice, it waits.
func (s *Scheduler) reclaim(g *Item) {
	excess, short := s.excess(g), s.short(g)
	for _, x := range slices.Backward(s.running) {
		if excess.Fits(creel.Resource{}) || s.looks && short.Fits(overallocate.Amount{}) {
			return
		}
		if x.Opportunistic && !x.stopping {
			x.stopping = true
			excess, short = excess.Sub(x.Size), short.Sub(x.Use)
			s.decisions = append(s.decisions, Decision{s.stop(), x})
		}
	}
}

// excess is the amount that is missing until a waiting guaranteed container fits: the running containers that are not
// about to stop and the guaranteed queue up to this container, less the node.
func (s *Scheduler) excess(g *Item) creel.Resource {
	sum := s.used.Sub(s.total)
	for _, x := range s.guaranteed {
		sum = sum.Add(x.Size)
		if x == g {
			break
		}
	}
	for _, x := range s.running {
		if x.stopping {
			sum = sum.Sub(x.Size)
		}
	}
	return sum
}

// Status counts the node's opportunistic containers.
func (s *Scheduler) Status() Status {
	out := Status{
		Queued: len(s.opportunistic), Waiting: len(s.opportunistic) + len(s.guaranteed), Capacity: s.capacity(),
	}
	for _, x := range s.running {
		if x.Opportunistic {
			out.Running++
			out.Used = out.Used.Add(x.Size)
		}
	}
	return out
}

// Idle is the size of the containers that wait without a process.
func (s *Scheduler) Idle() (sum creel.Resource) {
	for _, list := range [][]*Item{s.guaranteed, s.opportunistic} {
		for _, x := range list {
			if !x.paused {
				sum = sum.Add(x.Size)
			}
		}
	}
	return sum
}
