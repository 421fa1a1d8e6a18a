// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/nm/queue"
	nmrpc "github.com/creelrm/creel/subcluster/nm/rpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
	"google.golang.org/protobuf/proto"
)

// A container is granted as an opportunistic one, promoted and demoted, as AMs and nodes see it on the wire.
func TestOpportunisticContainerOnTheWire(t *testing.T) {
	cfg := config()
	o := opportunistic.Defaults()
	cfg.Machine.Opportunistic = &o
	c := start(t, cfg)
	ctx, tracker := t.Context(), c.liar()
	id := creel.NodeID{Host: "127.0.0.9", Port: 4711}
	must(tracker.RegisterNodeManager(ctx, &pb.RegisterNodeManagerRequestProto{
		NodeId: pb.FromNodeID(id), HttpPort: new(int32(8042)), Resource: pb.FromResource(creel.NewResource(4096, 4)),
		NmVersion: new("3.4.2"),
	}))
	status := heartbeat(id, 0)
	status.NodeStatus.OpportunisticContainersStatus = &pb.OpportunisticContainersStatusProto{
		WaitQueueLength: new(int32(9)), OpportQueueCapacity: new(int32(12)),
	}
	limit := must(tracker.NodeHeartbeat(ctx, status)).GetContainerQueuingLimit()
	if limit.GetMaxQueueLength() != 9 || limit.GetMaxQueueWaitTimeInMs() != -1 {
		t.Errorf("the node is to queue %v", limit)
	}

	_, amrm := c.launchUnmanaged("bob", nil)
	am := c.amClient(amrm)
	must(am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	asks := ask(1, 1024, 4)
	asks[0].ExecutionTypeRequest = &pb.ExecutionTypeRequestProto{ExecutionType: pb.ExecutionTypeProto_OPPORTUNISTIC.Enum()}
	out := must(am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: new(int32(0)), Ask: asks}))
	got := out.GetAllocatedContainers()
	if len(got) != 3 || len(out.GetNmTokens()) != 1 {
		t.Fatalf("%d containers, %d tokens for nodes; the queue has room for 3", len(got), len(out.GetNmTokens()))
	}
	if out.GetLimit().GetMemory() != 4096 {
		t.Errorf("headroom is %v", out.GetLimit())
	}
	is := func(x *pb.ContainerProto, as pb.ExecutionTypeProto, version int32) {
		t.Helper()
		k, err := token.ParseContainer(x.GetContainerToken().GetIdentifier())
		if err != nil || k.Execution != creel.ExecutionType(as) || k.Version != version ||
			x.GetExecutionType() != as || x.GetVersion() != version {
			t.Errorf("%v is %v, version %d; its token has %v, version %d (%v); want %v, version %d",
				x.GetId(), x.GetExecutionType(), x.GetVersion(), k.Execution, k.Version, err, as, version)
		}
	}
	for _, x := range got {
		is(x, pb.ExecutionTypeProto_OPPORTUNISTIC, 0)
	}
	update := func(response, version int32, kind pb.ContainerUpdateTypeProto) *pb.AllocateResponseProto {
		return must(am.Allocate(ctx, &pb.AllocateRequestProto{
			ResponseId: &response, UpdateRequests: []*pb.UpdateContainerRequestProto{
				{ContainerId: got[0].GetId(), ContainerVersion: &version, UpdateType: &kind},
			},
		}))
	}
	out = update(1, 0, pb.ContainerUpdateTypeProto_PROMOTE_EXECUTION_TYPE)
	if u := out.GetUpdatedContainers(); len(u) != 1 || !proto.Equal(u[0].GetContainer().GetId(), got[0].GetId()) {
		t.Fatalf("updated %v, errors %v", u, out.GetUpdateErrors())
	} else {
		is(u[0].GetContainer(), pb.ExecutionTypeProto_GUARANTEED, 1)
	}
	out = update(2, 0, pb.ContainerUpdateTypeProto_DEMOTE_EXECUTION_TYPE)
	if e := out.GetUpdateErrors(); len(e) != 1 || e[0].GetReason() != "INCORRECT_CONTAINER_VERSION_ERROR" ||
		e[0].GetCurrentContainerVersion() != 1 {
		t.Errorf("errors %v", e)
	}
	out = update(3, 1, pb.ContainerUpdateTypeProto_DEMOTE_EXECUTION_TYPE)
	if u := out.GetUpdatedContainers(); len(u) != 1 {
		t.Errorf("updated %v", u)
	} else {
		is(u[0].GetContainer(), pb.ExecutionTypeProto_OPPORTUNISTIC, 2)
	}
	if m := c.metrics(); m.GetNumNodeManagers() != 1 {
		t.Errorf("cluster metrics %v", m)
	}
}

