// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"testing"

	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"google.golang.org/protobuf/proto"
)

// Reports are cached encoded; each still shows all changes made before the request, and only the parts its caller may
// see.
func TestReportShowsEarlierChanges(t *testing.T) {
	cfg := config()
	cfg.ACLs = true
	cfg.Machine.Queues.Root.Admin, cfg.Machine.Queues.Root.Children[0].Admin = queues.ACL{}, queues.ACL{}
	c := start(t, cfg)
	for range 20 {
		id := c.submission("bob", nil)
		first := c.report("bob", id)
		if again := c.report("bob", id); !proto.Equal(first, again) {
			t.Fatalf("nothing happened, and the report changed from\n%v to\n%v", first, again)
		}
		if eve := c.report(
			"eve",
			id,
		); first.GetCurrentApplicationAttemptId().GetAttemptId() != 1 ||
			eve.GetCurrentApplicationAttemptId().GetAttemptId() != -1 {
			t.Fatalf("bob sees %v\neve sees %v", first, eve)
		}
		must(
			c.as("bob").
				UpdateApplicationPriority(t.Context(), &pb.UpdateApplicationPriorityRequestProto{ApplicationId: pb.FromApplicationID(id), ApplicationPriority: pb.FromPriority(3)}),
		)
		moved := c.report("bob", id)
		for {
			if must(
				c.as("bob").
					ForceKillApplication(t.Context(), &pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(id)}),
			).GetIsKillCompleted() {
				break
			}
			if s := c.report("bob", id).GetYarnApplicationState(); s < moved.GetYarnApplicationState() {
				t.Fatalf("a killed application went back from %v to %v", moved.GetYarnApplicationState(), s)
			}
		}
		if s := c.report("bob", id).GetYarnApplicationState(); s != pb.YarnApplicationStateProto_KILLED {
			t.Fatalf("%s was killed, and its report says %v", id, s)
		}
	}
}
