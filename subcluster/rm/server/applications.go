// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// maxSubmission is the default limit of a submission message, in bytes.
const maxSubmission = 32 << 20

// NewApplicationIDs issues n new consecutive ids and returns the first.
func (s *Server) NewApplicationIDs(n int) (creel.ApplicationID, error) {
	id := creel.ApplicationID{ClusterTimestamp: s.start.UnixMilli(), ID: s.nextApp.Add(int32(n)) - int32(n) + 1}
	if id.ID <= 0 || id.ID > math.MaxInt32-int32(n) {
		return creel.ApplicationID{}, &creel.Error{
			Kind: creel.ErrUnavailable,
			What: "all application ids of this ResourceManager's start are used",
			Try:  "restart it",
		}
	}
	return id, nil
}

// checkGiven rejects an id of this start that was not issued. Ids of other starts belong to other members, or to the
// time before a restart.
func (s *Server) checkGiven(id creel.ApplicationID) error {
	if given := s.nextApp.Load(); id.ClusterTimestamp == s.start.UnixMilli() && id.ID > given {
		return &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: fmt.Sprintf("application id %s was never issued", id),
			Why:  fmt.Sprintf("this ResourceManager has issued %d ids since its start", given),
			Try:  "get an id with getNewApplication",
		}
	}
	return nil
}

// Forwarding is a router's data about a submission: the number of the claim, 0 for a submission past the routers. For
// an application from another home, it has the submission time there and the rest of the lifetime.
type Forwarding struct {
	Claim int64
	Since time.Time
	Left  time.Duration
}

// Submit submits an application; the response is sent when it is durable. A known id changes nothing, except for a
// UAM that restarts. On a full disk it accepts only submissions that change nothing.
func (s *Server) Submit(who Caller, c *pb.ApplicationSubmissionContextProto, from Forwarding) Op[struct{}] {
	units := codec.ConvertSubmissionUnits(c, s.ResourceTypes())
	sub, err := codec.Submission(c, who.User, s.access.groups.Of(who.User), cmp.Or(s.cfg.Tags, codec.DefaultTagLimits))
	most := cmp.Or(s.cfg.MaxSubmission, maxSubmission)
	if size := c.SizeVT(); err == nil && int64(size) > most {
		err = codec.Invalid("the submission of %s has %d bytes, the limit is %d", sub.ID, size, most)
	}
	if err == nil {
		err = cmp.Or(units, s.checkGiven(sub.ID))
	}
	sub.RealUser, sub.Caller = who.RealUser, codec.CallerContext(who.Context, who.Signed)
	sub.Claim, sub.After = from.Claim, pb.BeginsAfter(c)
	sub.Since, sub.Left = from.Since, from.Left
	if tokens := c.GetAmContainerSpec().GetTokens(); err == nil && len(tokens) > 0 {
		_, err = token.ParseCredentials(tokens)
	}
	return Op[struct{}]{
		durable: true,
		name:    "submitApplication",
		target:  pb.ToApplicationID(c.GetApplicationId()).String(),
		Run: func(m *rm.Machine, now time.Time) func() (struct{}, error) {
			if err != nil {
				return Failed[struct{}](err)
			}
			if !m.Begins(&sub) { // a known application's secrets stay
				if err := m.Submit(now, &sub); err != nil {
					return Failed[struct{}](err)
				}
				return Done(struct{}{})
			}
			if err := s.closed(sub.Claim).Refuses(&sub); err != nil {
				return Failed[struct{}](err)
			}
			s.secrets.addApp(sub.ID, sub.User, c)
			if err := m.Submit(now, &sub); err != nil {
				s.secrets.forgetApp(sub.ID)
				return Failed[struct{}](err)
			}
			s.Renewer.Hold(sub.ID, sub.User, c.GetAmContainerSpec().GetTokens(), c.GetCancelTokensWhenComplete())
			s.metrics.Submissions.Add(1)
			s.traces.begin(sub.ID, c)
			return func() (struct{}, error) {
				s.traces.reached(sub.ID, stageJournal)
				return struct{}{}, nil
			}
		},
	}
}

// closed returns the reasons to reject new applications under a claim of routers. The drain function is called only
// for a claim.
func (s *Server) closed(claim int64) rm.Closed {
	c := rm.Closed{Name: s.cfg.ClusterID, Full: s.Refusing()}
	if drained := s.drained.Load(); claim != 0 && drained != nil {
		c.Drained = (*drained)()
	}
	return c
}

