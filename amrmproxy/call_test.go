// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/internal/yarnpb"
)

// Each row has the next states after made, ended, failed, queued, replay queued and abandoned.
func TestCallTransitions(t *testing.T) {
	names := [...]string{"none", "out", "due", "replayOut", "replayDue"}
	want := strings.TrimSpace(`
none:      out       none none      due replayDue none
out:       out       none due       due replayDue none
due:       out       none due       due replayDue none
replayOut: replayOut none replayDue due replayDue none
replayDue: replayOut none replayDue due replayDue none`)
	var rows []string
	for state, name := range names {
		row := []string{fmt.Sprintf("%-10s", name+":")}
		for e, width := range []int{9, 4, 9, 3, 9, 4} {
			c := call{state: callState(state)}
			c.on(callEvent(e))
			row = append(row, fmt.Sprintf("%-*s", width, names[c.state]))
		}
		rows = append(rows, strings.Join(row, " "))
	}
	if got := strings.Join(rows, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// asking is an allocate call with one ask.
func asking(id int32) *Send {
	return &Send{Allocate: &yarnpb.AllocateRequestProto{
		ResponseId: proto.Int32(id), Ask: []*yarnpb.ResourceRequestProto{{}},
	}}
}

func TestCallWithoutAnswerIsRepeated(t *testing.T) {
	now, cfg := time.Unix(100, 0), Config{Retry: time.Second, RetryMost: 3 * time.Second}
	var c call
	first := c.send(asking(3), now)
	if !c.busy() || !c.answers(1) || c.answers(2) {
		t.Fatalf("state %d, number %d after the first call", c.state, c.seq)
	}
	for _, pause := range []time.Duration{1, 2, 3, 3} {
		c.failed(now, &cfg)
		if c.busy() || !c.due() || c.retryAt.Sub(now) != pause*time.Second {
			t.Fatalf("state %d, pause %v, want %d s", c.state, c.retryAt.Sub(now), pause)
		}
		now = c.retryAt
		if again := c.send(asking(9), now); again != first {
			t.Fatalf("sent %v, want the first call", again)
		}
	}
	if c.badSince != time.Unix(100, 0) {
		t.Errorf("no answer since %v, want the first sending", c.badSince)
	}
	c.answered()
	if !c.atRest() || c.pause != 0 || c.under != nil {
		t.Errorf("after the answer: %+v", c)
	}
}

func TestAnswerOfAbandonedCallIsIgnored(t *testing.T) {
	m := &link{state: linkUp}
	m.call.send(asking(3), time.Unix(0, 0))
	m.abandonCall()
	if m.call.answers(1) {
		t.Error("the abandoned call takes an answer")
	}
	m.call.begin(time.Unix(1, 0))
	if m.call.answers(1) {
		t.Error("a call without a number takes the answer of the abandoned one")
	}
}

func TestCallAfterRefusedResponseID(t *testing.T) {
	var c call
	due := c.send(asking(3), time.Unix(0, 0))
	if id := c.mismatched(7, nil); id != 6 || !c.replays() || due.Allocate.GetResponseId() != 6 {
		t.Fatalf("response id %d, state %d", id, c.state)
	}
	c.send(nil, time.Unix(1, 0))
	if !c.repeats() {
		t.Fatal("the answer is not the member's repeated one")
	}
	c.replayed(7, nil)
	if empty := c.send(nil, time.Unix(2, 0)); !saysNothing(empty) || c.repeats() {
		t.Fatalf("sent %v, want an empty call", empty)
	}
	c.answered()
	c.proceed(8)
	if last := c.send(nil, time.Unix(3, 0)); last != due || last.Allocate.GetResponseId() != 8 || c.behind != nil {
		t.Errorf("sent %v, want the refused call with response id 8", last)
	}
}

func TestEmptyCallAtFirstResponseID(t *testing.T) {
	var c call
	due := c.send(asking(3), time.Unix(0, 0))
	if id := c.mismatched(0, nil); id != 0 || c.replays() {
		t.Fatalf("response id %d, state %d", id, c.state)
	}
	if empty := c.send(nil, time.Unix(1, 0)); !saysNothing(empty) {
		t.Fatalf("sent %v, want an empty call", empty)
	}
	if c.content() != due {
		t.Error("the call with content is lost")
	}
}
