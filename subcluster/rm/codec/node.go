// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// RegisterNode returns a node's registration in the machine's form, without the rack, which the ResourceManager
// finds.
func RegisterNode(r *pb.RegisterNodeManagerRequestProto) rm.RegisterNode {
	out := rm.RegisterNode{
		ID:           pb.ToNodeID(r.GetNodeId()),
		HTTPPort:     r.GetHttpPort(),
		Resource:     pb.ToResource(r.GetResource()),
		Physical:     physical(r.GetPhysicalResource()),
		Version:      r.GetNmVersion(),
		HealthReport: r.GetNodeStatus().GetNodeHealthStatus().GetHealthReport(),
	}
	if t := r.GetOverAllocationInfo().GetOverAllocationThresholds(); t != nil {
		out.Overallocation = rm.Overallocation{Memory: part(t.GetMemory()), CPU: part(t.GetCpu())}
	}
	if h := r.GetNodeStatus().GetNodeHealthStatus(); h != nil && h.IsNodeHealthy != nil {
		out.Unhealthy = !h.GetIsNodeHealthy()
	}
	for _, c := range r.GetContainerStatuses() {
		out.Containers = append(out.Containers, rm.NodeContainer{
			ID:                  pb.ToContainerID(c.GetContainerId()),
			State:               creel.ContainerState(c.GetContainerState()),
			Resource:            pb.ToResource(c.GetResource()),
			Priority:            c.GetPriority().GetPriority(),
			AllocationRequestID: c.GetAllocationRequestId(),
			ExecutionType:       creel.ExecutionType(c.GetExecutionType()),
			Version:             c.GetVersion(),
			Created:             Time(c.GetCreationTime()),
			ExitStatus:          c.GetContainerExitStatus(),
			Diagnostics:         c.GetDiagnostics(),
			Tags:                c.GetAllocationTags(),
			Label:               c.GetNodeLabelExpression(),
		})
	}
	out.Reported = reported(r.GetNodeLabels(), r.GetNodeAttributes())
	out.Logs = logReports(r.GetLogAggregationReportsForApps())
	for _, a := range r.GetRunningApplications() {
		out.Applications = append(out.Applications, pb.ToApplicationID(a))
	}
	return out
}

// NodeHeartbeat decodes a node's heartbeat to the machine's form, into memory that may be reused.
func NodeHeartbeat(r *pb.NodeHeartbeatRequestProto, out *rm.NodeReport, use *rm.NodeUse) {
	s := r.GetNodeStatus()
	h := s.GetNodeHealthStatus()
	*out = rm.NodeReport{
		ID:           pb.ToNodeID(s.GetNodeId()),
		ResponseID:   s.GetResponseId(),
		HealthReport: h.GetHealthReport(),
		HealthTime:   Time(h.GetLastHealthReportTime()),
		Containers:   slices.Grow(out.Containers[:0], len(s.GetContainersStatuses())),
	}
	if h != nil && h.IsNodeHealthy != nil {
		out.Unhealthy = !h.GetIsNodeHealthy()
	}
	for _, c := range s.GetContainersStatuses() {
		told := rm.ContainerStatus{ID: pb.ToContainerID(c.GetContainerId()), State: creel.ContainerState(c.GetState())}
		if told.State == creel.ContainerComplete { // the machine uses the other fields only for completed containers
			told.ExitStatus, told.Diagnostics, told.Message = c.GetExitStatus(), c.GetDiagnostics(), c
		} else {
			told.Waiting = waits(c)
		}
		out.Containers = append(out.Containers, told)
	}
	out.Reported = reported(r.GetNodeLabels(), r.GetNodeAttributes())
	out.Logs = logReports(r.GetLogAggregationReportsForApps())
	for _, a := range s.GetKeepAliveApplications() {
		out.KeepAlive = append(out.KeepAlive, pb.ToApplicationID(a))
	}
	for _, c := range s.GetIncreasedContainers() {
		out.Increased = append(out.Increased, rm.ContainerSize{
			ID: pb.ToContainerID(c.GetId()), Resource: pb.ToResource(c.GetResource()),
		})
	}
	u, all, o := s.GetContainersUtilization(), s.GetNodeUtilization(), s.GetOpportunisticContainersStatus()
	if u != nil || all != nil || o != nil {
		*use = rm.NodeUse{
			NodePhysicalMB: max(all.GetPmem(), 0), NodeVirtualMB: max(all.GetVmem(), 0),
			ContainersPhysicalMB: max(u.GetPmem(), 0), ContainersVirtualMB: max(u.GetVmem(), 0),
			NodeCPU: measured(all.GetCpu()), ContainersCPU: measured(u.GetCpu()),
			OpportunisticRunning: o.GetRunningOpportContainers(), OpportunisticQueued: o.GetQueuedOpportContainers(),
			OpportunisticMB: o.GetOpportMemoryUsed(), OpportunisticVCores: o.GetOpportCoresUsed(),
			QueueLength: o.GetWaitQueueLength(), QueueWaitMS: o.GetEstimatedQueueWaitTime(),
			QueueCapacity: o.GetOpportQueueCapacity(),
			PeakMB:        max(s.GetPredictedPeak().GetPmem(), 0), PeakCPU: measured(s.GetPredictedPeak().GetCpu()),
		}
		out.Utilization = use
	}
}