// Disown answers a router that wants to leave this home, once the answer is durable. It returns up to which claim the
// application is rejected for ever: 0 if it is known here, the highest int64 if it has ended here.
func (s *Server) Disown(who Caller, id creel.ApplicationID, claim int64) Op[int64] {
	return Op[int64]{
		durable: true,
		name:    "disownApplication",
		target:  id.String(),
		Run: func(m *rm.Machine, now time.Time) func() (int64, error) {
			if err := s.routersOnly(who, "disown "+id.String()); err != nil {
				return Failed[int64](err)
			}
			upTo, err := m.Disown(now, id, claim)
			if err != nil {
				return Failed[int64](err)
			}
			return Done(upTo)
		},
	}
}

// routersOnly rejects callers that may not act for the federation.
func (s *Server) routersOnly(who Caller, what string) error {
	if s.access.learn(who.User); s.access.isRouter(who.User) {
		return nil
	}
	return &creel.Error{
		Kind: creel.ErrNotPermitted,
		What: who.User + " may not " + what,
		Why:  "only a router may: a proxy user, or an administrator",
		Try:  "set hadoop.proxyuser.*.hosts and .users for the router's user, or add it to yarn.admin.acl",
	}
}

// MoveAway carries out a router's durable call to the home that an application leaves: hold it and return the data
// for its next home, release it, or drop it. See rm.Machine.Hold.
func (s *Server) MoveAway(
	who Caller,
	id creel.ApplicationID,
	verb yarnrpc.HoldVerb,
	claim int64,
	reason string,
) Op[*yarnrpc.MovedApplication] {
	names := map[yarnrpc.HoldVerb]string{
		yarnrpc.Hold: "holdApplication", yarnrpc.ReleaseHold: "releaseApplication", yarnrpc.DropHeld: "dropApplication",
	}
	type answer = *yarnrpc.MovedApplication
	return Op[answer]{
		durable: true,
		name:    names[verb],
		target:  id.String(),
		Run: func(m *rm.Machine, now time.Time) func() (answer, error) {
			if err := s.routersOnly(who, "move "+id.String()); err != nil {
				return Failed[answer](err)
			}
			var err error
			var held rm.HeldApp
			switch verb {
			case yarnrpc.Hold:
				if err = s.closed(0).ReadOnly(); err == nil {
					held, err = m.Hold(now, id, claim, reason)
				}
			case yarnrpc.ReleaseHold:
				err = m.ReleaseHold(now, id, claim)
			case yarnrpc.DropHeld:
				err = m.DropHeld(now, id, claim)
			}
			if err != nil || verb != yarnrpc.Hold {
				return func() (answer, error) { return nil, err }
			}
			return func() (answer, error) {
				message, err := codec.Moving(&held).MarshalVT()
				return &yarnrpc.MovedApplication{
					Message: message, User: held.App.User, Since: held.App.Submitted, Left: held.Left,
				}, err
			}
		},
	}
}

// Kill starts an application's end. The result reports whether the application has ended durably. Callers repeat the
// call until then; a repeat leaves no audit line.
func (s *Server) Kill(who Caller, id creel.ApplicationID, diagnostics string) Op[bool] {
	again := new(bool)
	return Op[bool]{
		name:   "forceKillApplication",
		target: id.String(),
		again:  again,
		Run: func(m *rm.Machine, now time.Time) func() (bool, error) {
			a, err := s.modifiable(m, who, id)
			if err != nil {
				return Failed[bool](err)
			}
			*again = a.Ending
			s.metrics.Kills.Add(1)
			text := fmt.Sprintf("Application %s was killed by user %s at %s", id, who.User, who.Remote.Addr())
			if diagnostics != "" {
				text += " with diagnostic message: " + diagnostics
			}
			completed, err := m.Kill(now, id, text)
			if err != nil {
				return Failed[bool](err)
			}
			return Done(completed)
		},
	}
}

// FailAttempt fails an application's current attempt.
func (s *Server) FailAttempt(who Caller, id creel.AttemptID) Op[struct{}] {
	return Op[struct{}]{
		name:   "failApplicationAttempt",
		target: id.String(),
		Run: func(m *rm.Machine, now time.Time) func() (struct{}, error) {
			_, err := s.modifiable(m, who, id.Application)
			if err == nil {
				err = m.FailAttempt(now, id)
			}
			return Failed[struct{}](err)
		},
	}
}

