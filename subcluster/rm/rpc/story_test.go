// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/nm"
	nmrpc "github.com/creelrm/creel/subcluster/nm/rpc"
	nmserver "github.com/creelrm/creel/subcluster/nm/server"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/rpc"
	"github.com/creelrm/creel/subcluster/rm/server"
	"go.uber.org/goleak"
)

// TestMain lives in restart_test.go: the test binary is also the process that
// is killed.
func verify(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a ResourceManager with simulated nodes, over real sockets.
type cluster struct {
	t      testing.TB
	s      *server.Server
	farm   *nmrpc.Farm
	client *hrpc.Client
	stop   []func()
}

// conf is the configuration of a test's ResourceManager.
type conf struct {
	server.Config
	rpc rpc.Config
}

func config() conf {
	m := rm.Defaults()
	m.MinAllocation, m.MaxAllocation = creel.NewResource(128, 1), creel.NewResource(8192, 8)
	m.Queues.Root.Children[0].MaxAMPercent = 1
	m.Queues.Root.Children[0].UserFactor = 10
	return conf{
		Config: server.Config{
			ClusterID:         "test",
			Machine:           m,
			HeartbeatInterval: 50 * time.Millisecond,
			AdminACL:          queues.ACL{Users: []string{"root"}},
			Groups:            groups.New(func(user string) []string { return []string{user} }, time.Minute),
		},
		rpc: rpc.Config{
			Client:    "127.0.0.1:0",
			Scheduler: "127.0.0.1:0",
			Tracker:   "127.0.0.1:0",
			Admin:     "127.0.0.1:0",
		},
	}
}

// start runs a ResourceManager until the test ends.
func start(t testing.TB, cfg conf) *cluster {
	t.Helper()
	s, ports, err := rpc.Open(cfg.Config, cfg.rpc)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, s: s, client: hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})}
	c.stop = append(
		c.stop,
		background(t, "resource manager", func(ctx context.Context) error { return s.Run(ctx, ports.Run) }),
	)
	<-s.Ready()
	t.Cleanup(c.end)
	return c
}

func (c *cluster) end() {
	c.client.Close()
	for i := len(c.stop) - 1; i >= 0; i-- {
		c.stop[i]()
	}
	c.stop = nil
}

func background(t testing.TB, what string, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s ended with %v", what, err)
		}
	}
}

// nodes adds simulated nodes and waits until they serve.
func (c *cluster) nodes(n int, change func(*nmrpc.Config)) {
	c.t.Helper()
	cfg := nmrpc.Config{
		Tracker: c.s.Addresses().Tracker,
		Nodes:   n,
		Config:  nmserver.Config{Eager: time.Millisecond, RunTime: time.Hour},
	}
	if change != nil {
		change(&cfg)
	}
	f, err := nmrpc.New(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.farm = f
	c.stop = append(c.stop, background(c.t, "nodes", f.Run))
	<-f.Ready()
}

func (c *cluster) as(user string) yarnrpc.ApplicationClientProtocolClient {
	return yarnrpc.NewApplicationClientProtocolClient(c.client, c.s.Addresses().Client, hrpc.Login{User: user})
}

func (c *cluster) admin(user string) yarnrpc.ResourceManagerAdministrationProtocolClient {
	return yarnrpc.NewResourceManagerAdministrationProtocolClient(
		c.client,
		c.s.Addresses().Admin,
		hrpc.Login{User: user},
	)
}

func (c *cluster) amClient(t token.Token) yarnrpc.ApplicationMasterProtocolClient {
	return yarnrpc.NewApplicationMasterProtocolClient(c.client, c.s.Addresses().Scheduler, login(t))
}

func login(t token.Token) hrpc.Login {
	return hrpc.Login{
		Credential: &hrpc.Credential{Identifier: t.Identifier, Password: t.Password, Kind: t.Kind, Service: t.Service},
	}
}

// submission is a small application; change makes it another.
func (c *cluster) submission(user string, change func(*pb.ApplicationSubmissionContextProto)) creel.ApplicationID {
	c.t.Helper()
	ctx := c.t.Context()
	id := must(c.as(user).GetNewApplication(ctx, &pb.GetNewApplicationRequestProto{})).GetApplicationId()
	s := &pb.ApplicationSubmissionContextProto{
		ApplicationId: id, ApplicationName: new("story"), Queue: new("default"), ApplicationType: new("TEST"),
		AmContainerSpec: &pb.ContainerLaunchContextProto{Command: []string{"sleep 3600"}},
		Resource:        pb.FromResource(creel.NewResource(256, 1)),
	}
	if change != nil {
		change(s)
	}
	if _, err := c.as(user).
		SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: s}); err != nil {
		c.t.Fatal(err)
	}
	return pb.ToApplicationID(id)
}

func must[T any](t T, err error) T {
	if err != nil {
		panic(err)
	}
	return t
}

