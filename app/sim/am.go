// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/sim/opportune"
	"github.com/creelrm/creel/internal/workload"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/nm"
)

// am drives a workload.AM on its node: it registers with the proxy of its subcluster, asks, starts its tasks'
// containers on their nodes, and finishes. It is app/load's AM in virtual time.
type am struct {
	w       *World
	at      *node
	home    int // index of its subcluster
	attempt creel.AttemptID
	play    *workload.AM
	exit    func(code int32)
	dead    bool
	user    string

	responseID int32
	steps      workload.Steps // content of the next allocate
	held       map[creel.ContainerID]*pb.ContainerProto
	nmTokens   map[creel.NodeID]*pb.TokenProto
	told       map[creel.ContainerID]int // containers with a known completion, by the epoch of the reporting proxy
	asked      map[int32][]time.Time     // per priority, time of the ask for each wanted container
	stalled    time.Time                 // until then it makes no calls
	wishes     map[int32]*wish           // per priority, wanted places; nil for any place
	lastSaid   map[int32]workload.Ask    // per priority
	pace       time.Duration             // between calls without changes
	keeps      bool                      // its containers, over attempts
	mix        *opportune.Mix            // nil: it asks for no opportunistic containers
	keeper
}

// hurry is the time between the calls of an AM in a hurry, such as Spark's while it waits.
const hurry = 50 * time.Millisecond

// proxy is the proxy of its subcluster; of two, the later one.
func (m *am) proxy() *proxy { return m.w.proxies[m.home] }

// callTime limits an AM's call to its proxy.
const callTime = 60 * time.Second

func newAM(n *node, id creel.ContainerID, job int, exit func(int32)) *am {
	w := n.w
	j := w.cfg.Jobs[job]
	pace := w.cfg.AMHeartbeat
	if f := w.faults.Hurried; f > 0 && source(w.cfg.Seed+uint64(job), "hurried AMs").Float64() < f {
		pace = hurry
		w.audit.fault("hurried AMs")
	}
	m := &am{
		w:       w,
		at:      n,
		home:    int(id.Epoch()/epochStep - 1),
		attempt: id.Attempt,
		exit:    exit,
		user:    j.User,
		play: workload.NewAM(
			j,
			w.audit.ams,
			w.cfg.Durations,
		),
		held:     map[creel.ContainerID]*pb.ContainerProto{},
		nmTokens: map[creel.NodeID]*pb.TokenProto{},
		told:     map[creel.ContainerID]int{},
		asked:    map[int32][]time.Time{},
		wishes:   w.wishes(job),
		lastSaid: map[int32]workload.Ask{},
		pace:     pace,
		keeps:    w.keeps(job),
		keeper:   keeper{started: map[creel.ContainerID]bool{}},
	}
	if o := w.opportune; o != nil {
		m.mix = opportune.NewMix(o, source(w.cfg.Seed+uint64(job)<<16+uint64(id.Attempt.Attempt), "opportunistic asks"))
	}
	return m
}

func (m *am) begin() {
	m.before = m.w.audit.apps[m.attempt.Application].latest[m.home] // a run in another member has its own state
	m.w.audit.amBegins(m)
	m.mortal()
	m.register(m.round)
}

// die ends the process: nothing that it waits for has an effect any more.
func (m *am) die() {
	m.dead = true
	m.w.audit.amEnds(m)
	clear(m.asked)
	if !m.keeps {
		m.drop()
	}
}

// drop forgets what only a living AM or its successor needs. The names of its containers remain: a user may send a
// signal to one of them.
func (m *am) drop() {
	m.play, m.mix, m.nmTokens, m.told, m.asked, m.lastSaid = nil, nil, nil, nil, nil, nil
	m.started, m.kept = nil, nil
	for id := range m.held {
		m.held[id] = nil
	}
}

func (m *am) later(d time.Duration, do func()) {
	m.w.after(d, func() {
		m.w.awake(m.at.host, func() {
			if !m.dead {
				do()
			}
		})
	})
}

// again reports whether the same call may be retried after an error.
func again(err error) bool {
	return errors.Is(err, creel.ErrBusy) || errors.Is(err, creel.ErrUnavailable) || errors.Is(err, creel.ErrStandby)
}

func (m *am) fail(what string, err error) {
	m.w.say("AM of %s gives up: %s: %v", m.attempt, what, err)
	m.w.mark("gives up", int64(m.attempt.Application.ID), int64(m.attempt.Attempt))
	m.exit(1)
}

