// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// capacityDocument writes CapacityScheduler's document of the queues, with the fields in Hadoop's order.
type capacityDocument struct {
	*queuesAPI
	all    map[creel.QueuePath]*rm.QueueView
	bounds bounds // of containers
}

// root writes the root queue, and all others below it.
func (d *capacityDocument) root(w *writer, q *rm.QueueView) {
	percent(w, "capacity", codec.Share(&q.QueueView))
	percent(w, "usedCapacity", q.UsedCapacity)
	percent(w, "maxCapacity", q.MaxCapacity)
	w.Float("weight", codec.WeightOf(&q.QueueView, d.resourceNames()))
	w.Float("normalizedWeight", q.NormalizedWeight)
	d.vector(w, &q.QueueView)
	w.Text("queueName", q.Path.Leaf())
	w.Text("queuePath", string(q.Path))
	w.Int("maxParallelApps", int64(q.Spec.ParallelLimit()))
	w.Bool("isAbsoluteResource", codec.Written(&q.QueueView).Unit == queues.Absolute)
	d.below(w, q)
	d.capacities(w, q)
	d.health(w)
	d.resource(w, "maximumAllocation", q.MaxAllocation)
	acls(w, q)
	w.Int("queuePriority", int64(q.Spec.Priority))
	w.Text("orderingPolicyInfo", orderName(q))
	w.Text("mode", d.mode(q))
	w.Text("queueType", queueType(q))
	w.Text("creationMethod", creation(q, d.all))
	w.Text("autoCreationEligibility", eligibility(q))
	w.OptText("defaultNodeLabelExpression", q.DefaultLabel)
	templates(w, q)
}

// below writes the children of a queue.
func (d *capacityDocument) below(w *writer, q *rm.QueueView) {
	below := children(q, d.all)
	if len(below) == 0 {
		if !q.Leaf { // a queue whose children are created on demand
			w.Object("queues", func(*writer) {})
		}
		return
	}
	w.Object("queues", func(w *writer) {
		w.TypedList(
			"queue",
			len(below),
			leafClass(below, "capacitySchedulerLeafQueueInfo"),
			func(w *writer, i int) { d.queue(w, below[i]) },
		)
	})
}

// capacities writes the capacities of a queue in each partition.
func (d *capacityDocument) capacities(w *writer, q *rm.QueueView) {
	parts := codec.Rows(q)
	w.Object("capacities", func(w *writer) {
		w.List("queueCapacitiesByPartition", len(parts), func(w *writer, i int) {
			p := &parts[i]
			w.Text("partitionName", p.Label)
			d.vector(w, &p.QueueView)
			percent(w, "capacity", codec.Share(&p.QueueView))
			percent(w, "usedCapacity", p.UsedCapacity)
			percent(w, "maxCapacity", p.MaxCapacity)
			percent(w, "absoluteCapacity", p.AbsCapacity)
			percent(w, "absoluteUsedCapacity", p.AbsUsed)
			percent(w, "absoluteMaxCapacity", p.AbsMaxCapacity)
			share := 0.0 // a parent has no AMs of its own
			if q.Leaf {
				share = p.MaxAMPercent
			}
			percent(w, "maxAMLimitPercentage", share)
			w.Float("weight", codec.WeightOf(&p.QueueView, d.resourceNames()))
			w.Float("normalizedWeight", p.NormalizedWeight)
			least, most := codec.Amounts(&p.QueueView, in(d.all))
			d.configured(w, "configuredMinResource", least, d.bounds)
			d.configured(w, "configuredMaxResource", most, d.bounds)
			least, most = codec.Effective(&p.QueueView, in(d.all))
			if q.Parent == "" && isAbsent(q, p.Label) { // the root has no amounts there
				d.bounded(w, "effectiveMinResource", least, d.bounds)
				d.bounded(w, "effectiveMaxResource", most, d.bounds)
				return
			}
			d.resource(w, "effectiveMinResource", least)
			d.resource(w, "effectiveMaxResource", most)
		})
	})
}

// queue writes a queue below the root.
func (d *capacityDocument) queue(w *writer, q *rm.QueueView) {
	w.Text("queuePath", string(q.Path))
	percent(w, "capacity", codec.Share(&q.QueueView))
	percent(w, "usedCapacity", q.UsedCapacity)
	percent(w, "maxCapacity", q.MaxCapacity)
	percent(w, "absoluteCapacity", q.AbsCapacity)
	percent(w, "absoluteMaxCapacity", q.AbsMaxCapacity)
	percent(w, "absoluteUsedCapacity", q.AbsUsed)
	w.Float("weight", codec.WeightOf(&q.QueueView, d.resourceNames()))
	w.Float("normalizedWeight", q.NormalizedWeight)
	w.Int("numApplications", int64(q.Apps))
	w.Int("maxParallelApps", int64(q.Spec.ParallelLimit()))
	w.Text("queueName", q.Path.Leaf())
	w.Bool("isAbsoluteResource", codec.Written(&q.QueueView).Unit == queues.Absolute)
	w.Text("state", q.State.String())
	d.below(w, q)
	d.resource(w, "resourcesUsed", q.Used)
	w.Bool("hideReservationQueues", false)
	w.Texts("nodeLabels", q.Labels)
	containers(w, q)
	d.capacities(w, q)
	d.uses(w, q)
	least, most := codec.Effective(&q.QueueView, in(d.all))
	d.resource(w, "minEffectiveCapacity", least)
	d.resource(w, "maxEffectiveCapacity", most)
	d.resource(w, "maximumAllocation", q.MaxAllocation)
	d.planned(w, q)
	acls(w, q)
	w.Int("queuePriority", int64(q.Spec.Priority))
	w.Text("orderingPolicyInfo", orderName(q))
	w.Bool("autoCreateChildQueueEnabled", q.Spec.AutoCreate != nil && q.Spec.AutoCreate.Managed)
	leafTemplate(w, q)
	w.Text("mode", d.mode(q))
	w.Text("queueType", queueType(q))
	w.Text("creationMethod", creation(q, d.all))
	w.Text("autoCreationEligibility", eligibility(q))
	w.OptText("defaultNodeLabelExpression", q.DefaultLabel)
	templates(w, q)
	if q.Leaf {
		d.leaf(w, q)
	}
}

