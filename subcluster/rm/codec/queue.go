// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// Queues describes queues in the client protocol.
type Queues struct {
	Scheduler queues.Scheduler
	Types     []string // names of the resource types
	// Queue returns a queue by its path, nil for none.
	Queue func(creel.QueuePath) *rm.QueueView
}

// Info returns a queue in the client protocol. Capacities are shares of the
// parent, 0 to 1.
func (d *Queues) Info(q *rm.QueueView) *pb.QueueInfoProto {
	state := pb.QueueStateProto(q.State)
	name := "CapacityScheduler"
	if d.Scheduler == queues.FairScheduler {
		name = "FairScheduler"
	}
	info := &pb.QueueInfoProto{
		QueueName:                    new(q.Path.Leaf()),
		QueuePath:                    new(string(q.Path)),
		Capacity:                     percent(Share(&q.QueueView)),
		MaximumCapacity:              percent(q.MaxCapacity),
		CurrentCapacity:              percent(q.UsedCapacity),
		State:                        &state,
		AccessibleNodeLabels:         q.Labels,
		PreemptionDisabled:           &q.PreemptionDisabled,
		SchedulerType:                &name,
		Weight:                       percent(WeightOf(&q.QueueView, d.Types)),
		MaxParallelApps:              new(int32(q.Spec.ParallelLimit())),
		QueueStatistics:              d.statistics(q),
		IntraQueuePreemptionDisabled: &q.IntraPreemptionDisabled,
	}
	for _, p := range rowsOfClients(q) {
		info.QueueConfigurationsMap = append(info.QueueConfigurationsMap, d.row(&p))
	}
	if q.DefaultLabel != "" {
		info.DefaultNodeLabelExpression = &q.DefaultLabel
	}
	return info
}

func percent(v float64) *float32 { return new(float32(v)) }

// statistics are a queue's numbers of the moment. Available is the unused part of its guarantee.
func (d *Queues) statistics(q *rm.QueueView) *pb.QueueStatisticsProto {
	least, _ := Effective(&q.QueueView, d.Queue)
	return &pb.QueueStatisticsProto{
		NumAppsSubmitted:    &q.AppsSubmitted,
		NumAppsRunning:      new(int64(q.ActiveApps)),
		NumAppsPending:      new(int64(q.PendingApps)),
		NumAppsCompleted:    &q.AppsCompleted,
		NumAppsKilled:       &q.AppsKilled,
		NumAppsFailed:       &q.AppsFailed,
		NumActiveUsers:      new(activeUsers(q)),
		AvailableMemoryMB:   new(max(least.MemoryMB-q.Used.MemoryMB, 0)),
		AllocatedMemoryMB:   &q.Used.MemoryMB,
		PendingMemoryMB:     &q.Pending.MemoryMB,
		ReservedMemoryMB:    &q.Reserved.MemoryMB,
		AvailableVCores:     new(max(least.VCores-q.Used.VCores, 0)),
		AllocatedVCores:     &q.Used.VCores,
		PendingVCores:       &q.Pending.VCores,
		ReservedVCores:      &q.Reserved.VCores,
		AllocatedContainers: new(int64(q.Containers)),
		PendingContainers:   new(int64(q.PendingContainers)),
		ReservedContainers:  new(int64(q.ReservedContainers)),
	}
}

// row is a queue's part of one partition.
func (d *Queues) row(p *explain.PartitionView) *pb.QueueConfigurationsMapProto {
	q := &p.QueueView
	leastEver, mostEver := Amounts(q, d.Queue)
	least, most := Effective(q, d.Queue)
	return &pb.QueueConfigurationsMapProto{PartitionName: &p.Label, QueueConfigurations: &pb.QueueConfigurationsProto{
		Capacity:              percent(Share(q)),
		AbsoluteCapacity:      percent(q.AbsCapacity),
		MaxCapacity:           percent(q.MaxCapacity),
		AbsoluteMaxCapacity:   percent(q.AbsMaxCapacity),
		MaxAMPercentage:       percent(q.MaxAMPercent),
		EffectiveMinCapacity:  pb.FromResource(least),
		EffectiveMaxCapacity:  pb.FromResource(most),
		ConfiguredMinCapacity: pb.FromResource(leastEver),
		ConfiguredMaxCapacity: pb.FromResource(mostEver),
	}}
}

func activeUsers(q *rm.QueueView) (n int64) {
	for _, u := range q.Users {
		if u.Active {
			n++
		}
	}
	return n
}
