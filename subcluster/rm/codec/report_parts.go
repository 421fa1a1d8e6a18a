// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// AttemptReport returns an attempt in the client protocol's form.
func AttemptReport(a *rm.AttemptView, tracking string) *pb.ApplicationAttemptReportProto {
	state := pb.YarnApplicationAttemptStateProto(a.State)
	host, port := orNA(a.Host), a.Port
	if a.Host == "" {
		port = -1
	}
	r := &pb.ApplicationAttemptReportProto{
		ApplicationAttemptId:        pb.FromAttemptID(a.ID),
		Host:                        &host,
		RpcPort:                     &port,
		TrackingUrl:                 new(orNA(tracking)),
		OriginalTrackingUrl:         new(orNA(a.TrackingURL)),
		Diagnostics:                 &a.Diagnostics,
		YarnApplicationAttemptState: &state,
		StartTime:                   new(Millis(a.Started)),
		FinishTime:                  new(Millis(a.Finished)),
	}
	if !a.AM.IsZero() {
		r.AmContainerId = pb.FromContainerID(a.AM)
	}
	return r
}

// ContainerReport returns a container in the client protocol's form.
func (cl Cluster) ContainerReport(c *rm.ContainerView, user string) *pb.ContainerReportProto {
	// A granted container counts as running until its completion.
	state, execution := pb.ContainerStateProto_C_RUNNING, pb.ExecutionTypeProto(c.ExecutionType)
	if c.State == creel.ContainerComplete {
		state = pb.ContainerStateProto_C_COMPLETE
	}
	return &pb.ContainerReportProto{
		ContainerId:         pb.FromContainerID(c.ID),
		Resource:            pb.FromResource(c.Resource),
		NodeId:              pb.FromNodeID(c.Node),
		Priority:            pb.FromPriority(c.Priority),
		CreationTime:        new(Millis(c.Created)),
		FinishTime:          new(int64(0)),
		LogUrl:              new(cl.LogURL(c.HTTPAddress, c.ID, user)),
		ContainerExitStatus: new(int32(0)),
		ContainerState:      &state,
		NodeHttpAddress:     new(cl.URL(c.HTTPAddress)),
		ExecutionType:       &execution,
	}
}

// NodeReport returns a node in the client protocol's form.
func NodeReport(n *rm.NodeView, now time.Time) *pb.NodeReportProto {
	state := pb.NodeStateProto(n.State)
	u := n.Utilization
	r := &pb.NodeReportProto{
		NodeId:               pb.FromNodeID(n.ID),
		HttpAddress:          &n.HTTPAddress,
		RackName:             &n.Rack,
		Used:                 pb.FromResource(n.Used),
		Capability:           pb.FromResource(n.Total),
		NumContainers:        &n.Containers,
		NodeState:            &state,
		HealthReport:         &n.HealthReport,
		LastHealthReportTime: new(Millis(n.HealthTime)),
		ContainersUtilization: &pb.ResourceUtilizationProto{
			Pmem: &u.ContainersPhysicalMB,
			Vmem: &u.ContainersVirtualMB,
			Cpu:  &u.ContainersCPU,
		},
		NodeUtilization: &pb.ResourceUtilizationProto{
			Pmem: &u.NodePhysicalMB,
			Vmem: &u.NodeVirtualMB,
			Cpu:  &u.NodeCPU,
		},
	}
	if n.Label != "" {
		r.NodeLabels = []string{n.Label}
	}
	r.NodeAttributes = AttributeProtos(n.Attributes)
	if !n.DecommissionBy.IsZero() {
		r.DecommissioningTimeout = new(uint32(max(n.DecommissionBy.Sub(now)/time.Second, 0)))
	}
	return r
}

// LogURL returns the page of a container's logs on its node.
func (cl Cluster) LogURL(httpAddress string, c creel.ContainerID, user string) string {
	return cl.URL(httpAddress) + "/node/containerlogs/" + c.String() + "/" + user
}
