// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"cmp"
	"fmt"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// notAvailable stands where YARN has no value to show.
const notAvailable = "N/A"

// isoTime is how expiry times of applications are written (yyyy-MM-dd'T'HH:mm:ss.SSSZ).
const isoTime = "2006-01-02T15:04:05.000-0700"

func orNA(s string) string { return cmp.Or(s, notAvailable) }

// Report is an application as the client protocol shows it. viewable hides
// from strangers what YARN hides from them.
func (d *Daemon) Report(a *rm.AppView, now time.Time, viewable bool) *pb.ApplicationReportProto {
	c, _ := a.Context.(*pb.ApplicationSubmissionContextProto)
	state := pb.YarnApplicationStateProto(a.State)
	final := pb.FinalApplicationStatusProto(a.Final)
	r := &pb.ApplicationReportProto{
		ApplicationId:          pb.FromApplicationID(a.ID),
		User:                   &a.User,
		Queue:                  new(string(a.Queue)),
		Name:                   &a.Name,
		YarnApplicationState:   &state,
		FinalApplicationStatus: &final,
		StartTime:              new(millis(a.Submitted)),
		SubmitTime:             new(millis(a.Submitted)),
		LaunchTime:             new(millis(a.Launched)),
		FinishTime:             new(millis(a.Finished)),
		ApplicationType:        &a.Type,
		ApplicationTags:        a.Tags,
		LogAggregationStatus:   pb.LogAggregationStatusProto_LOG_DISABLED.Enum(),
		UnmanagedApplication:   &a.Unmanaged,
		Priority:               pb.FromPriority(a.Priority),
		AppTimeouts: []*pb.AppTimeoutsMapProto{
			{
				ApplicationTimeoutType: pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME.Enum(),
				ApplicationTimeout:     timeout(a, now),
			},
		},
		AppResource_Usage: usage(a),
	}
	if d.cfg.ClusterID != "" {
		r.RmClusterId = &d.cfg.ClusterID
	}
	if a.Label != "" {
		r.AppNodeLabelExpression = &a.Label
	} else if c.GetNodeLabelExpression() == "" {
		r.AppNodeLabelExpression = new("<Not set>")
		if !a.Unmanaged {
			r.AmNodeLabelExpression = new("<DEFAULT_PARTITION>")
		}
	}
	if !viewable {
		r.Host, r.RpcPort, r.TrackingUrl, r.OriginalTrackingUrl = new(
			notAvailable,
		), new(
			int32(-1),
		), new(
			notAvailable,
		), new(
			notAvailable,
		)
		r.Diagnostics, r.Progress = new(notAvailable), new(float32(0))
		r.CurrentApplicationAttemptId = pb.FromAttemptID(creel.AttemptID{Application: a.ID, Attempt: -1})
		r.AppResource_Usage = emptyUsage()
		return r
	}
	attempt := a.Attempt
	if attempt.IsZero() {
		attempt = creel.AttemptID{Application: a.ID, Attempt: -1}
	}
	host, port := orNA(a.Host), a.Port
	if a.Host == "" {
		port = -1
	}
	r.Host, r.RpcPort = &host, &port
	r.Diagnostics, r.Progress = new(diagnosis(a)), &a.Progress
	if a.State.Ended() && !a.Attempt.IsZero() {
		r.Progress = new(float32(1))
	}
	r.CurrentApplicationAttemptId = pb.FromAttemptID(attempt)
	r.TrackingUrl, r.OriginalTrackingUrl = new(d.trackingURL(a)), new(d.originalURL(a))
	return r
}

// diagnosis is what is said of an application; of one that waits for its master
// to call, YARN says so.
func diagnosis(a *rm.AppView) string {
	launched := a.Token || !a.Launched.IsZero() && a.Attempt.Attempt == 1
	if a.Diagnostics == "" && a.State == creel.AppAccepted && launched {
		return "AM container is launched, waiting for AM container to Register with RM"
	}
	return a.Diagnostics
}

// originalURL is the master's own page. A master that ended without one has our
// page of the application.
func (d *Daemon) originalURL(a *rm.AppView) string {
	if a.TrackingURL == "" && a.State.Ended() && !a.Attempt.IsZero() {
		return fmt.Sprintf("http://%s/cluster/app/%s", d.webAddress(), a.ID)
	}
	return orNA(a.TrackingURL)
}

// trackingURL is where a user's browser is sent: through our web proxy to the
// master's page, or to our own page of the application.
func (d *Daemon) trackingURL(a *rm.AppView) string {
	web := d.webAddress()
	switch {
	case a.Unmanaged: // its page is nobody's that we may stand before
		return d.originalURL(a)
	case a.State.Ended() && a.TrackingURL == "":
		return fmt.Sprintf("http://%s/cluster/app/%s", web, a.ID)
	case a.State.Ended() || !a.Attempt.IsZero():
		return fmt.Sprintf("http://%s/proxy/%s/", web, a.ID)
	}
	return notAvailable
}

