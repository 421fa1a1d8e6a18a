// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// liar is a node played by the test.
func (c *cluster) liar() yarnrpc.ResourceTrackerClient {
	return yarnrpc.NewResourceTrackerClient(c.client, c.s.Addresses().Tracker, hrpc.Login{User: "yarn"})
}

func (c *cluster) metrics() *pb.YarnClusterMetricsProto {
	return must(c.as("bob").GetClusterMetrics(c.t.Context(), &pb.GetClusterMetricsRequestProto{})).GetClusterMetrics()
}

func heartbeat(id creel.NodeID, response int32, containers ...*pb.ContainerStatusProto) *pb.NodeHeartbeatRequestProto {
	return &pb.NodeHeartbeatRequestProto{NodeStatus: &pb.NodeStatusProto{
		NodeId: pb.FromNodeID(id), ResponseId: &response, ContainersStatuses: containers,
		NodeHealthStatus: &pb.NodeHealthStatusProto{IsNodeHealthy: new(true)},
	}}
}

func running(id creel.ContainerID) *pb.ContainerStatusProto {
	return &pb.ContainerStatusProto{
		ContainerId: pb.FromContainerID(id),
		State:       pb.ContainerStateProto_C_RUNNING.Enum(),
		ExitStatus:  new(int32(-1000)),
	}
}

func TestANodeThatLies(t *testing.T) {
	c := start(t, config())
	ctx, tracker := t.Context(), c.liar()
	id := creel.NodeID{Host: "127.0.0.9", Port: 4711}
	register := func(r creel.Resource) *pb.RegisterNodeManagerResponseProto {
		return must(
			tracker.RegisterNodeManager(
				ctx,
				&pb.RegisterNodeManagerRequestProto{
					NodeId:    pb.FromNodeID(id),
					HttpPort:  new(int32(8042)),
					Resource:  pb.FromResource(r),
					NmVersion: new("3.4.2"),
				},
			),
		)
	}

	// A node that never registered is told to.
	if a := must(tracker.NodeHeartbeat(ctx, heartbeat(id, 7))); a.GetNodeAction() != pb.NodeActionProto_RESYNC {
		t.Errorf("a heartbeat before registration is answered %v", a)
	}
	for name, r := range map[string]creel.Resource{
		"nothing": {}, "less than the smallest container": creel.NewResource(64, 1), "a negative size": creel.NewResource(-4096, 8), "negative cores": creel.NewResource(4096, -8),
	} {
		if a := register(
			r,
		); a.GetNodeAction() != pb.NodeActionProto_SHUTDOWN ||
			!strings.Contains(a.GetDiagnosticsMessage(), "minimum allocations") {
			t.Errorf("a node of %s is answered %v", name, a)
		}
	}
	if n := c.metrics().GetNumNodeManagers(); n != 0 {
		t.Errorf("%d nodes after the refusals", n)
	}

	// More memory than there is in the world, twice: sums stay sums.
	register(creel.NewResource(math.MaxInt64, math.MaxInt32))
	other := creel.NodeID{Host: "127.0.0.10", Port: 4711}
	must(
		tracker.RegisterNodeManager(
			ctx,
			&pb.RegisterNodeManagerRequestProto{
				NodeId:   pb.FromNodeID(other),
				HttpPort: new(int32(8042)),
				Resource: pb.FromResource(creel.NewResource(math.MaxInt64, math.MaxInt32)),
			},
		),
	)
	if q := must(
		c.as("bob").GetQueueInfo(ctx, &pb.GetQueueInfoRequestProto{QueueName: new("default")}),
	).GetQueueInfo().
		GetQueueStatistics(); q.GetAvailableMemoryMB() < 0 ||
		q.GetAvailableVCores() < 0 {
		t.Errorf("the queue has %d MB and %d cores free", q.GetAvailableMemoryMB(), q.GetAvailableVCores())
	}
	must(tracker.UnRegisterNodeManager(ctx, &pb.UnRegisterNodeManagerRequestProto{NodeId: pb.FromNodeID(other)}))

	// Out of step.
	register(creel.NewResource(4096, 8))
	if a := must(tracker.NodeHeartbeat(ctx, heartbeat(id, 17))); a.GetNodeAction() != pb.NodeActionProto_RESYNC {
		t.Errorf("a heartbeat out of step is answered %v", a)
	}
	register(creel.NewResource(4096, 8))

	// Reported containers that were never granted, or that belong to an unknown application, another epoch or another
	// node: the node must end them, and no AM is notified.
	_, amrm := c.launchUnmanaged("bob", nil)
	am := c.amClient(amrm)
	must(am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	a := must(am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: new(int32(0)), Ask: ask(1, 128, 1)}))
	response := int32(0)
	send := func(containers ...*pb.ContainerStatusProto) *pb.NodeHeartbeatResponseProto {
		answer := must(tracker.NodeHeartbeat(ctx, heartbeat(id, response, containers...)))
		if answer.GetNodeAction() != pb.NodeActionProto_NORMAL {
			t.Fatalf("a heartbeat is answered %v", answer)
		}
		response = answer.GetResponseId()
		return answer
	}
	granted := a.GetAllocatedContainers()
	for round := int32(1); len(granted) == 0; round++ {
		send()
		more := must(am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: &round}))
		a, granted = more, more.GetAllocatedContainers()
	}
	own := pb.ToContainerID(granted[0].GetId())
	stranger := creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1}
	lies := []creel.ContainerID{
		creel.NewContainerID(own.Attempt, 0, 999),
		creel.NewContainerID(own.Attempt, 77, own.Sequence()),
		creel.NewContainerID(stranger, 0, 1),
	}
	told := map[creel.ContainerID]bool{}
	for range 3 {
		var statuses []*pb.ContainerStatusProto
		for _, lie := range lies {
			statuses = append(statuses, running(lie))
		}
		answer := send(append(statuses, running(own))...)
		for _, gone := range answer.GetContainersToCleanup() {
			told[pb.ToContainerID(gone)] = true
		}
	}
	for _, lie := range lies {
		if !told[lie] {
			t.Errorf("the node is not told to end %s", lie)
		}
	}
	if told[own] {
		t.Errorf("the node is told to end %s, which is its own", own)
	}
	ended := running(lies[0])
	ended.State, ended.ExitStatus = pb.ContainerStateProto_C_COMPLETE.Enum(), new(int32(0))
	send(ended, running(own))
	last := must(am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: a.ResponseId}))
	if len(last.GetCompletedContainerStatuses()) != 0 {
		t.Errorf("the AM hears of %v", last.GetCompletedContainerStatuses())
	}
	if list := must(
		c.as("bob").
			GetContainers(ctx, &pb.GetContainersRequestProto{ApplicationAttemptId: pb.FromAttemptID(own.Attempt)}),
	).GetContainers(); len(
		list,
	) != 1 {
		t.Errorf("the attempt has %d containers, want its own one", len(list))
	}
}

