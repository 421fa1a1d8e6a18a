// SPDX-License-Identifier: Apache-2.0

// Package rest proves the ResourceManager's REST API from outside: a creel
// process and a real Hadoop ResourceManager are brought into the same state by
// the same calls, and their documents compared field by field; and a public
// client library reads and writes through it.
package rest

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// system is a ResourceManager, creel's or Hadoop's, with the applications and nodes created in it.
type system struct {
	t       *testing.T
	name    string
	process *process.Process
	hadoop.Addresses
	client *hrpc.Client

	nodes []*node
	apps  map[string]creel.ApplicationID // by name

	// epochs stand in container ids, where the ResourceManager has one: "_e1000".
	epochs map[creel.ApplicationID]string

	// trackerOf and schedulerOf return the ResourceManager address of a node and of an AM.
	trackerOf   func(host string) string
	schedulerOf func(id creel.ApplicationID) string
	// same replaces text that differs between any two clusters.
	same func(text string) string
}

// node is a simulated NodeManager: it speaks the tracker's protocol and runs nothing. Its address has no listener, so
// an AM assigned to it is being launched for the rest of the test.
type node struct {
	id       creel.NodeID
	response int32
	cpu      float32 // processors in use, 2
	next     int64   // ms to the next heartbeat, by the last response

	queue      pb.OpportunisticContainersStatusProto // of the next report
	containers []*pb.ContainerStatusProto
}

func newSystem(t *testing.T, name string, p *process.Process, a hadoop.Addresses) *system {
	s := &system{
		t:         t,
		name:      name,
		process:   p,
		Addresses: a,
		client:    hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf}),
		apps:      map[string]creel.ApplicationID{},
	}
	s.trackerOf = func(string) string { return s.Tracker }
	s.schedulerOf = func(creel.ApplicationID) string { return s.Scheduler }
	s.same = func(text string) string {
		_, port, _ := strings.Cut(s.Web, ":")
		stamp := strconv.FormatInt(s.apps["running"].ClusterTimestamp, 10)
		return strings.NewReplacer(stamp, "1111111111111", "localhost:"+port, "WEB", s.Web, "WEB").Replace(text)
	}
	t.Cleanup(func() { s.client.Close() })
	return s
}

func (s *system) as(user string) yarnrpc.ApplicationClientProtocolClient {
	return yarnrpc.NewApplicationClientProtocolClient(s.client, s.Client, hrpc.Login{User: user})
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (s *system) tracker(host string) yarnrpc.ResourceTrackerClient {
	return yarnrpc.NewResourceTrackerClient(s.client, s.trackerOf(host), hrpc.Login{User: hadoop.OSUser(s.t)})
}

func (s *system) addNode(host string) *node {
	n := &node{id: creel.NodeID{Host: host, Port: 1}}
	r := must(s.tracker(host).RegisterNodeManager(s.t.Context(), &pb.RegisterNodeManagerRequestProto{
		NodeId: pb.FromNodeID(
			n.id,
		),
		HttpPort:         proto.Int32(2),
		Resource:         pb.FromResource(creel.NewResource(8192, 8)),
		NmVersion:        proto.String("3.4.2"),
		PhysicalResource: pb.FromResource(creel.NewResource(16384, 16)),
		NodeStatus:       s.status(n),
	}))(s.t)
	if r.GetNodeAction() != pb.NodeActionProto_NORMAL {
		s.t.Fatalf("%s: %v: %v", s.name, n.id, r)
	}
	return n
}

func (s *system) status(n *node) *pb.NodeStatusProto {
	use := func(mb, virtual int32, cpu float32) *pb.ResourceUtilizationProto {
		return &pb.ResourceUtilizationProto{Pmem: &mb, Vmem: &virtual, Cpu: &cpu}
	}
	return &pb.NodeStatusProto{
		NodeId:     pb.FromNodeID(n.id),
		ResponseId: &n.response,
		NodeHealthStatus: &pb.NodeHealthStatusProto{
			IsNodeHealthy:        proto.Bool(true),
			HealthReport:         proto.String(""),
			LastHealthReportTime: proto.Int64(time.Now().UnixMilli()),
		},
		ContainersUtilization:         use(1000, 2000, 0.5),
		NodeUtilization:               use(4096, 8192, cmp.Or(n.cpu, 2)),
		OpportunisticContainersStatus: n.queue.CloneVT(),
		ContainersStatuses:            n.containers,
	}
}

// heartbeats lets every node report once.
func (s *system) heartbeats() {
	for _, n := range s.nodes {
		r := must(s.tracker(n.id.Host).NodeHeartbeat(s.t.Context(), &pb.NodeHeartbeatRequestProto{
			NodeStatus:                       s.status(n),
			LastKnownContainerTokenMasterKey: &pb.MasterKeyProto{KeyId: proto.Int32(0)},
			LastKnownNmTokenMasterKey:        &pb.MasterKeyProto{KeyId: proto.Int32(0)},
		}))(s.t)
		n.response, n.next = r.GetResponseId(), r.GetNextHeartBeatInterval()
	}
}

// until lets the nodes send heartbeats until a condition holds.
func (s *system) until(what string, ok func() bool) {
	s.t.Helper()
	s.process.Await(s.t, s.name+": "+what, func() bool { s.heartbeats(); return ok() })
}

// submit submits an application; change makes it another than an unmanaged one.
func (s *system) submit(user, name string, change func(*pb.ApplicationSubmissionContextProto)) creel.ApplicationID {
	s.t.Helper()
	id := must(s.as(user).GetNewApplication(s.t.Context(), &pb.GetNewApplicationRequestProto{}))(s.t).GetApplicationId()
	c := &pb.ApplicationSubmissionContextProto{
		ApplicationId:   id,
		ApplicationName: &name,
		Queue:           proto.String("default"),
		ApplicationType: proto.String("TEST"),
		UnmanagedAm:     proto.Bool(true),
		AmContainerSpec: &pb.ContainerLaunchContextProto{},
		Resource:        pb.FromResource(creel.NewResource(256, 1)),
		Priority:        pb.FromPriority(0),
		MaxAppAttempts:  proto.Int32(1),
	}
	if change != nil {
		change(c)
	}
	// As Hadoop's clients do: a router may not know yet on which nodes the AM could run.
	s.until(name+" is submitted", func() bool {
		_, err := s.as(user).SubmitApplication(s.t.Context(), &pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: c})
		if remote := (*hrpc.RemoteError)(nil); err != nil && (!errors.As(err, &remote) || remote.Class != hrpc.ClassRetriable) {
			s.t.Fatal(err)
		}
		return err == nil
	})
	s.apps[name] = pb.ToApplicationID(id)
	return s.apps[name]
}

