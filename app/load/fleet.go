// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// MaxNodes limits the nodes of a load.
const MaxNodes = 200_000

// fleet is the set of nodes of a load. They only use the tracker's protocol: their reported containers run no
// program.
type fleet struct {
	nodes    []*fleetNode
	byID     map[creel.NodeID]*fleetNode
	trackers []yarnrpc.ResourceTrackerClient
	total    creel.Resource

	registered, resyncs atomic.Int64
}

// fleetNode is one node. Its calls are sequential, because each contains the id of the last response. Their caller
// owns it.
type fleetNode struct {
	id        creel.NodeID
	tracker   yarnrpc.ResourceTrackerClient
	heartbeat pb.NodeHeartbeatRequestProto
	status    pb.NodeStatusProto
	answer    int32
	ended     int // number of containers at the end of status that have ended

	more  sync.Mutex // guards data that arrives during a call
	added []*pb.ContainerStatusProto
}

// newFleet makes nodes 127.1.0.1 and following: addresses, because Hadoop resolves names for its tokens.
func newFleet(clients []*hrpc.Client, tracker string, n, first int, total creel.Resource) (*fleet, error) {
	if n < 1 || first < 0 || first+n > MaxNodes {
		return nil, badOption("%d nodes beginning with number %d: give 1 to %d in all", n, first, MaxNodes)
	}
	f := &fleet{byID: make(map[creel.NodeID]*fleetNode, n), total: total}
	for _, c := range clients {
		f.trackers = append(f.trackers, yarnrpc.NewResourceTrackerClient(c, tracker, hrpc.Login{User: "yarn"}))
	}
	for i := range n {
		a := uint32(127)<<24 | uint32(1)<<16 + uint32(first+i) + 1
		node := &fleetNode{
			id: creel.NodeID{
				Host: netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)}).String(),
				Port: 8041,
			},
			tracker: f.trackers[i%len(f.trackers)],
		}
		use := &pb.ResourceUtilizationProto{Pmem: new(int32(0)), Vmem: new(int32(0)), Cpu: new(float32(0))}
		node.status.NodeId, node.status.ResponseId = pb.FromNodeID(node.id), &node.answer
		node.status.NodeHealthStatus = &pb.NodeHealthStatusProto{
			IsNodeHealthy:        new(true),
			HealthReport:         new(""),
			LastHealthReportTime: new(time.Now().UnixMilli()),
		}
		node.status.ContainersUtilization, node.status.NodeUtilization = use, use
		node.heartbeat.NodeStatus = &node.status
		f.nodes = append(f.nodes, node)
		f.byID[node.id] = node
	}
	return f, nil
}

// register registers all nodes.
func (f *fleet) register(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(64)
	for _, n := range f.nodes {
		g.Go(func() error { return f.enter(ctx, n) })
	}
	return g.Wait()
}

// enter registers a node with its running containers.
func (f *fleet) enter(ctx context.Context, n *fleetNode) error {
	n.answer = 0
	req := &pb.RegisterNodeManagerRequestProto{
		NodeId:           n.status.NodeId,
		HttpPort:         new(int32(8042)),
		Resource:         pb.FromResource(f.total),
		PhysicalResource: pb.FromResource(f.total),
		NmVersion: new(
			"3.4.2",
		),
		NodeStatus: &pb.NodeStatusProto{
			NodeId:           n.status.NodeId,
			ResponseId:       new(int32(0)),
			NodeHealthStatus: n.status.NodeHealthStatus,
		},
	}
	seen := map[creel.ApplicationID]bool{}
	for _, c := range n.status.ContainersStatuses[:len(n.status.ContainersStatuses)-n.ended] {
		req.ContainerStatuses = append(
			req.ContainerStatuses,
			&pb.NMContainerStatusProto{
				ContainerId:    c.ContainerId,
				ContainerState: c.State,
				Resource:       c.Capability,
				Priority: pb.FromPriority(
					1,
				),
				Diagnostics:         new(""),
				ContainerExitStatus: new(int32(-1000)),
				CreationTime:        new(time.Now().UnixMilli()),
				Version:             new(int32(0)),
				ExecutionType:       c.ExecutionType,
			},
		)
		if app := pb.ToContainerID(c.ContainerId).Attempt.Application; !seen[app] {
			seen[app] = true
			req.RunningApplications = append(req.RunningApplications, pb.FromApplicationID(app))
		}
	}
	answer, err := n.tracker.RegisterNodeManager(ctx, req)
	if err != nil {
		return fmt.Errorf("register node %s: %w", n.id, err)
	}
	if answer.GetNodeAction() == pb.NodeActionProto_SHUTDOWN {
		return fmt.Errorf("node %s was ordered to shut down: %s", n.id, answer.GetDiagnosticsMessage())
	}
	n.heartbeat.LastKnownContainerTokenMasterKey = answer.GetContainerTokenMasterKey()
	n.heartbeat.LastKnownNmTokenMasterKey = answer.GetNmTokenMasterKey()
	f.registered.Add(1)
	return nil
}

// errShutdown reports a node that received the order to shut down. The node continues its heartbeats, because it is
// load.
var errShutdown = errors.New("a node was ordered to shut down")