func TestASubmissionOfAHundredMegabytes(t *testing.T) {
	c := start(t, config())
	ctx := t.Context()
	id := must(c.as("eve").GetNewApplication(ctx, &pb.GetNewApplicationRequestProto{})).GetApplicationId()
	_, err := c.as("eve").
		SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
			ApplicationId: id, Resource: pb.FromResource(creel.NewResource(128, 1)),
			AmContainerSpec: &pb.ContainerLaunchContextProto{Command: []string{strings.Repeat("x", 100<<20)}}}})
	if err == nil {
		t.Fatal("it is taken")
	}
	t.Logf("answered %.200s", err)
	if _, err := c.as("eve").
		GetApplicationReport(ctx, &pb.GetApplicationReportRequestProto{ApplicationId: id}); !errors.Is(
		err,
		creel.ErrApplicationNotFound,
	) {
		t.Errorf("afterwards: %v", err)
	}
	// Others are served.
	c.submission("bob", nil)
}

func TestTimesInTheFarFuture(t *testing.T) {
	c := start(t, config())
	ctx, bob := t.Context(), c.as("bob")
	id := c.submission("bob", func(s *pb.ApplicationSubmissionContextProto) {
		s.AttemptFailuresValidityInterval = new(int64(math.MaxInt64))
		s.ApplicationTimeouts = []*pb.ApplicationTimeoutMapProto{
			{
				ApplicationTimeoutType: pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME.Enum(),
				Timeout:                new(int64(math.MaxInt64)),
			},
		}
	})
	c.untilState("bob", id, pb.YarnApplicationStateProto_ACCEPTED)
	for _, when := range []string{"9999-12-31T23:59:59.000+0000", "2263-01-01T00:00:00.000+0000"} {
		_, err := bob.UpdateApplicationTimeouts(
			ctx,
			&pb.UpdateApplicationTimeoutsRequestProto{
				ApplicationId: pb.FromApplicationID(id),
				ApplicationTimeouts: []*pb.ApplicationUpdateTimeoutMapProto{
					{
						ApplicationTimeoutType: pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME.Enum(),
						ExpireTime:             &when,
					},
				},
			},
		)
		if err != nil {
			t.Errorf("until %s: %v", when, err)
		}
		r := c.report("bob", id)
		if r.GetYarnApplicationState() != pb.YarnApplicationStateProto_ACCEPTED {
			t.Fatalf("until %s: %s, %s", when, r.GetYarnApplicationState(), r.GetDiagnostics())
		}
		if left := r.GetAppTimeouts()[0].GetApplicationTimeout().
			GetRemainingTime(); left < int64(
			100*365*24*time.Hour/time.Second,
		) {
			t.Errorf("until %s: %d seconds are left", when, left)
		}
	}
	for _, when := range []string{"1066-10-14T09:00:00.000+0000", "tomorrow", ""} {
		_, err := bob.UpdateApplicationTimeouts(
			ctx,
			&pb.UpdateApplicationTimeoutsRequestProto{
				ApplicationId: pb.FromApplicationID(id),
				ApplicationTimeouts: []*pb.ApplicationUpdateTimeoutMapProto{
					{
						ApplicationTimeoutType: pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME.Enum(),
						ExpireTime:             &when,
					},
				},
			},
		)
		if !hasClass(err, yarnrpc.ClassYarn) {
			t.Errorf("until %q: %v", when, err)
		}
	}
	// A list of everything that began in the year 292,278,994.
	list := must(
		bob.GetApplications(
			ctx,
			&pb.GetApplicationsRequestProto{
				StartBegin: new(int64(math.MaxInt64 - 1)),
				StartEnd:   new(int64(math.MaxInt64)),
			},
		),
	)
	if len(list.GetApplications()) != 0 {
		t.Errorf("%d applications of the far future", len(list.GetApplications()))
	}
}

