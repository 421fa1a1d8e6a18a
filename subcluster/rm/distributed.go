// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"math"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/nodeset"
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// With distributed scheduling a NodeManager places the opportunistic containers of its AMs, without a call to the
// ResourceManager. It places them on the least loaded nodes, which each answer to it lists. With the AM's next call it
// reports them. From then on the machine counts, completes and recovers them as it does its own.
//
// Numbers of such containers count down from the end of the epoch's range, and the machine's own count up from 1. So
// both sides issue numbers without a call, and each id has the epoch of its ResourceManager. Hadoop's ResourceManager
// lets them count down into the range of the epoch before.

// placedLeast is the lowest number that a NodeManager may use.
const placedLeast = 1 << 39

// SchedulingTermsOf returns the terms of a registered attempt.
func SchedulingTermsOf(m *Machine, id creel.AttemptID) (SchedulingTerms, error) {
	t, err := m.apps.conversing(id)
	if err != nil {
		return SchedulingTerms{}, err
	}
	// A NodeManager that registers the same attempt again continues below the numbers in use.
	start := creel.NewContainerID(id, m.cfg.Epoch, -1).ID + 1
	if t.lowSeq != 0 {
		start = creel.NewContainerID(id, m.cfg.Epoch, t.lowSeq).ID
	}
	return SchedulingTerms{
		Least: m.sizes.Resource(&m.sizes.Least), Step: m.sizes.Resource(&m.sizes.Step),
		Most:      m.sizes.Resource(t.app.Queue().Largest()),
		TokenLife: m.cfg.ContainerExpiry, IDStart: start, Nodes: LeastLoaded(m, id),
	}, nil
}

// LeastLoaded returns the nodes on which NodeManagers may place opportunistic containers of an attempt, the least
// loaded first. There are no more of them than the containers that the limits of its queue leave room for.
func LeastLoaded(m *Machine, id creel.AttemptID) (out []LoadedNode) {
	if m.opportunistic == nil {
		return nil
	}
	room := math.MaxInt
	if a := m.apps.byID[id.Application]; a != nil {
		room, _ = m.opportunistic.room(a)
	}
	for serial := range m.opportunistic.nodes.Least {
		if len(out) >= room {
			break
		}
		n := m.nodes.list[serial]
		out = append(out, LoadedNode{Place: n.at, Rack: n.Rack(), Label: n.Label()})
	}
	return out
}

// takePlaced records the containers that an AM's NodeManager placed. It returns the completions of those that cannot
// be taken, because the AM gets them all from its NodeManager. A call may be a repeat, so known ones are skipped.
func takePlaced(m *Machine, t *attempt, list []PlacedContainer) (refused []Completion) {
	low := t.lowSeq
	for i := range list {
		k := &list[i]
		seq := k.ID.Sequence()
		issued := k.ID.Epoch() == m.cfg.Epoch && seq >= placedLeast
		if k.ID.Attempt != t.id || issued && (low != 0 && seq >= low || t.live.Get(k.ID.ID) != nil) {
			continue
		}
		if issued {
			t.lowSeq = lower(t.lowSeq, seq)
		}
		v, why := checkPlaced(m, t, k)
		if why != "" {
			refused = append(refused, Completion{
				ID: k.ID, Shape: &amounts.Shape{Resource: k.Resource}, ExitStatus: creel.ExitAborted,
				Execution: creel.Opportunistic, Diagnostics: "Container refused by the ResourceManager: " + why,
				node: nowhere, // if the node runs it nevertheless, it reports an unknown container
			})
			continue
		}
		m.opportunistic.take(t, k, m.sizes.Of(v))
	}
	return refused
}

// checkPlaced returns the size of a container that a NodeManager placed, or the reason why it cannot be taken.
func checkPlaced(m *Machine, t *attempt, k *PlacedContainer) (v amounts.Vec, why string) {
	switch n := m.nodes.byID[k.Node]; {
	case k.Invalid != "":
		return v, k.Invalid
	case m.opportunistic == nil:
		return v, "opportunistic containers are not allocated"
	case k.ID.Epoch() != m.cfg.Epoch || k.ID.Sequence() < placedLeast:
		return v, "its id is outside the range of NodeManagers"
	case n == nil || !n.state.runs():
		return v, fmt.Sprintf("node %s is not running", k.Node)
	case !t.app.mayGet():
		return v, "the application gets no containers now"
	}
	if room, by := m.opportunistic.room(t.app); room == 0 {
		return v, by.String() + " opportunistic containers"
	}
	v, err := m.sizes.Normalize(k.Resource, t.app.Queue().Largest())
	if err != nil {
		return v, err.Error()
	}
	if exact := m.sizes.Vec(k.Resource); !exact.Is(&v) {
		return v, fmt.Sprintf("its size is %s, which rounds to %s", k.Resource, m.sizes.Resource(&v))
	}
	return v, ""
}

// take makes a container that a NodeManager placed. Its AM has it already, with a token for its node.
func (o *opportunities) take(t *attempt, k *PlacedContainer, size *amounts.Size) {
	m := o.m
	c := m.containers.blank()
	c.seq, c.origin, c.size = k.ID.ID, t, size.Number
	c.created, c.priority, c.execution = m.ms(), k.Priority, uint8(creel.Opportunistic)
	c.state, c.reason = cAcquired, sched.ByNode
	if k.AllocationRequestID != 0 {
		c.more().alloc = k.AllocationRequestID
	}
	n := m.nodes.byID[k.Node]
	m.containers.attach(c, n)
	m.containers.serial++
	c.wait = m.containers.serial
	m.containers.unlaunched.Put(c.wait, c)
	t.nodeSets.Add(nodeset.Ran, n.Serial())
	o.counts.Granted++
	o.counts.Placed++
}
