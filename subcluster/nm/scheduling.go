// SPDX-License-Identifier: Apache-2.0

package nm

import (
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/nm/queue"
)

// These are YARN's texts for containers that the node's scheduler ends.
const (
	textFull  = "Opportunistic container queue is full.\n"
	textRoom  = "Container Killed to make room for Guaranteed Container.\n"
	textLimit = "Container De-queued to meet NM queuing limits.\n"
	// Hadoop has no text for this one.
	textUse = "Container killed to lower the node's resource utilization.\n"
)

// schedule launches a localized container, or passes it to the scheduler. Step then carries out its decisions.
func (n *Node) schedule(now time.Time, c *Container) {
	opportunistic := c.Execution == creel.Opportunistic
	if n.queue != nil {
		c.place = &queue.Item{
			ID: c.ID, Size: c.Resource, Opportunistic: opportunistic, Work: ReadWork(c.launch), Since: now,
		}
	}
	switch {
	case n.queue == nil && !opportunistic:
		n.launch(c)
	case n.queue == nil || !n.queue.Arrive(c.place):
		n.finish(now, c, ExitKilledByScheduler, textFull)
	}
}

// settle carries out the scheduler's decisions. An end without a process frees resources at once, so it repeats.
func (n *Node) settle(now time.Time) {
	for decisions := n.queue.Settle(); len(decisions) > 0; decisions = n.queue.Settle() {
		for _, d := range decisions {
			n.decided(now, d.Verb, n.containers[d.Item.ID], textRoom)
		}
	}
}

// decided carries out one decision. why is the text of a kill.
func (n *Node) decided(now time.Time, verb queue.Verb, c *Container, why string) {
	switch {
	case verb == queue.Start:
		c.place.Started = now
		n.launch(c)
	case verb == queue.Resume:
		c.State = Resuming
		c.changed()
		n.do(Resume{ID: c.ID})
	case verb == queue.Pause && c.State != Relaunching && c.State != Killing:
		c.State = Pausing
		c.changed()
		n.do(Pause{ID: c.ID})
	default: // a container between two tries has no process to pause
		n.killFor(now, c, ExitKilledByScheduler, why)
	}
}

// suspended ends a Pause. As with YARN, a process that cannot pause is killed.
func (n *Node) suspended(now time.Time, e Suspended) {
	c := n.containers[e.ID]
	switch {
	case c == nil || c.State != Pausing:
	case e.Failure != "":
		n.killFor(now, c, ExitPreempted, e.Failure+"\n")
	default:
		c.State = Paused
		c.changed()
		c.place.Since = now
		n.queue.Paused(c.place)
	}
}

// apply gives a container the size, the execution type and the version of a new token.
func (n *Node) apply(c *Container, u Update) {
	if c.Resource.Fits(u.Resource) && !u.Resource.Equal(c.Resource) {
		n.grown = append(n.grown, c)
	}
	n.used = n.used.Sub(c.Resource).Add(u.Resource)
	c.Resource, c.Version, c.Execution = u.Resource, u.Version, u.Execution
	c.changed()
	if c.place != nil {
		n.queue.Resize(c.place, u.Resource)
		n.queue.Retype(c.place, u.Execution == creel.Opportunistic)
	}
}

// shed ends waiting opportunistic containers beyond the ResourceManager's limit. A limit of the wait time has no
// effect, as in Hadoop.
func (n *Node) shed(now time.Time, limit *pb.ContainerQueuingLimitProto) {
	if n.queue == nil || limit == nil || limit.MaxQueueLength == nil {
		return
	}
	for _, x := range n.queue.Shed(int(limit.GetMaxQueueLength())) {
		n.finish(now, n.containers[x.ID], ExitKilledByScheduler, textLimit)
	}
}

// setTotal applies the node's total from the ResourceManager, if there is one.
func (n *Node) setTotal(p *pb.ResourceProto) {
	if p == nil {
		return
	}
	n.cfg.Total = pb.ToResource(p)
	if n.queue != nil {
		n.queue.SetTotal(n.cfg.Total)
	}
}

// queueBlock is the scheduler's state in a heartbeat with the small values it points to.
type queueBlock struct {
	pb.OpportunisticContainersStatusProto
	running, cores, queued, waiting, capacity int32
	memory                                    int64
}

// queueStatus returns the scheduler's state for a heartbeat, without the estimated wait. Hadoop's nodes never set that.
func queueStatus(s queue.Status) *pb.OpportunisticContainersStatusProto {
	const mbPerGB = 1024
	b := &queueBlock{
		running: int32(s.Running), cores: int32(s.Used.VCores), queued: int32(s.Queued), waiting: int32(s.Waiting),
		capacity: int32(s.Capacity), memory: (s.Used.MemoryMB + mbPerGB - 1) / mbPerGB,
	}
	p := &b.OpportunisticContainersStatusProto
	p.RunningOpportContainers, p.OpportMemoryUsed, p.OpportCoresUsed = &b.running, &b.memory, &b.cores
	p.QueuedOpportContainers, p.WaitQueueLength, p.OpportQueueCapacity = &b.queued, &b.waiting, &b.capacity
	return p
}