// part returns a threshold within 0 and 1; 0 for one that is no number.
func part(f float32) float64 {
	if !(f > 0) {
		return 0
	}
	return min(float64(f), 1)
}

// waits reports whether a live container is opportunistic and has no process that runs.
func waits(c *pb.ContainerStatusProto) bool {
	if c.GetExecutionType() != pb.ExecutionTypeProto_OPPORTUNISTIC || c.ContainerSubState == nil {
		return false
	}
	s := c.GetContainerSubState()
	return s == pb.ContainerSubStateProto_CSS_SCHEDULED || s == pb.ContainerSubStateProto_CSS_PAUSED
}

// logReports parses a node's progress with logs.
func logReports(list []*pb.LogAggregationReportProto) []rm.LogReport {
	if len(list) == 0 {
		return nil
	}
	out := make([]rm.LogReport, 0, len(list))
	for _, r := range list {
		report := rm.LogReport{
			App:    pb.ToApplicationID(r.GetApplicationId()),
			Status: creel.LogAggregationStatus(r.GetLogAggregationStatus()),
		}
		if r.Diagnostics != nil { // otherwise Hadoop writes "N/A"
			report.Message = r.GetDiagnostics()
		}
		out = append(out, report)
	}
	return out
}

// physical returns the resources of a node's host, with 0 for impossible values, because the cluster's utilization is
// a fraction of the sum over all nodes.
func physical(p *pb.ResourceProto) creel.Resource {
	r := pb.ToResource(p)
	r.MemoryMB, r.VCores = possible(r.MemoryMB), possible(r.VCores)
	return r
}

func possible(amount int64) int64 {
	if amount < 0 || amount > rm.MostOfNode {
		return 0
	}
	return amount
}

// mostMeasured exceeds the number of vcores of any host.
const mostMeasured = 1 << 20

// measured returns the number of vcores that a node measured in use, with 0 for an impossible value. One node's NaN
// would make the sum over all nodes NaN, and an enormous number would hide the other nodes.
func measured(vcores float32) float32 {
	if vcores >= 0 && vcores <= mostMeasured { // both are false for NaN
		return vcores
	}
	return 0
}

// reported decodes a node's labels and attributes, if it reports any.
func reported(l *pb.NodeLabelsProto, a *pb.NodeAttributesProto) (out rm.NodeProperties) {
	out.HasLabels, out.HasAttributes = l != nil, a != nil
	for _, n := range l.GetNodeLabels() {
		out.Labels = append(out.Labels, n.GetName())
	}
	if list := a.GetNodeAttributes(); len(list) > 0 {
		out.Attributes = Attributes(list)
	}
	return out
}

// NodeKeys are the master keys to send to a node, nil for those it has.
type NodeKeys struct{ Container, NM *pb.MasterKeyProto }

// KeysFor returns the keys of containers' and nodes' tokens that a node lacks.
func KeysFor(container, nm token.Key, knownContainer, knownNM *pb.MasterKeyProto) (k NodeKeys) {
	if knownContainer == nil || knownContainer.GetKeyId() != container.ID {
		k.Container = container.Proto()
	}
	if knownNM == nil || knownNM.GetKeyId() != nm.ID {
		k.NM = nm.Proto()
	}
	return k
}