func (s *system) report(user string, id creel.ApplicationID) *pb.ApplicationReportProto {
	return must(
		s.as(user).
			GetApplicationReport(s.t.Context(), &pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(id)}),
	)(
		s.t,
	).GetApplicationReport()
}

func (s *system) attemptState(user string, id creel.ApplicationID) pb.YarnApplicationAttemptStateProto {
	r := must(
		s.as(user).
			GetApplicationAttempts(s.t.Context(), &pb.GetApplicationAttemptsRequestProto{ApplicationId: pb.FromApplicationID(id)}),
	)(
		s.t,
	).GetApplicationAttempts()
	if len(r) == 0 {
		return pb.YarnApplicationAttemptStateProto_APP_ATTEMPT_NEW
	}
	return r[len(r)-1].GetYarnApplicationAttemptState()
}

// amClient registers as the AM of an unmanaged application; changes make the request
// another.
func (s *system) amClient(
	user string, id creel.ApplicationID, host, url string, changes ...func(*pb.RegisterApplicationMasterRequestProto),
) yarnrpc.ApplicationMasterProtocolClient {
	var t token.Token
	s.until(id.String()+" may register", func() bool {
		if s.attemptState(user, id) != pb.YarnApplicationAttemptStateProto_APP_ATTEMPT_LAUNCHED {
			return false
		}
		t = token.FromProto(s.report(user, id).GetAmRmToken())
		return len(t.Identifier) > 0
	})
	am := yarnrpc.NewApplicationMasterProtocolClient(
		s.client,
		s.schedulerOf(id),
		hrpc.Login{
			Credential: &hrpc.Credential{
				Identifier: t.Identifier,
				Password:   t.Password,
				Kind:       t.Kind,
				Service:    t.Service,
			},
		},
	)
	request := &pb.RegisterApplicationMasterRequestProto{Host: &host, RpcPort: proto.Int32(77), TrackingUrl: &url}
	for _, change := range changes {
		change(request)
	}
	must(am.RegisterApplicationMaster(s.t.Context(), request))(s.t)
	s.until(id.String()+" runs", func() bool {
		return s.report(user, id).GetYarnApplicationState() == pb.YarnApplicationStateProto_RUNNING
	})
	return am
}

func ask(priority int32, where string, mb int64, count int32, relax bool) *pb.ResourceRequestProto {
	return &pb.ResourceRequestProto{
		Priority:      pb.FromPriority(priority),
		ResourceName:  &where,
		Capability:    pb.FromResource(creel.NewResource(mb, 1)),
		NumContainers: &count,
		RelaxLocality: &relax,
		ExecutionTypeRequest: &pb.ExecutionTypeRequestProto{
			ExecutionType:        pb.ExecutionTypeProto_GUARANTEED.Enum(),
			EnforceExecutionType: proto.Bool(false),
		},
	}
}

