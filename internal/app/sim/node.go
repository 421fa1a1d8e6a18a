// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/nm"
	"github.com/creelrm/creel/subcluster/rm"
)

// eager is how soon a node sends a heartbeat after a container has ended.
const eager = 20 * time.Millisecond

// node is a NodeManager, and an executor that only lets time pass.
type node struct {
	*host
	w       *World
	of      *cluster
	m       *nm.Node
	jobs    map[creel.ContainerID]*process
	scripts map[creel.ContainerID]started
	calling bool
	soon    bool  // a heartbeat is due before its time
	due     int64 // of the next call, ns; 0 for none
	tick    int64
	backoff time.Duration
}

// started says what to start: a task for a time, or an AM.
type started struct {
	grant   rm.Grant
	rm      int64 // epoch of the ResourceManager that gave it, by its start in ms
	expires time.Time
	user    string
	run     time.Duration
	exit    int32
	am      bool
	job     int // of an AM
}

// process is a container's simulated process.
type process struct {
	ended bool
	play  *am // of an AM's container
}

func newNode(c *cluster, i int) *node {
	id := creel.NodeID{Host: fmt.Sprintf("n%d-%d", c.index+1, i), Port: 8041}
	n := &node{
		host:    c.w.host(id.Host, c.index),
		w:       c.w,
		of:      c,
		jobs:    map[creel.ContainerID]*process{},
		scripts: map[creel.ContainerID]started{},
	}
	n.m = nm.New(nm.Config{ID: id, HTTPPort: 8042, Total: c.w.cfg.NodeSize, Version: "sim"})
	c.w.nodes[id] = n
	// Registrations are spread, and with them all later heartbeats.
	n.wake(c.w.now.Add(time.Duration(c.w.rnd.Int64N(int64(min(time.Second, c.w.cfg.NodeHeartbeat))))))
	return n
}

// wake sets the time of the next call, if that is earlier than what is set.
func (n *node) wake(at time.Time) {
	ns := at.UnixNano()
	if n.calling || n.due != 0 && ns >= n.due {
		return
	}
	n.due = ns
	n.w.push(at, n)
}

// run is a wake whose time has come, unless an earlier one was set since.
func (n *node) run() {
	if !n.calling && n.due == n.w.now.UnixNano() {
		n.calling, n.due = true, 0
		n.call()
	}
}

// call makes one call to the ResourceManager: a registration or a heartbeat.
func (n *node) call() {
	began := n.w.now
	n.w.mark("heartbeat", n.number, int64(n.m.Len()))
	if !n.m.Active() {
		req := n.m.Registration(began)
		call(
			n.w,
			n.host,
			n.of.host,
			10*time.Second,
			func(reply func(*pb.RegisterNodeManagerResponseProto, error)) { reply(n.of.registerNode(req)) },
			func(a *pb.RegisterNodeManagerResponseProto, err error) {
				n.called(began, nm.Registered{Answer: a}, err)
			},
		)
		return
	}
	req := n.m.Heartbeat(began)
	call(
		n.w,
		n.host,
		n.of.host,
		10*time.Second,
		func(reply func(*pb.NodeHeartbeatResponseProto, error)) { reply(n.of.heartbeat(req), nil) },
		func(a *pb.NodeHeartbeatResponseProto, err error) { n.called(began, nm.Answered{Answer: a}, err) },
	)
}

// called: the call has an end, and the next its time.
func (n *node) called(began time.Time, e nm.Event, err error) {
	n.calling = false
	next := began.Add(n.m.Interval())
	if err != nil {
		n.backoff = min(max(2*n.backoff, 100*time.Millisecond), 2*time.Second)
		next = n.w.now.Add(n.backoff)
	} else {
		n.backoff = 0
		n.step(e)
		if n.soon {
			next = n.w.now.Add(eager)
		}
		n.soon = false
	}
	if !n.m.Active() {
		next = n.w.now
	}
	n.wake(next)
}

// step gives an event to the machine and performs what it orders.
func (n *node) step(e nm.Event) error {
	actions, err := n.m.Step(n.w.now, e)
	if len(actions) > 0 {
		// Performing steps again, which reuses the machine's slice.
		for _, a := range append([]nm.Action(nil), actions...) {
			n.perform(a)
		}
	}
	if d := n.m.NextDeadline(); !d.IsZero() && d.UnixNano() != n.tick {
		n.tick = d.UnixNano()
		n.w.at(d, func() { _ = n.step(nm.Tick{}) }) // a tick is never refused
	}
	return err
}

func (n *node) perform(a nm.Action) {
	switch a := a.(type) {
	case nm.Localize:
		_ = n.step(nm.Localized{ID: a.Container.ID}) // news of the executor is never refused
	case nm.Launch:
		n.launch(a.Container)
	case nm.Kill:
		if p := n.jobs[a.ID]; p != nil {
			n.exited(a.ID, p, int32(128+a.Signal))
		}
	case nm.Cleanup:
		delete(n.jobs, a.ID)
		delete(n.scripts, a.ID)
		n.hurry()
	case nm.Register:
		n.wake(n.w.now)
	case nm.Halt:
		n.w.audit.breach("node %s was told to stop: %s", n.name, a.Reason)
	}
}

// hurry brings the next heartbeat forward, for a container has ended.
func (n *node) hurry() {
	if !n.m.Active() {
		return
	}
	if n.calling {
		n.soon = true
		return
	}
	n.wake(n.w.now.Add(eager))
}

func (n *node) launch(c *nm.Container) {
	p, script := &process{}, n.scripts[c.ID]
	delete(n.scripts, c.ID)
	n.jobs[c.ID] = p
	n.w.mark("start", c.ID.ID, n.number)
	n.w.audit.processStarted(c.ID)
	_ = n.step(nm.Launched{ID: c.ID}) // see perform
	id := c.ID
	if script.am {
		p.play = newAM(n, id, script.job, func(code int32) { n.exited(id, p, code) })
		p.play.begin()
		return
	}
	n.w.after(script.run, func() { n.exited(id, p, script.exit) })
}

// exited ends a process once, whoever is first: its time, its AM or its killer.
func (n *node) exited(id creel.ContainerID, p *process, code int32) {
	if p.ended || n.jobs[id] != p {
		return
	}
	p.ended = true
	if p.play != nil {
		p.play.die()
	}
	n.w.mark("exit", id.ID, int64(code))
	n.w.audit.processEnded(id)
	_ = n.step(nm.Exited{ID: id, Code: code}) // see perform
}

// The ContainerManagementProtocol.

func (n *node) startContainer(s started) error {
	id := s.grant.ID
	n.scripts[id] = s
	err := n.step(
		nm.Start{RM: s.rm, Expires: s.expires, Container: nm.Container{
			ID:        id,
			User:      s.user,
			Resource:  s.grant.Resource,
			Priority:  s.grant.Priority,
			Version:   s.grant.Version,
			Execution: s.grant.ExecutionType,
			AM:        s.am,
			RequestID: s.grant.AllocationRequestID,
			Created:   time.UnixMilli(s.grant.Created).UTC(),
		}},
	)
	if err != nil {
		delete(n.scripts, id)
	}
	return err
}

func (n *node) stopContainer(
	id creel.ContainerID,
) {
	_ = n.step(nm.Stop{ID: id})
} // one that is gone already is no failure
