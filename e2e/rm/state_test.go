// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// stage is a ResourceManager, ours or Hadoop's, that is brought into a known
// state by the same calls: its nodes and AMs are played here and run
// nothing.
type stage struct {
	t       *testing.T
	process *process.Process
	hadoop.Addresses
	client *hrpc.Client
	nodes  map[string]int32 // host: last response id
}

func newStage(t *testing.T, p *process.Process, a hadoop.Addresses) *stage {
	s := &stage{
		t:         t,
		process:   p,
		Addresses: a,
		client:    hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf}),
		nodes:     map[string]int32{},
	}
	t.Cleanup(func() { s.client.Close() })
	return s
}

func (s *stage) user() yarnrpc.ApplicationClientProtocolClient {
	return yarnrpc.NewApplicationClientProtocolClient(s.client, s.Client, hrpc.Login{User: hadoop.OSUser(s.t)})
}

func (s *stage) tracker() yarnrpc.ResourceTrackerClient {
	return yarnrpc.NewResourceTrackerClient(s.client, s.Tracker, hrpc.Login{User: hadoop.OSUser(s.t)})
}

func ok[T any](v T, err error) func(*stage) T {
	return func(s *stage) T {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
		return v
	}
}

func nodeID(host string) creel.NodeID { return creel.NodeID{Host: host, Port: 1} }

func (s *stage) status(host string) *pb.NodeStatusProto {
	response := s.nodes[host]
	use := &pb.ResourceUtilizationProto{Pmem: new(int32(0)), Vmem: new(int32(0)), Cpu: new(float32(0))}
	return &pb.NodeStatusProto{
		NodeId:                pb.FromNodeID(nodeID(host)),
		ResponseId:            &response,
		ContainersUtilization: use,
		NodeUtilization:       use,
		NodeHealthStatus: &pb.NodeHealthStatusProto{
			IsNodeHealthy:        new(true),
			HealthReport:         new(""),
			LastHealthReportTime: new(time.Now().UnixMilli()),
		},
		OpportunisticContainersStatus: &pb.OpportunisticContainersStatusProto{},
	}
}

func (s *stage) register(host string) {
	s.t.Helper()
	r := ok(s.tracker().RegisterNodeManager(s.t.Context(), &pb.RegisterNodeManagerRequestProto{
		NodeId: pb.FromNodeID(
			nodeID(host),
		),
		HttpPort:   new(int32(2)),
		Resource:   pb.FromResource(creel.NewResource(8192, 8)),
		NmVersion:  new("3.4.2"),
		NodeStatus: s.status(host),
	}))(s)
	if r.GetNodeAction() != pb.NodeActionProto_NORMAL {
		s.t.Fatalf("%s: %v", host, r)
	}
	s.nodes[host] = 0
}

// until lets the nodes send heartbeats until a condition holds.
func (s *stage) until(what string, done func() bool) {
	s.t.Helper()
	s.process.Await(s.t, what, func() bool {
		for _, host := range []string{"127.0.0.2", "127.0.0.3"} {
			key := &pb.MasterKeyProto{KeyId: new(int32(0))}
			r := ok(
				s.tracker().
					NodeHeartbeat(s.t.Context(), &pb.NodeHeartbeatRequestProto{NodeStatus: s.status(host), LastKnownContainerTokenMasterKey: key, LastKnownNmTokenMasterKey: key}),
			)(
				s,
			)
			s.nodes[host] = r.GetResponseId()
		}
		return done()
	})
}

// unmanaged is an application of type TEST, of which nothing is launched.
func unmanaged(id *pb.ApplicationIdProto, name string) *pb.ApplicationSubmissionContextProto {
	return &pb.ApplicationSubmissionContextProto{
		ApplicationId:   id,
		ApplicationName: &name,
		Queue:           new("default"),
		ApplicationType: new("TEST"),
		UnmanagedAm:     new(true),
		MaxAppAttempts:  new(int32(1)),
		AmContainerSpec: &pb.ContainerLaunchContextProto{},
		Resource:        pb.FromResource(creel.NewResource(256, 1)),
		Priority:        pb.FromPriority(0),
	}
}

// submit submits an unmanaged application.
func (s *stage) submit(name string, change func(*pb.ApplicationSubmissionContextProto)) *pb.ApplicationIdProto {
	s.t.Helper()
	id := ok(s.user().GetNewApplication(s.t.Context(), &pb.GetNewApplicationRequestProto{}))(s).GetApplicationId()
	c := unmanaged(id, name)
	if change != nil {
		change(c)
	}
	ok(s.user().SubmitApplication(s.t.Context(), &pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: c}))(s)
	s.until(
		name+" is accepted",
		func() bool { return s.report(id).GetYarnApplicationState() >= pb.YarnApplicationStateProto_ACCEPTED },
	)
	return id
}