// With creel's nodes: of three opportunistic containers on a node for two, one waits. Its promotion makes the node end
// the one that started last, and its AM gets that end.
func TestPromotionOnFullNodeEndsAnotherContainer(t *testing.T) {
	cfg := config()
	o := opportunistic.Defaults()
	cfg.Machine.Opportunistic = &o
	c := start(t, cfg)
	c.nodes(1, func(n *nmrpc.Config) {
		n.Total, n.Queue = creel.NewResource(2048, 2), queue.Config{Length: 5}
	})
	ctx := t.Context()
	_, amrm := c.launchUnmanaged("bob", nil)
	am := c.amClient(amrm)
	must(am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	asks := ask(1, 1024, 3)
	asks[0].ExecutionTypeRequest = &pb.ExecutionTypeRequestProto{ExecutionType: pb.ExecutionTypeProto_OPPORTUNISTIC.Enum()}
	last := int32(0)
	allocate := func(r *pb.AllocateRequestProto) *pb.AllocateResponseProto {
		r.ResponseId = &last
		out := must(am.Allocate(ctx, r))
		last = out.GetResponseId()
		return out
	}
	var got []*pb.ContainerProto
	var node yarnrpc.ContainerManagementProtocolClient
	c.until("three containers are granted", func() bool {
		out := allocate(&pb.AllocateRequestProto{Ask: asks})
		asks = nil
		got = append(got, out.GetAllocatedContainers()...)
		for _, k := range out.GetNmTokens() {
			node = c.nodeClient(k)
		}
		return len(got) == 3
	})
	loads := func() (running, queued int32) {
		err := c.s.Query(ctx, func(m *rm.Machine, _ time.Time) {
			for n := range m.Nodes {
				running, queued = n.Utilization.OpportunisticRunning, n.Utilization.OpportunisticQueued
				if !n.Used.IsZero() && queued > 0 {
					t.Errorf("the node uses %v", n.Used)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return running, queued
	}
	for i, x := range got {
		must(node.StartContainers(ctx, &pb.StartContainersRequestProto{
			StartContainerRequest: []*pb.StartContainerRequestProto{{
				ContainerLaunchContext: &pb.ContainerLaunchContextProto{Command: []string{"sleep 3600"}},
				ContainerToken:         x.GetContainerToken(),
			}},
		}))
		c.until("the node reports it", func() bool {
			running, queued := loads()
			return int(running+queued) == i+1
		})
	}
	if running, queued := loads(); running != 2 || queued != 1 {
		t.Fatalf("%d run, %d wait", running, queued)
	}
	out := allocate(&pb.AllocateRequestProto{UpdateRequests: []*pb.UpdateContainerRequestProto{{
		ContainerId: got[2].GetId(), ContainerVersion: new(int32(0)),
		UpdateType: pb.ContainerUpdateTypeProto_PROMOTE_EXECUTION_TYPE.Enum(),
	}}})
	if len(out.GetUpdatedContainers()) != 1 {
		t.Fatalf("promoted %v, errors %v", out.GetUpdatedContainers(), out.GetUpdateErrors())
	}
	must(node.UpdateContainer(ctx, &pb.ContainerUpdateRequestProto{
		UpdateContainerToken: []*pb.TokenProto{out.GetUpdatedContainers()[0].GetContainer().GetContainerToken()},
	}))
	var ended []*pb.ContainerStatusProto
	c.until("a container has ended", func() bool {
		ended = allocate(&pb.AllocateRequestProto{}).GetCompletedContainerStatuses()
		return len(ended) > 0
	})
	if len(ended) != 1 || !proto.Equal(ended[0].GetContainerId(), got[1].GetId()) || ended[0].GetExitStatus() != -108 {
		t.Errorf("ended %v", ended)
	}
	c.until("one is left of each execution type", func() bool {
		running, queued := loads()
		return running == 1 && queued == 0
	})
}
