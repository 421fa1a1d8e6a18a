// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/creelrm/creel/internal/yarnpb"
)

func TestMoveVerbsRoundTrip(t *testing.T) {
	for _, verb := range []HoldVerb{Hold, ReleaseHold, DropHeld} {
		var r pb.GetApplicationReportRequestProto
		if err := r.UnmarshalVT(WithHold(nil, verb, 7, "sc-2")); err != nil {
			t.Fatal(err)
		}
		if v, claim, why := HoldWanted(&r); v != verb || claim != 7 || why != "sc-2" || DisownWanted(&r) != 0 {
			t.Errorf("verb %d arrives as %d under claim %d: %q", verb, v, claim, why)
		}
	}
	if v, _, _ := HoldWanted(&pb.GetApplicationReportRequestProto{}); v != NoHoldVerb {
		t.Errorf("a plain question asks for verb %d", v)
	}
	sent := MovedApplication{[]byte("\x1a\x01x"), "alice", time.UnixMilli(1234).UTC(), 5 * time.Second}
	b, err := proto.Marshal(HoldAnswer(Hold, 7, &sent))
	if err != nil {
		t.Fatal(err)
	}
	got, done := HoldDone(b, Hold, 7)
	if !done || string(got.Message) != string(sent.Message) || got.User != "alice" || !got.Since.Equal(sent.Since) ||
		got.Left != sent.Left {
		t.Errorf("%v %+v", done, got)
	}
	if _, done := HoldDone(b, DropHeld, 7); done {
		t.Error("a hold is taken for a drop")
	}
	if _, done := HoldDone(nil, Hold, 7); done {
		t.Error("the answer of a ResourceManager that knows no holds is taken for one")
	}
	var s pb.SubmitApplicationRequestProto
	if err := s.UnmarshalVT(SubmissionOf(&got, 9)); err != nil {
		t.Fatal(err)
	}
	since, left := CarriedOf(&s)
	if ClaimOf(&s) != 9 || s.GetApplicationSubmissionContext().GetQueue() != "x" ||
		!since.Equal(sent.Since) || left != sent.Left {
		t.Errorf("claim %d since %v left %v of %v", ClaimOf(&s), since, left, &s)
	}
}

func TestReportMarksHeldApplication(t *testing.T) {
	r := &pb.ApplicationReportProto{}
	if pb.HeldUnder(r) != 0 {
		t.Error("none is held")
	}
	pb.SetHeld(r, 5)
	pb.SetNewest(r, 6)
	b, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back pb.ApplicationReportProto
	if err := proto.Unmarshal(b, &back); err != nil || pb.HeldUnder(&back) != 5 {
		t.Errorf("%d, %v", pb.HeldUnder(&back), err)
	}
	if n := pb.NewestClaim(&back); n != 6 {
		t.Errorf("the newest claim is %d, want 6", n)
	}
}
