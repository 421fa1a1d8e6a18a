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
	"github.com/creelrm/creel/app/sim/opportune"
	"github.com/creelrm/creel/app/sim/overcommit"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/nm"
	"github.com/creelrm/creel/subcluster/rm"
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

	queue *opportune.Queue // nil: it runs no opportunistic containers
	uses  *overcommit.Node // nil: it does not measure its use
	deep  int              // steps within a step
}

// envJob is the environment variable with an AM's job, in its launch context.
const envJob = "CREEL_SIM_JOB"

// process is a container's simulated process.
type process struct {
	ended bool
	play  *am // of an AM's container
	code  int32
	due   time.Time     // of its own end; zero while it is paused
	left  time.Duration // while it is paused
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
	if c.w.opportune.Configure(&n.conf.Queue); c.w.opportune != nil {
		n.queue = opportune.NewQueue()
	}
	if p := c.w.opportune.Lends(); p != nil {
		n.conf.Overallocation = p.Node
	}
	n.m = nm.New(n.conf)
	n.looks()
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
	n.deep++
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
	if n.deep--; n.deep == 0 && n.queue != nil && n.uses == nil {
		n.obeys(n.queue.Reclaims(n.m, n.conf.Total, func(id creel.ContainerID) bool {
			p := n.jobs[id]
			return p != nil && !p.ended
		}))
	}
	return err
}

func (n *node) perform(a nm.Action) {
	switch a := a.(type) {
	case nm.Localize:
		n.queue.Arrives(a.Container.ID, n.w.now)
		_ = n.step(nm.Localized{ID: a.Container.ID}) // the executor's events are never rejected
	case nm.Launch:
		n.launch(a)
	case nm.Kill:
		if p := n.jobs[a.ID]; p != nil {
			n.exited(a.ID, p, int32(128+a.Signal))
		}
	case nm.Pause:
		n.suspend(a.ID)
	case nm.Resume:
		n.obeys(n.uses.Resumes(a.ID))
		n.runFor(a.ID, n.jobs[a.ID], n.jobs[a.ID].left)
		_ = n.step(nm.Resumed(a)) // see perform
	case nm.SignalContainer:
		n.w.audit.signalArrives(a)
	case nm.Cleanup:
		delete(n.jobs, a.ID)
		n.ends(a.ID)
		n.hurry()
	case nm.Register:
		n.wake(n.w.now)
	case nm.Halt:
		n.pace.Halt()
		n.w.audit.breach("node %s was ordered to stop: %s", n.name, a.Reason)
	}
}

// looks begins the measurements of a node whose process starts.
func (n *node) looks() {
	p := n.w.opportune.Lends()
	if p == nil {
		return
	}
	n.uses = p.NewNode(n.conf.Total)
	uses := n.uses
	var look func()
	look = func() {
		if n.uses != uses {
			return
		}
		_ = n.step(uses.Measure(n.w.now)) // a measurement is never rejected
		n.obeys(uses.Looked(n.w.now))
		n.obeys(uses.Displaces(n.m, n.w.now, n.queue.Since))
		if n.w.cfg.Faults == nil { // otherwise heartbeats may be late
			n.obeys(uses.Promoted(func(id creel.ContainerID) bool {
				c, ok := n.of.m.Container(id)
				return ok && c.ExecutionType == creel.Guaranteed
			}))
		}
		n.w.on(n.host, overcommit.Period, look)
	}
	n.w.on(n.host, overcommit.Period, look)
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
	script := nm.ReadScript(a.Launch, time.Second)
	n.starts(a.Container)
	n.obeys(n.uses.Starts(a.Container, script, n.w.now))
	n.w.mark("start", id.ID, n.number)
	n.w.audit.processStarted(id)
	_ = n.step(nm.Launched{ID: id}) // see perform
	if a.Container.AM {
		p.play = newAM(n, id, jobOf(a.Launch), func(code int32) { n.exited(id, p, code) })
		p.play.begin()
		return
	}
	p.code = script.Code
	n.runFor(id, p, script.Run)
}

// runFor ends a process by itself after a time, unless it is paused before.
func (n *node) runFor(id creel.ContainerID, p *process, d time.Duration) {
	due := n.w.now.Add(d)
	p.due = due
	n.w.after(d, func() {
		n.w.awake(n.host, func() {
			if p.due.Equal(due) {
				n.exited(id, p, p.code)
			}
		})
	})
}

// suspend pauses a container's process. YARN's executors cannot do that.
func (n *node) suspend(id creel.ContainerID) {
	p := n.jobs[id]
	if p == nil || p.ended || !n.w.opportune.Pauses {
		_ = n.step(nm.Suspended{ID: id, Failure: "its executor cannot pause"}) // see perform
		return
	}
	p.left, p.due = max(p.due.Sub(n.w.now), 0), time.Time{}
	n.w.mark("pause", id.ID, n.number)
	n.uses.Pauses(id)
	_ = n.step(nm.Suspended{ID: id}) // see perform
}