func (m *am) register(then func()) {
	p := m.proxy()
	call(m.w, m.at.host, p.host, callTime, func(reply func(*pb.RegisterApplicationMasterResponseProto, error)) {
		p.register(
			m.attempt,
			&pb.RegisterApplicationMasterRequestProto{
				Host:        proto.String("localhost"),
				RpcPort:     proto.Int32(-1),
				TrackingUrl: proto.String(""),
			},
			reply,
		)
	}, func(answer *pb.RegisterApplicationMasterResponseProto, err error) {
		switch {
		case m.dead:
		case err == nil:
			m.responseID = 0
			m.take(answer.GetNmTokensFromPreviousAttempts())
			m.takeOver()
			m.keep(answer.GetContainersFromPreviousAttempts())
			m.w.mark("registered", int64(m.attempt.Application.ID), int64(m.attempt.Attempt))
			m.say(m.play.Registered())
			then()
		case again(err):
			m.later(200*time.Millisecond, func() { m.register(then) })
		default:
			m.fail("register", err)
		}
	})
}

// say adds to the next allocate; of several asks at one priority the last one counts.
func (m *am) say(s workload.Steps) {
	for _, a := range s.Asks {
		i := slices.IndexFunc(
			m.steps.Asks,
			func(o workload.Ask) bool { return o.Priority == a.Priority && o.Name == a.Name },
		)
		if i >= 0 {
			m.steps.Asks[i] = a
		} else {
			m.steps.Asks = append(m.steps.Asks, a)
		}
	}
	m.steps.Releases = append(m.steps.Releases, s.Releases...)
	m.steps.Finish, m.steps.Failed = m.steps.Finish || s.Finish, m.steps.Failed || s.Failed
}

// round is one turn of the AM: it sends changes at once, otherwise it waits for the next heartbeat.
func (m *am) round() {
	if m.w.now.Before(m.stalled) {
		m.later(m.stalled.Sub(m.w.now), m.round)
		return
	}
	if m.steps.Finish && len(m.steps.Asks)+len(m.steps.Releases) == 0 {
		m.finish()
		return
	}
	said := m.steps
	m.steps = workload.Steps{Finish: said.Finish, Failed: said.Failed}
	for _, a := range said.Asks {
		times := m.asked[a.Priority]
		for len(times) < int(a.Count) {
			times = append(times, m.w.now)
		}
		m.asked[a.Priority], m.lastSaid[a.Priority] = times[:a.Count], a
		m.mix.Ask(a.Priority, a.Count)
	}
	for _, c := range said.Releases {
		delete(m.held, c)
		m.w.audit.released(c)
	}
	next := &message{Steps: said, updates: m.mix.Wants(m.w.now)}
	for _, a := range said.Asks {
		for _, part := range m.mix.Parts(a.Priority, a.Count) {
			a.Count = part.Count
			next.asks = append(next.asks, typed{a, part.Kind})
		}
	}
	m.allocate(next)
}

// message is the content of an allocate, which repeats have too.
type message struct {
	workload.Steps
	asks    []typed
	updates []*pb.UpdateContainerRequestProto
}

// typed is an ask for containers of one execution type.
type typed struct {
	workload.Ask
	kind creel.ExecutionType
}

// request makes a new message for each delivery, because the receiver owns it.
func (m *am) request(responseID int32, s *message) *pb.AllocateRequestProto {
	req := &pb.AllocateRequestProto{ResponseId: proto.Int32(responseID), Progress: proto.Float32(0.5)}
	for _, u := range s.updates {
		req.UpdateRequests = append(req.UpdateRequests, u.CloneVT())
	}
	for _, a := range s.asks {
		req.Ask = append(req.Ask, m.requests(a)...)
	}
	for _, c := range s.Releases {
		req.Release = append(req.Release, pb.FromContainerID(c))
	}
	return req
}

