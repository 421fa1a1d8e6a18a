// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"slices"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
)

// percents of a queue are told as 0..100.
func percent(w *writer, name string, v float64) { w.Float(name, 100*v) }

// children gives a queue's children as Hadoop lists them: leaves, then parents.
func children(q *rm.QueueView, all map[creel.QueuePath]*rm.QueueView) []*rm.QueueView {
	var out []*rm.QueueView
	for _, path := range q.Children {
		if c := all[path]; c != nil {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b *rm.QueueView) int {
		switch {
		case a.Leaf == b.Leaf:
			return 0
		case a.Leaf:
			return -1
		}
		return 1
	})
	return out
}

func weightOf(q *rm.QueueView) float64 {
	if q.Spec.Capacity.Unit == rm.Weight {
		return q.Spec.Capacity.Value
	}
	return -1
}

func mode(q *rm.QueueView) string {
	switch q.Spec.Capacity.Unit {
	case rm.Weight:
		return "weight"
	case rm.Absolute:
		return "absolute"
	case rm.PerType:
		return "mixed"
	}
	return "percentage"
}

func creation(q *rm.QueueView) string {
	if q.Dynamic {
		return "dynamicFlexible"
	}
	return "static"
}

func (o *Door) capacityRoot(w *writer, q *rm.QueueView, all map[creel.QueuePath]*rm.QueueView) {
	percent(w, "capacity", q.Capacity)
	percent(w, "usedCapacity", q.UsedCapacity)
	percent(w, "maxCapacity", q.MaxCapacity)
	w.Float("weight", weightOf(q))
	w.Float("normalizedWeight", q.NormalizedWeight)
	w.Text("queueName", q.Path.Leaf())
	w.Text("queuePath", string(q.Path))
	w.Int("maxParallelApps", 1<<31-1)
	w.Bool("isAbsoluteResource", q.Spec.Capacity.Unit == rm.Absolute)
	o.capacityChildren(w, q, all)
	o.capacities(w, q)
	w.Object("health", func(w *writer) { w.Int("lastrun", 0) })
	o.resource(w, "maximumAllocation", q.MaxAllocation)
	w.Object("queueAcls", func(*writer) {})
	w.Int("queuePriority", int64(q.Spec.Priority))
	w.Text("orderingPolicyInfo", "utilization")
	w.Text("mode", mode(q))
	w.Text("queueType", queueType(q))
	w.Text("creationMethod", creation(q))
	w.Text("autoCreationEligibility", "off")
}

func queueType(q *rm.QueueView) string {
	if q.Leaf {
		return "leaf"
	}
	return "parent"
}

func (o *Door) capacityChildren(w *writer, q *rm.QueueView, all map[creel.QueuePath]*rm.QueueView) {
	below := children(q, all)
	if len(below) == 0 {
		return
	}
	w.Object("queues", func(w *writer) {
		w.List("queue", len(below), func(w *writer, i int) { o.capacityQueue(w, below[i], all) })
	})
}

func (o *Door) capacities(w *writer, q *rm.QueueView) {
	w.Object("capacities", func(w *writer) {
		w.List("queueCapacitiesByPartition", 1, func(w *writer, _ int) {
			w.Text("partitionName", "")
			percent(w, "capacity", q.Capacity)
			percent(w, "usedCapacity", q.UsedCapacity)
			percent(w, "maxCapacity", q.MaxCapacity)
			percent(w, "absoluteCapacity", q.AbsCapacity)
			percent(w, "absoluteUsedCapacity", q.AbsUsed)
			percent(w, "absoluteMaxCapacity", q.AbsMaxCapacity)
			percent(w, "maxAMLimitPercentage", q.MaxAMPercent)
			w.Float("weight", weightOf(q))
			w.Float("normalizedWeight", q.NormalizedWeight)
			o.resource(w, "configuredMinResource", q.Spec.Capacity.Resource)
			o.resource(w, "configuredMaxResource", q.Spec.MaxCapacity.Resource)
			o.resource(w, "effectiveMinResource", q.Guaranteed)
			o.resource(w, "effectiveMaxResource", q.Max)
		})
	})
}

