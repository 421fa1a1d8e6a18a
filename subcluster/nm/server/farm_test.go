// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/nm"
	"github.com/creelrm/creel/subcluster/nm/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tracker is a ResourceManager that accepts every node and records the containers' results; a heartbeat each second.
type tracker struct {
	mu         sync.Mutex
	heartbeats int
	exits      map[creel.ContainerID]int32
}

func (k *tracker) RegisterNodeManager(
	context.Context,
	*pb.RegisterNodeManagerRequestProto,
) (*pb.RegisterNodeManagerResponseProto, error) {
	return &pb.RegisterNodeManagerResponseProto{
		NodeAction:   pb.NodeActionProto_NORMAL.Enum(),
		RmIdentifier: new(int64(1)),
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
		if c.GetState() == pb.ContainerStateProto_C_COMPLETE {
			k.exits[pb.ToContainerID(c.GetContainerId())] = c.GetExitStatus()
		}
	}
	return &pb.NodeHeartbeatResponseProto{
		ResponseId:            new(r.GetNodeStatus().GetResponseId() + 1),
		NodeAction:            pb.NodeActionProto_NORMAL.Enum(),
		NextHeartBeatInterval: new(int64(1000)),
	}, nil
}

// Nodes without any protocol, in virtual time: they register, their containers run for their set time, and the
// completion of one comes with the next heartbeat.
func TestContainersEndWhenTheyHaveRunTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := []creel.NodeID{{Host: "h1", Port: 1}, {Host: "h2", Port: 1}}
		farm, err := server.New(server.Config{RunTime: 10 * time.Second, MaxInFlight: 2}, ids)
		if err != nil {
			t.Fatal(err)
		}
		k := &tracker{exits: map[creel.ContainerID]int32{}}
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() { farm.Run(ctx, []server.Tracker{k}) })
		<-farm.Ready()
		app := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
		attempt := creel.AttemptID{Application: app, Attempt: 1}
		plain, killed := creel.NewContainerID(attempt, 0, 1), creel.NewContainerID(attempt, 0, 2)
		node := farm.Node(ids[0])
		for _, id := range []creel.ContainerID{plain, killed} {
			start := nm.Start{
				Container: nm.Container{ID: id, User: "ann", Resource: creel.NewResource(512, 1)},
				Launch:    &pb.ContainerLaunchContextProto{},
				RM:        1,
				Expires:   time.Now().Add(time.Minute),
			}
			if err := node.Do(time.Now(), start); err != nil {
				t.Fatal(err)
			}
		}
		node.Signal(time.Now(), killed, pb.SignalContainerCommandProto_FORCEFUL_SHUTDOWN)
		time.Sleep(9 * time.Second)
		k.mu.Lock()
		if code, ok := k.exits[killed]; !ok || code != nm.ExitForceKilled || len(k.exits) != 1 {
			t.Errorf("after nine seconds: %v", k.exits)
		}
		k.mu.Unlock()
		time.Sleep(3 * time.Second)
		cancel()
		work.Wait()
		if code, ok := k.exits[plain]; !ok || code != 0 {
			t.Errorf("after twelve seconds: %v", k.exits)
		}
		if k.heartbeats < 20 || k.heartbeats > 30 {
			t.Errorf("%d heartbeats of two nodes in twelve seconds", k.heartbeats)
		}
		if farm.Node(creel.NodeID{Host: "h3", Port: 1}) != nil {
			t.Error("a node that is none of the farm's")
		}
	})
}
