// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"cmp"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// conversation is the session's side of the AM: the AM's calls that wait, the response ids of its heartbeats, and the
// answer under construction. It knows no members.
type conversation struct {
	cfg     *Config
	attempt creel.AttemptID
	acts    *actions

	heard        time.Time // the AM's last call
	began        time.Time // of the heartbeat being answered, or of the registration or finish
	homeAnswered bool      // home has answered since
	endErr       error     // the AM's answer after the end
	why          string    // the reason of the end

	registers []uint64
	answer    *yarnpb.RegisterApplicationMasterResponseProto // home's answer, until sent to the AM
	told      *yarnpb.RegisterApplicationMasterResponseProto // the answer that the AM received
	attached  *yarnpb.AllocateResponseProto                  // data from UAMs that outlived a proxy

	waiting    []uint64 // calls of the heartbeat being answered
	waitID     int32
	lastID     int32 // response id of the last answer, and of the next call
	answeredID int32 // response id of the call that this answered
	resumeAt   int32 // response id of the next answer; 0: the id after the last
	last       *yarnpb.AllocateResponseProto
	out        *yarnpb.AllocateResponseProto // for the next answer
	priority   *yarnpb.PriorityProto
	progress   *float32
	amRequest  *yarnpb.AllocateRequestProto // the AM's last message, for home

	finishes []uint64
	finish   *yarnpb.FinishApplicationMasterRequestProto
	finished *yarnpb.FinishApplicationMasterResponseProto
}

func (c *conversation) refuse(call uint64, err error) { c.acts.do(Reply{Call: call, Err: err}) }

// refuseWaiting refuses the heartbeat being answered.
func (c *conversation) refuseWaiting(err error) {
	for _, call := range c.waiting {
		c.refuse(call, err)
	}
	c.waiting = c.waiting[:0]
}

func (c *conversation) refuseRegisters(err error) {
	for _, call := range c.registers {
		c.refuse(call, err)
	}
	c.registers = nil
}

func (c *conversation) refuseFinishes(err error) {
	for _, call := range c.finishes {
		c.refuse(call, err)
	}
	c.finishes = nil
}

func (c *conversation) refuseAll(err error) {
	c.refuseWaiting(err)
	c.refuseRegisters(err)
	c.refuseFinishes(err)
}

// over returns the answer to calls after the end.
func (c *conversation) over() error {
	if c.endErr != nil {
		return c.endErr
	}
	return c.unknown(cmp.Or(c.why, "it is over"), "")
}

// unknown is the error of a ResourceManager that does not have the attempt.
func (c *conversation) unknown(why, try string) error {
	return &creel.Error{
		Kind: creel.ErrAttemptNotFound,
		What: "Application attempt " + c.attempt.String() + " doesn't exist in ApplicationMasterService cache.",
		Why:  why,
		Try:  try,
	}
}

// silentSince reports whether the AM has not called for a time.
func (c *conversation) silentSince(now time.Time, d time.Duration) bool { return now.Sub(c.heard) >= d }

// late reports whether the registration or finish waits for home for too long.
func (c *conversation) late(now time.Time) bool { return now.Sub(c.began) > c.cfg.RegisterWait }

// register starts the answer to a registration.
func (c *conversation) register(call uint64, now time.Time) {
	c.began = now
	c.registers = append(c.registers, call)
	c.attached = &yarnpb.AllocateResponseProto{}
}

// answerRegister sends the answer to the registration, with the data from UAMs that outlived a proxy. resumeAt is the
// response id of the first answer to a heartbeat, 0 for the usual one.
func (c *conversation) answerRegister(resumeAt int32) {
	r := c.answer
	if a := c.attached; len(a.ContainersFromPreviousAttempts)+len(a.NmTokens) > 0 {
		r = r.CloneVT()
		r.ContainersFromPreviousAttempts = append(r.ContainersFromPreviousAttempts, a.ContainersFromPreviousAttempts...)
		r.NmTokensFromPreviousAttempts = append(r.NmTokensFromPreviousAttempts, a.NmTokens...)
	}
	c.told, c.answer, c.attached = r, nil, nil
	c.lastID, c.last, c.resumeAt = 0, nil, cmp.Or(resumeAt, c.resumeAt)
	for _, call := range c.registers {
		c.acts.do(Reply{Call: call, Register: r})
	}
	c.registers = nil
}

// heartbeat takes the response id of a heartbeat, and reports whether the heartbeat is new. It answers or refuses
// others.
func (c *conversation) heartbeat(call uint64, id int32) (fresh bool) {
	switch {
	case len(c.waiting) > 0 && id == c.waitID:
		c.waiting = append(c.waiting, call) // a repeat of the heartbeat that is being answered
	case id == c.lastID && len(c.waiting) == 0:
		return true
	case id == c.answeredID && c.last != nil:
		c.acts.do(Reply{Call: call, Allocate: c.last})
	default:
		c.refuse(call, invalid(
			fmt.Sprintf(
				"Invalid responseId in AllocateRequest from application attempt: %s, expect responseId to be %d but get %d",
				c.attempt, c.lastID, id,
			),
			"go on from the last answer",
		))
	}
	return false
}

