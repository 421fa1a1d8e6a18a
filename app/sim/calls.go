// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"math"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// These are the calls of a ResourceManager; each is decoded and encoded as in subcluster/rm/rpc.

func (c *cluster) submit(
	user string,
	app *pb.ApplicationSubmissionContextProto,
	claim int64,
	reply func(bool, error),
) {
	s, err := codec.Submission(app, user, nil, codec.DefaultTagLimits)
	if err != nil {
		reply(false, err)
		return
	}
	if !c.hadoop { // Hadoop's ignores the fields
		s.Claim, s.After = claim, pb.BeginsAfter(app)
	}
	c.post(func(m *rm.Machine, now time.Time) func() {
		if m.Begins(&s) {
			if err = c.closed().Refuses(&s); err != nil {
				return func() { reply(false, err) }
			}
		}
		_, known := m.App(s.ID)
		err = m.Submit(now, &s)
		if c.hadoop && errors.Is(err, creel.ErrEnded) {
			// Hadoop's runs it again; here that run has no effect.
			c.w.audit.fault("ended applications that run again in a member that cannot disown")
			return func() { reply(true, nil) }
		}
		if err == nil {
			c.w.audit.takes(c, &s, known)
			c.users[s.ID] = user
			c.w.mark("submitted", int64(s.ID.ID), c.number)
		}
		c.owner.Hold(func() { reply(err == nil, err) })
		return nil
	})
}

// has reports to a router whether an application is here, once the answer is durable.
func (c *cluster) has(id creel.ApplicationID, reply func(router.Standing, error)) {
	c.post(func(m *rm.Machine, _ time.Time) func() {
		_, known := m.App(id)
		c.owner.Hold(func() {
			if known {
				reply(router.Running, nil)
			} else {
				reply(router.Absent, nil)
			}
		})
		return nil
	})
}

// disown answers a router once its rejection, or the application that is here, is durable.
func (c *cluster) disown(id creel.ApplicationID, claim int64, reply func(router.Standing, error)) {
	if c.hadoop {
		c.has(id, func(s router.Standing, err error) {
			if s == router.Absent {
				c.w.audit.fault("absent from a member that cannot disown")
			}
			reply(s, err)
		})
		return
	}
	c.post(func(m *rm.Machine, now time.Time) func() {
		upTo, err := m.Disown(now, id, claim)
		known, standing := err == nil && upTo == 0, router.Disowned
		switch {
		case known:
			standing = router.Running
		case upTo == math.MaxInt64:
			standing = router.Ended
			c.w.audit.fault("homes kept because the application ended there")
		case err == nil:
			c.w.mark("disowned", int64(id.ID), claim)
		}
		c.owner.Hold(func() {
			if err == nil {
				c.w.audit.disowned(c, id, claim, known)
			}
			reply(standing, err)
		})
		return nil
	})
}

func noSuchApp(id creel.ApplicationID) error {
	return &creel.Error{
		Kind: creel.ErrApplicationNotFound,
		What: "Application with id '" + id.String() + "' doesn't exist in RM.",
	}
}

// applicationReport returns an application's report to its owner.
func (c *cluster) applicationReport(id creel.ApplicationID, reply func(*pb.ApplicationReportProto, error)) {
	c.post(func(m *rm.Machine, now time.Time) func() {
		v, ok := m.App(id)
		return func() {
			if !ok {
				reply(nil, noSuchApp(id))
				return
			}
			r := codec.Cluster{ID: string(c.id)}.Report(&v, now, true)
			if v.Token {
				r.AmRmToken = c.keys.amrm.AMRM(v.Attempt).Proto()
			}
			reply(r, nil)
		}
	})
}

func (c *cluster) kill(id creel.ApplicationID, why string, reply func(bool, error)) {
	c.post(func(m *rm.Machine, now time.Time) func() {
		ended, err := m.Kill(now, id, why)
		return func() { reply(ended, err) }
	})
}

// end kills an application whose home is elsewhere, at the request of a rebuilt store; a held application is dropped.
func (c *cluster) end(id creel.ApplicationID, why string) {
	c.post(func(m *rm.Machine, now time.Time) func() {
		if v, ok := m.App(id); ok && v.Held.Claim > 0 {
			_ = m.DropHeld(now, id, v.Held.Claim)
		} else {
			_, _ = m.Kill(now, id, why)
		}
		return nil
	})
}

// holds rejects callers without a valid token.
func (c *cluster) holds(a creel.AttemptID) error {
	if !c.live.Has(a) {
		return &creel.Error{Kind: creel.ErrInvalidToken, What: a.String() + " not found in AMRMTokenSecretManager."}
	}
	return nil
}

func (c *cluster) registerAM(
	a creel.AttemptID,
	req *pb.RegisterApplicationMasterRequestProto,
	reply func(*pb.RegisterApplicationMasterResponseProto, error),
) {
	c.registersAM(a, req, func(*rm.Machine) {}, reply)
}

// registersAM is registerAM. read reads what else the answer needs in the same turn.
func (c *cluster) registersAM(
	a creel.AttemptID,
	req *pb.RegisterApplicationMasterRequestProto,
	read func(*rm.Machine),
	reply func(*pb.RegisterApplicationMasterResponseProto, error),
) {
	c.post(func(m *rm.Machine, now time.Time) func() {
		registered, err := m.RegisterAM(now, codec.RegisterAM(a, req))
		read(m)
		app, _ := m.App(a.Application)
		if err == nil {
			c.w.audit.registers(c, a)
		}
		return func() {
			if err != nil {
				reply(nil, err)
				return
			}
			t, done := c.mint(a.Application)
			out := codec.RegisterAMResponse(&codec.AMRegistration{AMRegistration: registered, App: app}, a, t, nil)
			done()
			reply(out, nil)
		}
	})
}