func TestAStaleAttempt(t *testing.T) {
	c := start(t, config())
	ams := make(chan *startedAM, 8)
	c.nodesHook(ams)
	ctx := t.Context()
	id := c.submission("bob", func(s *pb.ApplicationSubmissionContextProto) { s.MaxAppAttempts = new(int32(2)) })
	first := <-ams
	old := c.amClient(first.token)
	must(old.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	first.exit(1, "killed by the test")
	second := <-ams
	// On the connection it has, and on a new one.
	fresh := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	defer fresh.Close()
	again := yarnrpc.NewApplicationMasterProtocolClient(fresh, c.s.Addresses().Scheduler, login(first.token))
	for name, am := range map[string]yarnrpc.ApplicationMasterProtocolClient{"old connection": old, "new connection": again} {
		if _, err := am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: new(int32(0))}); err == nil {
			t.Errorf("%s: the first attempt's AM is served after its end", name)
		} else if name == "old connection" && !errors.Is(err, creel.ErrAttemptNotFound) {
			t.Errorf("%s: %v", name, err)
		} else if name == "new connection" && !errors.Is(err, creel.ErrInvalidToken) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := am.FinishApplicationMaster(
			ctx,
			&pb.FinishApplicationMasterRequestProto{
				FinalApplicationStatus: pb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
			},
		); err == nil {
			t.Errorf("%s: the first attempt ends the application", name)
		}
	}
	must(c.amClient(second.token).RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	c.untilState("bob", id, pb.YarnApplicationStateProto_RUNNING)
}

// Ids of past or future epochs: YARN ignores a release of an unknown container, rejects an update in the response,
// and does not find the container in the client protocol. Existing containers stay.
func TestContainersOfAnotherEpoch(t *testing.T) {
	c := start(t, config())
	c.nodes(1, nil)
	ctx := t.Context()
	id, amrm := c.launchUnmanaged("bob", nil)
	am := c.amClient(amrm)
	must(am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	a := must(am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: new(int32(0)), Ask: ask(1, 128, 1)}))
	if len(a.GetAllocatedContainers()) != 1 {
		t.Fatalf("it got %v", a)
	}
	mine := pb.ToContainerID(a.GetAllocatedContainers()[0].GetId())
	last := a.GetResponseId()
	for _, epoch := range []int64{mine.Epoch() + 1, 1 << 22} {
		other := creel.NewContainerID(mine.Attempt, epoch, mine.Sequence())
		r := must(
			am.Allocate(
				ctx,
				&pb.AllocateRequestProto{
					ResponseId: &last,
					Release:    []*pb.ContainerIdProto{pb.FromContainerID(other)},
					UpdateRequests: []*pb.UpdateContainerRequestProto{
						{
							ContainerVersion: new(
								int32(0),
							),
							ContainerId: pb.FromContainerID(other),
							UpdateType:  pb.ContainerUpdateTypeProto_INCREASE_RESOURCE.Enum(),
							Capability:  pb.FromResource(creel.NewResource(256, 1)),
						},
					},
				},
			),
		)
		last = r.GetResponseId()
		if n := len(r.GetCompletedContainerStatuses()); n != 0 {
			t.Errorf("epoch %d: a release ended %v", epoch, r.GetCompletedContainerStatuses())
		}
		if e := r.GetUpdateErrors(); len(e) != 1 || e[0].GetReason() != "INVALID_CONTAINER_ID" {
			t.Errorf("epoch %d: an update is answered %v", epoch, e)
		}
		if _, err := c.as("bob").
			GetContainerReport(ctx, &pb.GetContainerReportRequestProto{ContainerId: pb.FromContainerID(other)}); !errors.Is(
			err,
			creel.ErrContainerNotFound,
		) {
			t.Errorf("epoch %d: a report of it: %v", epoch, err)
		}
		if _, err := c.as("bob").
			SignalToContainer(ctx, &pb.SignalContainerRequestProto{ContainerId: pb.FromContainerID(other), Command: pb.SignalContainerCommandProto_GRACEFUL_SHUTDOWN.Enum()}); err == nil ||
			!strings.Contains(err.Error(), "absent container") {
			t.Errorf("epoch %d: a signal to it: %v", epoch, err)
		}
	}
	if list := must(
		c.as("bob").
			GetContainers(ctx, &pb.GetContainersRequestProto{ApplicationAttemptId: pb.FromAttemptID(mine.Attempt)}),
	).GetContainers(); len(
		list,
	) != 1 {
		t.Errorf("%d containers of %v are left", len(list), id)
	}
}

