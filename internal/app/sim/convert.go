// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Between the machines of ResourceManagers and the messages that nodes and
// sessions speak: the fields that the simulated AMs and nodes use, as
// subcluster/rm/rpc has them.

func decodeAllocate(r *pb.AllocateRequestProto, out *rm.AllocateRequest) {
	*out = rm.AllocateRequest{
		ResponseID: r.GetResponseId(),
		Asks:       out.Asks[:0],
		Release:    out.Release[:0],
		Progress:   r.GetProgress(),
		BlacklistAdd: r.GetBlacklistRequest().
			GetBlacklistAdditions(),
		BlacklistRemove: r.GetBlacklistRequest().GetBlacklistRemovals(),
	}
	for _, a := range r.GetAsk() {
		out.Asks = append(
			out.Asks,
			rm.Ask{
				Priority:            a.GetPriority().GetPriority(),
				AllocationRequestID: a.GetAllocationRequestId(),
				ResourceName:        a.GetResourceName(),
				Resource: pb.ToResource(
					a.GetCapability(),
				),
				Count:          a.GetNumContainers(),
				StrictLocality: !a.GetRelaxLocality(),
				ExecutionType:  creel.ExecutionType(a.GetExecutionTypeRequest().GetExecutionType()),
			},
		)
	}
	for _, c := range r.GetRelease() {
		out.Release = append(out.Release, pb.ToContainerID(c))
	}
}

func (c *cluster) encodeRegistered(r *rm.Registered) *pb.RegisterApplicationMasterResponseProto {
	out := &pb.RegisterApplicationMasterResponseProto{
		MaximumCapability:      pb.FromResource(r.MaxAllocation),
		Queue:                  new(string(r.Queue)),
		SchedulerResourceTypes: []pb.SchedulerResourceTypes{pb.SchedulerResourceTypes_MEMORY},
	}
	if !r.MemoryOnly {
		out.SchedulerResourceTypes = append(out.SchedulerResourceTypes, pb.SchedulerResourceTypes_CPU)
	}
	for i := range r.Previous {
		out.ContainersFromPreviousAttempts = append(out.ContainersFromPreviousAttempts, c.container(&r.Previous[i]))
	}
	return out
}

// answerBlock is an answer to allocate with the small things it points at.
type answerBlock struct {
	pb.AllocateResponseProto
	id, nodes, pending, cores int32
	enhanced                  pb.EnhancedHeadroomProto
}

func (c *cluster) encodeAnswer(a *rm.Answer) *pb.AllocateResponseProto {
	b := &answerBlock{id: a.ResponseID, nodes: a.Nodes, pending: a.PendingContainers, cores: a.ActiveCores}
	b.enhanced.TotalPendingCount, b.enhanced.TotalActiveCores = &b.pending, &b.cores
	r := &b.AllocateResponseProto
	r.ResponseId, r.NumClusterNodes, r.EnhancedHeadroom = &b.id, &b.nodes, &b.enhanced
	r.Limit, r.ApplicationPriority = pb.FromResource(a.Headroom), pb.FromPriority(a.Priority)
	if len(a.Granted) > 0 {
		r.AllocatedContainers = make([]*pb.ContainerProto, len(a.Granted))
		for i := range a.Granted {
			r.AllocatedContainers[i] = c.container(&a.Granted[i])
		}
	}
	for i := range a.FromPrevious {
		r.ContainersFromPreviousAttempts = append(r.ContainersFromPreviousAttempts, c.container(&a.FromPrevious[i]))
	}
	if len(a.Completed) > 0 {
		r.CompletedContainerStatuses = make([]*pb.ContainerStatusProto, len(a.Completed))
		for i := range a.Completed {
			r.CompletedContainerStatuses[i] = completed(&a.Completed[i])
		}
	}
	return r
}

func completed(c *rm.Completed) *pb.ContainerStatusProto {
	if s, ok := c.Message.(*pb.ContainerStatusProto); ok && s.GetExitStatus() == c.ExitStatus &&
		s.GetState() == pb.ContainerStateProto_C_COMPLETE {
		return s
	}
	return &pb.ContainerStatusProto{
		ContainerId: pb.FromContainerID(c.ID),
		State:       pb.ContainerStateProto_C_COMPLETE.Enum(),
		ExitStatus:  new(c.ExitStatus),
		Diagnostics: new(c.Diagnostics),
	}
}

