// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster/remote"
)

// GetQueueInfo makes one queue of the members' queues of that name. Fractions
// are means weighted by the members' sizes, so that 70% here and 70% there is
// 70%; counts and resources add up.
func (d *Door) GetQueueInfo(
	ctx context.Context,
	req *yarnpb.GetQueueInfoRequestProto,
) (*yarnpb.GetQueueInfoResponseProto, error) {
	parts, err := ask[yarnpb.GetQueueInfoResponseProto](ctx, d, remote.Read, "getQueueInfo", req)
	if err != nil {
		return nil, err
	}
	present, _ := router.Present(parts)
	view := d.gate.View()
	var queues []weighed
	for _, p := range present {
		if p.Value.QueueInfo == nil {
			continue
		}
		w := 0.0
		if m, ok := view.Member(p.Member); ok {
			w = float64(m.Load.Metrics.TotalMB)
		}
		queues = append(queues, weighed{p.Member, w, p.Value.QueueInfo})
	}
	if len(queues) == 0 {
		return &yarnpb.GetQueueInfoResponseProto{}, nil
	}
	return &yarnpb.GetQueueInfoResponseProto{QueueInfo: mergeQueues(queues, d.gate.HomeSeen)}, nil
}

// weighed is one member's queue and the member's size.
type weighed struct {
	member creel.SubclusterID
	weight float64
	queue  *yarnpb.QueueInfoProto
}

// mergeQueues changes and returns the first queue; what it does not know of
// there survives.
func mergeQueues(qs []weighed, home func(creel.ApplicationID) (creel.SubclusterID, bool)) *yarnpb.QueueInfoProto {
	first := qs[0].queue
	if len(qs) == 1 {
		return first
	}
	weights := make([]float64, len(qs))
	for i, q := range qs {
		weights[i] = q.weight
	}
	mean := func(field func(*yarnpb.QueueInfoProto) **float32) {
		values := make([]float64, len(qs))
		set := false
		for i, q := range qs {
			if v := *field(q.queue); v != nil {
				values[i], set = float64(*v), true
			}
		}
		if set {
			*field(first) = proto.Float32(float32(router.Mean(values, weights)))
		}
	}
	mean(func(q *yarnpb.QueueInfoProto) **float32 { return &q.Capacity })
	mean(func(q *yarnpb.QueueInfoProto) **float32 { return &q.MaximumCapacity })
	mean(func(q *yarnpb.QueueInfoProto) **float32 { return &q.CurrentCapacity })
	mean(func(q *yarnpb.QueueInfoProto) **float32 { return &q.Weight })

	for _, q := range qs[1:] {
		o := q.queue
		if o.GetState() == yarnpb.QueueStateProto_Q_RUNNING { // it takes applications as long as one member does
			first.State = o.State
		}
		for _, label := range o.GetAccessibleNodeLabels() {
			if !slices.Contains(first.AccessibleNodeLabels, label) {
				first.AccessibleNodeLabels = append(first.AccessibleNodeLabels, label)
			}
		}
		addInt(&first.MinResourceVCore, o.MinResourceVCore)
		addInt(&first.MinResourceMemory, o.MinResourceMemory)
		addInt(&first.MaxResourceVCore, o.MaxResourceVCore)
		addInt(&first.MaxResourceMemory, o.MaxResourceMemory)
		addInt(&first.ReservedResourceVCore, o.ReservedResourceVCore)
		addInt(&first.ReservedResourceMemory, o.ReservedResourceMemory)
		addInt(&first.SteadyFairShareVCore, o.SteadyFairShareVCore)
		addInt(&first.SteadyFairShareMemory, o.SteadyFairShareMemory)
		addInt(&first.MaxRunningApp, o.MaxRunningApp)
		addInt(&first.MaxParallelApps, o.MaxParallelApps)
		first.QueueStatistics = addStatistics(first.QueueStatistics, o.QueueStatistics)
	}

	apps := make([]router.Part[[]*yarnpb.ApplicationReportProto], len(qs))
	children := map[string][]weighed{}
	var order []string
	for i, q := range qs {
		apps[i] = router.Part[[]*yarnpb.ApplicationReportProto]{Member: q.member, Value: q.queue.GetApplications()}
		for _, c := range q.queue.GetChildQueues() {
			name := c.GetQueueName()
			if children[name] == nil {
				order = append(order, name)
			}
			children[name] = append(children[name], weighed{q.member, q.weight, c})
		}
	}
	first.Applications, _ = router.MergeApps(apps, AppFields, home, 0)
	first.ChildQueues = nil
	for _, name := range order {
		first.ChildQueues = append(first.ChildQueues, mergeQueues(children[name], home))
	}
	return first
}

func addStatistics(a, b *yarnpb.QueueStatisticsProto) *yarnpb.QueueStatisticsProto {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	for _, f := range []struct{ to, v **int64 }{
		{&a.NumAppsSubmitted, &b.NumAppsSubmitted}, {&a.NumAppsRunning, &b.NumAppsRunning}, {&a.NumAppsPending, &b.NumAppsPending},
		{&a.NumAppsCompleted, &b.NumAppsCompleted}, {&a.NumAppsKilled, &b.NumAppsKilled}, {&a.NumAppsFailed, &b.NumAppsFailed},
		{&a.NumActiveUsers, &b.NumActiveUsers}, {&a.AvailableMemoryMB, &b.AvailableMemoryMB}, {&a.AllocatedMemoryMB, &b.AllocatedMemoryMB},
		{&a.PendingMemoryMB, &b.PendingMemoryMB}, {&a.ReservedMemoryMB, &b.ReservedMemoryMB}, {&a.AvailableVCores, &b.AvailableVCores},
		{&a.AllocatedVCores, &b.AllocatedVCores}, {&a.PendingVCores, &b.PendingVCores}, {&a.ReservedVCores, &b.ReservedVCores},
		{&a.AllocatedContainers, &b.AllocatedContainers}, {&a.PendingContainers, &b.PendingContainers}, {&a.ReservedContainers, &b.ReservedContainers},
	} {
		addInt(f.to, *f.v)
	}
	return a
}
