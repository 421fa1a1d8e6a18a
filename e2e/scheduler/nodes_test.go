// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// start is the time at which our machine's day begins; nothing here depends on
// how long the real one takes.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// node is a simulated node: it speaks the tracker's protocol and runs nothing.
type node struct {
	id   creel.NodeID
	size creel.Resource
}

var fourNodes = []node{
	{creel.NodeID{Host: "127.0.1.1", Port: 1}, creel.NewResource(8192, 8)},
	{creel.NodeID{Host: "127.0.1.2", Port: 1}, creel.NewResource(8192, 8)},
	{creel.NodeID{Host: "127.0.1.3", Port: 1}, creel.NewResource(8192, 8)},
	{creel.NodeID{Host: "127.0.1.4", Port: 1}, creel.NewResource(8192, 8)},
}

// tracker sends the heartbeats of nodes registered with a real ResourceManager.
type tracker struct {
	client    yarnrpc.ResourceTrackerClient
	nodes     []node
	responses []int32 // the response id that each node had last
}

func newClient(t *testing.T) *hrpc.Client {
	t.Helper()
	c := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the client: %v", err)
		}
	})
	return c
}

// register registers the nodes and sends a heartbeat of each.
func register(t *testing.T, r *hadoop.ResourceManager, nodes []node) *tracker {
	t.Helper()
	k := &tracker{
		client:    yarnrpc.NewResourceTrackerClient(newClient(t), r.Tracker, hrpc.Login{User: hadoop.OSUser(t)}),
		nodes:     nodes,
		responses: make([]int32, len(nodes)),
	}
	for _, n := range nodes {
		answer, err := k.client.RegisterNodeManager(t.Context(), &yarnpb.RegisterNodeManagerRequestProto{
			NodeId: yarnpb.FromNodeID(
				n.id,
			),
			HttpPort:   proto.Int32(1),
			Resource:   yarnpb.FromResource(n.size),
			NmVersion:  proto.String("3.4.2"),
			NodeStatus: k.status(n, 0),
		})
		if err != nil {
			t.Fatal(err)
		}
		if answer.GetNodeAction() != yarnpb.NodeActionProto_NORMAL {
			t.Fatalf("%v: %v", n.id, answer)
		}
	}
	k.heartbeat(t, t.Context())
	// Registration is an event in the scheduler's queue: wait until it knows all.
	r.Await(t, "the nodes in the scheduler", func() bool {
		var doc struct {
			ClusterMetrics struct{ TotalMB, ActiveNodes int64 }
		}
		get(t, r, "/ws/v1/cluster/metrics", &doc)
		total := creel.Resource{}
		for _, n := range nodes {
			total = total.Add(n.size)
		}
		return doc.ClusterMetrics.TotalMB == total.MemoryMB
	})
	return k
}

func (k *tracker) status(n node, id int32) *yarnpb.NodeStatusProto {
	return &yarnpb.NodeStatusProto{
		NodeId:     yarnpb.FromNodeID(n.id),
		ResponseId: &id,
		NodeHealthStatus: &yarnpb.NodeHealthStatusProto{
			IsNodeHealthy:        proto.Bool(true),
			LastHealthReportTime: proto.Int64(time.Now().UnixMilli()),
		},
		ContainersUtilization: &yarnpb.ResourceUtilizationProto{},
		NodeUtilization:       &yarnpb.ResourceUtilizationProto{},
	}
}

// heartbeat sends one heartbeat of every node, in order.
func (k *tracker) heartbeat(t *testing.T, ctx context.Context) {
	t.Helper()
	for i, n := range k.nodes {
		answer, err := k.client.NodeHeartbeat(ctx, &yarnpb.NodeHeartbeatRequestProto{
			NodeStatus:                       k.status(n, k.responses[i]),
			LastKnownContainerTokenMasterKey: &yarnpb.MasterKeyProto{KeyId: proto.Int32(0)},
			LastKnownNmTokenMasterKey:        &yarnpb.MasterKeyProto{KeyId: proto.Int32(0)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if answer.GetNodeAction() != yarnpb.NodeActionProto_NORMAL {
			t.Fatalf("%v: %v", n.id, answer)
		}
		k.responses[i] = answer.GetResponseId()
	}
}