// news moves data that arrived since the last heartbeat into the next one.
func (n *fleetNode) news() {
	n.more.Lock()
	n.status.ContainersStatuses = append(n.status.ContainersStatuses, n.added...)
	if len(n.added) > 0 && n.ended > 0 {
		n.sortEnded()
	}
	n.added = n.added[:0]
	n.more.Unlock()
}

// answered applies a response to a node.
func (f *fleet) answered(ctx context.Context, n *fleetNode, answer *pb.NodeHeartbeatResponseProto) error {
	switch answer.GetNodeAction() {
	case pb.NodeActionProto_RESYNC:
		f.resyncs.Add(1)
		return f.enter(ctx, n)
	case pb.NodeActionProto_SHUTDOWN:
		return errShutdown
	}
	n.answer = answer.GetResponseId()
	if k := answer.GetContainerTokenMasterKey(); k != nil {
		n.heartbeat.LastKnownContainerTokenMasterKey = k
	}
	if k := answer.GetNmTokenMasterKey(); k != nil {
		n.heartbeat.LastKnownNmTokenMasterKey = k
	}
	// These completions have now been reported once, which is enough.
	n.status.ContainersStatuses = n.status.ContainersStatuses[:len(n.status.ContainersStatuses)-n.ended]
	n.ended = 0
	if gone := answer.GetContainersToCleanup(); len(gone) > 0 && len(n.status.ContainersStatuses) > 0 {
		n.stop(gone)
	}
	return nil
}

// piped returns the heartbeats of all nodes.
func (f *fleet) piped(target hrpc.Target) pipedRequests {
	return pipedRequests{
		target: target, method: "nodeHeartbeat", slots: len(f.nodes),
		request: func(b []byte, slot int, _ int64) ([]byte, error) {
			n := f.nodes[slot]
			n.news()
			return appendVT(b, &n.heartbeat)
		},
		answer: func(ctx context.Context, slot int, _ int64, body []byte) error {
			n := f.nodes[slot]
			if id, ok := plainAnswer(body); ok {
				n.answer = id
				all := n.status.ContainersStatuses
				n.status.ContainersStatuses, n.ended = all[:len(all)-n.ended], 0
				return nil
			}
			var answer pb.NodeHeartbeatResponseProto
			if err := answer.UnmarshalVT(body); err != nil {
				return err
			}
			return f.answered(ctx, n, &answer)
		},
	}
}

// plainAnswer returns the response id of a response with only the usual content: a response id, the action NORMAL and
// an interval.
func plainAnswer(b []byte) (id int32, ok bool) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 || kind != protowire.VarintType {
			return 0, false
		}
		value, m := protowire.ConsumeVarint(b[n:])
		if m < 0 {
			return 0, false
		}
		b = b[n+m:]
		switch number {
		case 1:
			id = int32(value)
		case 4:
			ok = value == uint64(pb.NodeActionProto_NORMAL)
		case 7:
		default:
			return 0, false
		}
	}
	return id, ok
}

// appendVT appends a message's encoding to b.
func appendVT(b []byte, m interface {
	SizeVT() int
	MarshalToSizedBufferVT([]byte) (int, error)
}) ([]byte, error) {
	start, size := len(b), m.SizeVT()
	b = slices.Grow(b, size)[:start+size]
	_, err := m.MarshalToSizedBufferVT(b[start:])
	return b, err
}

// stop ends containers that the ResourceManager has released.
func (n *fleetNode) stop(gone []*pb.ContainerIdProto) {
	want := make(map[creel.ContainerID]bool, len(gone))
	for _, id := range gone {
		want[pb.ToContainerID(id)] = true
	}
	for _, c := range n.status.ContainersStatuses {
		if want[pb.ToContainerID(c.ContainerId)] {
			c.State, c.ExitStatus = pb.ContainerStateProto_C_COMPLETE.Enum(), new(int32(-105))
			n.ended++
		}
	}
	n.sortEnded()
}

// sortEnded moves ended containers after the running ones.
func (n *fleetNode) sortEnded() {
	list := n.status.ContainersStatuses
	running := make([]*pb.ContainerStatusProto, 0, len(list))
	var ended []*pb.ContainerStatusProto
	for _, c := range list {
		if c.GetState() == pb.ContainerStateProto_C_COMPLETE {
			ended = append(ended, c)
		} else {
			running = append(running, c)
		}
	}
	n.status.ContainersStatuses, n.ended = append(running, ended...), len(ended)
}

// run starts a granted container on its node.
func (f *fleet) run(c *pb.ContainerProto) {
	n := f.byID[pb.ToNodeID(c.GetNodeId())]
	if n == nil {
		return // on a node outside this fleet
	}
	s := &pb.ContainerStatusProto{
		ContainerId:   c.GetId(),
		State:         pb.ContainerStateProto_C_RUNNING.Enum(),
		Diagnostics:   new(""),
		ExitStatus:    new(int32(-1000)),
		Capability:    c.GetResource(),
		ExecutionType: pb.ExecutionTypeProto_GUARANTEED.Enum(),
	}
	n.more.Lock()
	n.added = append(n.added, s)
	n.more.Unlock()
}

// tracker returns the nodes' protocol at an address.
func tracker(address string) hrpc.Target {
	return hrpc.Target{Address: address, Protocol: yarnrpc.ResourceTrackerName, Login: hrpc.Login{User: "yarn"}}
}
