// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"testing"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/nm"
	"github.com/creelrm/creel/subcluster/nm/overallocate"
	"github.com/creelrm/creel/subcluster/nm/queue"
	nmrpc "github.com/creelrm/creel/subcluster/nm/rpc"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
)

// Both sides together: four containers fill a node and use a fifth of it. Two more asks for guaranteed containers get
// opportunistic ones, which run beside them. The first becomes guaranteed at the end of one of the four, without its AM.
func TestFullNodeLendsOverTheWire(t *testing.T) {
	cfg := config()
	o := opportunistic.Defaults()
	o.MostLent = 4
	cfg.Machine.Opportunistic = &o
	c := start(t, cfg)
	c.nodes(1, func(n *nmrpc.Config) {
		n.Total, n.Queue, n.Measures = creel.NewResource(4096, 4), queue.Config{Length: 12}, true
		n.Overallocation = overallocate.Config{
			Alloc: overallocate.Shares{Memory: 0.8, CPU: 0.8}, Preempt: overallocate.Shares{Memory: 0.95, CPU: 0.99},
			Predicts: true,
		}
	})
	_, amrm := c.launchUnmanaged("bob", nil)
	ctx, a := t.Context(), &caller{t: t, am: c.amClient(amrm), ended: map[creel.ContainerID]*pb.ContainerStatusProto{}}
	must(a.am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	a.allocate(&pb.AllocateRequestProto{Ask: ask(1, 1024, 6)})
	granted := func(n int) {
		t.Helper()
		c.until("containers are granted", func() bool {
			a.allocate(&pb.AllocateRequestProto{})
			return len(a.granted) >= n
		})
	}
	granted(4)
	node := c.nodeClient(a.node)
	run := func(x *pb.ContainerProto) {
		t.Helper()
		r := must(node.StartContainers(ctx, &pb.StartContainersRequestProto{
			StartContainerRequest: []*pb.StartContainerRequestProto{{
				ContainerToken: x.GetContainerToken(),
				ContainerLaunchContext: &pb.ContainerLaunchContextProto{
					Command:     []string{"sleep 600"},
					Environment: []*pb.StringStringMapProto{{Key: new(nm.EnvUse), Value: new("20")}},
				},
			}},
		}))
		if len(r.GetFailedRequests()) > 0 {
			t.Fatalf("start: %v", r)
		}
	}
	becomes := func(x *pb.ContainerProto, kind pb.ExecutionTypeProto) {
		t.Helper()
		c.until("the container runs with its type", func() bool {
			r := must(node.GetContainerStatuses(ctx, &pb.GetContainerStatusesRequestProto{
				ContainerId: []*pb.ContainerIdProto{x.GetId()},
			}))
			s := r.GetStatus()
			return len(s) == 1 && s[0].GetContainerSubState() == pb.ContainerSubStateProto_CSS_RUNNING &&
				s[0].GetExecutionType() == kind
		})
	}
	const opp, guaranteed = pb.ExecutionTypeProto_OPPORTUNISTIC, pb.ExecutionTypeProto_GUARANTEED
	for _, x := range a.granted {
		if run(x); x.GetExecutionType() != guaranteed {
			t.Errorf("a container within the node's size is %v", x.GetExecutionType())
		}
	}
	granted(6)
	for _, x := range a.granted[4:] {
		if run(x); x.GetExecutionType() != opp {
			t.Errorf("a container beyond the node's size is %v", x.GetExecutionType())
		}
		becomes(x, opp)
	}
	must(node.StopContainers(ctx, &pb.StopContainersRequestProto{
		ContainerId: []*pb.ContainerIdProto{a.granted[0].GetId()},
	}))
	becomes(a.granted[4], guaranteed)
	becomes(a.granted[5], opp)
	a.allocate(&pb.AllocateRequestProto{})
	if len(a.granted) != 6 || len(a.updated) != 0 {
		t.Errorf("%d granted, the AM hears %v", len(a.granted), a.updated)
	}
}
