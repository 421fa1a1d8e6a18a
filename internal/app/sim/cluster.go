// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/durability"
)

const (
	commitTime = 2 * time.Millisecond // of a transaction of the journal
	launchTime = 3 * time.Minute      // for which an AM's start is tried again
	epochStep  = 1000                 // keeps container ids of the subclusters apart
)

// cluster is a ResourceManager with its journal and its nodes. What is in
// kept outlives the process, everything else does not.
type cluster struct {
	*host
	w     *World
	id    creel.SubclusterID
	index int
	conf  rm.Config
	kept  journal
	nodes []*node

	// Of one epoch.
	m          *rm.Machine
	watch      *rm.Auditor // of what each event changes
	start      time.Time
	nextApp    int32
	good       map[creel.AttemptID]bool // whose tokens are good
	tick       int64                    // when the machine's next Tick is set, 0 for none
	tx         []rm.Action              // saves of this turn
	flying     [][]rm.Action            // transactions on their way to the disk
	gate       durability.Gate[func()]  // which answers wait for which
	actions    []rm.Action
	registered bool // as a member
	granted    int64
	grantedAt  time.Time
	report     rm.NodeReport
	ask        rm.AllocateRequest
}

// journal is what is durable of a ResourceManager.
type journal struct {
	epochs   int64
	apps     map[creel.ApplicationID]rm.AppRecord
	attempts map[creel.AttemptID]rm.AttemptRecord
	disowned map[creel.ApplicationID]int64
}

func newCluster(w *World, index int) (*cluster, error) {
	id := creel.SubclusterID(fmt.Sprintf("sc-%d", index+1))
	c := &cluster{w: w, id: id, index: index, host: w.host("the ResourceManager of "+string(id), index),
		kept: journal{
			apps:     map[creel.ApplicationID]rm.AppRecord{},
			attempts: map[creel.AttemptID]rm.AttemptRecord{},
			disowned: map[creel.ApplicationID]int64{},
		}}
	c.conf = rm.Defaults()
	c.conf.MinAllocation = creel.NewResource(128, 1)
	c.conf.MaxAllocation = creel.NewResource(8192, 4).Min(w.cfg.NodeSize)
	c.conf.MaxCompletedApps = 1 << 30
	c.conf.MaxAttempts = 4
	c.conf.NodeExpiry, c.conf.AMExpiry, c.conf.ContainerExpiry = w.cfg.Expiry, w.cfg.Expiry, w.cfg.Expiry
	c.conf.Epoch = int64(index+1) * epochStep
	c.conf.Queues = w.cfg.Queues
	if err := c.open(); err != nil {
		return nil, err
	}
	for i := range w.cfg.Nodes {
		c.nodes = append(c.nodes, newNode(c, i))
	}
	return c, nil
}

// open begins an epoch: what the journal has is recovered, and the epoch counted.
func (c *cluster) open() error {
	w := c.w
	// Start times stamp application ids and keep them apart over the federation.
	c.start = w.now.Truncate(time.Millisecond)
	for slices.ContainsFunc(w.clusters, func(o *cluster) bool { return o != c && o.start.Equal(c.start) }) {
		c.start = c.start.Add(time.Millisecond)
	}
	conf := c.conf
	conf.ClusterTimestamp, conf.Epoch = c.start.UnixMilli(), conf.Epoch+c.kept.epochs
	c.kept.epochs++
	var err error
	if c.m, err = rm.New(conf); err != nil {
		return err
	}
	c.watch = rm.NewAuditor(c.m, 0) // full audits come by the auditor's own count
	c.nextApp, c.tick, c.registered, c.granted, c.grantedAt = 0, 0, false, 0, time.Time{}
	c.good = map[creel.AttemptID]bool{}
	c.tx, c.flying, c.gate = nil, nil, durability.Gate[func()]{}
	if records := c.kept.replay(); len(records)+len(c.kept.disowned) > 0 {
		if err := c.m.Recover(&rm.Recover{Apps: records, Disowned: c.kept.refused()}); err != nil {
			return err
		}
		for _, a := range records {
			c.w.audit.recovered(c, a)
			for _, t := range a.Attempts {
				if !a.State.Ended() && !t.State.Ended() {
					c.good[t.ID] = true
				}
			}
		}
	}
	c.turn(nil)
	w.on(c.host, time.Duration(c.index)*time.Millisecond, c.heartbeats)
	return nil
}