// play brings the ResourceManager into the state that documents are compared
// in: three nodes, one of them gone; an application in each of four states,
// with containers, outstanding asks, tags, priorities and a lifetime.
func (s *system) play() {
	ctx := s.t.Context()
	s.nodes = []*node{s.addNode("127.0.0.2"), s.addNode("127.0.0.3")}
	gone := s.addNode("127.0.0.4")
	s.heartbeats()
	must(
		s.tracker(gone.id.Host).UnRegisterNodeManager(ctx, &pb.UnRegisterNodeManagerRequestProto{NodeId: pb.FromNodeID(gone.id)}),
	)(
		s.t,
	)
	s.until("two nodes serve", func() bool {
		m := must(s.as("alice").GetClusterMetrics(ctx, &pb.GetClusterMetricsRequestProto{}))(s.t).GetClusterMetrics()
		q := must(
			s.as("alice").GetQueueInfo(ctx, &pb.GetQueueInfoRequestProto{QueueName: proto.String("root")}),
		)(
			s.t,
		).GetQueueInfo()
		return m.GetNumActiveNms() == 2 && q.GetQueueStatistics().GetAvailableMemoryMB() == 16384
	})

	finished := s.submit("bob", "finished", nil)
	am := s.amClient("bob", finished, "amhost", "http://127.0.0.1:9/ui")
	s.until("bob's AM has gone", func() bool {
		return must(am.FinishApplicationMaster(ctx, &pb.FinishApplicationMasterRequestProto{
			FinalApplicationStatus: pb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
			Diagnostics:            proto.String("well done"),
			TrackingUrl:            proto.String("http://127.0.0.1:9/history"),
		}))(s.t).GetIsUnregistered()
	})
	killed := s.submit("carol", "killed", nil)
	s.until("carol's application waits for its AM", func() bool {
		return s.attemptState("carol", killed) == pb.YarnApplicationAttemptStateProto_APP_ATTEMPT_LAUNCHED
	})
	s.until("carol's application is dead", func() bool {
		return must(
			s.as("carol").
				ForceKillApplication(ctx, &pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(killed), Diagnostics: proto.String("enough")}),
		)(
			s.t,
		).GetIsKillCompleted()
	})
	starting := s.submit("dave", "starting", func(c *pb.ApplicationSubmissionContextProto) {
		c.UnmanagedAm, c.Queue = proto.Bool(false), proto.String("other")
		c.AmContainerSpec.Command = []string{"sleep 1000"}
		c.AmContainerResourceRequest = []*pb.ResourceRequestProto{
			ask(0, "127.0.0.3", 256, 1, true),
			ask(0, "/default-rack", 256, 1, false),
			ask(0, "*", 256, 1, false),
		}
	})
	s.until("dave's AM is being launched", func() bool {
		return s.attemptState("dave", starting) == pb.YarnApplicationAttemptStateProto_APP_ATTEMPT_ALLOCATED
	})

	running := s.submit("alice", "running", func(c *pb.ApplicationSubmissionContextProto) {
		c.ApplicationTags, c.Priority = []string{"blue", "green"}, pb.FromPriority(3)
		c.ApplicationTimeouts = []*pb.ApplicationTimeoutMapProto{
			{
				ApplicationTimeoutType: pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME.Enum(),
				Timeout:                proto.Int64(3600),
			},
		}
	})
	am = s.amClient("alice", running, "amhost", "http://127.0.0.1:9/ui")
	containers, response := 0, int32(0)
	asks := []*pb.ResourceRequestProto{
		ask(1, "127.0.0.2", 512, 3, true),
		ask(1, "/default-rack", 512, 3, false),
		ask(1, "*", 512, 3, false),
		ask(2, "127.0.0.9", 1024, 5, true),
		ask(2, "/default-rack", 1024, 5, false),
		ask(2, "*", 1024, 5, false),
	}
	s.until("alice has three containers", func() bool {
		r := must(
			am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: &response, Ask: asks, Progress: proto.Float32(0.25)}),
		)(
			s.t,
		)
		response, asks = r.GetResponseId(), nil
		containers += len(r.GetAllocatedContainers())
		return containers >= 3
	})
	waiting := s.submit("alice", "waiting", nil) // unmanaged, and no AM registers
	s.until("the last application waits for its AM", func() bool {
		return s.attemptState("alice", waiting) == pb.YarnApplicationAttemptStateProto_APP_ATTEMPT_LAUNCHED
	})
	if containers != 3 {
		s.t.Fatalf("%s: %d containers", s.name, containers)
	}
}

func (s *system) String() string { return fmt.Sprintf("%s at %s", s.name, s.Web) }
