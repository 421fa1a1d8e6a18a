// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/nm/queue"
	"github.com/creelrm/creel/subcluster/nm/rpc"
	nmserver "github.com/creelrm/creel/subcluster/nm/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const identifier = 1700000000000 // of the ResourceManager that the test plays

var (
	key     = token.Key{ID: 7, Secret: []byte("a secret")}
	attempt = creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: identifier, ID: 1}, Attempt: 1}
)

// tracker is a ResourceManager's, played by the test: its received calls, and its next answer.
type tracker struct {
	mu            sync.Mutex
	registrations []*pb.RegisterNodeManagerRequestProto
	containers    map[creel.ContainerID]*pb.ContainerStatusProto
	order         func(*pb.NodeHeartbeatResponseProto) // applied to the next answer, once
	refuse        string
	heartbeats    int
	queues        *pb.OpportunisticContainersStatusProto // of the last heartbeat
}

func (k *tracker) RegisterNodeManager(
	_ context.Context,
	r *pb.RegisterNodeManagerRequestProto,
) (*pb.RegisterNodeManagerResponseProto, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.registrations = append(k.registrations, r)
	if k.refuse != "" {
		return &pb.RegisterNodeManagerResponseProto{
			NodeAction:         pb.NodeActionProto_SHUTDOWN.Enum(),
			DiagnosticsMessage: &k.refuse,
		}, nil
	}
	return &pb.RegisterNodeManagerResponseProto{
		NodeAction:              pb.NodeActionProto_NORMAL.Enum(),
		RmIdentifier:            new(int64(identifier)),
		ContainerTokenMasterKey: key.Proto(),
		NmTokenMasterKey:        key.Proto(),
	}, nil
}

func (k *tracker) NodeHeartbeat(
	_ context.Context,
	r *pb.NodeHeartbeatRequestProto,
) (*pb.NodeHeartbeatResponseProto, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.heartbeats++
	k.queues = r.GetNodeStatus().GetOpportunisticContainersStatus()
	for _, c := range r.GetNodeStatus().GetContainersStatuses() {
		k.containers[pb.ToContainerID(c.GetContainerId())] = c
	}
	answer := &pb.NodeHeartbeatResponseProto{
		ResponseId:            new(r.GetNodeStatus().GetResponseId() + 1),
		NodeAction:            pb.NodeActionProto_NORMAL.Enum(),
		NextHeartBeatInterval: new(int64(5)),
	}
	if k.order != nil {
		k.order(answer)
		k.order = nil
	}
	return answer, nil
}

func (k *tracker) UnRegisterNodeManager(
	context.Context,
	*pb.UnRegisterNodeManagerRequestProto,
) (*pb.UnRegisterNodeManagerResponseProto, error) {
	return &pb.UnRegisterNodeManagerResponseProto{}, nil
}

func (k *tracker) say(order func(*pb.NodeHeartbeatResponseProto)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.order = order
}

func (k *tracker) heard() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.registrations)
}

func (k *tracker) status(id creel.ContainerID) *pb.ContainerStatusProto {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.containers[id]
}

// stage is a farm of one node under a played tracker.
type stage struct {
	*tracker
	t      *testing.T
	farm   *rpc.Farm
	node   creel.NodeID
	client *hrpc.Client
}