// replay gives the journal's records as the next epoch finds them.
func (j *journal) replay() []rm.AppRecord {
	out := make([]rm.AppRecord, 0, len(j.apps))
	for _, a := range j.apps {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b rm.AppRecord) int { return a.Submission.ID.Compare(b.Submission.ID) })
	var attempts []rm.AttemptRecord
	for _, t := range j.attempts {
		attempts = append(attempts, t)
	}
	slices.SortFunc(attempts, func(a, b rm.AttemptRecord) int { return a.ID.Compare(b.ID) })
	for i := range out {
		a := &out[i]
		a.Submitted, a.Started, a.Finished, a.Lifetime = ms(a.Submitted), ms(a.Started), ms(a.Finished), ms(a.Lifetime)
		a.Attempts = slices.Clone(a.Attempts)
		at, _ := slices.BinarySearchFunc(
			attempts,
			a.Submission.ID,
			func(t rm.AttemptRecord, id creel.ApplicationID) int { return t.ID.Application.Compare(id) },
		)
		for ; at < len(attempts) && attempts[at].ID.Application == a.Submission.ID; at++ {
			t := attempts[at]
			t.Started, t.Finished = ms(t.Started), ms(t.Finished)
			k := slices.IndexFunc(a.Attempts, func(o rm.AttemptRecord) bool { return o.ID.Attempt >= t.ID.Attempt })
			switch {
			case k < 0:
				a.Attempts = append(a.Attempts, t)
			case a.Attempts[k].ID == t.ID:
				a.Attempts[k] = t
			default:
				a.Attempts = slices.Insert(a.Attempts, k, t)
			}
		}
	}
	return out
}

// refused returns what was disowned, in order.
func (j *journal) refused() (out []rm.Disowned) {
	for id, claim := range j.disowned {
		out = append(out, rm.Disowned{App: id, Claim: claim})
	}
	slices.SortFunc(out, func(a, b rm.Disowned) int { return a.App.Compare(b.App) })
	return out
}

// ms is a time as the journal keeps it.
func ms(t time.Time) time.Time { return t.Truncate(time.Millisecond) }

// put makes an action's record durable.
func (j *journal) put(a rm.Action) {
	switch a := a.(type) {
	case rm.SaveApp:
		if a.Deleted {
			delete(j.apps, a.Record.Submission.ID)
			return
		}
		j.apps[a.Record.Submission.ID] = a.Record
	case rm.SaveAttempt:
		j.attempts[a.Record.ID] = a.Record
	case rm.SaveDisowned:
		if a.Deleted {
			delete(j.disowned, a.Disowned.App)
			return
		}
		j.disowned[a.Disowned.App] = a.Disowned.Claim
	}
}

// down kills the process. Of the transactions under way the first few may have
// reached the disk, though nobody was told.
func (c *cluster) down() {
	w := c.w
	for range w.rnd.IntN(len(c.flying) + 1) {
		for _, a := range c.flying[0] {
			c.kept.put(a)
		}
		c.flying = c.flying[1:]
	}
	w.crash(c.host)
}

func (c *cluster) comeBack() {
	c.w.boot(c.host)
	if err := c.open(); err != nil {
		c.w.audit.breach("%s cannot start again: %v", c.id, err)
	}
}

