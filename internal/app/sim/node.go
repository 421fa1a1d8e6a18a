// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"crypto/hmac"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/nm"
)

// eager is the time between a container's end and the heartbeat that reports it.
const eager = 20 * time.Millisecond

// node is a NodeManager, with an executor that only waits.
type node struct {
	*host
	w       *World
	of      *cluster
	address string // host:port
	conf    nm.Config
	rack    string
	m       *nm.Node
	jobs    map[creel.ContainerID]*process
	pace    nm.Pace
	skew    time.Duration // error of its wall clock; timers use the monotonic clock
	tick    int64
}

// envJob is the environment variable with an AM's job, in its launch context.
const envJob = "CREEL_SIM_JOB"

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
		address: id.String(),
		rack:    rackOf(c.index, i),
		pace:    nm.Pace{Eager: eager},
		jobs:    map[creel.ContainerID]*process{},
	}
	n.conf = nm.Config{ID: id, HTTPPort: 8042, Total: c.w.cfg.Members[c.index].NodeSize, Version: "sim"}
	n.m = nm.New(n.conf)
	c.w.nodes[id], c.w.hostsOf[id.Host] = n, n
	// Registrations are spread, and so are all later heartbeats.
	n.wake(c.w.now.Add(time.Duration(c.w.rnd.Int64N(int64(min(time.Second, c.w.cfg.NodeHeartbeat))))))
	return n
}

// wake schedules the node's call at a time, if that is earlier than the scheduled one.
func (n *node) wake(at time.Time) {
	if n.pace.Wake(at) {
		n.w.push(at, n)
	}
}

// run is the timer of a call.
func (n *node) run() {
	due := n.w.now
	n.w.awake(n.host, func() {
		if n.pace.Fire(due) {
			n.call()
		}
	})
}

