// SPDX-License-Identifier: Apache-2.0

package pairs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// leader is a client's guess of the active half.
type leader int

func (l *leader) wrong() { *l = 1 - *l }

// node is a NodeManager.
type node struct {
	w          *world
	id         creel.NodeID
	to         leader
	registered int64 // identifier of the ResourceManager; 0: it must register
	response   int32
	boxes      map[creel.ContainerID]*box
}

// box is a container on a node.
type box struct {
	id       creel.ContainerID
	am       *am // its AM, or the one that it is
	isAM     bool
	resource creel.Resource
	priority int32
	created  time.Time
	ended    bool
	exit     int32
}

func (w *world) node(id creel.NodeID) *node {
	for _, n := range w.nodes {
		if n.id == id {
			return n
		}
	}
	panic("unknown node " + id.String())
}

func newNode(w *world, i int) *node {
	n := &node{
		w: w, id: creel.NodeID{Host: fmt.Sprintf("n%d", i), Port: 8041}, boxes: map[creel.ContainerID]*box{},
	}
	w.after(time.Duration(i)*100*time.Millisecond, n.round)
	return n
}

func (n *node) sorted() []*box {
	return slices.SortedFunc(maps.Values(n.boxes), func(a, b *box) int { return a.id.Compare(b.id) })
}

func (n *node) round() {
	if n.registered == 0 {
		n.register()
	} else {
		n.heartbeat()
	}
}

func (n *node) later() { n.w.after(n.w.between(500*time.Millisecond, time.Second), n.round) }

func (n *node) register() {
	r := rm.RegisterNode{ID: n.id, HTTPPort: 8042, Resource: creel.NewResource(32<<10, 32), Version: "sim"}
	for _, b := range n.sorted() {
		s := creel.ContainerRunning
		if b.ended {
			s = creel.ContainerComplete
		}
		r.Containers = append(r.Containers, rm.NodeContainer{
			ID: b.id, State: s, Resource: b.resource, Priority: b.priority, Created: b.created, ExitStatus: b.exit,
		})
	}
	request(n.w, int(n.to), func(a *active, m *rm.Machine, now time.Time) (int64, error) {
		out, err := m.RegisterNode(now, &r)
		if err == nil && out.Action != rm.NodeNormal {
			err = errors.New(out.Diagnostics)
		}
		return a.identifier, err
	}, false, func(identifier int64, err error) {
		switch {
		case err == nil:
			n.registered, n.response = identifier, 0
		case isOneOf(err, creel.ErrStandby, errRefused, errSilence):
			n.to.wrong()
		default:
			n.w.breach("%s cannot register: %v", n.id, err)
		}
		n.later()
	})
}

// order is the copy of a node's answer.
type order struct {
	action          rm.NodeAction
	response        int32
	cleanup, forget []creel.ContainerID
	apps            []creel.ApplicationID
}

func (n *node) heartbeat() {
	r := rm.NodeReport{ID: n.id, ResponseID: n.response}
	for _, b := range n.sorted() {
		s := rm.ContainerStatus{ID: b.id, State: creel.ContainerRunning}
		if b.ended {
			s.State, s.ExitStatus = creel.ContainerComplete, b.exit
		}
		r.Containers = append(r.Containers, s)
	}
	at := n.registered
	request(n.w, int(n.to), func(_ *active, m *rm.Machine, now time.Time) (order, error) {
		out := m.NodeHeartbeat(now, &r)
		return order{
			out.Action, out.ResponseID, slices.Clone(out.Cleanup), slices.Clone(out.Forget), slices.Clone(out.Apps),
		}, nil
	}, false, func(o order, err error) {
		switch {
		case err != nil:
			n.to.wrong()
		case o.action == rm.NodeResync:
			n.registered = 0
		case o.action != rm.NodeNormal:
			n.w.breach("%s is ordered to %d", n.id, o.action)
		case n.registered == at:
			n.response = o.response
			for _, id := range o.cleanup {
				n.cleanup(id)
			}
			for _, id := range o.forget {
				delete(n.boxes, id)
			}
			for _, app := range o.apps {
				for _, b := range n.sorted() {
					if b.id.Attempt.Application == app {
						n.w.audit.stopped(b, "its application has ended")
						n.end(b, 143)
					}
				}
			}
		}
		n.later()
	})
}

// cleanup ends a container by the ResourceManager's order.
func (n *node) cleanup(id creel.ContainerID) {
	if b := n.boxes[id]; b != nil {
		n.w.audit.stopped(b, "it is to clean it up")
		n.end(b, 143)
	}
}

