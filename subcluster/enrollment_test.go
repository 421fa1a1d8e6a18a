// SPDX-License-Identifier: Apache-2.0

package subcluster_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/creelrm/creel/subcluster"
)

// A process becomes a member step by step, and repeats a failed step; an epoch that is not durable is never used.
func TestAProcessBecomesAMember(t *testing.T) {
	failed := errors.New("failed")
	j := subcluster.Enrollment{Member: subcluster.Member{ID: "sc-1"}, Previous: 5, Keeps: true}
	load := []byte(`{"clusterMetrics":{"totalMB":9},"creel":{"queues":[{"queue":"root.a"}]}}`)
	for i, step := range []struct {
		want  string
		epoch int64
		err   error
	}{
		{"take", 0, failed},
		{"take", 7, nil},
		{"keep 7", 0, failed}, // whether it is durable is not known
		{"take", 8, nil},
		{"keep 8", 0, nil},
		{"register 8", 0, failed},
		{"register 8", 0, nil},
		{"heartbeat 8 load", 0, nil},
		{"heartbeat 8", 0, failed}, // the store may have forgotten all
		{"heartbeat 8 load", 0, nil},
		{"heartbeat 8", 0, nil},
		{"forgotten", 0, nil},
		{"register 8", 0, nil},
		{"heartbeat 8 load", 0, nil},
	} {
		if step.want == "forgotten" {
			j.Forgotten()
			continue
		}
		s := j.Next(load)
		got := ""
		switch {
		case s.Take:
			got = "take"
		case s.Keep != 0:
			got = "keep " + digits(s.Keep)
		case s.Register != nil:
			got = "register " + digits(s.Register.Epoch)
			if strings.Contains(s.Register.Capability, "root.a") || !strings.Contains(s.Register.Capability, "totalMB") {
				t.Errorf("it registers with %s", s.Register.Capability)
			}
		default:
			if got = "heartbeat " + digits(s.Heartbeat.Epoch); len(s.Heartbeat.Load) > 0 {
				got += " load"
			}
		}
		if got != step.want {
			t.Fatalf("step %d is %q, not %q", i, got, step.want)
		}
		j.Done(s, step.epoch, step.err)
	}
	if j.Epoch() != 8 || !j.Registered() {
		t.Errorf("epoch %d, registered: %v", j.Epoch(), j.Registered())
	}
}

func digits(n int64) string { return string(rune('0' + n)) }