func timeout(a *rm.AppView, now time.Time) *pb.ApplicationTimeoutProto {
	t := &pb.ApplicationTimeoutProto{
		ApplicationTimeoutType: pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME.Enum(),
		ExpireTime:             new(unlimitedLifetime),
		RemainingTime:          new(int64(-1)),
	}
	if !a.Deadline.IsZero() {
		left := max(int64(a.Deadline.Sub(now)/time.Second), 0)
		if a.State.Ended() {
			left = 0
		}
		t.ExpireTime, t.RemainingTime = new(a.Deadline.Format(isoTime)), &left
	}
	return t
}

func seconds(list []rm.TypeAmount, name string) int64 {
	for _, t := range list {
		if t.Type == name {
			return t.Value
		}
	}
	return 0
}

func usage(a *rm.AppView) *pb.ApplicationResourceUsageReportProto {
	if a.State.Ended() {
		u := emptyUsage()
		fillSeconds(u, a)
		return u
	}
	u := &pb.ApplicationResourceUsageReportProto{
		NumUsedContainers:      &a.Containers,
		NumReservedContainers:  &a.Reserved,
		UsedResources:          pb.FromResource(a.Used),
		ReservedResources:      pb.FromResource(a.ReservedRes),
		NeededResources:        pb.FromResource(a.Used.Add(a.ReservedRes)),
		QueueUsagePercentage:   new(float32(a.QueueShare)),
		ClusterUsagePercentage: new(float32(a.ClusterShare)),
	}
	fillSeconds(u, a)
	return u
}

func fillSeconds(u *pb.ApplicationResourceUsageReportProto, a *rm.AppView) {
	u.MemorySeconds = new(seconds(a.ResourceSeconds, creel.MemoryName))
	u.VcoreSeconds = new(seconds(a.ResourceSeconds, creel.VCoresName))
	u.PreemptedMemorySeconds = new(seconds(a.PreemptedSeconds, creel.MemoryName))
	u.PreemptedVcoreSeconds = new(seconds(a.PreemptedSeconds, creel.VCoresName))
	for _, t := range a.ResourceSeconds {
		u.ApplicationResourceUsageMap = append(
			u.ApplicationResourceUsageMap,
			&pb.StringLongMapProto{Key: &t.Type, Value: &t.Value},
		)
	}
	for _, t := range a.PreemptedSeconds {
		u.ApplicationPreemptedResourceUsageMap = append(
			u.ApplicationPreemptedResourceUsageMap,
			&pb.StringLongMapProto{Key: &t.Type, Value: &t.Value},
		)
	}
}

// emptyUsage is the report of an application without a scheduler entry: YARN
// writes -1 for what it does not know.
func emptyUsage() *pb.ApplicationResourceUsageReportProto {
	none := pb.FromResource(creel.NewResource(-1, -1))
	return &pb.ApplicationResourceUsageReportProto{
		NumUsedContainers: new(int32(-1)), NumReservedContainers: new(int32(-1)),
		UsedResources: none, ReservedResources: none, NeededResources: none,
		MemorySeconds: new(int64(0)), VcoreSeconds: new(int64(0)),
		QueueUsagePercentage: new(float32(0)), ClusterUsagePercentage: new(float32(0)),
		PreemptedMemorySeconds: new(int64(0)), PreemptedVcoreSeconds: new(int64(0)),
	}
}

func attemptReport(a *rm.AttemptView, tracking string) *pb.ApplicationAttemptReportProto {
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
		StartTime:                   new(millis(a.Started)),
		FinishTime:                  new(millis(a.Finished)),
	}
	if !a.Master.IsZero() {
		r.AmContainerId = pb.FromContainerID(a.Master)
	}
	return r
}

func containerReport(c *rm.ContainerView, logURL string) *pb.ContainerReportProto {
	// What is granted counts as running; only its end is told apart.
	state, execution := pb.ContainerStateProto_C_RUNNING, pb.ExecutionTypeProto(c.ExecutionType)
	if c.State == creel.ContainerComplete {
		state = pb.ContainerStateProto_C_COMPLETE
	}
	return &pb.ContainerReportProto{
		ContainerId:         pb.FromContainerID(c.ID),
		Resource:            pb.FromResource(c.Resource),
		NodeId:              pb.FromNodeID(c.Node),
		Priority:            pb.FromPriority(c.Priority),
		CreationTime:        new(millis(c.Created)),
		FinishTime:          new(int64(0)),
		LogUrl:              &logURL,
		ContainerExitStatus: new(int32(0)),
		ContainerState:      &state,
		NodeHttpAddress:     new("http://" + c.HTTPAddress),
		ExecutionType:       &execution,
	}
}

