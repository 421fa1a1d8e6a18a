// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/nm/queue"
	nmrpc "github.com/creelrm/creel/subcluster/nm/rpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
)

// caller is an AM that keeps what its allocate calls return.
type caller struct {
	t        *testing.T
	am       yarnrpc.ApplicationMasterProtocolClient
	response int32
	granted  []*pb.ContainerProto
	updated  []*pb.UpdatedContainerProto
	ended    map[creel.ContainerID]*pb.ContainerStatusProto
	node     *pb.NMTokenProto
}

func (a *caller) allocate(r *pb.AllocateRequestProto) {
	a.t.Helper()
	r.ResponseId = new(a.response)
	out := must(a.am.Allocate(a.t.Context(), r))
	if e := out.GetUpdateErrors(); len(e) > 0 {
		a.t.Fatalf("errors %v", e)
	}
	a.response = out.GetResponseId()
	a.granted = append(a.granted, out.GetAllocatedContainers()...)
	a.updated = append(a.updated, out.GetUpdatedContainers()...)
	for _, s := range out.GetCompletedContainerStatuses() {
		a.ended[pb.ToContainerID(s.GetContainerId())] = s
	}
	for _, n := range out.GetNmTokens() {
		a.node = n
	}
}

// Both sides together: an AM gets more opportunistic containers than its node can run. The rest waits there, a
// guaranteed container takes the place of one that runs, and a promoted one too.
func TestOpportunisticContainersWaitAtTheirNode(t *testing.T) {
	cfg := config()
	o := opportunistic.Defaults()
	cfg.Machine.Opportunistic = &o
	c := start(t, cfg)
	c.nodes(1, func(n *nmrpc.Config) {
		n.Total, n.Queue = creel.NewResource(4096, 8), queue.Config{Length: 12}
	})
	app, amrm := c.launchUnmanaged("bob", nil)
	ctx, a := t.Context(), &caller{t: t, am: c.amClient(amrm), ended: map[creel.ContainerID]*pb.ContainerStatusProto{}}
	must(a.am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	asks := ask(1, 1024, 6)
	asks[0].ExecutionTypeRequest = &pb.ExecutionTypeRequestProto{ExecutionType: pb.ExecutionTypeProto_OPPORTUNISTIC.Enum()}
	a.allocate(&pb.AllocateRequestProto{Ask: asks})
	c.until("six containers are granted", func() bool {
		a.allocate(&pb.AllocateRequestProto{})
		return len(a.granted) >= 6
	})
	node := c.nodeClient(a.node)
	run := func(x *pb.ContainerProto) {
		t.Helper()
		r := must(node.StartContainers(ctx, &pb.StartContainersRequestProto{
			StartContainerRequest: []*pb.StartContainerRequestProto{
				{ContainerToken: x.GetContainerToken(), ContainerLaunchContext: &pb.ContainerLaunchContextProto{}},
			},
		}))
		if len(r.GetFailedRequests()) > 0 {
			t.Fatalf("start: %v", r)
		}
	}
	is := func(number int, want pb.ContainerSubStateProto, kind pb.ExecutionTypeProto) {
		t.Helper()
		r := must(node.GetContainerStatuses(ctx, &pb.GetContainerStatusesRequestProto{
			ContainerId: []*pb.ContainerIdProto{a.granted[number].GetId()},
		}))
		if s := r.GetStatus(); len(s) != 1 || s[0].GetContainerSubState() != want || s[0].GetExecutionType() != kind {
			t.Errorf("container %d is %v, want %v %v", number, s, want, kind)
		}
	}
	lost := func(number int) {
		t.Helper()
		id := pb.ToContainerID(a.granted[number].GetId())
		c.until("the AM hears of the end", func() bool {
			a.allocate(&pb.AllocateRequestProto{})
			return a.ended[id] != nil
		})
		if s := a.ended[id]; s.GetExitStatus() != -108 || !strings.Contains(s.GetDiagnostics(), "to make room") {
			t.Errorf("container %d ended with %v", number, s)
		}
	}
	const opp, guaranteed = pb.ExecutionTypeProto_OPPORTUNISTIC, pb.ExecutionTypeProto_GUARANTEED
	for i := range 6 {
		run(a.granted[i])
		is(i, []pb.ContainerSubStateProto{
			pb.ContainerSubStateProto_CSS_RUNNING, pb.ContainerSubStateProto_CSS_SCHEDULED,
		}[i/4], opp)
	}
	report := func(waiting int32, killed int64) {
		t.Helper()
		c.until("the ResourceManager's report has the queue", func() (is bool) {
			if err := c.s.Query(ctx, func(m *rm.Machine, _ time.Time) {
				all, _ := m.Opportunistic()
				v := rm.OpportunisticOf(m, app)
				is = v != nil && v.Waiting == waiting && all.Killed[opportunistic.ForRoom] == killed
			}); err != nil {
				t.Fatal(err)
			}
			return is
		})
	}
	report(2, 0)
	// The ResourceManager has a free node.
	a.allocate(&pb.AllocateRequestProto{Ask: ask(2, 1024, 1)})
	c.until("a guaranteed container is granted", func() bool {
		a.allocate(&pb.AllocateRequestProto{})
		return len(a.granted) == 7
	})
	run(a.granted[6])
	lost(3)
	is(6, pb.ContainerSubStateProto_CSS_RUNNING, guaranteed)

	a.allocate(&pb.AllocateRequestProto{UpdateRequests: []*pb.UpdateContainerRequestProto{{
		ContainerId: a.granted[4].GetId(), ContainerVersion: new(int32(0)),
		UpdateType:    pb.ContainerUpdateTypeProto_PROMOTE_EXECUTION_TYPE.Enum(),
		ExecutionType: guaranteed.Enum(),
	}}})
	c.until("the container is promoted", func() bool {
		a.allocate(&pb.AllocateRequestProto{})
		return len(a.updated) == 1
	})
	is(4, pb.ContainerSubStateProto_CSS_SCHEDULED, opp)
	r := must(node.UpdateContainer(ctx, &pb.ContainerUpdateRequestProto{
		UpdateContainerToken: []*pb.TokenProto{a.updated[0].GetContainer().GetContainerToken()},
	}))
	if len(r.GetSucceededRequests()) != 1 {
		t.Fatalf("update: %v", r)
	}
	lost(2)
	is(4, pb.ContainerSubStateProto_CSS_RUNNING, guaranteed)
	is(5, pb.ContainerSubStateProto_CSS_SCHEDULED, opp)
	is(0, pb.ContainerSubStateProto_CSS_RUNNING, opp)
	report(1, 2)
	if len(a.ended) != 2 {
		t.Errorf("%d containers have ended", len(a.ended))
	}
}
