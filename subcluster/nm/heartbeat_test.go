// SPDX-License-Identifier: Apache-2.0

package nm

import (
	"fmt"
	"testing"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/nm/queue"
)

// busy is a node with running containers, which has sent a heartbeat.
func busy(t *testing.T, q queue.Config, containers int) *Node {
	t.Helper()
	now := time.UnixMilli(1_000_000)
	n := New(configOf(q))
	step := func(e Event) {
		t.Helper()
		if _, err := n.Step(now, e); err != nil {
			t.Fatal(err)
		}
	}
	step(Registered{&pb.RegisterNodeManagerResponseProto{}})
	for i := range containers {
		c := Container{ID: id(fmt.Sprintf("1.%d", i+1)), Resource: creel.NewResource(512, 0), Execution: creel.Guaranteed}
		step(Start{Container: c, Expires: now.Add(time.Minute), Launch: &pb.ContainerLaunchContextProto{}})
		step(Localized{ID: c.ID})
		step(Launched{ID: c.ID})
	}
	n.Heartbeat(now)
	return n
}

// A heartbeat of a node without opportunistic containers costs three blocks, whatever runs: the request, the status
// and its list. A queue costs one more. The answer costs none.
func TestHeartbeatCostsThreeBlocks(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	n, queues := busy(t, queue.Config{}, 10), busy(t, queue.Config{Length: 5}, 10)
	if got := testing.AllocsPerRun(100, func() { n.Heartbeat(now) }); got != 3 {
		t.Errorf("a heartbeat costs %v blocks", got)
	}
	if got := testing.AllocsPerRun(100, func() { queues.Heartbeat(now) }); got != 4 {
		t.Errorf("a heartbeat of a node with a queue costs %v blocks", got)
	}
	var e Event = Answered{&pb.NodeHeartbeatResponseProto{
		ResponseId: new(int32(1)), ContainerQueuingLimit: &pb.ContainerQueuingLimitProto{MaxQueueLength: new(int32(5))},
	}}
	if got := testing.AllocsPerRun(100, func() { _, _ = n.Step(now, e) }); got != 0 {
		t.Errorf("an answer costs %v blocks", got)
	}
}