// call makes one call to the ResourceManager: a registration or a heartbeat.
func (n *node) call() {
	began := n.w.now
	n.w.mark("heartbeat", n.number, int64(n.m.Len()))
	if !n.m.Active() {
		req := n.m.Registration(began.Add(n.skew))
		call(
			n.w,
			n.host,
			n.of.host,
			10*time.Second,
			func(reply func(*pb.RegisterNodeManagerResponseProto, error)) { n.of.registerNode(req, reply) },
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
		func(reply func(*pb.NodeHeartbeatResponseProto, error)) { n.of.heartbeat(req, reply) },
		func(a *pb.NodeHeartbeatResponseProto, err error) { n.called(began, nm.Answered{Answer: a}, err) },
	)
}

// called records the end of a call, and schedules the next one.
func (n *node) called(began time.Time, e nm.Event, err error) {
	n.pace.Ended()
	interval := n.m.Interval()
	if err == nil {
		_ = n.step(e) // an answer is never rejected
		_, registers := e.(nm.Registered)
		n.w.audit.heartbeats(n, registers || !n.m.Active())
	}
	if at, set := n.pace.Next(began, n.w.now, interval, err == nil); set {
		n.w.push(at, n)
	}
}

// step passes an event to the machine and performs the resulting actions.
func (n *node) step(e nm.Event) error {
	now := n.w.now
	if _, start := e.(nm.Start); start {
		now = now.Add(n.skew) // it checks a token's expiry
	}
	actions, err := n.m.Step(now, e)
	if len(actions) > 0 {
		// Carrying out an action steps again, which reuses the machine's slice.
		for _, a := range append([]nm.Action(nil), actions...) {
			n.perform(a)
		}
	}
	if d := n.m.NextDeadline(); !d.IsZero() && d.UnixNano() != n.tick {
		n.tick = d.UnixNano()
		n.w.at(d, func() { n.w.awake(n.host, func() { _ = n.step(nm.Tick{}) }) }) // a tick is never rejected
	}
	return err
}

func (n *node) perform(a nm.Action) {
	switch a := a.(type) {
	case nm.Localize:
		_ = n.step(nm.Localized{ID: a.Container.ID}) // the executor's events are never rejected
	case nm.Launch:
		n.launch(a)
	case nm.Kill:
		if p := n.jobs[a.ID]; p != nil {
			n.exited(a.ID, p, int32(128+a.Signal))
		}
	case nm.Pause: // as in YARN's executors, which cannot pause
		_ = n.step(nm.Suspended{ID: a.ID, Failure: "its executor cannot pause"}) // see perform
	case nm.SignalContainer:
		n.w.audit.signalArrives(a)
	case nm.Cleanup:
		delete(n.jobs, a.ID)
		n.hurry()
	case nm.Register:
		n.wake(n.w.now)
	case nm.Halt:
		n.pace.Halt()
		n.w.audit.breach("node %s was ordered to stop: %s", n.name, a.Reason)
	}
}

// hurry makes the next heartbeat earlier, because a container has ended.
func (n *node) hurry() {
	if at, set := n.pace.Hurry(n.w.now, n.m.Active()); set {
		n.w.push(at, n)
	}
}

func (n *node) launch(a nm.Launch) {
	id, p := a.Container.ID, &process{}
	n.jobs[id] = p
	n.w.mark("start", id.ID, n.number)
	n.w.audit.processStarted(id)
	_ = n.step(nm.Launched{ID: id}) // see perform
	if a.Container.AM {
		p.play = newAM(n, id, jobOf(a.Launch), func(code int32) { n.exited(id, p, code) })
		p.play.begin()
		return
	}
	script := nm.ReadScript(a.Launch, time.Second)
	n.w.after(script.Run, func() { n.w.awake(n.host, func() { n.exited(id, p, script.Code) }) })
}

// jobOf returns the job of an AM from its launch context.
func jobOf(l *pb.ContainerLaunchContextProto) (job int) {
	for _, e := range l.GetEnvironment() {
		if e.GetKey() == envJob {
			job, _ = strconv.Atoi(e.GetValue()) // written by router.go
		}
	}
	return job
}

// kill ends the node's process and all its containers.
func (n *node) kill() {
	n.w.crash(n.host)
	known := n.of.up && n.m.RM() == n.of.start.UnixMilli()
	for _, c := range n.m.Containers() { // ended ones too: their completion may not have been reported
		if m := n.w.audit.apps[c.ID.Attempt.Application].am; m != nil {
			// A restarted proxy knows no containers before its AM's first call, and receives no completion if the UAM
			// ends before that call.
			n.w.audit.vanish(m, c.ID, n.of, known && m.proxy().sessions[m.attempt] != nil)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(n.jobs), creel.ContainerID.Compare) {
		if p := n.jobs[id]; !p.ended {
			p.ended = true
			if p.play != nil {
				p.play.die()
			}
			n.w.audit.processEnded(id)
		}
	}
	clear(n.jobs)
	n.m = nm.New(n.conf)
	n.pace, n.tick = nm.Pace{Eager: eager}, 0
}

func (n *node) comeBack() {
	n.w.boot(n.host)
	n.wake(n.w.now)
}

// exited ends a process once, for the first cause: its time, its AM or a kill.
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

// visitor checks the NMToken of a call to the node.
func (n *node) visitor(t *pb.TokenProto) (token.NM, error) {
	id, err := token.ParseNM(t.GetIdentifier())
	if err != nil {
		return id, err
	}
	password, err := n.m.CheckNM(id, t.GetIdentifier())
	if err == nil && !hmac.Equal(password, t.GetPassword()) {
		err = &creel.Error{Kind: creel.ErrInvalidToken, What: "NMToken of " + id.Attempt.String()}
	}
	return id, err
}

// startContainers implements the call like nm/rpc.
func (n *node) startContainers(
	visitor *pb.TokenProto,
	req *pb.StartContainersRequestProto,
) (*pb.StartContainersResponseProto, error) {
	who, err := n.visitor(visitor)
	if err != nil {
		return nil, err
	}
	out := &pb.StartContainersResponseProto{}
	for _, r := range req.GetStartContainerRequest() {
		id, err := n.m.CheckContainer(token.FromProto(r.GetContainerToken()))
		if err != nil {
			return nil, err // a forged token fails the whole call
		}
		start, err := nm.StartOf(who, id, r.GetContainerLaunchContext())
		if err == nil {
			err = n.step(start)
		}
		if errors.Is(err, creel.ErrUnavailable) {
			return nil, err
		}
		if err != nil {
			out.FailedRequests = append(out.FailedRequests, &pb.ContainerExceptionMapProto{
				ContainerId: pb.FromContainerID(id.ID),
				Exception:   &pb.SerializedExceptionProto{Message: new(err.Error())},
			})
			continue
		}
		out.SucceededRequests = append(out.SucceededRequests, pb.FromContainerID(id.ID))
	}
	return out, nil
}

func (n *node) stopContainers(
	visitor *pb.TokenProto,
	req *pb.StopContainersRequestProto,
) (*pb.StopContainersResponseProto, error) {
	who, err := n.visitor(visitor)
	if err != nil {
		return nil, err
	}
	for _, p := range req.GetContainerId() {
		id := pb.ToContainerID(p)
		if nm.MayTouch(who, id, "stop") == nil {
			_ = n.step(nm.Stop{ID: id}) // it is no error if it has ended already
		}
	}
	return &pb.StopContainersResponseProto{}, nil
}
