// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/internal/yarnpb"
)

// A report's percentages become those of the federation, in the message and in its
// bytes, and nothing else of it changes.
func TestAReportsUsageIsOfTheFederation(t *testing.T) {
	report := func(queue, cluster float32) *yarnpb.GetApplicationReportResponseProto {
		return &yarnpb.GetApplicationReportResponseProto{ApplicationReport: &yarnpb.ApplicationReportProto{
			Name: proto.String("a"), Diagnostics: proto.String("b"),
			AppResource_Usage: &yarnpb.ApplicationResourceUsageReportProto{
				QueueUsagePercentage: &queue, ClusterUsagePercentage: &cluster, MemorySeconds: proto.Int64(7),
			},
		}}
	}
	for _, c := range []struct {
		from, want *yarnpb.GetApplicationReportResponseProto
	}{
		{report(50, 10), report(12.5, 2.5)},
		{report(0, -1), report(0, -1)},
		{&yarnpb.GetApplicationReportResponseProto{}, &yarnpb.GetApplicationReportResponseProto{}},
	} {
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(c.from)
		if err != nil {
			t.Fatal(err)
		}
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(c.want)
		if err != nil {
			t.Fatal(err)
		}
		ofFederationAnswer(raw, 0.25)
		if !bytes.Equal(raw, want) {
			t.Errorf("the bytes of %v became %x, want %x", c.from, raw, want)
		}
		if ofFederation(c.from.GetApplicationReport(), 0.25); !proto.Equal(c.from, c.want) {
			t.Errorf("got %v, want %v", c.from, c.want)
		}
	}
}

// Bytes of any kind are looked at without harm.
func FuzzUsageInAnswer(f *testing.F) {
	f.Add([]byte{0x0a, 0x07, 0x72, 0x05, 0x45, 0, 0, 0x48, 0x42})
	f.Add([]byte{0x0a, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, answer []byte) {
		before := len(answer)
		ofFederationAnswer(answer, 0.5)
		if len(answer) != before {
			t.Errorf("%d bytes became %d", before, len(answer))
		}
	})
}
