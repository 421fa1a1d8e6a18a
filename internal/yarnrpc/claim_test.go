// SPDX-License-Identifier: Apache-2.0

package yarnrpc_test

import (
	"bytes"
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

func TestClaimAndDisownTravelAsUnknownFields(t *testing.T) {
	id := &pb.ApplicationIdProto{Id: proto.Int32(5), ClusterTimestamp: proto.Int64(1700000000000)}
	context := &pb.ApplicationSubmissionContextProto{ApplicationId: id}
	plain, err := proto.Marshal(&pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: context})
	if err != nil {
		t.Fatal(err)
	}
	before := bytes.Clone(plain[:len(plain):cap(plain)])
	for _, claim := range []int64{0, 1, 300, 1 << 40} {
		var r pb.SubmitApplicationRequestProto
		if err := proto.Unmarshal(yarnrpc.WithClaim(plain, claim), &r); err != nil {
			t.Fatal(err)
		}
		if got := yarnrpc.ClaimOf(&r); got != claim {
			t.Errorf("claim %d is read as %d", claim, got)
		}
		if err := proto.Unmarshal(yarnrpc.WithClaim(yarnrpc.WithClaim(plain, 1<<50), claim), &r); err != nil {
			t.Fatal(err)
		}
		if got := yarnrpc.ClaimOf(&r); got != claim {
			t.Errorf("claim %d behind a client's own is read as %d", claim, got)
		}
		if r.GetApplicationSubmissionContext().GetApplicationId().GetId() != 5 {
			t.Error("the submission itself is damaged")
		}
	}
	if !bytes.Equal(before, plain) {
		t.Error("the client's bytes were changed")
	}

	ask, err := proto.Marshal(&pb.GetApplicationReportRequestProto{ApplicationId: id})
	if err != nil {
		t.Fatal(err)
	}
	var r pb.GetApplicationReportRequestProto
	if err := proto.Unmarshal(yarnrpc.WithDisown(ask, 7), &r); err != nil || yarnrpc.DisownWanted(&r) != 7 {
		t.Errorf("disown under claim 7 is read as %d, %v", yarnrpc.DisownWanted(&r), err)
	}
	answer, err := proto.Marshal(yarnrpc.DisownedAnswer(7))
	if err != nil {
		t.Fatal(err)
	}
	ended, err := proto.Marshal(yarnrpc.DisownedAnswer(math.MaxInt64))
	if err != nil || !yarnrpc.HasEnded(ended) || !yarnrpc.IsDisowned(ended, 7) {
		t.Errorf("the answer for every claim is read as another one: %v", err)
	}
	report, err := proto.Marshal(&pb.GetApplicationReportResponseProto{
		ApplicationReport: &pb.ApplicationReportProto{ApplicationId: id},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what   string
		answer []byte
		claim  int64
		want   bool
	}{
		{"its own claim", answer, 7, true},
		{"an earlier claim", answer, 6, true},
		{"a later claim", answer, 8, false},
		{"a report", report, 1, false},
		{"an empty answer, as of a peer that knows no such field", nil, 1, false},
		{"damaged bytes", []byte{0xff}, 1, false},
	} {
		if got := yarnrpc.IsDisowned(c.answer, c.claim); got != c.want {
			t.Errorf("%s: disowned %v, want %v", c.what, got, c.want)
		}
		if yarnrpc.HasEnded(c.answer) {
			t.Errorf("%s: it counts as ended", c.what)
		}
	}
}
