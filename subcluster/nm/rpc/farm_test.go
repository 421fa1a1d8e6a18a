// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"context"
	"errors"
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

func play(t *testing.T, k *tracker) *stage {
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
			Config:   nmserver.Config{RunTime: time.Hour, KillDelay: time.Millisecond},
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