func (n *node) kill(id creel.ContainerID) {
	if b := n.boxes[id]; b != nil {
		n.end(b, 143)
	}
}

func (n *node) end(b *box, exit int32) {
	if b.ended {
		return
	}
	b.ended, b.exit = true, exit
	if b.isAM {
		b.am.dead = true
	}
}

// startAM starts an AM's container, as often as it is asked for.
func (n *node) startAM(identifier int64, attempt creel.AttemptID, g *rm.Grant) error {
	if n.registered != identifier {
		return fmt.Errorf("%w: registered with another ResourceManager", creel.ErrBusy)
	}
	if n.boxes[g.ID] != nil {
		return nil
	}
	n.w.audit.starts(g.ID, n)
	m := newAM(n.w, attempt, n)
	n.boxes[g.ID] = &box{
		id: g.ID, am: m, isAM: true, resource: g.Resource, priority: g.Priority, created: time.UnixMilli(g.Created),
	}
	m.box = n.boxes[g.ID]
	return nil
}

// app is an application with its client.
type app struct {
	w            *world
	id           creel.ApplicationID
	to           leader
	acknowledged bool
	finished     bool // its AM was told so
	lost         bool // Redis has lost it
	running      *am
	attempts     map[creel.AttemptID]int64 // identifier of the ResourceManager that launched it
}

// submit makes another application, whose client repeats the submission until it is acknowledged.
func (w *world) submit() {
	a := &app{
		w: w, id: creel.ApplicationID{ClusterTimestamp: start.UnixMilli(), ID: int32(len(w.apps) + 1)},
		attempts: map[creel.AttemptID]int64{},
	}
	w.apps = append(w.apps, a)
	a.try()
}

func (a *app) try() {
	request(a.w, int(a.to), func(_ *active, m *rm.Machine, now time.Time) (struct{}, error) {
		s, err := codec.Submission(&pb.ApplicationSubmissionContextProto{
			ApplicationId: pb.FromApplicationID(a.id), Queue: new("default"),
			Resource:        &pb.ResourceProto{Memory: new(int64(1024)), VirtualCores: new(int32(1))},
			AmContainerSpec: &pb.ContainerLaunchContextProto{},
		}, "ann", nil, codec.DefaultTagLimits)
		if err == nil {
			err = m.Submit(now, &s)
		}
		return struct{}{}, err
	}, true, func(_ struct{}, err error) {
		switch {
		case err == nil:
			a.acknowledged = true
			a.w.audit.acknowledged++
		case isOneOf(err, creel.ErrStandby, errRefused, errSilence):
			a.to.wrong()
			a.w.after(300*time.Millisecond, a.try)
		default:
			a.w.breach("%s is rejected: %v", a.id, err)
		}
	})
}

// am is an ApplicationMaster: it runs some containers, and ends.
type am struct {
	w          *world
	app        *app
	attempt    creel.AttemptID
	box        *box
	to         leader
	dead       bool
	registered bool
	response   int32
	left       int  // containers that have not ended well
	ask        bool // the number of wanted ones has changed
	held       map[creel.ContainerID]*node
	release    []creel.ContainerID
	released   map[creel.ContainerID]bool
}

func newAM(w *world, attempt creel.AttemptID, n *node) *am {
	a := w.apps[attempt.Application.ID-1]
	m := &am{
		w: w, app: a, attempt: attempt, left: 1 + w.rnd.IntN(4), to: n.to,
		held: map[creel.ContainerID]*node{}, released: map[creel.ContainerID]bool{},
	}
	w.audit.runs(m)
	a.running = m
	w.after(w.upTo(time.Second), m.round)
	return m
}

func (m *am) later(d time.Duration) { m.w.after(d, m.round) }

func (m *am) round() {
	switch {
	case m.dead:
	case !m.registered:
		m.register()
	case m.left == 0:
		m.finish()
	default:
		m.allocate()
	}
}