// RegisterNodeResponse encodes the response to a node's registration. identifier is the ResourceManager's start in
// ms; version is the Hadoop release that it claims.
func RegisterNodeResponse(
	a *rm.NodeRegistration,
	keys NodeKeys,
	identifier int64,
	version string,
) *pb.RegisterNodeManagerResponseProto {
	r := &pb.RegisterNodeManagerResponseProto{
		ContainerTokenMasterKey: keys.Container,
		NmTokenMasterKey:        keys.NM,
		NodeAction:              new(pb.NodeActionProto(a.Action)),
		RmIdentifier:            &identifier,
		RmVersion:               &version,
	}
	if a.Diagnostics != "" {
		r.DiagnosticsMessage = &a.Diagnostics
	}
	if a.Override {
		r.Resource = pb.FromResource(a.Resource)
	}
	if a.Taken.Labels {
		r.AreNodeLabelsAcceptedByRM = &a.Taken.Labels
	}
	if a.Taken.Attributes {
		r.AreNodeAttributesAcceptedByRM = &a.Taken.Attributes
	}
	return r
}

// NodeHeartbeatResponse encodes the response to a node's heartbeat: the node's tasks and the time until its next
// heartbeat. mint starts a Mint for an application's tokens, for containers that change size.
func NodeHeartbeatResponse(
	a *rm.NodeAnswer,
	keys NodeKeys,
	interval time.Duration,
	mint func(creel.ApplicationID) (t *Mint, done func()),
) *pb.NodeHeartbeatResponseProto {
	r := &pb.NodeHeartbeatResponseProto{
		ResponseId:              &a.ResponseID,
		NodeAction:              new(pb.NodeActionProto(a.Action)),
		NextHeartBeatInterval:   new(interval.Milliseconds()),
		ContainerTokenMasterKey: keys.Container,
		NmTokenMasterKey:        keys.NM,
	}
	if a.Diagnostics != "" {
		r.DiagnosticsMessage = &a.Diagnostics
	}
	for _, c := range a.Cleanup {
		r.ContainersToCleanup = append(r.ContainersToCleanup, pb.FromContainerID(c))
	}
	for _, app := range a.Apps {
		r.ApplicationsToCleanup = append(r.ApplicationsToCleanup, pb.FromApplicationID(app))
	}
	for _, c := range a.Forget {
		r.ContainersToBeRemovedFromNm = append(r.ContainersToBeRemovedFromNm, pb.FromContainerID(c))
	}
	for i := range a.Update {
		g := &a.Update[i]
		t, done := mint(g.ID.Attempt.Application)
		r.ContainersToUpdate = append(r.ContainersToUpdate, t.granted(g))
		done()
	}
	for _, signal := range a.Signals {
		r.ContainersToSignal = append(r.ContainersToSignal, &pb.SignalContainerRequestProto{
			ContainerId: pb.FromContainerID(signal.Container),
			Command:     new(pb.SignalContainerCommandProto(signal.Command)),
		})
	}
	if a.Taken.Labels {
		r.AreNodeLabelsAcceptedByRM = &a.Taken.Labels
	}
	if a.Taken.Attributes {
		r.AreNodeAttributesAcceptedByRM = &a.Taken.Attributes
	}
	if a.Override {
		r.Resource = pb.FromResource(a.Resource)
	}
	if a.Limit != nil {
		r.ContainerQueuingLimit = &pb.ContainerQueuingLimitProto{
			MaxQueueLength: &a.Limit.Length, MaxQueueWaitTimeInMs: &a.Limit.WaitMS,
		}
	}
	return r
}

// SystemCredentials adds the tokens of applications to the response to a heartbeat, if the node has others. Nodes use
// them instead of those that the application's client submitted. known is the number of those that it has. A node that
// must register again reads the number of such a response, and not the tokens.
func SystemCredentials(
	r *pb.NodeHeartbeatResponseProto, known int64,
	system func(known int64) (apps []*pb.SystemCredentialsForAppsProto, number int64),
) {
	if r.GetNodeAction() != pb.NodeActionProto_NORMAL {
		return
	}
	apps, number := system(known)
	r.SystemCredentialsForApps = apps
	if number != 0 {
		r.TokenSequenceNo = &number
	}
}