// turn is what the owner of the machine does: an event, then the actions of it.
func (c *cluster) turn(event func(m *rm.Machine)) {
	if event != nil {
		event(c.m)
	}
	c.actions = c.m.Actions(c.actions[:0])
	for i := 0; i < len(c.actions); i++ {
		switch a := c.actions[i].(type) {
		case rm.SaveApp:
			c.keep(a, a.Seq)
		case rm.SaveAttempt:
			c.keep(a, a.Seq)
		case rm.SaveDisowned:
			c.keep(a, a.Seq)
		case rm.LaunchAM:
			c.good[a.Attempt] = true
			c.w.audit.launched(c, a)
			if !a.Unmanaged {
				c.launch(a, c.w.now, 100*time.Millisecond)
			}
		case rm.StopAM:
			c.stopAM(a)
		case rm.AttemptEnded:
			delete(c.good, a.Attempt)
		case rm.AppEnded:
			c.w.audit.appEnded(c, a)
		}
	}
	clear(c.actions)
	c.w.audit.changed(c)
	c.commit()
	if d := c.m.NextDeadline(); !d.IsZero() && (c.tick == 0 || d.UnixNano() < c.tick) {
		c.arm(d)
	}
}

// keep puts a save into the transaction of this turn.
func (c *cluster) keep(a rm.Action, seq uint64) {
	c.tx = append(c.tx, a)
	c.gate.Saved(seq)
}

func (c *cluster) arm(d time.Time) {
	at := d.UnixNano()
	c.tick = at
	epoch := c.epoch
	c.w.at(d, func() {
		if c.epoch != epoch || !c.up || c.tick != at {
			return
		}
		c.tick = 0
		if d := c.m.NextDeadline(); !d.IsZero() && !d.After(c.w.now) {
			c.w.mark("tick", c.number, 0)
			c.turn(func(m *rm.Machine) { m.Tick(c.w.now) })
		} else if !d.IsZero() {
			c.arm(d)
		}
	})
}

// commit sends what this turn saved to the journal, as one transaction; answers
// leave by the same gate as the daemon's.
func (c *cluster) commit() {
	number, free := c.gate.EndTurn(len(c.tx) > 0, nil)
	if number > 0 {
		saves := c.tx
		c.tx = nil
		c.flying = append(c.flying, saves)
		c.w.on(c.host, commitTime, func() {
			for _, a := range saves {
				c.kept.put(a)
			}
			c.flying = c.flying[1:]
			seq, free, _ := c.gate.Durable(number, nil)
			c.turn(func(m *rm.Machine) { m.Saved(c.w.now, seq) })
			for _, run := range free {
				run()
			}
		})
	}
	for _, run := range free {
		run()
	}
}

// launch starts an AM on its node, trying again while the node does not
// answer, as long as the attempt lives.
func (c *cluster) launch(a rm.LaunchAM, began time.Time, pause time.Duration) {
	w := c.w
	told := func(err error) {
		w.mark("launched", int64(a.Attempt.Application.ID), int64(a.Attempt.Attempt))
		c.turn(func(m *rm.Machine) {
			if err != nil {
				m.AMLaunchFailed(
					w.now,
					a.Attempt,
					"Error launching "+a.Attempt.String()+". Got exception: "+err.Error(),
				)
			} else {
				m.AMLaunched(w.now, a.Attempt)
			}
		})
	}
	if !c.good[a.Attempt] {
		told(errors.New("the attempt is over"))
		return
	}
	n := w.nodes[a.Container.Node]
	job := a.Context.(*submission).job
	start := started{
		grant:   a.Container,
		rm:      c.start.UnixMilli(),
		expires: w.now.Add(w.cfg.Expiry),
		user:    a.User,
		job:     job,
		am:      true,
	}
	call(
		w,
		c.host,
		n.host,
		10*time.Second,
		func(reply func(bool, error)) { reply(true, n.startContainer(start)) },
		func(_ bool, err error) {
			switch {
			case err == nil:
				told(nil)
			case !errors.Is(err, creel.ErrUnavailable) && !errors.Is(err, creel.ErrBusy):
				told(err)
			case w.now.Sub(began) > launchTime:
				told(err)
			default:
				w.on(c.host, pause, func() { c.launch(a, began, min(2*pause, 10*time.Second)) })
			}
		},
	)
}

