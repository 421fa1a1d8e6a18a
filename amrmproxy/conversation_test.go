// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

func conversationOf(t *testing.T) (*conversation, *actions) {
	t.Helper()
	var cfg Config
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	acts := &actions{}
	return &conversation{cfg: &cfg, acts: acts, out: &yarnpb.AllocateResponseProto{}}, acts
}

// replies returns the replies since the last call.
func (a *actions) replies(t *testing.T) (out []Reply) {
	t.Helper()
	for _, x := range *a {
		r, ok := x.(Reply)
		if !ok {
			t.Fatalf("action %v is no reply", x)
		}
		out = append(out, r)
	}
	*a = nil
	return out
}

func TestHeartbeatIsAnsweredOncePerResponseID(t *testing.T) {
	c, acts := conversationOf(t)
	now := time.Unix(0, 0)
	if !c.heartbeat(1, 0) {
		t.Fatal("the first heartbeat is not new")
	}
	c.begin(1, 0, now, false)
	if c.heartbeat(2, 0) || len(*acts) != 0 {
		t.Fatal("a repeated heartbeat does not wait for the answer")
	}
	c.answerAllocate(c.takeAnswer())
	got := acts.replies(t)
	if len(got) != 2 || got[0].Allocate != got[1].Allocate || got[0].Allocate.GetResponseId() != 1 {
		t.Fatalf("replies %v, want one answer to both calls", got)
	}
	if c.heartbeat(3, 0) {
		t.Fatal("an answered heartbeat is new")
	}
	if again := acts.replies(t); len(again) != 1 || again[0].Allocate != got[0].Allocate {
		t.Errorf("replies %v to a repeat, want the last answer", again)
	}
	if c.heartbeat(4, 7) {
		t.Error("a heartbeat with an unknown response id is new")
	}
	if r := acts.replies(t); len(r) != 1 || !errors.Is(r[0].Err, creel.ErrInvalidRequest) {
		t.Errorf("replies %v, want a refusal", r)
	}
	if !c.heartbeat(5, 1) {
		t.Error("the next heartbeat is not new")
	}
}

func TestAnswerWaitsForHomeAndItsTimeLimits(t *testing.T) {
	c, _ := conversationOf(t)
	now := time.Unix(0, 0)
	if c.ready(now, true) {
		t.Fatal("an answer without a heartbeat")
	}
	c.begin(1, 0, now, false)
	if c.ready(now, false) || !c.ready(now, true) {
		t.Error("the answer waits for home unless home is away")
	}
	if c.ready(now.Add(c.cfg.HomeWait), false) || !c.ready(now.Add(c.cfg.HomeWaitMost), false) {
		t.Error("an empty answer waits for HomeWaitMost")
	}
	c.complete([]*yarnpb.ContainerStatusProto{{}})
	if c.ready(now, false) || !c.ready(now.Add(c.cfg.HomeWait), false) {
		t.Error("an answer with data waits for HomeWait")
	}
	if c.homeAnswered = true; !c.ready(now, false) {
		t.Error("the answer waits though home has answered")
	}
}

func TestFirstResponseIDAfterProxyRestart(t *testing.T) {
	c, acts := conversationOf(t)
	now := time.Unix(0, 0)
	c.register(1, now)
	c.answer = &yarnpb.RegisterApplicationMasterResponseProto{}
	c.attached.NmTokens = []*yarnpb.NMTokenProto{{}}
	c.answerRegister(77)
	r := acts.replies(t)
	if len(r) != 1 || len(r[0].Register.NmTokensFromPreviousAttempts) != 1 || c.told != r[0].Register {
		t.Fatalf("replies %v", r)
	}
	c.begin(2, 0, now, true)
	if a := c.takeAnswer(); a.GetResponseId() != 77 || c.lastID != 77 {
		t.Errorf("response id %d, want 77", a.GetResponseId())
	}
}

func TestTrackingURLStaysUntilHomeHasIt(t *testing.T) {
	c, _ := conversationOf(t)
	c.take(&yarnpb.AllocateRequestProto{TrackingUrl: proto.String("http://am")})
	c.take(&yarnpb.AllocateRequestProto{Ask: []*yarnpb.ResourceRequestProto{{}}})
	r := c.request(true)
	if r.GetTrackingUrl() != "http://am" || len(r.Ask) != 0 {
		t.Fatalf("home gets %v", r)
	}
	if again := c.request(true); again.TrackingUrl != nil {
		t.Errorf("home gets %v again", again)
	}
	c.untaken(r)
	if again := c.request(true); again.GetTrackingUrl() != "http://am" {
		t.Errorf("home gets %v after a call that it did not accept", again)
	}
}

func TestFinishAfterTheEnd(t *testing.T) {
	c, acts := conversationOf(t)
	c.startFinish(1, &yarnpb.FinishApplicationMasterRequestProto{}, time.Unix(0, 0))
	if c.answerFinish(); len(*acts) != 0 {
		t.Fatal("the finish was answered before home has answered")
	}
	c.repeatFinish(2)
	if r := acts.replies(t); len(r) != 1 || !errors.Is(r[0].Err, creel.ErrAttemptNotFound) {
		t.Fatalf("replies %v to a late finish", r)
	}
	c.finished = &yarnpb.FinishApplicationMasterResponseProto{IsUnregistered: proto.Bool(true)}
	c.answerFinish()
	c.answerFinish()
	c.repeatFinish(3)
	if r := acts.replies(t); len(r) != 2 || r[0].Call != 1 || r[1].Call != 3 || r[1].Finish != c.finished {
		t.Errorf("replies %v", r)
	}
}