func nodeReport(n *rm.NodeView, now time.Time) *pb.NodeReportProto {
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
		LastHealthReportTime: new(millis(n.HealthTime)),
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
	if !n.DecommissionBy.IsZero() {
		r.DecommissioningTimeout = new(uint32(max(n.DecommissionBy.Sub(now)/time.Second, 0)))
	}
	return r
}

// queueInfo is a queue in the client protocol. Capacities are shares of the
// parent, 0 to 1.
func queueInfo(q *rm.QueueView, scheduler queues.Scheduler) *pb.QueueInfoProto {
	state := pb.QueueStateProto(q.State)
	percent := func(v float64) *float32 { return new(float32(v)) }
	name := "CapacityScheduler"
	if scheduler == queues.FairScheduler {
		name = "FairScheduler"
	}
	info := &pb.QueueInfoProto{
		QueueName:            new(q.Path.Leaf()),
		QueuePath:            new(string(q.Path)),
		Capacity:             percent(q.Capacity),
		MaximumCapacity:      percent(q.MaxCapacity),
		CurrentCapacity:      percent(q.UsedCapacity),
		State:                &state,
		AccessibleNodeLabels: []string{"*"},
		PreemptionDisabled:   new(true),
		SchedulerType:        &name,
		Weight:               percent(-1),
		MaxParallelApps:      new(int32(min(q.Spec.MaxParallelApps, 1<<31-1))),
		QueueStatistics: &pb.QueueStatisticsProto{
			NumAppsSubmitted:    &q.AppsSubmitted,
			NumAppsRunning:      new(int64(q.ActiveApps)),
			NumAppsPending:      new(int64(q.PendingApps)),
			NumAppsCompleted:    &q.AppsCompleted,
			NumAppsKilled:       &q.AppsKilled,
			NumAppsFailed:       &q.AppsFailed,
			NumActiveUsers:      new(activeUsers(q)),
			AvailableMemoryMB:   new(max(q.Max.MemoryMB-q.Used.MemoryMB, 0)),
			AllocatedMemoryMB:   &q.Used.MemoryMB,
			PendingMemoryMB:     &q.Pending.MemoryMB,
			ReservedMemoryMB:    &q.Reserved.MemoryMB,
			AvailableVCores:     new(max(q.Max.VCores-q.Used.VCores, 0)),
			AllocatedVCores:     &q.Used.VCores,
			PendingVCores:       &q.Pending.VCores,
			ReservedVCores:      &q.Reserved.VCores,
			AllocatedContainers: new(int64(q.Containers)),
			PendingContainers:   new(int64(q.PendingContainers)),
			ReservedContainers:  new(int64(q.ReservedContainers)),
		},
		IntraQueuePreemptionDisabled: new(true),
	}
	if q.Spec.MaxParallelApps == 0 {
		info.MaxParallelApps = new(int32(1<<31 - 1))
	}
	if q.NormalizedWeight > 0 && q.Spec.Capacity.Unit == queues.Weight {
		info.Weight = percent(q.Spec.Capacity.Value)
	}
	info.QueueConfigurationsMap = []*pb.QueueConfigurationsMapProto{
		{PartitionName: new(""), QueueConfigurations: &pb.QueueConfigurationsProto{
			Capacity: percent(
				q.Capacity,
			),
			AbsoluteCapacity:    percent(q.AbsCapacity),
			MaxCapacity:         percent(q.MaxCapacity),
			AbsoluteMaxCapacity: percent(q.AbsMaxCapacity),
			MaxAMPercentage: percent(
				q.MaxAMPercent,
			),
			EffectiveMinCapacity: pb.FromResource(q.Guaranteed),
			EffectiveMaxCapacity: pb.FromResource(q.Max),
			ConfiguredMinCapacity: pb.FromResource(
				configured(q.Spec.Capacity),
			),
			ConfiguredMaxCapacity: pb.FromResource(configured(q.Spec.MaxCapacity)),
		}},
	}
	return info
}

func configured(a queues.Amount) creel.Resource {
	if a.Unit == queues.Absolute {
		return a.Resource
	}
	return creel.Resource{}
}

func activeUsers(q *rm.QueueView) (n int64) {
	for _, u := range q.Users {
		if u.Active {
			n++
		}
	}
	return n
}

func logURL(httpAddress string, c creel.ContainerID, user string) string {
	return "http://" + httpAddress + "/node/containerlogs/" + c.String() + "/" + user
}