func (c *cluster) stopAM(a rm.StopAM) {
	n := c.w.nodes[a.Node]
	call(c.w, c.host, n.host, 20*time.Second, func(reply func(bool, error)) {
		n.stopContainer(a.Container)
		reply(true, nil)
	}, func(bool, error) {})
}

// heartbeats keep the membership alive, as the agent beside a ResourceManager does.
func (c *cluster) heartbeats() {
	w := c.w
	w.on(c.host, w.cfg.MemberHeartbeat, c.heartbeats)
	load, err := c.load()
	if err != nil {
		w.audit.breach("%s cannot tell its load: %v", c.id, err)
		return
	}
	start := c.start.UnixMilli()
	first := !c.registered
	call(w, c.host, w.storeAt, max(w.cfg.MemberHeartbeat, time.Second), func(reply func(bool, error)) {
		var err error
		if first {
			err = w.store.Register(
				w.now,
				subcluster.Member{ID: c.id, Epoch: start, Lease: w.cfg.Lease, Capability: string(load), Version: "sim",
					Addresses: subcluster.Addresses{Client: string(c.id) + ":8032", Scheduler: string(c.id) + ":8030"}},
			)
		} else {
			err = w.store.Heartbeat(w.now, subcluster.Heartbeat{ID: c.id, Epoch: start, Load: load})
		}
		reply(true, err)
	}, func(_ bool, err error) {
		switch {
		case err == nil && first:
			c.registered = true
		case errors.Is(err, creel.ErrNotRegistered):
			c.registered = false
		case errors.Is(err, creel.ErrStale):
			w.audit.breach("%s was told that a later epoch of it exists: %v", c.id, err)
		}
	})
}

// load is what the member reports of itself.
func (c *cluster) load() ([]byte, error) {
	v := c.m.Cluster()
	load := subcluster.Load{Metrics: metrics(&v)}
	if s := c.w.now.Sub(c.grantedAt).Seconds(); s > 0 && !c.grantedAt.IsZero() {
		load.Metrics.ContainersPerSecond = int64(float64(v.Granted-c.granted) / s)
	}
	c.granted, c.grantedAt = v.Granted, c.w.now
	for q := range c.m.Queues {
		load.Queues = append(
			load.Queues,
			subcluster.QueueLoad{
				Queue:    q.Path,
				Capacity: q.Guaranteed,
				Used:     q.Used,
				Pending:  q.Pending,
				Free: q.Max.Sub(q.Used).
					Min(v.Available).
					Max(creel.Resource{}),
				AppsPending: int64(q.PendingApps),
				AppsRunning: int64(q.ActiveApps),
			},
		)
	}
	return load.JSON()
}

// What a ResourceManager answers. Each is what subcluster/rm/rpc does at the machine for a call.

func (c *cluster) submit(s *rm.Submission, reply func(bool, error)) {
	c.turn(func(m *rm.Machine) {
		if _, known := m.App(s.ID); !known {
			fresh := *s
			if err := m.Submit(c.w.now, &fresh); err != nil {
				reply(false, err)
				return
			}
			c.w.mark("submitted", int64(s.ID.ID), c.number)
		}
		c.gate.Hold(func() { reply(true, nil) })
	})
}

// disown answers a router when the refusal, or the application that is here, is
// durable.
func (c *cluster) disown(id creel.ApplicationID, claim int64, reply func(router.Standing, error)) {
	c.turn(func(m *rm.Machine) {
		known, err := m.Disown(c.w.now, id, claim)
		switch {
		case err != nil:
			reply(0, err)
		case known:
			c.gate.Hold(func() { reply(router.Running, nil) })
		default:
			c.w.mark("disowned", int64(id.ID), claim)
			c.gate.Hold(func() { reply(router.Disowned, nil) })
		}
	})
}

