// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
	"google.golang.org/protobuf/proto"
)

func distributed() conf {
	cfg := config()
	o := opportunistic.Defaults()
	cfg.Machine.Opportunistic, cfg.rpc.Distributed = &o, true
	return cfg
}

func (c *cluster) distributedClient(t token.Token) yarnrpc.DistributedSchedulingAMProtocolClient {
	return yarnrpc.NewDistributedSchedulingAMProtocolClient(c.client, c.s.Addresses().Scheduler, login(t))
}

// A NodeManager that places containers gets the terms and the least loaded nodes. The ResourceManager takes containers
// with a token that a NodeManager signed, and no others.
func TestDistributedSchedulingOnTheWire(t *testing.T) {
	c := start(t, distributed())
	ctx, tracker := t.Context(), c.liar()
	id := creel.NodeID{Host: "127.0.0.9", Port: 4711}
	registered := must(tracker.RegisterNodeManager(ctx, &pb.RegisterNodeManagerRequestProto{
		NodeId: pb.FromNodeID(id), HttpPort: new(int32(8042)), Resource: pb.FromResource(creel.NewResource(4096, 4)),
		NmVersion: new("3.4.2"),
	}))
	status := heartbeat(id, 0)
	status.NodeStatus.OpportunisticContainersStatus = &pb.OpportunisticContainersStatusProto{
		OpportQueueCapacity: new(int32(12)),
	}
	must(tracker.NodeHeartbeat(ctx, status))

	app, amrm := c.launchUnmanaged("bob", nil)
	attempt := creel.AttemptID{Application: app, Attempt: 1}
	am := c.distributedClient(amrm)
	terms := must(am.RegisterApplicationMasterForDistributedScheduling(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	node := &pb.RemoteNodeProto{
		NodeId: pb.FromNodeID(id), HttpAddress: new("127.0.0.9:8042"), RackName: new("/default-rack"), NodePartition: new(""),
	}
	if r := terms.GetRegisterResponse(); r.GetQueue() != "root.default" || r.GetMaximumCapability().GetMemory() != 8192 {
		t.Errorf("registered: %v", r)
	}
	terms.RegisterResponse = nil
	if want := (&pb.RegisterDistributedSchedulingAMResponseProto{
		MaxContainerResource:         pb.FromResource(creel.NewResource(8192, 8)),
		MinContainerResource:         pb.FromResource(creel.NewResource(128, 1)),
		IncrContainerResource:        pb.FromResource(creel.NewResource(128, 1)),
		ContainerTokenExpiryInterval: new(int32(600_000)), ContainerIdStart: new(int64(1 << 40)),
		NodesForScheduling: []*pb.RemoteNodeProto{node},
	}); !proto.Equal(terms, want) {
		t.Errorf("terms %v, want %v", terms, want)
	}

	// The node signs, with the key that its ResourceManager sent it.
	key := token.KeyFrom(registered.GetContainerTokenMasterKey())
	next := terms.GetContainerIdStart()
	place := func(key token.Key, change func(*token.Container)) *pb.ContainerProto {
		next--
		k := token.Container{
			ID: creel.ContainerID{Attempt: attempt, ID: next}, Node: id, User: "bob",
			Resource: creel.NewResource(1024, 1), Expires: time.Now().Add(time.Hour), Created: time.Now(),
			RMIdentifier: registered.GetRmIdentifier(), Priority: 4, Execution: creel.Opportunistic, AllocationRequestID: 6,
		}
		if change != nil {
			change(&k)
		}
		return &pb.ContainerProto{
			Id: pb.FromContainerID(k.ID), NodeId: pb.FromNodeID(k.Node), Resource: pb.FromResource(k.Resource),
			ContainerToken: token.NewMac(key).Container(k, "127.0.0.9:4711").Proto(),
		}
	}
	good, forged := place(key, nil), place(token.Key{ID: key.ID, Secret: []byte("guessed!")}, nil)
	guaranteed := place(key, func(k *token.Container) { k.Execution = creel.Guaranteed })
	earlier := place(key, func(k *token.Container) { k.RMIdentifier-- })
	response, unplaced := int32(0), int64(0)
	allocate := func(placed ...*pb.ContainerProto) *pb.AllocateResponseProto {
		request := &pb.DistributedSchedulingAllocateRequestProto{
			AllocateRequest: &pb.AllocateRequestProto{ResponseId: &response}, AllocatedContainers: placed,
		}
		pb.SetUnplaced(request, unplaced)
		out := must(am.AllocateForDistributedScheduling(ctx, request))
		response = out.GetAllocateResponse().GetResponseId()
		if n := out.GetNodesForScheduling(); len(n) != 1 || !proto.Equal(n[0], node) {
			t.Errorf("nodes %v", n)
		}
		return out.GetAllocateResponse()
	}
	if out := allocate(good, forged, guaranteed, earlier); len(out.GetAllocatedContainers()) != 0 {
		t.Errorf("granted %v", out.GetAllocatedContainers())
	}
	refused := allocate().GetCompletedContainerStatuses()
	for i, want := range []string{"no NodeManager has signed", "not of an opportunistic", "earlier start"} {
		if len(refused) != 3 || !strings.Contains(refused[i].GetDiagnostics(), want) {
			t.Errorf("refused %v", refused)
			break
		}
	}
	list := must(c.as("bob").GetContainers(ctx, &pb.GetContainersRequestProto{
		ApplicationAttemptId: pb.FromAttemptID(attempt),
	})).GetContainers()
	if len(list) != 1 || !proto.Equal(list[0].GetContainerId(), good.GetId()) || list[0].GetPriority().GetPriority() != 4 ||
		list[0].GetExecutionType() != pb.ExecutionTypeProto_OPPORTUNISTIC {
		t.Errorf("containers %v", list)
	}
	asked := func() (n int32) {
		if err := c.s.Query(ctx, func(m *rm.Machine, _ time.Time) { n = rm.OpportunisticOf(m, app).Asked }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	unplaced = 5
	allocate()
	before := asked()
	unplaced = 0
	if allocate(); before != 5 || asked() != 0 {
		t.Errorf("the proxy has %d containers to place, then %d", before, asked())
	}
	ended := heartbeat(id, 1, &pb.ContainerStatusProto{
		ContainerId: good.GetId(), State: pb.ContainerStateProto_C_COMPLETE.Enum(), ExitStatus: new(int32(-108)),
	})
	must(tracker.NodeHeartbeat(ctx, ended))
	if out := allocate().GetCompletedContainerStatuses(); len(out) != 1 || out[0].GetExitStatus() != -108 {
		t.Errorf("ended %v", out)
	}
	if out := must(am.FinishApplicationMaster(ctx, &pb.FinishApplicationMasterRequestProto{
		FinalApplicationStatus: pb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
	})); !out.GetIsUnregistered() {
		t.Error("the AM is not unregistered")
	}
}

// Without the setting the protocol is unknown, as on Hadoop's ResourceManager, and on every server it needs a token.
func TestDistributedSchedulingNeedsItsSettingAndToken(t *testing.T) {
	for _, on := range []bool{false, true} {
		cfg := distributed()
		cfg.rpc.Distributed = on
		c := start(t, cfg)
		_, amrm := c.launchUnmanaged("bob", nil)
		var remote *hrpc.RemoteError
		_, err := c.distributedClient(amrm).RegisterApplicationMasterForDistributedScheduling(
			t.Context(), &pb.RegisterApplicationMasterRequestProto{})
		if unknown := errors.As(err, &remote) && remote.Class == hrpc.ClassNoSuchProtocol; unknown == on {
			t.Errorf("set %v: %v", on, err)
		}
		amrm.Password = []byte("wrong")
		if _, err := c.distributedClient(amrm).RegisterApplicationMasterForDistributedScheduling(
			t.Context(), &pb.RegisterApplicationMasterRequestProto{}); err == nil {
			t.Error("a caller without a password was served")
		}
	}
}