// Move moves an application to another queue; the answer is sent when the move is durable.
func (s *Server) Move(who Caller, id creel.ApplicationID, queue string) Op[struct{}] {
	return Op[struct{}]{
		durable: true,
		grows:   true,
		name:    "moveApplicationAcrossQueues",
		target:  id.String(),
		Run: func(m *rm.Machine, now time.Time) func() (struct{}, error) {
			_, err := s.modifiable(m, who, id)
			if err == nil && s.cfg.ACLs && !s.access.isAdmin(who.User) &&
				!m.MaySubmit(queue, who.User, s.access.groups.Known(who.User)) {
				err = denied("User %s cannot submit applications to queue %s", who.User, queue)
			}
			if err == nil {
				err = m.Move(now, id, queue)
			}
			if errors.Is(err, creel.ErrQueueNotFound) {
				err = codec.Invalid("The specified Queue: %s doesn't exist", queue)
			}
			return Failed[struct{}](err)
		},
	}
}

// SetPriority changes an application's priority. The answer is the priority in force, which may be capped; it is sent
// when the change is durable.
func (s *Server) SetPriority(who Caller, id creel.ApplicationID, priority int32) Op[int32] {
	return Op[int32]{
		durable: true,
		grows:   true,
		name:    "updateApplicationPriority",
		target:  id.String(),
		Run: func(m *rm.Machine, now time.Time) func() (int32, error) {
			a, err := s.modifiable(m, who, id)
			if err == nil && !a.State.Ended() {
				err = m.MayHavePriority(id, a.Queue, who.User, s.access.groups.Known(who.User), priority)
			}
			if err == nil && !a.State.Ended() { // it does not change an ended application
				_, err = m.SetPriority(now, id, priority)
			}
			if err != nil {
				return Failed[int32](err)
			}
			if after, ok := m.App(id); ok {
				a = after
			}
			return Done(a.Priority)
		},
	}
}

// endOfTime is the latest deadline, because nanoseconds since 1970 overflow soon after it.
var endOfTime = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)

// SetLifetimes sets the time at which an application is killed. It applies the times in the order of the protocol's
// list, in the form of codec.FormatExpiry. The answer is sent when the change is durable.
func (s *Server) SetLifetimes(who Caller, id creel.ApplicationID, expiries []string) Op[struct{}] {
	return Op[struct{}]{
		durable: true,
		grows:   true,
		name:    "updateApplicationTimeouts",
		target:  id.String(),
		Run: func(m *rm.Machine, now time.Time) func() (struct{}, error) {
			a, err := s.modifiable(m, who, id)
			switch {
			case err != nil:
				return Failed[struct{}](err)
			case len(expiries) == 0:
				return Failed[struct{}](
					codec.Invalid("At least one ApplicationTimeoutType should be configured for updating timeouts."),
				)
			case a.State.Ended():
				return Failed[struct{}](
					codec.Invalid("Application %s is in %s state: its timeout cannot be updated", id, a.State),
				)
			}
			for _, text := range expiries {
				deadline, err := codec.ParseExpiry(text)
				if err == nil && !deadline.IsZero() && !deadline.After(now) {
					err = codec.Invalid("Expire time is less than current time, current-time=%s expire-time=%s",
						codec.FormatExpiry(now), text)
				}
				if err == nil && deadline.After(endOfTime) {
					deadline = endOfTime
				}
				if err == nil {
					err = m.SetLifetime(now, id, deadline)
				}
				if err != nil {
					return Failed[struct{}](err)
				}
			}
			return Done(struct{}{})
		},
	}
}

// Signal forwards a signal to a container at its node's next heartbeat; the answer is sent when the signal is
// durable.
func (s *Server) Signal(who Caller, id creel.ContainerID, command int32) Op[struct{}] {
	return Op[struct{}]{
		durable: true,
		grows:   true,
		name:    "signalToContainer",
		target:  id.String(),
		Run: func(m *rm.Machine, now time.Time) func() (struct{}, error) {
			_, err := s.modifiable(m, who, id.Attempt.Application)
			if err == nil {
				err = m.Signal(now, rm.Signal{Container: id, Command: command})
			}
			if errors.Is(err, creel.ErrContainerNotFound) {
				err = codec.Invalid("Trying to signal an absent container %s", id)
			}
			return Failed[struct{}](err)
		},
	}
}
