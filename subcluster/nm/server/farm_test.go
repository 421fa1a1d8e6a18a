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
	"github.com/creelrm/creel/subcluster/nm/overallocate"
	"github.com/creelrm/creel/subcluster/nm/queue"
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

// A node of one core pauses an opportunistic container for a guaranteed one. The time of the pause is not run time.
func TestPausedContainerRunsItsTimeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := []creel.NodeID{{Host: "h1", Port: 1}}
		farm, err := server.New(server.Config{
			Total: creel.NewResource(1024, 1), MaxInFlight: 1, Queue: queue.Config{Length: 2, Pause: true},
		}, ids)
		if err != nil {
			t.Fatal(err)
		}
		k := &tracker{exits: map[creel.ContainerID]int32{}}
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() { farm.Run(ctx, []server.Tracker{k}) })
		<-farm.Ready()
		attempt := creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1}
		node, slow, fast := farm.Node(ids[0]), creel.NewContainerID(attempt, 0, 1), creel.NewContainerID(attempt, 0, 2)
		start := func(id creel.ContainerID, kind creel.ExecutionType, seconds string) {
			t.Helper()
			if err := node.Do(time.Now(), nm.Start{
				Container: nm.Container{ID: id, Resource: creel.NewResource(1024, 1), Execution: kind},
				Launch:    &pb.ContainerLaunchContextProto{Command: []string{"sleep " + seconds}},
				RM:        1,
				Expires:   time.Now().Add(time.Minute),
			}); err != nil {
				t.Fatal(err)
			}
		}
		state := func(id creel.ContainerID) pb.ContainerSubStateProto {
			t.Helper()
			s, err := node.Status(id)
			if err != nil {
				t.Fatal(err)
			}
			return s.GetContainerSubState()
		}
		start(slow, creel.Opportunistic, "10")
		time.Sleep(4 * time.Second)
		start(fast, creel.Guaranteed, "5")
		if s := state(slow); s != pb.ContainerSubStateProto_CSS_PAUSED {
			t.Errorf("beside a guaranteed container: %v", s)
		}
		time.Sleep(6 * time.Second) // it would have ended without the pause
		if s := state(slow); s != pb.ContainerSubStateProto_CSS_RUNNING {
			t.Errorf("after the guaranteed container: %v", s)
		}
		if s := state(fast); s != pb.ContainerSubStateProto_CSS_DONE {
			t.Errorf("the guaranteed container: %v", s)
		}
		time.Sleep(4 * time.Second) // 14 of 15 seconds
		if s := state(slow); s != pb.ContainerSubStateProto_CSS_RUNNING {
			t.Errorf("a second before its end: %v", s)
		}
		time.Sleep(2 * time.Second)
		if s, _ := node.Status(slow); s.GetState() != pb.ContainerStateProto_C_COMPLETE || s.GetExitStatus() != 0 {
			t.Errorf("after its time: %v", s)
		}
		cancel()
		work.Wait()
	})
}

// A container that a hook simulates cannot pause, and is killed.
func TestHookedContainerIsKilledInsteadOfPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := []creel.NodeID{{Host: "h1", Port: 1}}
		stopped := 0
		farm, err := server.New(server.Config{
			Total: creel.NewResource(1024, 1), MaxInFlight: 1, Queue: queue.Config{Length: 2, Pause: true},
			OnStart: func(server.Started, func(int32, string)) func() { return func() { stopped++ } },
		}, ids)
		if err != nil {
			t.Fatal(err)
		}
		k := &tracker{exits: map[creel.ContainerID]int32{}}
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() { farm.Run(ctx, []server.Tracker{k}) })
		<-farm.Ready()
		attempt := creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1}
		node := farm.Node(ids[0])
		for i, kind := range []creel.ExecutionType{creel.Opportunistic, creel.Guaranteed} {
			if err := node.Do(time.Now(), nm.Start{
				Container: nm.Container{
					ID: creel.NewContainerID(attempt, 0, int64(i+1)), Resource: creel.NewResource(1024, 1), Execution: kind,
				},
				Launch:  &pb.ContainerLaunchContextProto{},
				RM:      1,
				Expires: time.Now().Add(time.Minute),
			}); err != nil {
				t.Fatal(err)
			}
		}
		s, _ := node.Status(creel.NewContainerID(attempt, 0, 1))
		if s.GetExitStatus() != nm.ExitPreempted || stopped != 1 {
			t.Errorf("%v; stopped %d times", s, stopped)
		}
		s, _ = node.Status(creel.NewContainerID(attempt, 0, 2))
		if s.GetContainerSubState() != pb.ContainerSubStateProto_CSS_RUNNING {
			t.Errorf("the guaranteed container: %v", s)
		}
		cancel()
		work.Wait()
	})
}

// A node that measures starts an opportunistic container on what a guaranteed one does not use. Without measurements it
// starts the container only after the end of the other.
func TestFarmLendsWhatContainersDoNotUse(t *testing.T) {
	for _, measures := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ids := []creel.NodeID{{Host: "h1", Port: 1}}
			farm, err := server.New(server.Config{
				Total: creel.NewResource(4096, 4), MaxInFlight: 1, Queue: queue.Config{Length: 2}, Measures: measures,
				Overallocation: overallocate.Config{
					Alloc: overallocate.Shares{Memory: 0.75, CPU: 0.75}, Preempt: overallocate.Shares{Memory: 0.9, CPU: 0.9},
				},
			}, ids)
			if err != nil {
				t.Fatal(err)
			}
			k := &tracker{exits: map[creel.ContainerID]int32{}}
			ctx, cancel := context.WithCancel(t.Context())
			var work sync.WaitGroup
			work.Go(func() { farm.Run(ctx, []server.Tracker{k}) })
			<-farm.Ready()
			attempt := creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1}
			node := farm.Node(ids[0])
			for i, kind := range []creel.ExecutionType{creel.Guaranteed, creel.Opportunistic} {
				size := creel.NewResource(4096, 4)
				if kind == creel.Opportunistic {
					size = creel.NewResource(1024, 1)
				}
				if err := node.Do(time.Now(), nm.Start{
					Container: nm.Container{ID: creel.NewContainerID(attempt, 0, int64(i+1)), Resource: size, Execution: kind},
					Launch: &pb.ContainerLaunchContextProto{
						Command:     []string{"sleep 60"},
						Environment: []*pb.StringStringMapProto{{Key: new(nm.EnvUse), Value: new("20")}},
					},
					RM: 1, Expires: time.Now().Add(time.Minute),
				}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(5 * time.Second)
			want := pb.ContainerSubStateProto_CSS_SCHEDULED
			if measures {
				want = pb.ContainerSubStateProto_CSS_RUNNING
			}
			s, err := node.Status(creel.NewContainerID(attempt, 0, 2))
			if err != nil || s.GetContainerSubState() != want {
				t.Errorf("measures=%v: %v, %v", measures, s, err)
			}
			cancel()
			work.Wait()
		})
	}
}