func TestHostListsApplyFromStart(t *testing.T) {
	cfg := config()
	cfg.Machine.ForgetUntracked = time.Millisecond
	var files atomic.Pointer[server.Hosts] // nil: they cannot be read
	files.Store(&server.Hosts{Exclude: []string{"127.0.0.9"}})
	cfg.Hosts = func() (server.Hosts, error) {
		if h := files.Load(); h != nil {
			return *h, nil
		}
		return server.Hosts{}, errors.New("no such file")
	}
	c := start(t, cfg)
	ctx := t.Context()
	register := func(host string) pb.NodeActionProto {
		return must(
			c.liar().
				RegisterNodeManager(ctx, &pb.RegisterNodeManagerRequestProto{NodeId: pb.FromNodeID(creel.NodeID{Host: host, Port: 1}), HttpPort: new(int32(2)),
					Resource: pb.FromResource(creel.NewResource(4096, 8)), NmVersion: new("3.4.2")}),
		).GetNodeAction()
	}
	if a := register("127.0.0.9"); a != pb.NodeActionProto_SHUTDOWN {
		t.Errorf("an unwanted host is answered %v", a)
	}
	if a := register("127.0.0.8"); a != pb.NodeActionProto_NORMAL {
		t.Errorf("a host that is not listed is answered %v", a)
	}
	// A refresh puts the lists of now in force: one host comes, one goes.
	files.Store(&server.Hosts{Exclude: []string{"127.0.0.8"}})
	must(c.admin("root").RefreshNodes(ctx, &pb.RefreshNodesRequestProto{}))
	if a := register("127.0.0.9"); a != pb.NodeActionProto_NORMAL {
		t.Errorf("a host that is wanted again is answered %v", a)
	}
	if a := must(
		c.liar().NodeHeartbeat(ctx, heartbeat(creel.NodeID{Host: "127.0.0.8", Port: 1}, 0)),
	).GetNodeAction(); a != pb.NodeActionProto_SHUTDOWN {
		t.Errorf("a host that is no longer wanted is answered %v", a)
	}
	// One that is on no list goes, and is forgotten a moment later.
	files.Store(&server.Hosts{Include: []string{"127.0.0.7"}, Exclude: []string{"127.0.0.8"}})
	must(c.admin("root").RefreshNodes(ctx, &pb.RefreshNodesRequestProto{}))
	states := []pb.NodeStateProto{
		pb.NodeStateProto_NS_SHUTDOWN, pb.NodeStateProto_NS_DECOMMISSIONED, pb.NodeStateProto_NS_RUNNING,
	}
	c.until("one node is shown", func() bool {
		nodes := must(
			c.as("root").GetClusterNodes(ctx, &pb.GetClusterNodesRequestProto{NodeStates: states}),
		).GetNodeReports()
		return len(nodes) == 1 && nodes[0].GetNodeId().GetHost() == "127.0.0.8"
	})
	files.Store(nil)
	if _, err := c.admin("root").
		RefreshNodes(ctx, &pb.RefreshNodesRequestProto{}); !hasClass(err, yarnrpc.ClassYarn) ||
		!strings.Contains(err.Error(), "no such file") {
		t.Errorf("a refresh without its files: %v", err)
	}
}
