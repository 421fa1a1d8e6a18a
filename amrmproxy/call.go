// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/internal/yarnpb"
)

// callState is the progress of the one call to a member that may be under way.
type callState int

const (
	callNone  callState = iota // no call is under way, and the next one has any content
	callOut                    // a call is under way
	callDue                    // the call in under is the next one
	replayOut                  // a call is under way that requests a repeat of the member's last answer
	replayDue                  // such a call is the next one
)

// callEvent changes the state of a call.
type callEvent int

const (
	callMade      callEvent = iota // it was sent
	callEnded                      // the member answered it
	callFailed                     // it ended without an answer: the member may have processed it, so it is repeated
	callQueued                     // the next call is known
	replayQueued                   // the next call requests a repeat of the member's last answer
	callAbandoned                  // its answer does not matter any more
)

// callTransitions has the next state by state and event.
var callTransitions = [...][6]callState{
	callNone: {
		callMade: callOut, callEnded: callNone, callFailed: callNone,
		callQueued: callDue, replayQueued: replayDue, callAbandoned: callNone,
	},
	callOut: {
		callMade: callOut, callEnded: callNone, callFailed: callDue,
		callQueued: callDue, replayQueued: replayDue, callAbandoned: callNone,
	},
	callDue: {
		callMade: callOut, callEnded: callNone, callFailed: callDue,
		callQueued: callDue, replayQueued: replayDue, callAbandoned: callNone,
	},
	replayOut: {
		callMade: replayOut, callEnded: callNone, callFailed: replayDue,
		callQueued: callDue, replayQueued: replayDue, callAbandoned: callNone,
	},
	replayDue: {
		callMade: replayOut, callEnded: callNone, callFailed: replayDue,
		callQueued: callDue, replayQueued: replayDue, callAbandoned: callNone,
	},
}

// call is the call to a member that is under way or due, and the pause after failures. At most one call is under way.
type call struct {
	state    callState
	seq      uint64
	under    *Send // the call under way or due; nil for a call without a Send
	behind   *Send // the call after under, which is empty; see replayed
	sent     time.Time
	retryAt  time.Time
	pause    time.Duration
	badSince time.Time // first sending of the oldest unanswered call
}

func (c *call) on(e callEvent) { c.state = callTransitions[c.state][e] }

// busy reports whether a call is under way.
func (c *call) busy() bool { return c.state == callOut || c.state == replayOut }

// due reports whether the next call is known.
func (c *call) due() bool { return c.state == callDue || c.state == replayDue }

// replays reports whether the call requests a repeat of the member's last answer.
func (c *call) replays() bool { return c.state == replayOut || c.state == replayDue }

// atRest reports whether no call is under way or due, and the last one was answered.
func (c *call) atRest() bool { return c.state == callNone && c.badSince.IsZero() }

// begin records the start of a call that has no Send.
func (c *call) begin(now time.Time) {
	c.on(callMade)
	c.sent = now
}

// end records the end of a call that has no Send.
func (c *call) end() { c.on(callEnded) }

// send returns the call to make now: the due one, else next. It numbers the call.
func (c *call) send(next *Send, now time.Time) *Send {
	if c.due() {
		next = c.under
	}
	c.seq++
	c.on(callMade)
	c.sent, c.under = now, next
	next.Seq = c.seq
	return next
}

// answers reports whether an answer with this number is of the call under way.
func (c *call) answers(seq uint64) bool { return c.busy() && c.seq == seq }

// repeats reports whether an answer to the call under way repeats the member's last answer.
func (c *call) repeats() bool {
	a := c.under.Allocate
	return a != nil && (c.replays() || a.GetResponseId() == unknownID)
}

// answered records that the member answered the call.
func (c *call) answered() {
	c.on(callEnded)
	c.under = nil
	c.recovered()
}

// recovered records that the member answers.
func (c *call) recovered() { c.pause, c.retryAt, c.badSince = 0, time.Time{}, time.Time{} }

// failed records that the member gave no usable answer, and sets the pause before the next call. A call under way is
// repeated: that is safe, since a ResourceManager repeats its last answer for a known response id.
func (c *call) failed(now time.Time, cfg *Config) {
	c.on(callFailed)
	c.pause = min(max(2*c.pause, cfg.Retry), cfg.RetryMost)
	c.retryAt = now.Add(c.pause)
	if c.badSince.IsZero() {
		c.badSince = c.sent
	}
}

// queue sets the next call.
func (c *call) queue(next *Send) {
	c.on(callQueued)
	c.under = next
}

// abandon drops the call and the pause before the next one.
func (c *call) abandon() {
	c.drop()
	c.retryAt, c.pause = time.Time{}, 0
}

// drop removes the call under way or due.
func (c *call) drop() {
	c.on(callAbandoned)
	c.under, c.behind = nil, nil
}

// mismatched handles the refusal of an allocate's response id; the member expects the id want. It returns the id of
// the next call. That call makes the member repeat its last answer, if there is one. Otherwise an empty call comes
// first, since a late call of another proxy may have the same response id.
func (c *call) mismatched(want int32, progress *float32) int32 {
	if want > 0 {
		want--
		c.on(replayQueued)
	} else {
		if c.behind == nil && !saysNothing(c.under) {
			c.behind, c.under = c.under, emptyCall(want, progress)
		}
		c.on(callQueued)
	}
	c.under.Allocate.ResponseId = proto.Int32(want)
	return want
}

// replayed records that the member repeated its last answer, of response id id, instead of processing the call. An
// empty call follows, and after it the call with content.
func (c *call) replayed(id int32, progress *float32) {
	under := c.under
	c.answered()
	if c.behind == nil && !saysNothing(under) {
		c.behind = under
	}
	c.queue(emptyCall(id, progress))
}

// proceed queues the call behind an empty call that was answered, under the response id id.
func (c *call) proceed(id int32) {
	if b := c.behind; b != nil {
		b.Allocate.ResponseId = proto.Int32(id)
		c.behind = nil
		c.queue(b)
	}
}

// content returns the request with content: the call under way, or the one behind it.
func (c *call) content() *Send {
	if b := c.behind; b != nil {
		c.behind = nil
		return b
	}
	return c.under
}

// emptyCall returns an allocate call without content.
func emptyCall(number int32, progress *float32) *Send {
	return &Send{Allocate: &yarnpb.AllocateRequestProto{ResponseId: proto.Int32(number), Progress: progress}}
}

func saysNothing(s *Send) bool {
	a := s.Allocate
	return len(s.Placed) == 0 && len(a.Ask)+len(a.Release)+len(a.UpdateRequests)+len(a.SchedulingRequests) == 0 &&
		a.BlacklistRequest == nil && a.TrackingUrl == nil
}