func (s *stage) report(id *pb.ApplicationIdProto) *pb.ApplicationReportProto {
	return ok(
		s.user().GetApplicationReport(s.t.Context(), &pb.GetApplicationReportRequestProto{ApplicationId: id}),
	)(
		s,
	).GetApplicationReport()
}

// amToken returns the token of an unmanaged application's attempt, once that exists.
func (s *stage) amToken(id *pb.ApplicationIdProto) (t token.Token) {
	s.t.Helper()
	s.until("the AM's token", func() bool {
		t = token.FromProto(s.report(id).GetAmRmToken())
		return len(t.Identifier) > 0
	})
	return t
}

// amClient registers as an unmanaged application's AM.
func (s *stage) amClient(id *pb.ApplicationIdProto) yarnrpc.ApplicationMasterProtocolClient {
	s.t.Helper()
	t := s.amToken(id)
	am := yarnrpc.NewApplicationMasterProtocolClient(
		s.client,
		s.Scheduler,
		hrpc.Login{
			Credential: &hrpc.Credential{
				Identifier: t.Identifier,
				Password:   t.Password,
				Kind:       t.Kind,
				Service:    t.Service,
			},
		},
	)
	ok(
		am.RegisterApplicationMaster(
			s.t.Context(),
			&pb.RegisterApplicationMasterRequestProto{
				Host:        new("amhost"),
				RpcPort:     new(int32(77)),
				TrackingUrl: new("http://127.0.0.1:9/ui"),
			},
		),
	)(
		s,
	)
	s.until(
		"the AM runs",
		func() bool { return s.report(id).GetYarnApplicationState() == pb.YarnApplicationStateProto_RUNNING },
	)
	return am
}

// play makes two nodes serve and one go, and applications 1 to 4: finished,
// killed, running with two containers, and waiting for its AM.
func (s *stage) play() (cluster int64) {
	ctx := s.t.Context()
	for _, host := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.4"} {
		s.register(host)
	}
	s.until("three nodes", func() bool {
		return ok(
			s.user().GetClusterMetrics(ctx, &pb.GetClusterMetricsRequestProto{}),
		)(
			s,
		).GetClusterMetrics().
			GetNumActiveNms() ==
			3
	})
	ok(
		s.tracker().
			UnRegisterNodeManager(ctx, &pb.UnRegisterNodeManagerRequestProto{NodeId: pb.FromNodeID(nodeID("127.0.0.4"))}),
	)(
		s,
	)
	s.until("two nodes with their room", func() bool {
		q := ok(s.user().GetQueueInfo(ctx, &pb.GetQueueInfoRequestProto{QueueName: new("root")}))(s).GetQueueInfo()
		return q.GetQueueStatistics().GetAvailableMemoryMB() == 16384
	})
	finished := s.submit("finished", nil)
	am := s.amClient(finished)
	s.until("the AM has gone", func() bool {
		return ok(am.FinishApplicationMaster(ctx, &pb.FinishApplicationMasterRequestProto{
			FinalApplicationStatus: pb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
			Diagnostics:            new("well done"),
			TrackingUrl:            new("http://127.0.0.1:9/history"),
		}))(s).GetIsUnregistered()
	})
	killed := s.submit("killed", nil)
	s.amToken(killed) // Hadoop reports another progress for an application killed before its attempt began
	s.until("the application is dead", func() bool {
		return ok(
			s.user().
				ForceKillApplication(ctx, &pb.KillApplicationRequestProto{ApplicationId: killed, Diagnostics: new("enough")}),
		)(
			s,
		).GetIsKillCompleted()
	})
	running := s.submit("running", func(c *pb.ApplicationSubmissionContextProto) {
		c.ApplicationTags, c.Priority = []string{"blue", "green"}, pb.FromPriority(3)
	})
	am = s.amClient(running)
	containers, response := 0, int32(0)
	asks := []*pb.ResourceRequestProto{
		{
			Priority:      pb.FromPriority(1),
			ResourceName:  new("*"),
			Capability:    pb.FromResource(creel.NewResource(512, 1)),
			NumContainers: new(int32(2)),
			RelaxLocality: new(true),
			ExecutionTypeRequest: &pb.ExecutionTypeRequestProto{
				ExecutionType:        pb.ExecutionTypeProto_GUARANTEED.Enum(),
				EnforceExecutionType: new(false),
			},
		},
	}
	s.until("two containers", func() bool {
		r := ok(
			am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: &response, Ask: asks, Progress: new(float32(0.25))}),
		)(
			s,
		)
		response, asks = r.GetResponseId(), nil
		containers += len(r.GetAllocatedContainers())
		return containers == 2
	})
	s.submit("waiting", func(c *pb.ApplicationSubmissionContextProto) { c.Queue = new("other") })
	return running.GetClusterTimestamp()
}