func (m *am) allocate(s *message) {
	id, p := m.responseID, m.proxy()
	var served int // the proxy's epoch at that time: it may restart while the answer is in the AM's socket
	call(m.w, m.at.host, p.host, callTime, func(reply func(*pb.AllocateResponseProto, error)) {
		served = p.epoch
		p.allocate(m.attempt, m.request(id, s), reply)
	}, func(answer *pb.AllocateResponseProto, err error) {
		if m.w.losesPromotion(answer) {
			answer, err = nil, errTimeout
		}
		switch {
		case m.dead:
		case err == nil:
			for _, c := range s.Releases {
				m.w.audit.givenBack(m, c)
			}
			m.allocated(answer, served)
		case errors.Is(err, creel.ErrNotRegistered):
			// Register and repeat all asks; pending releases are sent again too.
			m.steps.Releases = append(s.Releases, m.steps.Releases...)
			m.register(m.round)
		case again(err):
			m.later(200*time.Millisecond, func() { m.allocate(s) })
		case m.steps.Finish && errors.Is(err, creel.ErrAttemptNotFound):
			m.finish()
		default:
			m.fail("allocate", err)
		}
	})
}

// allocated processes an answer of the proxy's epoch.
func (m *am) allocated(answer *pb.AllocateResponseProto, epoch int) {
	m.responseID = answer.GetResponseId()
	var ended []workload.Completion
	for _, s := range answer.GetCompletedContainerStatuses() {
		id := pb.ToContainerID(s.GetContainerId())
		m.w.mark("ended", id.ID, int64(s.GetExitStatus()))
		m.w.audit.completionTold(m, id, epoch)
		if m.w.cfg.Log != nil {
			m.w.say("%s receives the completion of %s: %d", m.attempt, id, s.GetExitStatus())
		}
		delete(m.held, id)
		delete(m.started, id)
		m.mix.Ended(id)
		ended = append(ended, workload.Completion{Container: id, Exit: s.GetExitStatus()})
	}
	m.take(answer.GetNmTokens())
	m.keep(answer.GetContainersFromPreviousAttempts())
	for _, c := range m.mix.Answered(answer, m.w.now) {
		m.w.promote(m, pb.ToContainerID(c.GetId()), c)
	}
	var grants []workload.Grant
	for _, c := range answer.GetAllocatedContainers() {
		g := workload.Grant{
			Container: pb.ToContainerID(c.GetId()),
			Node:      pb.ToNodeID(c.GetNodeId()),
			Priority:  c.GetPriority().GetPriority(),
		}
		m.w.mark("grant", g.Container.ID, int64(g.Priority))
		m.w.audit.grantTold(m, g.Container)
		if m.w.cfg.Log != nil {
			m.w.say("%s is given %s", m.attempt, g.Container)
		}
		m.held[g.Container] = c
		grants = append(grants, g)
		times := m.asked[g.Priority]
		m.w.audit.wanted(m, g, len(times))
		m.w.audit.placed(m, g)
		m.w.audit.check(m.mix.Granted(c, g.Priority) || m.w.audit.apps[m.attempt.Application].twice,
			"%s received %s and asks for none of its type at priority %d", m.attempt, g.Container, g.Priority)
		if len(times) > 0 {
			job := m.w.audit.apps[m.attempt.Application].job
			m.w.audit.grants = append(m.w.audit.grants, grantRecord{
				wait: m.w.now.Sub(times[0]), job: int32(job), member: int32(g.Container.Epoch()/epochStep - 1),
			})
			m.asked[g.Priority] = times[1:]
		}
	}
	next := m.play.Allocated(grants, ended)
	m.say(next)
	m.sayAgain(grants)
	m.start(next.Starts)
}

// unheard makes the AM give up a task whose container is gone, if no report of that arrives. It waits as long as a
// ResourceManager takes to notice, as in MapReduce (mapreduce.task.timeout). Nothing else can end the task if the
// ResourceManager or the proxy restarted, and so does not know the container. known reports whether both knew it when
// the container disappeared. A ResourceManager that was paused restarts the full expiry time of a container not seen
// running (Machine.Paused). A clock set forward looks like a pause to it.
func (m *am) unheard(id creel.ContainerID, of *cluster, known bool) {
	rm, proxy, gone := m.w.clusters[of.index].process, m.proxy().epoch, m.w.now
	m.later(m.w.cfg.Expiry+5*time.Minute, func() {
		if _, waits := m.held[id]; !waits {
			return
		}
		of := m.w.clusters[of.index]
		m.w.audit.check(!known || of.process != rm || m.proxy().epoch != proxy ||
			of.paused.After(gone) || of.excused.After(gone),
			"%s is gone from %s, and its completion was never reported to its AM", id, of.id)
		m.w.audit.fault("tasks given up")
		m.say(m.play.StartFailed(id))
	})
}