func noSuchApp(id creel.ApplicationID) error {
	return &creel.Error{
		Kind: creel.ErrApplicationNotFound,
		What: "Application with id '" + id.String() + "' doesn't exist in RM.",
	}
}

func (c *cluster) app(id creel.ApplicationID) (rm.AppView, error) {
	v, ok := c.m.App(id)
	if !ok {
		return v, noSuchApp(id)
	}
	return v, nil
}

func (c *cluster) kill(id creel.ApplicationID, why string, reply func(bool, error)) {
	c.turn(func(m *rm.Machine) { reply(m.Kill(c.w.now, id, why)) })
}

// holds refuses who has no good token.
func (c *cluster) holds(a creel.AttemptID) error {
	if !c.good[a] {
		return &creel.Error{Kind: creel.ErrInvalidToken, What: a.String() + " not found in AMRMTokenSecretManager."}
	}
	return nil
}

func (c *cluster) registerAM(
	a creel.AttemptID,
	req *pb.RegisterApplicationMasterRequestProto,
) (out *pb.RegisterApplicationMasterResponseProto, err error) {
	if err := c.holds(a); err != nil {
		return nil, err
	}
	c.turn(func(m *rm.Machine) {
		var r rm.Registered
		r, err = m.RegisterAM(
			c.w.now,
			&rm.RegisterAM{
				Attempt:     a,
				Host:        req.GetHost(),
				Port:        req.GetRpcPort(),
				TrackingURL: req.GetTrackingUrl(),
			},
		)
		if err == nil {
			out = c.encodeRegistered(&r)
		}
	})
	return out, err
}

func (c *cluster) allocate(a creel.AttemptID, req *pb.AllocateRequestProto) (out *pb.AllocateResponseProto, err error) {
	if err := c.holds(a); err != nil {
		return nil, err
	}
	decodeAllocate(req, &c.ask)
	c.turn(func(m *rm.Machine) {
		var answer *rm.Answer
		answer, err = m.Allocate(c.w.now, a, &c.ask)
		if err == nil {
			out = c.encodeAnswer(answer)
			for i := range answer.Completed {
				c.w.mark("completion sent", answer.Completed[i].ID.ID, c.number)
				if c.w.cfg.Log != nil {
					c.w.say("%s tells the completion of %s, answer %d", c.id, answer.Completed[i].ID, answer.ResponseID)
				}
			}
			c.w.audit.answered(c, answer)
		}
	})
	return out, err
}

func (c *cluster) finishAM(
	a creel.AttemptID,
	req *pb.FinishApplicationMasterRequestProto,
) (out *pb.FinishApplicationMasterResponseProto, err error) {
	if err := c.holds(a); err != nil {
		return nil, err
	}
	c.turn(func(m *rm.Machine) {
		var done bool
		done, err = m.FinishAM(
			c.w.now,
			&rm.FinishAM{
				Attempt:     a,
				Status:      creel.FinalStatus(req.GetFinalApplicationStatus()),
				Diagnostics: req.GetDiagnostics(),
			},
		)
		if done {
			c.w.audit.finished(c, a)
		}
		out = &pb.FinishApplicationMasterResponseProto{IsUnregistered: &done}
	})
	return out, err
}

func (c *cluster) registerNode(
	req *pb.RegisterNodeManagerRequestProto,
) (out *pb.RegisterNodeManagerResponseProto, err error) {
	event := decodeRegisterNode(req)
	c.turn(func(m *rm.Machine) {
		var r rm.NodeRegistered
		if r, err = m.RegisterNode(c.w.now, &event); err == nil {
			out = c.encodeNodeRegistered(&r)
		}
	})
	return out, err
}

func (c *cluster) heartbeat(req *pb.NodeHeartbeatRequestProto) (out *pb.NodeHeartbeatResponseProto) {
	decodeReport(req, &c.report)
	c.turn(func(m *rm.Machine) { out = c.encodeHeartbeat(m.NodeHeartbeat(c.w.now, &c.report)) })
	return out
}