func (c *cluster) report(user string, id creel.ApplicationID) *pb.ApplicationReportProto {
	return must(
		c.as(user).
			GetApplicationReport(c.t.Context(), &pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(id)}),
	).GetApplicationReport()
}

// until polls a condition; only a hang of the whole test ends it otherwise.
func (c *cluster) until(what string, ok func() bool) {
	c.t.Helper()
	for !ok() {
		if err := c.t.Context().Err(); err != nil {
			c.t.Fatalf("waiting until %s: %v", what, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (c *cluster) untilState(
	user string,
	id creel.ApplicationID,
	want pb.YarnApplicationStateProto,
) *pb.ApplicationReportProto {
	c.t.Helper()
	var r *pb.ApplicationReportProto
	c.until(fmt.Sprintf("%s is %s", id, want), func() bool {
		r = c.report(user, id)
		if s := r.GetYarnApplicationState(); s >= pb.YarnApplicationStateProto_FINISHED && s != want {
			c.t.Fatalf("%s is %s: %s", id, s, r.GetDiagnostics())
		}
		return r.GetYarnApplicationState() == want
	})
	return r
}

// startedAM is an AM's container that started on a simulated node.
type startedAM struct {
	nmserver.Started
	token token.Token
	exit  func(int32, string)
	gone  chan struct{}
}

// hook hands the test the containers of AMs as they start on simulated nodes.
func hook(ams chan *startedAM) nmserver.Hook {
	return func(s nmserver.Started, exit func(int32, string)) func() {
		if !s.AM {
			return nil
		}
		credentials := must(token.ParseCredentials(s.Launch.GetTokens()))
		t, _ := credentials.OfKind(token.KindAMRM)
		m := &startedAM{Started: s, token: t, exit: exit, gone: make(chan struct{})}
		ams <- m
		return func() { close(m.gone) }
	}
}

func ask(priority, mb, count int) []*pb.ResourceRequestProto {
	return []*pb.ResourceRequestProto{
		{
			Priority: pb.FromPriority(
				int32(priority),
			),
			ResourceName:  new("*"),
			Capability:    pb.FromResource(creel.NewResource(int64(mb), 1)),
			NumContainers: new(int32(count)),
		},
	}
}

// nodeClient is a NodeManager as the AM reaches it with the tokens it got.
func (c *cluster) nodeClient(p *pb.NMTokenProto) yarnrpc.ContainerManagementProtocolClient {
	return yarnrpc.NewContainerManagementProtocolClient(
		c.client,
		pb.ToNodeID(p.GetNodeId()).String(),
		login(token.FromProto(p.GetToken())),
	)
}

func TestAnApplicationFromSubmissionToItsEnd(t *testing.T) {
	for _, kept := range []bool{false, true} {
		t.Run(map[bool]string{false: "volatile", true: "journalled"}[kept], func(t *testing.T) {
			cfg := config()
			if kept {
				cfg.Dir = t.TempDir()
			}
			c := start(t, cfg)
			ams := make(chan *startedAM, 1)
			c.nodes(3, func(n *nmrpc.Config) { n.OnStart = hook(ams) })
			ctx := t.Context()

			metrics := must(
				c.as("alice").GetClusterMetrics(ctx, &pb.GetClusterMetricsRequestProto{}),
			).GetClusterMetrics()
			if metrics.GetNumActiveNms() != 3 {
				t.Fatalf("cluster metrics: %v", metrics)
			}
			id := c.submission("alice", nil)
			started := <-ams
			if started.User != "alice" || started.Container.Attempt.Application != id ||
				started.Resource.MemoryMB != 256 {
				t.Fatalf("the AM started as %+v", started.Started)
			}
			env := map[string]string{}
			for _, e := range started.Launch.GetEnvironment() {
				env[e.GetKey()] = e.GetValue()
			}
			if env["APPLICATION_WEB_PROXY_BASE"] != "/proxy/"+id.String() || env["APP_SUBMIT_TIME_ENV"] == "" {
				t.Errorf("the AM's environment: %v", env)
			}

			am := c.amClient(started.token)
			if _, err := am.Allocate(ctx, &pb.AllocateRequestProto{}); !errors.Is(err, creel.ErrNotRegistered) {
				t.Fatalf("allocate before registration: %v", err)
			}
			reg := must(
				am.RegisterApplicationMaster(
					ctx,
					&pb.RegisterApplicationMasterRequestProto{
						Host:        new("amhost"),
						RpcPort:     new(int32(77)),
						TrackingUrl: new("http://amhost:1/"),
					},
				),
			)
			if reg.GetQueue() != "root.default" || reg.GetMaximumCapability().GetMemory() != 8192 {
				t.Errorf("registered: %v", reg)
			}
			if r := c.untilState(
				"alice",
				id,
				pb.YarnApplicationStateProto_RUNNING,
			); r.GetHost() != "amhost" ||
				r.GetRpcPort() != 77 {
				t.Errorf("report of a running application: %v", r)
			}

			// Four containers, granted in the very call that asked.
			answer := must(am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: new(int32(0)), Ask: ask(1, 512, 4)}))
			if answer.GetResponseId() != 1 || len(answer.GetAllocatedContainers()) != 4 ||
				len(answer.GetNmTokens()) == 0 {
				t.Fatalf("asked for 4: %v", answer)
			}
			nodes := map[creel.NodeID]yarnrpc.ContainerManagementProtocolClient{}
			for _, nt := range answer.GetNmTokens() {
				nodes[pb.ToNodeID(nt.GetNodeId())] = c.nodeClient(nt)
			}
			codes := []string{"0", "3", "", ""}
			for i, ct := range answer.GetAllocatedContainers() {
				launch := &pb.ContainerLaunchContextProto{Command: []string{"sleep 3600"}}
				if codes[i] != "" {
					launch.Environment = []*pb.StringStringMapProto{
						{Key: new(nm.EnvMillis), Value: new("1")},
						{Key: new(nm.EnvExit), Value: &codes[i]},
					}
				}
				r := must(
					nodes[pb.ToNodeID(ct.GetNodeId())].StartContainers(
						ctx,
						&pb.StartContainersRequestProto{StartContainerRequest: []*pb.StartContainerRequestProto{
							{ContainerLaunchContext: launch, ContainerToken: ct.GetContainerToken()}}},
					),
				)
				if len(r.GetSucceededRequests()) != 1 {
					t.Fatalf("starting %v: %v", pb.ToContainerID(ct.GetId()), r)
				}
			}
			third, fourth := answer.GetAllocatedContainers()[2], answer.GetAllocatedContainers()[3]
			must(
				nodes[pb.ToNodeID(third.GetNodeId())].StopContainers(
					ctx,
					&pb.StopContainersRequestProto{ContainerId: []*pb.ContainerIdProto{third.GetId()}},
				),
			)

			// The same request again gets the same answer; the ends come once.
			again := must(am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: new(int32(0))}))
			if again.GetResponseId() != 1 || len(again.GetAllocatedContainers()) != 4 ||
				pb.ToContainerID(
					again.GetAllocatedContainers()[0].GetId(),
				) != pb.ToContainerID(
					answer.GetAllocatedContainers()[0].GetId(),
				) {
				t.Fatalf("a repeated request: %v", again)
			}
			last, release := int32(1), []*pb.ContainerIdProto{fourth.GetId()}
			ends := map[creel.ContainerID]int32{}
			c.until("four containers have ended", func() bool {
				a := must(
					am.Allocate(
						ctx,
						&pb.AllocateRequestProto{ResponseId: &last, Release: release, Progress: new(float32(0.5))},
					),
				)
				last, release = a.GetResponseId(), nil
				for _, s := range a.GetCompletedContainerStatuses() {
					if _, twice := ends[pb.ToContainerID(s.GetContainerId())]; twice {
						t.Fatalf("the end of %v was told twice", s)
					}
					ends[pb.ToContainerID(s.GetContainerId())] = s.GetExitStatus()
				}
				return len(ends) == 4
			})
			for i, want := range []int32{0, 3, -105, -100} {
				if got := ends[pb.ToContainerID(answer.GetAllocatedContainers()[i].GetId())]; got != want {
					t.Errorf("container %d ended with %d, want %d", i, got, want)
				}
			}
			if _, err := am.Allocate(
				ctx,
				&pb.AllocateRequestProto{ResponseId: new(last + 7)},
			); err == nil ||
				!hasClass(err, yarnrpc.ClassInvalidMasterRequest) {
				t.Errorf("a response id out of step: %v", err)
			}

			c.until("the AM has unregistered", func() bool {
				return must(am.FinishApplicationMaster(ctx, &pb.FinishApplicationMasterRequestProto{
					FinalApplicationStatus: pb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
					Diagnostics:            new("well done"),
					TrackingUrl:            new("http://history/1"),
				})).GetIsUnregistered()
			})
			started.exit(0, "")
			r := c.untilState("alice", id, pb.YarnApplicationStateProto_FINISHED)
			if r.GetFinalApplicationStatus() != pb.FinalApplicationStatusProto_APP_SUCCEEDED ||
				r.GetDiagnostics() != "well done" {
				t.Errorf("final report: %v", r)
			}
			c.until("the released container is gone from its node", func() bool {
				return c.farm.Metrics().Finished.Load() == c.farm.Metrics().Started.Load()
			})
			if _, err := am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: &last}); err == nil {
				t.Error("a finished attempt may still allocate")
			}
		})
	}
}

func hasClass(err error, class string) bool {
	var remote *hrpc.RemoteError
	return errors.As(err, &remote) && remote.Class == class
}