// obeys checks that no rule of its queue is broken.
func (n *node) obeys(broken string) { n.w.audit.check(broken == "", "node %s: %s", n.name, broken) }

// starts checks and counts a container that leaves the queue for a process.
func (n *node) starts(c *nm.Container) {
	if n.queue == nil {
		return
	}
	since, broken := n.queue.Starts(n.m, c)
	n.obeys(broken)
	if c.Execution == creel.Opportunistic {
		n.w.opportune.Result.Started(n.w.now.Sub(since))
	}
}

// ends checks and counts a container that the node has ended.
func (n *node) ends(id creel.ContainerID) {
	if n.queue == nil {
		return
	}
	why, killed := n.queue.Ends(n.m, id)
	n.obeys(n.uses.Ends(id, why, killed, n.w.now))
	if killed {
		n.w.opportune.Result.Killed(why)
		endedByNode(n.w, id, n.host, n.of)
	}
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
	if n.queue != nil {
		n.queue = opportune.NewQueue()
	}
	n.uses = nil
	n.m = nm.New(n.conf)
	n.pace, n.tick = nm.Pace{Eager: eager}, 0
}

func (n *node) comeBack() {
	n.w.boot(n.host)
	n.looks()
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

// promote passes a promoted container's new token from its AM to its node, until the node has answered.
func (w *World) promote(m *am, id creel.ContainerID, c *pb.ContainerProto) {
	at := pb.ToNodeID(c.GetNodeId())
	n, visitor := w.nodes[at], m.nmTokens[at]
	w.mark("promoted", id.ID, int64(c.GetVersion()))
	w.audit.happens(id, wasPromoted)
	call(w, m.at.host, n.host, 10*time.Second, func(reply func(bool, error)) {
		reply(true, n.updateContainer(visitor, c.GetContainerToken()))
	}, func(_ bool, err error) {
		switch {
		case m.dead || !m.mix.Promotes(id):
		case again(err):
			m.later(time.Second, func() { w.promote(m, id, c) })
		default: // if the node refuses, the container has ended or has this version already
			m.mix.Ended(id)
		}
	})
}

// updateContainer implements the call like nm/rpc, for one token.
func (n *node) updateContainer(visitor, t *pb.TokenProto) error {
	who, err := n.visitor(visitor)
	if err != nil {
		return err
	}
	id, err := n.m.CheckContainer(token.FromProto(t))
	if err == nil {
		err = nm.MayTouch(who, id.ID, "update")
	}
	if err == nil {
		err = n.step(nm.Update{ID: id.ID, Version: id.Version, Resource: id.Resource, Execution: id.Execution})
	}
	if err == nil && id.Execution == creel.Guaranteed && n.w.opportune != nil {
		n.w.opportune.Result.Promoted++
	}
	return err
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

// arrives checks later that an AM knows a fact about its container. Excused are the end of the container, of its AM, of
// its UAM, and of its ResourceManager's process: the AM and the new process agree by other means. A store that lost
// writes may have lost the UAM.
func arrives(w *World, id creel.ContainerID, of *cluster, what string, known func(*am) bool) {
	app := id.Attempt.Application
	m, process := w.audit.apps[app].am, of.process
	v, _ := of.m.App(app)
	if m == nil {
		return
	}
	within := releaseTime + w.faults.Down
	w.after(within, func() {
		c := w.clusters[of.index]
		now, there := c.m.App(app)
		_, holds := m.held[id]
		ended := !there || now.Attempt != v.Attempt || now.State.Ended()
		unsure := w.audit.apps[app].twice || w.audit.forgetful()
		if m.dead || !holds || c.process != process || !c.up || ended || unsure {
			return
		}
		w.audit.check(known(m), "%s %s %v ago, and its AM does not know", id, what, within)
	})
}

// endedByNode checks that an AM learns that a node ended its container for another one, or for the length of its queue.
// Otherwise the task would be lost.
func endedByNode(w *World, id creel.ContainerID, at *host, of *cluster) {
	w.mark("ended by its node", id.ID, at.number)
	epoch := at.epoch
	arrives(w, id, of, "was ended by its node", func(m *am) bool {
		_, told := m.told[id]
		return told || at.epoch != epoch
	})
}

// promises checks that an AM learns of a promotion that its ResourceManager has made, whatever happens to the answer.
// The queue pays for the container from then on, so its node must get the new token.
func promises(c *cluster, answer *rm.Answer) {
	for i := range answer.Updated {
		id := answer.Updated[i].Grant.ID
		arrives(c.w, id, c, "was promoted", func(*am) bool { return c.w.audit.happened(id, wasPromoted) })
	}
}
