// SPDX-License-Identifier: Apache-2.0

package nm

import (
	"math"
	"slices"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// This is the conversation with the ResourceManager (ResourceTracker): register, then heartbeats. Response ids pair
// heartbeats with answers: a heartbeat has the last answer's id, so that the ResourceManager detects a repeat.

// Registration is the message that registers the node, with all its containers.
func (n *Node) Registration(now time.Time) *pb.RegisterNodeManagerRequestProto {
	port, version := n.cfg.HTTPPort, n.cfg.Version
	req := &pb.RegisterNodeManagerRequestProto{
		NodeId:           pb.FromNodeID(n.cfg.ID),
		HttpPort:         &port,
		Resource:         pb.FromResource(n.cfg.Total),
		NmVersion:        &version,
		PhysicalResource: pb.FromResource(n.cfg.Total),
		NodeStatus:       n.status(now),
	}
	req.NodeStatus.ContainersStatuses = nil // they have a separate field
	req.NodeStatus.IncreasedContainers, n.grownSent = nil, 0
	if n.lendsOut() {
		alloc := n.cfg.Overallocation.Bounded().Alloc
		req.OverAllocationInfo = &pb.OverAllocationInfoProto{OverAllocationThresholds: &pb.ResourceThresholdsProto{
			Memory: new(float32(alloc.Memory)), Cpu: new(float32(alloc.CPU)),
		}}
	}
	for _, c := range n.order {
		req.ContainerStatuses = append(req.ContainerStatuses, c.registerProto())
	}
	for _, app := range n.applications() {
		req.RunningApplications = append(req.RunningApplications, pb.FromApplicationID(app))
	}
	return req
}

// Heartbeat returns the next heartbeat. It may be sent again if no answer arrived.
func (n *Node) Heartbeat(now time.Time) *pb.NodeHeartbeatRequestProto {
	n.forgetOld(now)
	return &pb.NodeHeartbeatRequestProto{
		NodeStatus:                       n.status(now),
		LastKnownContainerTokenMasterKey: n.container.current,
		LastKnownNmTokenMasterKey:        n.nm.current,
	}
}

// statusBlock is a status with the small values it points to.
type statusBlock struct {
	pb.NodeStatusProto
	response int32
	healthy  bool
	report   string
	reported int64
	health   pb.NodeHealthStatusProto
	use      pb.ResourceUtilizationProto
	mem      int32
	cpu      float32
}

func (n *Node) status(now time.Time) *pb.NodeStatusProto {
	at := n.healthTime
	if at.IsZero() {
		at = now
	}
	used := n.used
	if n.queue != nil {
		used = used.Sub(n.queue.Idle())
	}
	b := &statusBlock{response: n.response, healthy: n.healthy, report: n.health, reported: at.UnixMilli(),
		mem: int32(min(used.MemoryMB, 1<<31-1)), cpu: float32(used.VCores)}
	b.health.IsNodeHealthy, b.health.HealthReport, b.health.LastHealthReportTime = &b.healthy, &b.report, &b.reported
	// Without measurements the usage is the containers' size: a ResourceManager's REST API needs a value from every
	// node.
	if n.usage != nil {
		n.usage.report(b)
	}
	b.use.Pmem, b.use.Vmem, b.use.Cpu = &b.mem, &b.mem, &b.cpu
	s := &b.NodeStatusProto
	s.NodeId, s.ResponseId, s.NodeHealthStatus = n.id, &b.response, &b.health
	s.ContainersUtilization, s.NodeUtilization = &b.use, &b.use
	if n.usage != nil && n.usage.predictor != nil {
		s.PredictedPeak = n.usage.peakProto()
	}
	n.grownSent = len(n.grown)
	for _, c := range n.grown {
		s.IncreasedContainers = append(s.IncreasedContainers, c.grownProto())
	}
	if n.queue != nil {
		s.OpportunisticContainersStatus = queueStatus(n.queue.Status())
		if wait, ok := n.queue.Wait(now); ok {
			ms := int32(min(wait.Milliseconds(), math.MaxInt32))
			s.OpportunisticContainersStatus.EstimatedQueueWaitTime = &ms
		}
	}
	if len(n.order) > 0 {
		s.ContainersStatuses = make([]*pb.ContainerStatusProto, 0, len(n.order))
		for _, c := range n.order {
			if c.State == Done {
				c.reported = true
			}
			s.ContainersStatuses = append(s.ContainersStatuses, c.statusProto())
		}
	}
	return s
}

func (n *Node) applications() []creel.ApplicationID {
	apps := make([]creel.ApplicationID, 0, len(n.apps))
	for app := range n.apps {
		apps = append(apps, app)
	}
	slices.SortFunc(apps, func(a, b creel.ApplicationID) int { return a.Compare(b) })
	return apps
}

func (n *Node) registered(now time.Time, a *pb.RegisterNodeManagerResponseProto) {
	if n.halted {
		return
	}
	if a.GetNodeAction() == pb.NodeActionProto_SHUTDOWN {
		n.halt(now, a.GetDiagnosticsMessage())
		return
	}
	n.container.roll(a.GetContainerTokenMasterKey())
	n.nm.roll(a.GetNmTokenMasterKey())
	n.rm, n.response, n.active = a.GetRmIdentifier(), 0, true
	n.setTotal(a.GetResource())
	// The ResourceManager has received the registration's completions once it has accepted a heartbeat.
	for _, c := range n.order {
		if c.State == Done {
			c.reported = false
		}
	}
}

// longestInterval limits an interval from a ResourceManager: more ms than fit a time.Duration would be negative, and
// the node would send heartbeats without a pause.
const longestInterval = 24 * time.Hour

func (n *Node) answered(now time.Time, a *pb.NodeHeartbeatResponseProto) {
	if !n.active {
		return // the answer to a heartbeat before a resync
	}
	switch a.GetNodeAction() {
	case pb.NodeActionProto_RESYNC:
		n.resync()
		return
	case pb.NodeActionProto_SHUTDOWN:
		n.halt(now, a.GetDiagnosticsMessage())
		return
	}
	n.response = a.GetResponseId()
	n.grown, n.grownSent = slices.Delete(n.grown, 0, n.grownSent), 0
	if ms := a.GetNextHeartBeatInterval(); ms > 0 {
		n.interval = time.Duration(min(ms, longestInterval.Milliseconds())) * time.Millisecond
		if n.queue != nil {
			n.queue.SetDelay(n.interval)
		}
	}
	n.container.roll(a.GetContainerTokenMasterKey())
	n.nm.roll(a.GetNmTokenMasterKey())
	n.setTotal(a.GetResource())
	if gone := a.GetContainersToBeRemovedFromNm(); len(gone) > 0 {
		acked := make(map[creel.ContainerID]bool, len(gone))
		for _, id := range gone {
			acked[pb.ToContainerID(id)] = true
		}
		n.forget(now, func(c *Container) bool { return acked[c.ID] })
	}
	// The last containers of ended applications are never acknowledged: one answered report is enough.
	if n.orphans {
		n.orphans = false
		n.forget(now, func(c *Container) bool {
			_, known := n.apps[c.ID.Attempt.Application]
			return !known && c.reported
		})
		for _, c := range n.order {
			if _, known := n.apps[c.ID.Attempt.Application]; !known {
				n.orphans = true
			}
		}
	}
	for _, id := range a.GetContainersToCleanup() {
		if c := n.containers[pb.ToContainerID(id)]; c != nil {
			n.kill(now, c, ExitKilledByRM)
		}
	}
	for _, p := range a.GetContainersToUpdate() {
		c := n.containers[pb.ToContainerID(p.GetId())]
		if c == nil || c.State == Done || p.GetVersion() <= c.Version {
			continue
		}
		u := Update{Version: p.GetVersion(), Resource: pb.ToResource(p.GetResource()), Execution: c.Execution}
		if p.ExecutionType != nil {
			u.Execution = creel.ExecutionType(p.GetExecutionType())
		}
		n.apply(c, u)
	}
	n.shed(now, a.GetContainerQueuingLimit())
	for _, s := range a.GetContainersToSignal() {
		if c := n.containers[pb.ToContainerID(s.GetContainerId())]; c != nil && (c.State == Running || c.pauses()) {
			n.do(SignalContainer{ID: c.ID, Command: s.GetCommand()})
		}
	}
	for _, p := range a.GetApplicationsToCleanup() {
		n.appEnded(now, pb.ToApplicationID(p))
	}
}

// appEnded kills an ended application's running containers. It drops the application's ended containers, because
// their completions will not be acknowledged.
func (n *Node) appEnded(now time.Time, app creel.ApplicationID) {
	if _, known := n.apps[app]; !known {
		return
	}
	delete(n.apps, app)
	if n.queue != nil {
		n.queue.Forget(app)
	}
	for _, c := range n.order {
		if c.ID.Attempt.Application == app {
			n.orphans = true
			n.kill(now, c, ExitKilledAfterAppEnd)
		}
	}
	for attempt := range n.attempts {
		if attempt.Application == app {
			delete(n.attempts, attempt)
		}
	}
	n.do(AppEnded{ID: app})
}

// resync registers again; the containers keep running.
func (n *Node) resync() {
	if n.halted {
		return
	}
	n.active, n.response = false, 0
	n.do(Register{})
}

func (n *Node) halt(now time.Time, reason string) {
	n.active, n.halted = false, true
	for _, c := range n.order {
		n.kill(now, c, ExitAborted)
	}
	n.do(Halt{Reason: reason})
}