// The token of a simulated container says in clear what a real one says
// signed: which epoch of the ResourceManager gave it, when, and until when it
// may be started.
const tokenBytes = 24

// What all of them share; nobody writes through these.
var (
	noPassword               = []byte{}
	containerKind, noService = "ContainerToken", ""
)

func (c *cluster) container(g *rm.Grant) *pb.ContainerProto {
	id := make([]byte, 0, tokenBytes)
	id = binary.BigEndian.AppendUint64(id, uint64(c.start.UnixMilli()))
	id = binary.BigEndian.AppendUint64(id, uint64(g.Created))
	id = binary.BigEndian.AppendUint64(id, uint64(c.w.now.Add(c.w.cfg.Expiry).UnixMilli()))
	execution := pb.ExecutionTypeProto(g.ExecutionType)
	return &pb.ContainerProto{
		Id:       pb.FromContainerID(g.ID),
		NodeId:   pb.FromNodeID(g.Node),
		Resource: pb.FromResource(g.Resource),
		Priority: pb.FromPriority(g.Priority),
		ContainerToken: &pb.TokenProto{
			Identifier: id,
			Password:   noPassword,
			Kind:       &containerKind,
			Service:    &noService,
		},
		ExecutionType:       &execution,
		AllocationRequestId: new(g.AllocationRequestID),
		Version:             new(g.Version),
	}
}

// startOf reads a granted container back into what starts it.
func startOf(p *pb.ContainerProto) started {
	id := p.GetContainerToken().GetIdentifier()
	at := func(i int) int64 { return int64(binary.BigEndian.Uint64(id[8*i:])) }
	return started{
		grant: rm.Grant{
			ID:                  pb.ToContainerID(p.GetId()),
			Place:               &rm.Place{Node: pb.ToNodeID(p.GetNodeId())},
			Shape:               &amounts.Shape{Resource: pb.ToResource(p.GetResource())},
			Priority:            p.GetPriority().GetPriority(),
			AllocationRequestID: p.GetAllocationRequestId(),
			ExecutionType:       creel.ExecutionType(p.GetExecutionType()),
			Version:             p.GetVersion(),
			Created:             at(1),
		},
		rm:      at(0),
		expires: time.UnixMilli(at(2)).UTC(),
	}
}

// tokenOf is an attempt's AMRM token: good while its ResourceManager says so.
func tokenOf(a creel.AttemptID) *pb.TokenProto {
	return &pb.TokenProto{
		Identifier: []byte(a.String()),
		Password:   []byte("simulated"),
		Kind:       new("YARN_AM_RM_TOKEN"),
		Service:    new(""),
	}
}

// holderOf reads who shows a token.
func holderOf(t *pb.TokenProto) (creel.AttemptID, error) {
	return creel.ParseAttemptID(string(t.GetIdentifier()))
}

func decodeRegisterNode(r *pb.RegisterNodeManagerRequestProto) rm.RegisterNode {
	out := rm.RegisterNode{
		ID:       pb.ToNodeID(r.GetNodeId()),
		HTTPPort: r.GetHttpPort(),
		Resource: pb.ToResource(r.GetResource()),
		Version:  r.GetNmVersion(),
	}
	for _, c := range r.GetContainerStatuses() {
		out.Containers = append(
			out.Containers,
			rm.NodeContainer{
				ID:    pb.ToContainerID(c.GetContainerId()),
				State: creel.ContainerState(c.GetContainerState()),
				Resource: pb.ToResource(
					c.GetResource(),
				),
				Priority:            c.GetPriority().GetPriority(),
				AllocationRequestID: c.GetAllocationRequestId(),
				ExecutionType: creel.ExecutionType(
					c.GetExecutionType(),
				),
				Version:     c.GetVersion(),
				Created:     time.UnixMilli(c.GetCreationTime()),
				ExitStatus:  c.GetContainerExitStatus(),
				Diagnostics: c.GetDiagnostics(),
			},
		)
	}
	for _, a := range r.GetRunningApplications() {
		out.Applications = append(out.Applications, pb.ToApplicationID(a))
	}
	return out
}