func background(t *testing.T, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func play(t *testing.T, k *tracker) *stage { return playQueue(t, k, queue.Config{}) }

// playQueue is play with opportunistic containers.
func playQueue(t *testing.T, k *tracker, q queue.Config) *stage {
	t.Helper()
	k.containers = map[creel.ContainerID]*pb.ContainerStatusProto{}
	server, err := hrpc.NewServer(
		hrpc.Config{
			Simple:   true,
			ErrorOf:  yarnrpc.ErrorOf,
			Services: []hrpc.Service{yarnrpc.ResourceTrackerService(k)},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	background(t, func(ctx context.Context) error { return server.Run(ctx, l) })
	farm, err := rpc.New(
		rpc.Config{
			Tracker:  l.Addr().String(),
			Nodes:    1,
			PortEach: true,
			Config:   nmserver.Config{RunTime: time.Hour, KillDelay: time.Millisecond, Queue: q},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	background(t, farm.Run)
	s := &stage{
		tracker: k,
		t:       t,
		farm:    farm,
		node:    farm.IDs()[0],
		client:  hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf}),
	}
	t.Cleanup(func() { s.client.Close() })
	return s
}

func (s *stage) until(what string, ok func() bool) {
	s.t.Helper()
	for !ok() {
		if err := s.t.Context().Err(); err != nil {
			s.t.Fatalf("waiting until %s: %v", what, err)
		}
		time.Sleep(time.Millisecond)
	}
}

// asAM calls the node as an AM with a token signed by a key.
func (s *stage) asAM(k token.Key, a creel.AttemptID, node creel.NodeID) yarnrpc.ContainerManagementProtocolClient {
	t := token.NewMac(k).NM(token.NM{Attempt: a, Node: node, User: "bob"}, s.node.String())
	return yarnrpc.NewContainerManagementProtocolClient(s.client, s.node.String(), hrpc.Login{
		User:       a.String(),
		Credential: &hrpc.Credential{Identifier: t.Identifier, Password: t.Password, Kind: t.Kind, Service: t.Service},
	})
}

func (s *stage) container(sequence int64, change func(*token.Container)) *pb.TokenProto {
	c := token.Container{
		ID:           creel.NewContainerID(attempt, 0, sequence),
		Node:         s.node,
		User:         "bob",
		Resource:     creel.NewResource(256, 1),
		Expires:      time.Now().Add(time.Hour),
		RMIdentifier: identifier,
		Created:      time.Now(),
		Execution:    creel.Guaranteed,
	}
	if change != nil {
		change(&c)
	}
	return token.NewMac(key).Container(c, s.node.String()).Proto()
}

func start(t *pb.TokenProto) *pb.StartContainersRequestProto {
	return &pb.StartContainersRequestProto{
		StartContainerRequest: []*pb.StartContainerRequestProto{
			{ContainerToken: t, ContainerLaunchContext: &pb.ContainerLaunchContextProto{}},
		},
	}
}

func TestAContainerFromItsTokenToItsEnd(t *testing.T) {
	s := play(t, &tracker{})
	<-s.farm.Ready()
	ctx, client := t.Context(), s.asAM(key, attempt, s.node)
	r, err := client.StartContainers(ctx, start(s.container(1, nil)))
	if err != nil || len(r.GetSucceededRequests()) != 1 {
		t.Fatalf("start: %v, %v", r, err)
	}
	id := creel.NewContainerID(attempt, 0, 1)
	s.until(
		"the tracker hears that it runs",
		func() bool { return s.status(id).GetState() == pb.ContainerStateProto_C_RUNNING },
	)
	// The same token again is no second container.
	if r, err := client.StartContainers(ctx, start(s.container(1, nil))); err != nil || len(r.GetFailedRequests()) != 1 {
		t.Errorf("started twice: %v, %v", r, err)
	}
	if _, err := client.StopContainers(
		ctx,
		&pb.StopContainersRequestProto{ContainerId: []*pb.ContainerIdProto{pb.FromContainerID(id)}},
	); err != nil {
		t.Fatal(err)
	}
	s.until(
		"the tracker hears of the end",
		func() bool { return s.status(id).GetState() == pb.ContainerStateProto_C_COMPLETE },
	)
	if code := s.status(id).GetExitStatus(); code == 0 {
		t.Errorf("a stopped container ends with %d", code)
	}
}

func TestTokensThatANodeRefuses(t *testing.T) {
	s := play(t, &tracker{})
	<-s.farm.Ready()
	ctx := t.Context()
	other := token.Key{ID: 8, Secret: []byte("another")}
	forged := token.Key{ID: key.ID, Secret: []byte("a guess")}
	for name, client := range map[string]yarnrpc.ContainerManagementProtocolClient{
		"a key that nobody told it":      s.asAM(other, attempt, s.node),
		"a password that is a guess":     s.asAM(forged, attempt, s.node),
		"another node's token":           s.asAM(key, attempt, creel.NodeID{Host: "127.0.0.1", Port: 1}),
		"no token but a name to call by": yarnrpc.NewContainerManagementProtocolClient(s.client, s.node.String(), hrpc.Login{User: attempt.String()}),
	} {
		if _, err := client.StartContainers(
			ctx,
			start(s.container(1, nil)),
		); !errors.Is(err, creel.ErrInvalidToken) &&
			!errors.Is(err, creel.ErrNotPermitted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	client := s.asAM(key, attempt, s.node)
	tampered := s.container(2, nil)
	tampered.Password[0] ^= 1
	if _, err := client.StartContainers(ctx, start(tampered)); !errors.Is(err, creel.ErrInvalidToken) {
		t.Errorf("a tampered container token: %v", err)
	}
	for name, change := range map[string]func(*token.Container){
		"another epoch of the ResourceManager": func(c *token.Container) { c.RMIdentifier = identifier - 1 },
		"a token that has expired":             func(c *token.Container) { c.Expires = time.Now().Add(-time.Minute) },
		"another application":                  func(c *token.Container) { c.ID.Attempt.Application.ID = 99 },
	} {
		r, err := client.StartContainers(ctx, start(s.container(3, change)))
		if err != nil || len(r.GetFailedRequests()) != 1 {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	if n := s.farm.Metrics().Started.Load(); n != 0 {
		t.Errorf("%d containers started", n)
	}
}

func TestOrdersOfTheTracker(t *testing.T) {
	s := play(t, &tracker{})
	<-s.farm.Ready()
	ctx, client, id := t.Context(), s.asAM(key, attempt, s.node), creel.NewContainerID(attempt, 0, 1)
	if r, err := client.StartContainers(ctx, start(s.container(1, nil))); err != nil || len(r.GetFailedRequests()) != 0 {
		t.Fatalf("start: %v, %v", r, err)
	}
	// Resync: it registers again, with its container, which runs on.
	s.say(func(r *pb.NodeHeartbeatResponseProto) { r.NodeAction = pb.NodeActionProto_RESYNC.Enum() })
	s.until("it registers again", func() bool { return s.heard() == 2 })
	s.mu.Lock()
	again := s.registrations[1]
	s.mu.Unlock()
	if c := again.GetContainerStatuses(); len(c) != 1 || pb.ToContainerID(c[0].GetContainerId()) != id ||
		c[0].GetContainerState() != pb.ContainerStateProto_C_RUNNING {
		t.Errorf("it registers again with %v", c)
	}
	// Cleanup ends the container.
	s.say(func(r *pb.NodeHeartbeatResponseProto) {
		r.ContainersToCleanup = []*pb.ContainerIdProto{pb.FromContainerID(id)}
	})
	s.until("the container ends", func() bool { return s.status(id).GetState() == pb.ContainerStateProto_C_COMPLETE })
	// Shutdown: not another heartbeat.
	s.say(func(r *pb.NodeHeartbeatResponseProto) { r.NodeAction = pb.NodeActionProto_SHUTDOWN.Enum() })
	s.until("the order is taken", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.order == nil
	})
	if _, err := client.StartContainers(ctx, start(s.container(2, nil))); err == nil {
		s.until("it refuses containers", func() bool {
			r, err := client.StartContainers(ctx, start(s.container(3, nil)))
			return err != nil || len(r.GetFailedRequests()) == 1
		})
	}
}

// The token says that a container is opportunistic: it waits, is reported as waiting, and is promoted by a new token.
func TestOpportunisticContainerWaitsAndIsPromoted(t *testing.T) {
	s := playQueue(t, &tracker{}, queue.Config{Length: 2})
	<-s.farm.Ready()
	ctx, client := t.Context(), s.asAM(key, attempt, s.node)
	kind := func(mb int64, e creel.ExecutionType, version int32) func(*token.Container) {
		return func(c *token.Container) {
			c.Resource, c.Execution, c.Version = creel.NewResource(mb, 1), e, version
		}
	}
	for i, mb := range []int64{8192, 1024, 512, 256} {
		r, err := client.StartContainers(ctx, start(s.container(int64(i+1), kind(mb, creel.Opportunistic, 0))))
		if err != nil || len(r.GetSucceededRequests()) != 1 {
			t.Fatalf("start: %v, %v", r, err)
		}
	}
	status := func(sequence int64) string {
		t.Helper()
		r, err := client.GetContainerStatuses(ctx, &pb.GetContainerStatusesRequestProto{
			ContainerId: []*pb.ContainerIdProto{pb.FromContainerID(creel.NewContainerID(attempt, 0, sequence))},
		})
		if err != nil || len(r.GetStatus()) != 1 {
			t.Fatalf("status: %v, %v", r, err)
		}
		c := r.GetStatus()[0]
		return fmt.Sprint(c.GetExecutionType(), c.GetState(), c.GetContainerSubState(), c.GetExitStatus())
	}
	for i, want := range []string{
		"OPPORTUNISTIC C_RUNNING CSS_RUNNING -1000", "OPPORTUNISTIC C_RUNNING CSS_SCHEDULED -1000",
		"OPPORTUNISTIC C_RUNNING CSS_SCHEDULED -1000", "OPPORTUNISTIC C_COMPLETE CSS_DONE -108",
	} {
		if got := status(int64(i + 1)); got != want {
			t.Errorf("container %d is %s, want %s", i+1, got, want)
		}
	}
	s.until("the tracker hears of the queue", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		q := s.queues
		return q.GetRunningOpportContainers() == 1 && q.GetOpportMemoryUsed() == 8 && q.GetOpportCoresUsed() == 1 &&
			q.GetQueuedOpportContainers() == 2 && q.GetWaitQueueLength() == 2 && q.GetOpportQueueCapacity() == 2
	})
	s.say(func(r *pb.NodeHeartbeatResponseProto) {
		r.ContainerQueuingLimit = &pb.ContainerQueuingLimitProto{
			MaxQueueLength: new(int32(1)), MaxQueueWaitTimeInMs: new(int32(-1)),
		}
	})
	s.until("the queue is shorter", func() bool { return status(3) == "OPPORTUNISTIC C_COMPLETE CSS_DONE -108" })
	promoted := s.container(2, kind(1024, creel.Guaranteed, 1))
	if r, err := client.UpdateContainer(ctx, &pb.ContainerUpdateRequestProto{
		UpdateContainerToken: []*pb.TokenProto{promoted},
	}); err != nil || len(r.GetSucceededRequests()) != 1 {
		t.Fatalf("update: %v, %v", r, err)
	}
	if got := status(2); got != "GUARANTEED C_RUNNING CSS_RUNNING -1000" {
		t.Errorf("the promoted container is %s", got)
	}
	if got := status(1); got != "OPPORTUNISTIC C_COMPLETE CSS_DONE -108" {
		t.Errorf("the container that made room is %s", got)
	}
}

func TestANodeThatIsRefusedStaysAway(t *testing.T) {
	s := play(t, &tracker{refuse: "not you"})
	s.until("it has asked", func() bool { return s.heard() == 1 })
	client := s.asAM(key, attempt, s.node)
	if _, err := client.StartContainers(t.Context(), start(s.container(1, nil))); err == nil {
		t.Error("a node that was refused starts a container")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heartbeats != 0 {
		t.Errorf("it sends %d heartbeats", s.heartbeats)
	}
}