// uses writes the resources that a queue uses in each partition.
func (d *capacityDocument) uses(w *writer, q *rm.QueueView) {
	w.Object("resources", func(w *writer) {
		parts := usesOf(q)
		w.List("resourceUsagesByPartition", len(parts), func(w *writer, i int) {
			p := &parts[i]
			w.Text("partitionName", p.Label)
			d.resource(w, "used", p.Used)
			d.resource(w, "reserved", p.Reserved)
			d.resource(w, "pending", p.Pending.Add(p.InLine))
			if !q.Leaf {
				return // AMs are counted in leaves
			}
			d.resource(w, "amUsed", p.AMUsed)
			d.resource(w, "amLimit", computed(&p.QueueView, p.AMLimit))
			ofUser := creel.Resource{} // zero without users
			if len(q.Users) > 0 {
				ofUser = p.UserAMLimit
			}
			d.resource(w, "userAmLimit", computed(&p.QueueView, ofUser))
		})
	})
}

// planned writes the capacity by the federation's plan. It is creel's own, and replaces minEffectiveCapacity while it
// is in force.
func (d *capacityDocument) planned(w *writer, q *rm.QueueView) {
	p := q.Planned
	if p == nil {
		return
	}
	w.Object("planned", func(w *writer) {
		percent(w, "absoluteCapacity", p.Share)
		d.resource(w, "effectiveCapacity", p.Amount)
		w.Int("planVersion", p.Version)
		w.Int("until", p.Until.UnixMilli())
	})
}

// leaf writes the fields that only leaves have.
func (d *capacityDocument) leaf(w *writer, q *rm.QueueView) {
	w.Int("numActiveApplications", int64(q.ActiveApps))
	w.Int("numPendingApplications", int64(q.PendingApps))
	w.Int("numContainers", int64(q.AllContainers))
	w.Int("maxApplications", int64(q.MaxApps))
	w.Int("maxApplicationsPerUser", int64(q.MaxAppsPerUser))
	w.Float("userLimit", float64(float32(q.MinUserPercent)))
	d.users(w, q)
	w.Float("userLimitFactor", q.UserFactor)
	w.Float("configuredMaxAMResourceLimit", q.MaxAMPercent)
	d.resource(w, "AMResourceLimit", computed(&q.QueueView, q.AMLimit))
	d.resource(w, "usedAMResource", q.AMUsed)
	d.resource(w, "userAMResourceLimit", computed(&q.QueueView, firstAMLimit(q)))
	w.Bool("preemptionDisabled", q.PreemptionDisabled)
	w.Bool("intraQueuePreemptionDisabled", q.IntraPreemptionDisabled)
	w.Int("defaultPriority", int64(q.Spec.DefaultPriority))
	w.Bool("isAutoCreatedLeafQueue", byManaged(q, d.all))
	w.Int("maxApplicationLifetime", lifeSeconds(q.Spec.MaxLifetime))
	w.Int("defaultApplicationLifetime", lifeSeconds(cmp.Or(q.Spec.DefaultLifetime, q.Spec.MaxLifetime)))
}

// firstAMLimit returns, as Hadoop does, the AM limit of the first user with an AM, and without users the queue's.
func firstAMLimit(q *rm.QueueView) creel.Resource {
	if len(q.Users) == 0 {
		return q.AMLimit
	}
	for i := range q.Users {
		if u := &q.Users[i]; u.Running > 0 {
			return u.AMLimit
		}
	}
	return creel.Resource{}
}

// users writes the users of a leaf.
func (d *capacityDocument) users(w *writer, q *rm.QueueView) {
	w.Object("users", func(w *writer) {
		w.List("user", len(q.Users), func(w *writer, i int) {
			u := &q.Users[i]
			limit, ofAMs := u.Limit, u.AMLimit
			if u.Running == 0 { // no limit was computed for the user
				limit, ofAMs = creel.Resource{}, creel.Resource{}
			}
			w.Text("username", u.Name)
			d.resource(w, "resourcesUsed", u.Used)
			w.Int("numPendingApplications", int64(u.Pending-u.PendingUAMs))
			w.Int("numActiveApplications", int64(u.Running-u.RunningUAMs))
			d.resource(w, "AMResourceUsed", u.AMUsed)
			d.resource(w, "userResourceLimit", computed(&q.QueueView, limit))
			w.Object("resources", func(w *writer) {
				rows := usesOfUser(q, u)
				w.List("resourceUsagesByPartition", len(rows), func(w *writer, i int) {
					r, limit := &rows[i], ofAMs
					if i > 0 {
						limit = r.of.AMLimit
					}
					w.Text("partitionName", r.label)
					d.resource(w, "used", r.of.Here)
					d.resource(w, "reserved", creel.Resource{})
					d.resource(w, "pending", creel.Resource{})
					d.resource(w, "amUsed", r.of.AMUsed)
					d.resource(w, "amLimit", computed(&q.QueueView, limit))
					d.resource(w, "userAmLimit", creel.Resource{})
				})
			})
			w.Float("userWeight", u.Weight)
			w.Bool("isActive", u.Active)
		})
	})
}
