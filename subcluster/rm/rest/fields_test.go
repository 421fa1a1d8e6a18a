// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// Hadoop's web services submit every application with a label, which is "" if the document has none; by RPC it may
// have none.
func TestLabelOfSubmissionsWithoutOne(t *testing.T) {
	c := start(t, nil)
	app := func(id string) map[string]any {
		return c.get(base+"/apps/"+id, "app").(map[string]any)
	}
	byREST := c.submit("alice", "a", "")
	if label, shown := app(byREST)["appNodeLabelExpression"]; !shown || label != "" {
		t.Errorf("label by REST: %v, %v", label, shown)
	}
	client := yarnrpc.NewApplicationClientProtocolClient(c.rpc, c.s.Addresses().Client, hrpc.Login{User: "alice"})
	made, err := client.GetNewApplication(t.Context(), &pb.GetNewApplicationRequestProto{})
	if err != nil {
		t.Fatal(err)
	}
	id := pb.ToApplicationID(made.GetApplicationId())
	_, err = client.SubmitApplication(t.Context(), &pb.SubmitApplicationRequestProto{
		ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
			ApplicationId: made.GetApplicationId(), UnmanagedAm: new(true),
			AmContainerSpec: &pb.ContainerLaunchContextProto{}, Resource: pb.FromResource(creel.NewResource(128, 1)),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if label, shown := app(id.String())["appNodeLabelExpression"]; shown {
		t.Errorf("label by RPC: %v", label)
	}
}