func (c *cluster) allocate(
	a creel.AttemptID,
	req *pb.AllocateRequestProto,
	reply func(*pb.AllocateResponseProto, error),
) {
	c.allocates(a, codec.Allocate(req), req, func(*rm.Machine) {}, reply)
}

// allocates is allocate with the decoded call, which also has the proxy's placing. read reads what else the answer
// needs in the same turn.
func (c *cluster) allocates(
	a creel.AttemptID,
	call *rm.AllocateRequest,
	req *pb.AllocateRequestProto,
	read func(*rm.Machine),
	reply func(*pb.AllocateResponseProto, error),
) {
	c.post(func(m *rm.Machine, now time.Time) func() {
		c.w.audit.proxyReleases(req)
		answer, err := m.Allocate(now, a, call)
		if err != nil {
			return func() { reply(nil, err) }
		}
		read(m)
		takes(c, call.Placed, answer)
		if !answer.Duplicate {
			app, _ := m.App(a.Application)
			c.answers[a] = knownAsks{answer.ResponseID, c.pending(&app)}
			promises(c, answer)
			c.w.audit.roomTold(c, app.Queue, app.User, answer.Headroom)
		}
		c.w.audit.answered(c, answer)
		c.w.audit.serves(c, a)
		copied := codec.CopyAnswer(m, now, answer)
		return func() {
			for i := range copied.Completed {
				c.w.mark("completion sent", copied.Completed[i].ID.ID, c.number)
				if c.w.cfg.Log != nil {
					c.w.say("%s reports the completion of %s, answer %d",
						c.id, copied.Completed[i].ID, copied.ResponseID)
				}
			}
			t, done := c.mint(a.Application)
			out := codec.AllocateResponse(copied, a, t, nil)
			done()
			if c.w.losesPromotion(out) {
				reply(nil, errTimeout)
				return
			}
			reply(out, nil)
		}
	})
}

func (c *cluster) finishAM(
	a creel.AttemptID,
	req *pb.FinishApplicationMasterRequestProto,
	reply func(*pb.FinishApplicationMasterResponseProto, error),
) {
	c.post(func(m *rm.Machine, now time.Time) func() {
		unregistered, err := m.FinishAM(now, codec.FinishAM(a, req))
		return func() {
			if err != nil {
				reply(nil, err)
				return
			}
			if unregistered {
				c.w.audit.finished(c, a)
			}
			reply(codec.FinishAMResponse(unregistered), nil)
		}
	})
}

func (c *cluster) registerNode(
	req *pb.RegisterNodeManagerRequestProto,
	reply func(*pb.RegisterNodeManagerResponseProto, error),
) {
	c.post(func(m *rm.Machine, now time.Time) func() {
		event := codec.RegisterNode(req)
		event.Rack = c.w.nodes[event.ID].rack
		registered, err := m.RegisterNode(now, &event)
		return func() {
			if err != nil {
				reply(nil, err)
				return
			}
			reply(codec.RegisterNodeResponse(&registered, c.nodeKeys(nil, nil), c.start.UnixMilli(), "sim"), nil)
		}
	})
}

func (c *cluster) heartbeat(
	req *pb.NodeHeartbeatRequestProto,
	reply func(*pb.NodeHeartbeatResponseProto, error),
) {
	keys := c.nodeKeys(req.GetLastKnownContainerTokenMasterKey(), req.GetLastKnownNmTokenMasterKey())
	c.post(func(m *rm.Machine, now time.Time) func() {
		codec.NodeHeartbeat(req, &c.report, &c.use)
		answer := *m.NodeHeartbeat(now, &c.report) // the message points into it
		out := codec.NodeHeartbeatResponse(&answer, keys, c.w.cfg.NodeHeartbeat, c.mint)
		return func() { reply(out, nil) }
	})
}

// DistributedSchedulingAMProtocol, as subcluster/rm/rpc serves it. A member without it gets the usual calls.

func (c *cluster) registerDistributed(
	a creel.AttemptID,
	req *pb.RegisterApplicationMasterRequestProto,
	reply func(*pb.RegisterDistributedSchedulingAMResponseProto, error),
) {
	var terms rm.SchedulingTerms
	var failed error
	c.registersAM(a, req, func(m *rm.Machine) {
		terms, failed = rm.SchedulingTermsOf(m, a)
	}, func(r *pb.RegisterApplicationMasterResponseProto, err error) {
		switch {
		case err != nil:
			reply(nil, err)
		case c.hadoop:
			reply(&pb.RegisterDistributedSchedulingAMResponseProto{RegisterResponse: r}, nil)
		case failed != nil:
			reply(nil, failed)
		default:
			reply(codec.RegisterDistributedResponse(&terms, r), nil)
		}
	})
}

func (c *cluster) allocateDistributed(
	a creel.AttemptID,
	req *pb.DistributedSchedulingAllocateRequestProto,
	reply func(*pb.DistributedSchedulingAllocateResponseProto, error),
) {
	call := codec.Allocate(req.GetAllocateRequest())
	call.Placed = codec.Placed(req.GetAllocatedContainers(), token.Ring{c.keys.container.Key()}, c.start.UnixMilli())
	call.Unplaced = pb.Unplaced(req)
	var nodes []rm.LoadedNode
	c.allocates(a, call, req.GetAllocateRequest(), func(m *rm.Machine) {
		nodes = rm.LeastLoaded(m, a)
	}, func(r *pb.AllocateResponseProto, err error) {
		if err != nil {
			reply(nil, err)
			return
		}
		reply(codec.AllocateDistributedResponse(nodes, r), nil)
	})
}