// begin starts the answer to a new heartbeat. homeAnswered reports whether home's answer to the heartbeat before
// serves for this one.
func (c *conversation) begin(call uint64, id int32, now time.Time, homeAnswered bool) {
	c.waiting, c.waitID, c.began, c.homeAnswered = append(c.waiting, call), id, now, homeAnswered
}

// take stores the message of a heartbeat for home. Its lists are in the ledger and the links.
func (c *conversation) take(req *yarnpb.AllocateRequestProto) {
	c.progress = req.Progress
	if c.amRequest != nil && req.TrackingUrl == nil {
		req.TrackingUrl = c.amRequest.TrackingUrl // home has not received the last URL yet
	}
	req.Ask, req.Release, req.BlacklistRequest, req.UpdateRequests, req.SchedulingRequests = nil, nil, nil, nil, nil
	c.amRequest = req
}

// request returns the message for the next allocate call of a member. Home receives the AM's own message, other members
// a new one.
func (c *conversation) request(home bool) *yarnpb.AllocateRequestProto {
	r := &yarnpb.AllocateRequestProto{}
	if home && c.amRequest != nil {
		r, c.amRequest = c.amRequest, nil
	}
	r.Progress = c.progress
	return r
}

// finishRequest returns the message for the finish of a UAM: the AM's, if it has finished.
func (c *conversation) finishRequest(idle bool) *yarnpb.FinishApplicationMasterRequestProto {
	if c.finish != nil {
		return c.finish
	}
	if idle {
		return &yarnpb.FinishApplicationMasterRequestProto{
			FinalApplicationStatus: yarnpb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
			Diagnostics:            proto.String(idleWhy),
		}
	}
	return &yarnpb.FinishApplicationMasterRequestProto{
		FinalApplicationStatus: yarnpb.FinalApplicationStatusProto_APP_KILLED.Enum(),
		Diagnostics:            proto.String(c.why),
	}
}

const idleWhy = "the UAM there was idle and was ended"

// untaken takes the message of a call that home did not accept.
func (c *conversation) untaken(a *yarnpb.AllocateRequestProto) {
	if c.amRequest == nil {
		c.amRequest = &yarnpb.AllocateRequestProto{TrackingUrl: a.TrackingUrl}
	}
}

// add merges a member's answer into the next answer.
func (c *conversation) add(r *yarnpb.AllocateResponseProto, home bool) {
	c.out = absorb(c.out, r, home)
}

// complete adds completions to the next answer.
func (c *conversation) complete(completions []*yarnpb.ContainerStatusProto) {
	c.out.CompletedContainerStatuses = append(c.out.CompletedContainerStatuses, completions...)
}

// ready reports whether the heartbeat can be answered now. It does not wait for a home that is away, nor for a slow
// home if other members have delivered something.
func (c *conversation) ready(now time.Time, homeAway bool) bool {
	if len(c.waiting) == 0 || c.homeAnswered {
		return len(c.waiting) > 0
	}
	waited := now.Sub(c.began)
	if waited >= c.cfg.HomeWaitMost || homeAway {
		return true
	}
	some := len(c.out.AllocatedContainers)+len(c.out.CompletedContainerStatuses)+len(c.out.UpdatedContainers) > 0
	return some && waited >= c.cfg.HomeWait
}

// takeAnswer returns the answer to the heartbeat, with its response id.
func (c *conversation) takeAnswer() *yarnpb.AllocateResponseProto {
	r := c.out
	c.out = &yarnpb.AllocateResponseProto{}
	c.answeredID, c.lastID = c.waitID, nextID(c.waitID)
	if c.resumeAt != 0 {
		c.lastID, c.resumeAt = c.resumeAt, 0
	}
	r.ResponseId = proto.Int32(c.lastID)
	if r.ApplicationPriority == nil {
		r.ApplicationPriority = c.priority
	}
	return r
}

// answerAllocate sends the answer to the heartbeat.
func (c *conversation) answerAllocate(r *yarnpb.AllocateResponseProto) {
	c.last = r
	for _, call := range c.waiting {
		c.acts.do(Reply{Call: call, Allocate: r})
	}
	c.waiting = c.waiting[:0]
}

// startFinish starts the answer to a finish.
func (c *conversation) startFinish(call uint64, req *yarnpb.FinishApplicationMasterRequestProto, now time.Time) {
	c.finishes = append(c.finishes, call)
	c.finish, c.finished, c.began = req, nil, now
}

// repeatFinish answers a call after the end: a finish whose answer was lost gets it again.
func (c *conversation) repeatFinish(call uint64) {
	if c.finished.GetIsUnregistered() {
		c.acts.do(Reply{Call: call, Finish: c.finished})
		return
	}
	c.refuse(call, c.over())
}

// answerFinish sends home's answer to the finish, if there is one.
func (c *conversation) answerFinish() {
	if c.finished == nil {
		return
	}
	for _, call := range c.finishes {
		c.acts.do(Reply{Call: call, Finish: c.finished})
	}
	c.finishes = nil
}

// nextID returns the response id after id; ids wrap from 2^31-1 to 0.
func nextID(id int32) int32 { return int32((uint32(id) + 1) & 0x7fffffff) }

func invalid(what, try string) error {
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: what, Try: try}
}
