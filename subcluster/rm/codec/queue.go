// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// QueueInfo returns a queue in the client protocol. Capacities are shares of the
// parent, 0 to 1.
func QueueInfo(q *rm.QueueView, scheduler queues.Scheduler) *pb.QueueInfoProto {
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
		AccessibleNodeLabels: q.Labels,
		PreemptionDisabled:   &q.PreemptionDisabled,
		SchedulerType:        &name,
		Weight:               percent(-1),
		MaxParallelApps:      new(int32(q.Spec.ParallelLimit())),
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
		IntraQueuePreemptionDisabled: &q.IntraPreemptionDisabled,
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
	if q.DefaultLabel != "" {
		info.DefaultNodeLabelExpression = &q.DefaultLabel
	}
	for i := range q.Partitions {
		if p := &q.Partitions[i]; p.Accessible {
			info.QueueConfigurationsMap = append(info.QueueConfigurationsMap, &pb.QueueConfigurationsMapProto{
				PartitionName: &p.Label,
				QueueConfigurations: &pb.QueueConfigurationsProto{
					Capacity: percent(p.Capacity), AbsoluteCapacity: percent(p.AbsCapacity),
					MaxCapacity: percent(p.MaxCapacity), AbsoluteMaxCapacity: percent(p.AbsMaxCapacity),
					MaxAMPercentage:       percent(p.MaxAMPercent),
					EffectiveMinCapacity:  pb.FromResource(p.Guaranteed),
					EffectiveMaxCapacity:  pb.FromResource(p.Max),
					ConfiguredMinCapacity: pb.FromResource(configured(p.Spec.Capacity)),
					ConfiguredMaxCapacity: pb.FromResource(configured(p.Spec.MaxCapacity)),
				},
			})
		}
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
