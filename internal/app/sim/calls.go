// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// What a ResourceManager answers: each call is decoded and encoded as
// subcluster/rm/rpc has it.

func (c *cluster) submit(
	user string,
	app *pb.ApplicationSubmissionContextProto,
	claim int64,
	reply func(bool, error),
) {
	s, err := codec.Submission(app, user, nil)
	if err != nil {
		reply(false, err)
		return
	}
	s.Claim = claim
	c.turn(func(m *rm.Machine) {
		if _, known := m.App(s.ID); !known {
			if err := m.Submit(c.w.now, &s); err != nil {
				reply(false, err)
				return
			}
			c.users[s.ID] = user
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

// applicationReport is what an application's owner is told of it.
func (c *cluster) applicationReport(id creel.ApplicationID) (*pb.ApplicationReportProto, error) {
	v, ok := c.m.App(id)
	if !ok {
		return nil, noSuchApp(id)
	}
	r := codec.Cluster{ID: string(c.id)}.Report(&v, c.w.now, true)
	if v.Token {
		r.AmRmToken = c.keys.amrm.AMRM(v.Attempt).Proto()
	}
	return r, nil
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
		if r, err = m.RegisterAM(c.w.now, codec.RegisterAM(a, req)); err == nil {
			app, _ := m.App(a.Application)
			t, done := c.mint(a.Application)
			out = codec.RegisterAMResponse(&codec.RegisteredAM{Registered: r, App: app}, a, t, nil)
			done()
		}
	})
	return out, err
}

func (c *cluster) allocate(a creel.AttemptID, req *pb.AllocateRequestProto) (out *pb.AllocateResponseProto, err error) {
	if err := c.holds(a); err != nil {
		return nil, err
	}
	c.turn(func(m *rm.Machine) {
		var answer *rm.Answer
		if answer, err = m.Allocate(c.w.now, a, codec.Allocate(req)); err != nil {
			return
		}
		t, done := c.mint(a.Application)
		out = codec.AllocateResponse(codec.TakeAllocated(m, c.w.now, answer), a, t, nil)
		done()
		for i := range answer.Completed {
			c.w.mark("completion sent", answer.Completed[i].ID.ID, c.number)
			if c.w.cfg.Log != nil {
				c.w.say("%s tells the completion of %s, answer %d", c.id, answer.Completed[i].ID, answer.ResponseID)
			}
		}
		c.w.audit.answered(c, answer)
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
		var unregistered bool
		if unregistered, err = m.FinishAM(c.w.now, codec.FinishAM(a, req)); unregistered {
			c.w.audit.finished(c, a)
		}
		out = codec.FinishAMResponse(unregistered)
	})
	return out, err
}

func (c *cluster) registerNode(
	req *pb.RegisterNodeManagerRequestProto,
) (out *pb.RegisterNodeManagerResponseProto, err error) {
	event := codec.RegisterNode(req)
	c.turn(func(m *rm.Machine) {
		var r rm.NodeRegistered
		if r, err = m.RegisterNode(c.w.now, &event); err == nil {
			out = codec.RegisterNodeResponse(&r, c.nodeKeys(nil, nil), c.start.UnixMilli(), "sim")
		}
	})
	return out, err
}

func (c *cluster) heartbeat(req *pb.NodeHeartbeatRequestProto) (out *pb.NodeHeartbeatResponseProto) {
	codec.NodeHeartbeat(req, &c.report, &c.use)
	keys := c.nodeKeys(req.GetLastKnownContainerTokenMasterKey(), req.GetLastKnownNmTokenMasterKey())
	c.turn(func(m *rm.Machine) {
		answer := *m.NodeHeartbeat(c.w.now, &c.report) // the message points into it
		out = codec.NodeHeartbeatResponse(&answer, keys, c.w.cfg.NodeHeartbeat, c.mint)
	})
	return out
}
