// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"testing"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"google.golang.org/protobuf/proto"
)

func (c *cluster) list(
	user string,
	req *pb.GetApplicationsRequestProto,
) map[creel.ApplicationID]*pb.ApplicationReportProto {
	c.t.Helper()
	all := map[creel.ApplicationID]*pb.ApplicationReportProto{}
	for _, a := range must(c.as(user).GetApplications(c.t.Context(), req)).GetApplications() {
		all[pb.ToApplicationID(a.GetApplicationId())] = a
	}
	return all
}

// Lists are cached encoded, and each still shows all changes made before the request.
func TestListShowsEarlierChanges(t *testing.T) {
	c := start(t, config())
	everything := &pb.GetApplicationsRequestProto{}
	for i := range 30 {
		id := c.submission("bob", nil)
		list := c.list("bob", everything)
		if len(list) != i+1 || list[id] == nil {
			t.Fatalf(
				"%d applications were submitted, the list has %d, the last one among them: %t",
				i+1,
				len(list),
				list[id] != nil,
			)
		}
		if again := c.list("bob", everything); !proto.Equal(again[id], list[id]) {
			t.Fatalf("nothing happened, and the list changed from\n%v to\n%v", list[id], again[id])
		}
		one := c.report("bob", id)
		if one.GetYarnApplicationState() != list[id].GetYarnApplicationState() || one.GetName() != list[id].GetName() ||
			one.GetTrackingUrl() != list[id].GetTrackingUrl() {
			t.Fatalf("the list says %v, the report %v", list[id], one)
		}
		for {
			if must(
				c.as("bob").
					ForceKillApplication(t.Context(), &pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(id)}),
			).GetIsKillCompleted() {
				break
			}
		}
		if state := c.list("bob", everything)[id].GetYarnApplicationState(); state != pb.YarnApplicationStateProto_KILLED {
			t.Fatalf("%s was killed, and the list says %v", id, state)
		}
	}
}

// A list that one user was given is not another's, nor the answer to another
// question.
func TestAListIsItsAskers(t *testing.T) {
	cfg := config()
	cfg.ACLs = true
	cfg.Machine.Queues.Root.Admin, cfg.Machine.Queues.Root.Children[0].Admin = queues.ACL{}, queues.ACL{}
	c := start(t, cfg)
	id := c.submission("bob", nil)
	all, own := &pb.GetApplicationsRequestProto{}, &pb.GetApplicationsRequestProto{
		Scope: pb.ApplicationsRequestScopeProto_OWN.Enum(),
	}
	for range 3 {
		mine, strangers := c.list("bob", all)[id], c.list("eve", all)[id]
		if mine.GetCurrentApplicationAttemptId().GetAttemptId() != 1 ||
			strangers.GetCurrentApplicationAttemptId().GetAttemptId() != -1 {
			t.Errorf(
				"bob sees %v\neve sees %v",
				mine.GetCurrentApplicationAttemptId(),
				strangers.GetCurrentApplicationAttemptId(),
			)
		}
		if n := len(c.list("eve", own)); n != 0 {
			t.Errorf("eve has %d applications of her own", n)
		}
		if n := len(c.list("bob", own)); n != 1 {
			t.Errorf("bob has %d applications of his own", n)
		}
	}
}

func TestNodeListShowsEarlierRegistrations(t *testing.T) {
	c := start(t, config())
	tracker := c.liar()
	for i := range 20 {
		must(tracker.RegisterNodeManager(t.Context(), &pb.RegisterNodeManagerRequestProto{
			NodeId: pb.FromNodeID(
				creel.NodeID{Host: "127.0.0.1", Port: int32(1000 + i)},
			),
			Resource: pb.FromResource(creel.NewResource(1024, 1)),
		}))
		for range 2 {
			if n := len(
				must(c.as("bob").GetClusterNodes(t.Context(), &pb.GetClusterNodesRequestProto{})).GetNodeReports(),
			); n != i+1 {
				t.Fatalf("%d nodes are registered, the list has %d", i+1, n)
			}
		}
	}
}

// Reports of finished applications are cached encoded. In each list they equal, byte for byte, the single report, for
// callers with and without view access. A list is in order of submission whatever parts came from the cache.
func TestAListOfThoseThatAreOver(t *testing.T) {
	cfg := config()
	cfg.ACLs = true
	cfg.Machine.Queues.Root.Admin, cfg.Machine.Queues.Root.Children[0].Admin = queues.ACL{}, queues.ACL{}
	c := start(t, cfg)
	all := &pb.GetApplicationsRequestProto{}
	var order []creel.ApplicationID
	for i := range 8 {
		id := c.submission("bob", nil)
		order = append(order, id)
		if i%2 == 0 {
			for !must(c.as("bob").ForceKillApplication(t.Context(), &pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(id)})).GetIsKillCompleted() {
			}
		}
		for _, user := range []string{"eve", "bob", "eve", "bob"} {
			list := must(c.as(user).GetApplications(t.Context(), all)).GetApplications()
			if len(list) != len(order) {
				t.Fatalf("%d applications, the list has %d", len(order), len(list))
			}
			for k, a := range list {
				if pb.ToApplicationID(a.GetApplicationId()) != order[k] {
					t.Errorf("place %d has %v, want %v", k, a.GetApplicationId(), order[k])
				}
				one := c.report(user, order[k])
				if k%2 == 0 && !proto.Equal(one, a) {
					t.Errorf("%s is listed as\n%v\nand reported as\n%v", user, a, one)
				}
				if over := a.GetYarnApplicationState() == pb.YarnApplicationStateProto_KILLED; over != (k%2 == 0) {
					t.Errorf("%v is %v", order[k], a.GetYarnApplicationState())
				}
			}
		}
	}
}