func decodeReport(r *pb.NodeHeartbeatRequestProto, out *rm.NodeReport) {
	s := r.GetNodeStatus()
	*out = rm.NodeReport{
		ID:         pb.ToNodeID(s.GetNodeId()),
		ResponseID: s.GetResponseId(),
		Unhealthy:  !s.GetNodeHealthStatus().GetIsNodeHealthy(),
		Containers: out.Containers[:0],
	}
	for _, c := range s.GetContainersStatuses() {
		out.Containers = append(
			out.Containers,
			rm.ContainerStatus{
				ID:          pb.ToContainerID(c.GetContainerId()),
				State:       creel.ContainerState(c.GetState()),
				ExitStatus:  c.GetExitStatus(),
				Diagnostics: c.GetDiagnostics(),
				Message:     c,
			},
		)
	}
}

func (c *cluster) encodeNodeRegistered(r *rm.NodeRegistered) *pb.RegisterNodeManagerResponseProto {
	out := &pb.RegisterNodeManagerResponseProto{
		NodeAction:         new(pb.NodeActionProto(r.Action)),
		RmIdentifier:       new(c.start.UnixMilli()),
		DiagnosticsMessage: new(r.Diagnostics),
	}
	if r.Override {
		out.Resource = pb.FromResource(r.Resource)
	}
	return out
}

// heartbeatBlock is an answer to a heartbeat with the small things it points at.
type heartbeatBlock struct {
	pb.NodeHeartbeatResponseProto
	id     int32
	action pb.NodeActionProto
	next   int64
}

func (c *cluster) encodeHeartbeat(a *rm.NodeAnswer) *pb.NodeHeartbeatResponseProto {
	b := &heartbeatBlock{id: a.ResponseID, action: pb.NodeActionProto(a.Action), next: c.w.cfg.NodeHeartbeat.Milliseconds()}
	r := &b.NodeHeartbeatResponseProto
	r.ResponseId, r.NodeAction, r.NextHeartBeatInterval = &b.id, &b.action, &b.next
	if a.Diagnostics != "" {
		r.DiagnosticsMessage = new(a.Diagnostics)
	}
	for _, id := range a.Cleanup {
		r.ContainersToCleanup = append(r.ContainersToCleanup, pb.FromContainerID(id))
	}
	for _, id := range a.Apps {
		r.ApplicationsToCleanup = append(r.ApplicationsToCleanup, pb.FromApplicationID(id))
	}
	for _, id := range a.Forget {
		r.ContainersToBeRemovedFromNm = append(r.ContainersToBeRemovedFromNm, pb.FromContainerID(id))
	}
	if a.Override {
		r.Resource = pb.FromResource(a.Resource)
	}
	return r
}

// metrics is the load as the ResourceManager's REST interface shows it.
func metrics(v *rm.ClusterView) subcluster.ClusterMetrics {
	total := 0
	for _, n := range v.Nodes {
		total += n
	}
	return subcluster.ClusterMetrics{
		AppsSubmitted:         v.AppsSubmitted,
		AppsCompleted:         v.AppsCompleted,
		AppsPending:           v.AppsPending,
		AppsRunning:           v.AppsRunning,
		AppsFailed:            v.AppsFailed,
		AppsKilled:            v.AppsKilled,
		ReservedMB:            v.Reserved.MemoryMB,
		AvailableMB:           v.Available.MemoryMB,
		AllocatedMB:           v.Used.MemoryMB,
		PendingMB:             v.Pending.MemoryMB,
		ReservedVirtualCores:  v.Reserved.VCores,
		AvailableVirtualCores: v.Available.VCores,
		AllocatedVirtualCores: v.Used.VCores,
		PendingVirtualCores:   v.Pending.VCores,
		ContainersAllocated: int64(
			v.Containers,
		),
		ContainersReserved:   int64(v.ReservedContainers),
		ContainersPending:    int64(v.PendingContainers),
		TotalMB:              v.Total.MemoryMB,
		TotalVirtualCores:    v.Total.VCores,
		SchedulerBusyPercent: -1,
		TotalNodes: int64(
			total,
		),
		ActiveNodes: int64(v.Nodes[creel.NodeRunning]),
		LostNodes:   int64(v.Nodes[creel.NodeLost]),
	}
}
