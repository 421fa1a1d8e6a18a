// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// A host's own timeout comes before the request's, which comes before the configured one; 0 is at once.
func TestTimeoutsOfGracefulDecommissioning(t *testing.T) {
	cfg := config()
	var files atomic.Pointer[server.Hosts]
	files.Store(&server.Hosts{})
	cfg.Hosts = func() (server.Hosts, error) { return *files.Load(), nil }
	c := start(t, cfg)
	ctx := t.Context()
	var all []string
	for _, host := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.4"} {
		all = append(all, host)
		must(c.liar().RegisterNodeManager(ctx, &pb.RegisterNodeManagerRequestProto{
			NodeId: pb.FromNodeID(creel.NodeID{Host: host, Port: 1}), HttpPort: new(int32(2)),
			Resource: pb.FromResource(creel.NewResource(4096, 8)), NmVersion: new("3.4.2"),
		}))
	}
	files.Store(&server.Hosts{
		Exclude: all, Timeout: 5 * time.Second,
		Timeouts: map[string]time.Duration{all[0]: 90 * time.Second, all[1]: 0},
	})
	check := func(timeout *int32, want map[string]int32) {
		t.Helper()
		must(c.admin("root").RefreshNodes(ctx, &pb.RefreshNodesRequestProto{
			DecommissionType: pb.DecommissionTypeProto_GRACEFUL.Enum(), DecommissionTimeout: timeout,
		}))
		for _, n := range must(c.as("root").GetClusterNodes(ctx, &pb.GetClusterNodesRequestProto{
			NodeStates: []pb.NodeStateProto{pb.NodeStateProto_NS_DECOMMISSIONING, pb.NodeStateProto_NS_DECOMMISSIONED},
		})).GetNodeReports() {
			host, left := n.GetNodeId().GetHost(), int32(n.GetDecommissioningTimeout())
			if most := want[host]; left > most || left < most-5 && most > 0 ||
				(n.GetNodeState() == pb.NodeStateProto_NS_DECOMMISSIONED) != (most == 0) {
				t.Errorf("%s: %v, %d s left, want %d", host, n.GetNodeState(), left, most)
			}
			delete(want, host)
		}
		if len(want) > 0 {
			t.Errorf("not decommissioned: %v", want)
		}
	}
	check(nil, map[string]int32{all[0]: 90, all[1]: 0, all[2]: 5})
	check(new(int32(40)), map[string]int32{all[0]: 90, all[1]: 0, all[2]: 40})
	check(new(int32(0)), map[string]int32{all[0]: 90, all[1]: 0, all[2]: 0})
}

// Without an include file, a node that left is forgotten only by setting.
func TestUnlistedNodeIsForgottenBySetting(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		cfg := config()
		cfg.Machine.ForgetUntracked, cfg.UntrackUnlisted = time.Millisecond, forgets
		c := start(t, cfg)
		ctx, id := t.Context(), pb.FromNodeID(creel.NodeID{Host: "127.0.0.8", Port: 1})
		must(c.liar().RegisterNodeManager(ctx, &pb.RegisterNodeManagerRequestProto{
			NodeId: id, HttpPort: new(int32(2)), NmVersion: new("3.4.2"),
			Resource: pb.FromResource(creel.NewResource(4096, 8)),
		}))
		must(c.liar().UnRegisterNodeManager(ctx, &pb.UnRegisterNodeManagerRequestProto{NodeId: id}))
		gone := false
		for range 100 {
			list := must(c.as("root").GetClusterNodes(ctx, &pb.GetClusterNodesRequestProto{
				NodeStates: []pb.NodeStateProto{pb.NodeStateProto_NS_SHUTDOWN},
			})).GetNodeReports()
			if gone = len(list) == 0; gone {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if gone != forgets {
			t.Errorf("with the setting %v the node is forgotten: %v", forgets, gone)
		}
	}
}
