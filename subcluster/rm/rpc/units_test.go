// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"strings"
	"testing"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// An amount in an unknown unit is rejected, and an amount without a unit is in the unit of its type.
func TestAmountsInOtherUnits(t *testing.T) {
	cfg := config()
	cfg.Machine.ResourceTypes = []creel.ResourceType{{Name: "bandwidth", Unit: "M"}}
	cfg.Machine.MaxAllocation = cfg.Machine.MaxAllocation.With("bandwidth", 4_000_000_000)
	c := start(t, cfg)
	ctx := t.Context()
	size := func(units string) *pb.ResourceProto {
		r := pb.FromResource(creel.NewResource(1024, 1))
		r.ResourceValueMap = append(r.ResourceValueMap,
			&pb.ResourceInformationProto{Key: new("bandwidth"), Value: new(int64(4)), Units: &units})
		if units == "none" {
			r.ResourceValueMap[2].Units = nil
		}
		return r
	}
	register := func(units string) error {
		_, err := c.liar().RegisterNodeManager(ctx, &pb.RegisterNodeManagerRequestProto{
			NodeId: pb.FromNodeID(creel.NodeID{Host: "127.0.0.2", Port: 1}), HttpPort: new(int32(2)),
			Resource: size(units), NmVersion: new("3.4.2"),
		})
		return err
	}
	resize := func(units string) error {
		_, err := c.admin("root").UpdateNodeResource(ctx, &pb.UpdateNodeResourceRequestProto{
			NodeResourceMap: []*pb.NodeResourceMapProto{{
				NodeId:         pb.FromNodeID(creel.NodeID{Host: "127.0.0.2", Port: 1}),
				ResourceOption: &pb.ResourceOptionProto{Resource: size(units)},
			}},
		})
		return err
	}
	submit := func(units string) error {
		id := must(c.as("alice").GetNewApplication(ctx, &pb.GetNewApplicationRequestProto{})).GetApplicationId()
		_, err := c.as("alice").SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{
			ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
				ApplicationId: id, AmContainerSpec: &pb.ContainerLaunchContextProto{}, Resource: size(units),
			},
		})
		return err
	}
	for _, step := range []struct {
		name string
		call func(units string) error
	}{{"register", register}, {"resize", resize}, {"submit", submit}} {
		if err := step.call("G"); err != nil {
			t.Errorf("%s 4 G: %v", step.name, err)
		}
		if err := step.call("none"); err != nil {
			t.Errorf("%s 4: %v", step.name, err)
		}
		nodes := must(c.as("root").GetClusterNodes(ctx, &pb.GetClusterNodesRequestProto{})).GetNodeReports()
		bandwidth := pb.ToResource(nodes[0].GetCapability()).Get("bandwidth")
		if step.name != "submit" && bandwidth != 4_000_000 {
			t.Errorf("%s 4, without a unit: the node has %d, want 4 M", step.name, bandwidth)
		}
		if err := step.call("X"); err == nil || !strings.Contains(err.Error(), `unknown unit "X"`) {
			t.Errorf("%s 4 X: %v", step.name, err)
		}
	}
}