// start starts tasks on their nodes, all at once. Tasks that fail to start are released and asked for again. The AM
// continues when every node has answered.
func (m *am) start(starts []workload.Start) {
	starts = slices.DeleteFunc(starts, func(s workload.Start) bool {
		if !m.w.faulty || !m.w.chance(m.w.faults.Fickle) {
			return false
		}
		m.w.audit.fault("containers given back")
		m.say(m.play.StartFailed(s.Grant.Container))
		return true
	})
	open := len(starts)
	if open == 0 {
		m.carryOn()
		return
	}
	for _, s := range starts {
		id := s.Grant.Container
		request := startRequest(m.held[id], s.Duration, s.Exit)
		n := m.w.nodes[s.Grant.Node]
		visitor := m.nmTokens[s.Grant.Node]
		// If two AMs of one attempt are permitted, the other one may have received the content that is sent only
		// once.
		m.w.audit.check(visitor != nil || m.w.audit.apps[m.attempt.Application].twice,
			"%s was given %s, and no NMToken of its node", m.attempt, id)
		if visitor == nil {
			m.fail("start", errors.New("there is no NMToken"))
			return
		}
		call(
			m.w,
			m.at.host,
			n.host,
			10*time.Second,
			func(reply func(*pb.StartContainersResponseProto, error)) { reply(n.startContainers(visitor, request)) },
			func(answer *pb.StartContainersResponseProto, err error) {
				if m.dead {
					return
				}
				if f := answer.GetFailedRequests(); len(f) > 0 {
					err = errors.New(f[0].GetException().GetMessage())
				}
				if err != nil {
					m.w.mark("not started", id.ID, 0)
					m.w.say("%s was not started: %v", id, err)
					m.say(m.play.StartFailed(id))
				} else if m.mix.Started(m.held[id]); m.keeps {
					m.started[id] = true
				}
				if open--; open == 0 {
					m.carryOn()
				}
			},
		)
	}
}

// take stores an answer's tokens for nodes.
func (m *am) take(tokens []*pb.NMTokenProto) {
	for _, t := range tokens {
		m.nmTokens[pb.ToNodeID(t.GetNodeId())] = t.GetToken()
	}
}

// startRequest makes a container run for a time and exit with a code.
func startRequest(c *pb.ContainerProto, run time.Duration, exit int32) *pb.StartContainersRequestProto {
	env := func(key string, n int64) *pb.StringStringMapProto {
		return &pb.StringStringMapProto{Key: &key, Value: new(strconv.FormatInt(n, 10))}
	}
	return &pb.StartContainersRequestProto{StartContainerRequest: []*pb.StartContainerRequestProto{{
		ContainerToken: c.GetContainerToken(),
		ContainerLaunchContext: &pb.ContainerLaunchContextProto{Environment: []*pb.StringStringMapProto{
			env(nm.EnvMillis, run.Milliseconds()), env(nm.EnvExit, int64(exit)),
		}},
	}}}
}

func (m *am) carryOn() {
	if len(m.steps.Asks)+len(m.steps.Releases) > 0 || m.steps.Finish {
		m.round()
		return
	}
	m.later(m.pace, m.round)
}

// finish repeats finishApplicationMaster until the ResourceManager has the
// outcome on disk.
func (m *am) finish() {
	status := pb.FinalApplicationStatusProto_APP_SUCCEEDED
	if m.steps.Failed {
		status = pb.FinalApplicationStatusProto_APP_FAILED
	}
	p := m.proxy()
	call(m.w, m.at.host, p.host, callTime, func(reply func(*pb.FinishApplicationMasterResponseProto, error)) {
		p.finish(
			m.attempt,
			&pb.FinishApplicationMasterRequestProto{
				FinalApplicationStatus: status.Enum(),
				Diagnostics:            proto.String(""),
				TrackingUrl:            proto.String(""),
			},
			reply,
		)
	}, func(answer *pb.FinishApplicationMasterResponseProto, err error) {
		switch {
		case m.dead:
		case err == nil && answer.GetIsUnregistered():
			m.w.audit.played(m)
			m.exit(0)
		case errors.Is(err, creel.ErrAttemptNotFound), errors.Is(err, creel.ErrApplicationNotFound):
			m.exit(0) // an earlier call, whose answer was lost, finished it
		case errors.Is(err, creel.ErrNotRegistered):
			m.register(m.finish)
		case err != nil && !again(err):
			m.fail("finish", err)
		default:
			m.later(50*time.Millisecond, m.finish)
		}
	})
}
