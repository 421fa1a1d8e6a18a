// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"fmt"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/nm"
	"github.com/creelrm/creel/subcluster/nm/queue"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// product is creel's ResourceManager with its nodes: the state machines of the daemons.
type product struct {
	polls
	m         *rm.Machine
	nodes     map[creel.NodeID]*productNode
	responses map[*job]int32
	wanted    map[*job]int                // asked for and not granted, as the AM knows
	tasks     map[creel.ContainerID]*task // started ones
	report    rm.NodeReport
	use       rm.NodeUse
	mixed     bool // short tasks are opportunistic containers
}

// productNode is a node with an executor that only waits.
type productNode struct {
	p      *product
	number int
	m      *nm.Node
	pace   nm.Pace
	due    map[creel.ContainerID]bool // containers with a process
}

// start is the ResourceManager's start time, which identifies it.
const start = 1

// eager is the time between a container's end and the heartbeat that reports it, as in the daemon.
const eager = 20 * time.Millisecond

var slotSize = creel.NewResource(1024, 1)

// newProduct makes creel's way. With mixed, short tasks are opportunistic.
func newProduct(w *world, mixed bool, placing opportunistic.Placing) way {
	p := &product{
		nodes: map[creel.NodeID]*productNode{}, responses: map[*job]int32{},
		wanted: map[*job]int{}, tasks: map[creel.ContainerID]*task{},
		mixed: mixed,
	}
	p.polls = polls{w, p.allocate}
	conf := rm.Defaults()
	conf.Volatile, conf.ClusterTimestamp = true, start
	conf.Queues = queues.Default()
	conf.Queues.Calculator = queues.Dominant
	conf.Queues.MaxApplications = 1 << 20
	if mixed {
		central := opportunistic.Defaults()
		central.Comparator, central.Placing = opportunistic.QueueLengthThenResources, placing
		conf.Opportunistic = &central
	}
	var err error
	p.m, err = rm.New(conf)
	if p.must(err) != nil {
		return p
	}
	for i := range w.Nodes {
		p.add(i)
	}
	var tick func()
	tick = func() {
		p.m.Tick(w.now)
		p.act()
		w.after(time.Second, tick)
	}
	tick()
	return p
}

// must makes a run fail at an error that cannot occur in it.
func (p *product) must(err error) error {
	p.w.check(err == nil, "the ResourceManager or a node refuses: %v", err)
	return err
}

// act takes the machine's actions. Without saves and AM containers none is to be performed.
func (p *product) act() {
	for len(p.m.Actions(nil)) > 0 {
	}
}

func (p *product) submit(j *job) {
	s := &rm.Submission{ID: applicationOf(j), User: "ways", Queue: "default", Unmanaged: true}
	if p.must(p.m.Submit(p.w.now, s)) != nil {
		return
	}
	p.act()
	_, err := p.m.RegisterAM(p.w.now, &rm.RegisterAM{Attempt: attemptOf(j), Host: "am"})
	if p.must(err) != nil {
		return
	}
	p.act()
	p.polls.submit(j)
}

func applicationOf(j *job) creel.ApplicationID {
	return creel.ApplicationID{ClusterTimestamp: start, ID: int32(j.index + 1)}
}

func attemptOf(j *job) creel.AttemptID {
	return creel.AttemptID{Application: applicationOf(j), Attempt: 1}
}

// allocate is an AM's heartbeat.
func (p *product) allocate(j *job) (out []grant) {
	kind := creel.Guaranteed
	if p.mixed && j.class != Long {
		kind = creel.Opportunistic
	}
	call := rm.AllocateRequest{ResponseID: p.responses[j]}
	if len(j.waiting) != p.wanted[j] { // otherwise the ResourceManager has this number, less what it has granted
		call.Asks = []rm.Ask{{
			Priority: 1, ResourceName: "*", Resource: slotSize, Count: int32(len(j.waiting)), ExecutionType: kind,
		}}
	}
	answer, err := p.m.Allocate(p.w.now, attemptOf(j), &call)
	if p.must(err) != nil {
		return nil
	}
	p.responses[j] = answer.ResponseID
	for i := range answer.Completed {
		p.completed(j, &answer.Completed[i])
	}
	for i := range answer.Granted {
		g := answer.Granted[i]
		n := p.nodes[g.Node]
		out = append(out, grant{n.number, func(t *task) { n.start(t, &g) }})
	}
	p.act()
	p.wanted[j] = len(j.waiting) - len(out)
	return out
}

// completed makes an AM ask again for a task whose container was killed or rejected.
func (p *product) completed(j *job, c *rm.Completion) {
	t := p.tasks[c.ID]
	delete(p.tasks, c.ID)
	if t != nil && !t.over {
		j.lost = append(j.lost, t)
	}
}