func (o *Door) capacityQueue(w *writer, q *rm.QueueView, all map[creel.QueuePath]*rm.QueueView) {
	if q.Leaf {
		w.Text("type", "capacitySchedulerLeafQueueInfo")
	}
	w.Text("queuePath", string(q.Path))
	percent(w, "capacity", q.Capacity)
	percent(w, "usedCapacity", q.UsedCapacity)
	percent(w, "maxCapacity", q.MaxCapacity)
	percent(w, "absoluteCapacity", q.AbsCapacity)
	percent(w, "absoluteMaxCapacity", q.AbsMaxCapacity)
	percent(w, "absoluteUsedCapacity", q.AbsUsed)
	w.Float("weight", weightOf(q))
	w.Float("normalizedWeight", q.NormalizedWeight)
	w.Int("numApplications", int64(q.Apps))
	w.Int("maxParallelApps", 1<<31-1)
	w.Text("queueName", q.Path.Leaf())
	w.Bool("isAbsoluteResource", q.Spec.Capacity.Unit == rm.Absolute)
	w.Text("state", q.State.String())
	o.capacityChildren(w, q, all)
	o.resource(w, "resourcesUsed", q.Used)
	w.Bool("hideReservationQueues", false)
	w.Texts("nodeLabels", []string{"*"})
	w.Int("allocatedContainers", int64(q.Containers))
	w.Int("reservedContainers", int64(q.ReservedContainers))
	w.Int("pendingContainers", int64(q.PendingContainers))
	o.capacities(w, q)
	w.Object("resources", func(w *writer) {
		w.List("resourceUsagesByPartition", 1, func(w *writer, _ int) {
			w.Text("partitionName", "")
			o.resource(w, "used", q.Used)
			o.resource(w, "reserved", q.Reserved)
			o.resource(w, "pending", q.Pending)
			o.resource(w, "amUsed", q.AMUsed)
			o.resource(w, "amLimit", q.AMLimit)
			o.resource(w, "userAmLimit", q.UserAMLimit)
		})
	})
	o.resource(w, "minEffectiveCapacity", q.Guaranteed)
	o.resource(w, "maxEffectiveCapacity", q.Max)
	o.resource(w, "maximumAllocation", q.MaxAllocation)
	w.Object("queueAcls", func(*writer) {})
	w.Int("queuePriority", int64(q.Spec.Priority))
	order := "utilization"
	if q.Leaf {
		order = "fifo"
	}
	w.Text("orderingPolicyInfo", order)
	w.Bool("autoCreateChildQueueEnabled", false)
	w.Object("leafQueueTemplate", func(*writer) {})
	w.Text("mode", mode(q))
	w.Text("queueType", queueType(q))
	w.Text("creationMethod", creation(q))
	w.Text("autoCreationEligibility", "off")
	if !q.Leaf {
		return
	}
	w.Int("numActiveApplications", int64(q.ActiveApps))
	w.Int("numPendingApplications", int64(q.PendingApps))
	w.Int("numContainers", int64(q.Containers))
	w.Int("maxApplications", int64(q.MaxApps))
	w.Int("maxApplicationsPerUser", int64(q.MaxAppsPerUser))
	w.Float("userLimit", float64(q.MinUserPercent))
	w.Object("users", func(w *writer) {
		w.List("user", len(q.Users), func(w *writer, i int) {
			u := &q.Users[i]
			w.Text("username", u.Name)
			o.resource(w, "resourcesUsed", u.Used)
			w.Int("numPendingApplications", int64(u.Pending))
			w.Int("numActiveApplications", int64(u.Running))
			o.resource(w, "AMResourceUsed", u.AMUsed)
			o.resource(w, "userResourceLimit", u.Limit)
			w.Float("userWeight", u.Weight)
			w.Bool("isActive", u.Active)
		})
	})
	w.Float("userLimitFactor", q.UserFactor)
	w.Float("configuredMaxAMResourceLimit", q.MaxAMPercent)
	o.resource(w, "AMResourceLimit", q.AMLimit)
	o.resource(w, "usedAMResource", q.AMUsed)
	o.resource(w, "userAMResourceLimit", q.UserAMLimit)
	w.Bool("preemptionDisabled", true)
	w.Bool("intraQueuePreemptionDisabled", true)
	w.Int("defaultPriority", int64(q.Spec.DefaultPriority))
	w.Bool("isAutoCreatedLeafQueue", q.Dynamic)
}

func (o *Door) fairQueue(w *writer, q *rm.QueueView, all map[creel.QueuePath]*rm.QueueView) {
	if q.Leaf {
		w.Text("type", "fairSchedulerLeafQueueInfo")
	}
	w.Int("maxApps", int64(q.MaxApps))
	o.resource(w, "minResources", q.Guaranteed)
	o.resource(w, "maxResources", q.Max)
	o.resource(w, "usedResources", q.Used)
	o.resource(w, "amUsedResources", q.AMUsed)
	o.resource(w, "amMaxResources", q.AMLimit)
	o.resource(w, "demandResources", q.Demand)
	o.resource(w, "steadyFairResources", q.SteadyShare)
	o.resource(w, "fairResources", q.FairShare)
	o.resource(w, "reservedResources", q.Reserved)
	o.resource(w, "maxContainerAllocation", q.MaxAllocation)
	w.Int("allocatedContainers", int64(q.Containers))
	w.Int("reservedContainers", int64(q.ReservedContainers))
	w.Int("pendingContainers", int64(q.PendingContainers))
	w.Text("queueName", string(q.Path))
	w.Bool("preemptable", true)
	if q.Leaf {
		w.Int("numPendingApps", int64(q.PendingApps))
		w.Int("numActiveApps", int64(q.ActiveApps))
	}
	if below := children(q, all); len(below) > 0 {
		w.Object("childQueues", func(w *writer) {
			w.List("queue", len(below), func(w *writer, i int) { o.fairQueue(w, below[i], all) })
		})
	}
}

// rate turns a running total into a rate per second, over at least a second.
type rate struct {
	mu    sync.Mutex
	total int64
	at    time.Time
	last  int64
}

func (r *rate) per(total int64, now time.Time) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() {
		r.total, r.at = total, now
		return 0
	}
	if d := now.Sub(r.at); d >= time.Second {
		r.last = int64(float64(total-r.total) / d.Seconds())
		r.total, r.at = total, now
	}
	return r.last
}
