// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// Documents show amounts in the unit of their type, with the configured bounds of one container, as Hadoop's do.
func TestAmountsAreShownInTheTypesUnit(t *testing.T) {
	c := start(t, func(cfg *server.Config) {
		m := &cfg.Machine
		m.ResourceTypes = []creel.ResourceType{{Name: "bandwidth", Unit: "M"}, {Name: "gpu"}}
		m.MinAllocation = m.MinAllocation.With("bandwidth", 2_000_000)
		m.MaxAllocation = m.MaxAllocation.With("bandwidth", 4_000_000_000).With("gpu", 1<<62)
	})
	size := pb.FromResource(creel.NewResource(4096, 4))
	size.ResourceValueMap = append(size.ResourceValueMap,
		&pb.ResourceInformationProto{Key: new("bandwidth"), Value: new(int64(5)), Units: new("G")})
	tracker := yarnrpc.NewResourceTrackerClient(c.rpc, c.s.Addresses().Tracker, hrpc.Login{User: "yarn"})
	_, err := tracker.RegisterNodeManager(t.Context(), &pb.RegisterNodeManagerRequestProto{
		NodeId: pb.FromNodeID(creel.NodeID{Host: "127.0.0.9", Port: 1}), HttpPort: new(int32(2)), Resource: size,
		NmVersion: new("3.4.2"),
	})
	if err != nil {
		t.Fatal(err)
	}
	const node = base + "/nodes/127.0.0.9:1"
	check := func(path string, value float64, fields ...any) {
		t.Helper()
		list := c.get(path, append(fields, "resourceInformations", "resourceInformation")...).([]any)
		band, gpu := list[2].(map[string]any), list[3].(map[string]any)
		if band["name"] != "bandwidth" || band["units"] != "M" || band["value"] != value ||
			band["minimumAllocation"] != 2.0 || band["maximumAllocation"] != 4000.0 {
			t.Errorf("%s: %v, want %v M", path, band, value)
		}
		if gpu["units"] != "" || gpu["minimumAllocation"] != 0.0 || gpu["maximumAllocation"] != 9223372036854775807.0 {
			t.Errorf("%s: %v", path, gpu)
		}
	}
	check(node, 5000, "node", "totalResource")
	if types := c.get(base+"/scheduler-overview", "schedulingResourceType"); types !=
		"bandwidth (unit=M),gpu,memory-mb (unit=Mi),vcores" {
		t.Errorf("types %v", types)
	}
	for value, want := range map[string]float64{
		`{"name":"bandwidth","value":"7"}`:                7,
		`{"name":"bandwidth","value":6,"units":"G"}`:      6000,
		`[{"name":"bandwidth","value":3000,"units":"k"}]`: 3,
	} {
		r := c.call("POST", node+"/resource?user.name=root", `{"resource":{"memory":4096,"vCores":4,`+
			`"resourceInformations":{"resourceInformation":`+value+`}}}`)
		if r.status != 200 {
			t.Fatalf("%s: %d %s", value, r.status, r.body)
		}
		check(node, want, "node", "totalResource")
	}
	r := c.call("POST", node+"/resource?user.name=root", `{"resource":{"memory":4096,"vCores":4,`+
		`"resourceInformations":{"resourceInformation":{"name":"bandwidth","value":6,"units":"X"}}}}`)
	if r.status != 400 {
		t.Errorf("an unknown unit: %d %s", r.status, r.body)
	}
}