func (p *product) finished(j *job) {
	_, err := p.m.FinishAM(p.w.now, &rm.FinishAM{Attempt: attemptOf(j), Status: creel.FinalSucceeded})
	p.must(err)
	p.act()
	delete(p.responses, j)
	delete(p.wanted, j)
}

// add makes and registers a node.
func (p *product) add(i int) {
	w := p.w
	conf := nm.Config{
		ID: creel.NodeID{Host: fmt.Sprintf("n%d", i), Port: 1}, HTTPPort: 2,
		Total: creel.NewResource(slotSize.MemoryMB*int64(w.Slots), int64(w.Slots)),
	}
	if p.mixed {
		conf.Queue = queue.Config{Length: queueLength, ByWork: true, Patience: patience}
	}
	n := &productNode{p: p, number: i, m: nm.New(conf), pace: nm.Pace{Eager: eager}, due: map[creel.ContainerID]bool{}}
	p.nodes[conf.ID] = n
	event := codec.RegisterNode(n.m.Registration(w.now))
	event.Rack = "/rack"
	registered, err := p.m.RegisterNode(w.now, &event)
	if p.must(err) != nil {
		return
	}
	p.act()
	n.step(nm.Registered{Answer: codec.RegisterNodeResponse(&registered, codec.NodeKeys{}, start, "ways")})
	first := w.now.Add(time.Duration(w.rnd.Int64N(int64(w.NodeHeartbeat))))
	n.wake(first, n.pace.Wake(first))
}

// wake sets the timer of a heartbeat.
func (n *productNode) wake(at time.Time, set bool) {
	if !set {
		return
	}
	n.p.w.at(at, func() {
		if n.pace.Fire(at) {
			n.heartbeat()
		}
	})
}

// heartbeat sends one heartbeat.
func (n *productNode) heartbeat() {
	p, w := n.p, n.p.w
	began := w.now
	req := n.m.Heartbeat(began)
	w.send(func() {
		codec.NodeHeartbeat(req, &p.report, &p.use)
		answer := *p.m.NodeHeartbeat(w.now, &p.report)
		out := codec.NodeHeartbeatResponse(&answer, codec.NodeKeys{}, w.NodeHeartbeat, nil)
		p.act()
		w.send(func() {
			n.pace.Ended()
			n.step(nm.Answered{Answer: out})
			n.wake(n.pace.Next(began, w.now, n.m.Interval(), true))
		})
	})
}

// start starts a task in its container.
func (n *productNode) start(t *task, g *rm.Grant) {
	w := n.p.w
	n.p.tasks[g.ID] = t
	n.step(nm.Start{
		Container: nm.Container{ID: g.ID, User: "ways", Resource: slotSize, Priority: 1, Execution: g.ExecutionType},
		Launch: &pb.ContainerLaunchContextProto{Environment: []*pb.StringStringMapProto{{
			Key: new(nm.EnvWork), Value: new(strconv.FormatInt(t.job.work.Milliseconds(), 10)),
		}}},
		RM: start, Expires: w.now.Add(time.Minute),
	})
}

// step passes an event to the node's machine and performs its actions.
func (n *productNode) step(e nm.Event) {
	actions, err := n.m.Step(n.p.w.now, e)
	n.p.must(err)
	for _, a := range append([]nm.Action(nil), actions...) { // the machine reuses its slice
		n.perform(a)
	}
}

func (n *productNode) perform(a nm.Action) {
	w := n.p.w
	switch a := a.(type) {
	case nm.Localize:
		n.step(nm.Localized{ID: a.Container.ID})
	case nm.Launch:
		id, t := a.Container.ID, n.p.tasks[a.Container.ID]
		n.due[id] = true
		w.starts(t, n.number)
		n.step(nm.Launched{ID: id})
		w.after(t.run, func() {
			if n.due[id] {
				delete(n.due, id)
				w.ends(t)
				n.step(nm.Exited{ID: id})
			}
		})
	case nm.Kill:
		t := n.p.tasks[a.ID]
		delete(n.due, a.ID)
		w.kills(t)
		n.step(nm.Exited{ID: a.ID, Code: nm.ExitTerminated})
	case nm.Cleanup:
		if t := n.p.tasks[a.ID]; t != nil && t.started.IsZero() {
			w.result.Dropped++
		}
		n.wake(n.pace.Hurry(w.now, n.m.Active()))
	case nm.Halt:
		w.check(false, "node %d was ordered to stop: %s", n.number, a.Reason)
	}
}