// failed handles an error of any call.
func (m *am) failed(what string, err error) {
	switch {
	case m.dead:
		return
	case isOneOf(err, creel.ErrStandby, errRefused, errSilence):
		m.to.wrong()
	case isOneOf(err, creel.ErrNotRegistered):
		m.registered = false
	case isOneOf(err, creel.ErrAttemptNotFound, creel.ErrApplicationNotFound, rm.ErrOutOfStep) &&
		m.w.now.Before(m.w.redis.unsafe):
		m.to.wrong() // one of two leaders may lack it
	case isOneOf(err, creel.ErrAttemptNotFound, creel.ErrApplicationNotFound):
		if !m.app.lost && !m.w.audit.excuses(m.app.id) {
			m.w.breach("the AM of %s cannot %s: %v", m.attempt, what, err)
		}
		m.exit()
		return
	case errors.Is(err, rm.ErrOutOfStep) && m.w.audit.excuses(m.app.id): // its attempt begins again
		m.exit()
		return
	default:
		m.w.breach("the AM of %s cannot %s: %v", m.attempt, what, err)
	}
	m.later(300 * time.Millisecond)
}

func (m *am) exit() {
	m.dead = true
	m.box.ended = true
	for _, n := range m.held {
		for _, b := range n.sorted() {
			if b.am == m {
				n.end(b, 0)
			}
		}
	}
}

func (m *am) register() {
	request(m.w, int(m.to), func(_ *active, r *rm.Machine, now time.Time) (struct{}, error) {
		_, err := r.RegisterAM(now, &rm.RegisterAM{Attempt: m.attempt, Host: "am"})
		return struct{}{}, err
	}, false, func(_ struct{}, err error) {
		if err != nil && !errors.Is(err, rm.ErrAlreadyRegistered) { // then the answer was lost
			m.failed("register", err)
			return
		}
		m.registered, m.response, m.ask = true, 0, true
		m.round()
	})
}

// news is the copy of an answer to an AM.
type news struct {
	response  int32
	granted   []rm.Grant
	completed []rm.Completion
	from      int64
}

func (m *am) allocate() {
	r := rm.AllocateRequest{ResponseID: m.response, Release: slices.Clone(m.release)}
	if m.ask {
		r.Asks = []rm.Ask{{
			Priority: 1, ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: int32(m.left - len(m.held)),
		}}
	}
	sent := len(m.release)
	request(m.w, int(m.to), func(a *active, machine *rm.Machine, now time.Time) (news, error) {
		out, err := machine.Allocate(now, m.attempt, &r)
		if err != nil {
			return news{}, err
		}
		return news{out.ResponseID, slices.Clone(out.Granted), slices.Clone(out.Completed), a.identifier}, nil
	}, false, func(n news, err error) {
		if err != nil {
			m.failed("allocate", err)
			return
		}
		m.response, m.release, m.ask = n.response, m.release[sent:], false
		for _, c := range n.completed {
			m.completed(&c)
		}
		for i := range n.granted {
			m.granted(&n.granted[i], n.from)
		}
		m.later(m.w.between(200*time.Millisecond, time.Second))
	})
}

func (m *am) completed(c *rm.Completion) {
	if m.held[c.ID] == nil {
		return
	}
	delete(m.held, c.ID)
	if c.ExitStatus == 0 {
		m.left--
	} else {
		m.ask = true
	}
}

// granted starts a container on its node.
func (m *am) granted(g *rm.Grant, from int64) {
	m.w.audit.grants(g.ID, m)
	if len(m.held) >= m.left { // it asked again after a takeover
		m.drop(g.ID)
		return
	}
	n := m.w.node(g.Node)
	m.held[g.ID] = n
	id, resource, created := g.ID, g.Resource, time.UnixMilli(g.Created)
	m.w.after(m.w.between(time.Millisecond, 100*time.Millisecond), func() {
		switch {
		case m.dead || m.held[id] == nil:
		case n.registered != from: // as NodeManagers do
			delete(m.held, id)
			m.drop(id)
			m.ask = true
		default:
			m.w.audit.starts(id, n)
			b := &box{id: id, am: m, resource: resource, priority: 1, created: created}
			n.boxes[id] = b
			m.w.after(m.w.between(time.Second, 15*time.Second), func() { n.end(b, 0) })
		}
	})
}

func (m *am) drop(id creel.ContainerID) {
	m.release = append(m.release, id)
	m.released[id] = true
}

func (m *am) finish() {
	request(m.w, int(m.to), func(_ *active, r *rm.Machine, now time.Time) (bool, error) {
		return r.FinishAM(now, &rm.FinishAM{Attempt: m.attempt, Status: creel.FinalSucceeded})
	}, false, func(done bool, err error) {
		switch {
		case err != nil:
			m.failed("finish", err)
		case !done:
			m.later(100 * time.Millisecond)
		default:
			m.app.finished = true
			m.exit()
		}
	})
}
