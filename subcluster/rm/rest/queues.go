// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// percent writes a share of a queue as 0..100. Java multiplies floats, which affects the last digit.
func percent(w *writer, name string, v float64) { w.Float(name, float64(float32(v)*100)) }

// bounds are the smallest and the largest container of the cluster.
type bounds struct{ least, most creel.Resource }

func (h *queuesAPI) bounded(w *writer, name string, v creel.Resource, b bounds) {
	w.Object(name, func(w *writer) {
		h.resourceFields(w, v, b.least.MemoryMB, b.most.MemoryMB, b.least.VCores, b.most.VCores)
	})
}

// of returns the bounds of the chosen types. Others are unbounded.
func (b bounds) of(memory, cores bool) bounds {
	least, most := creel.NewResource(0, 0), creel.NewResource(math.MaxInt64, math.MaxInt64)
	if memory {
		least.MemoryMB, most.MemoryMB = b.least.MemoryMB, b.most.MemoryMB
	}
	if cores {
		least.VCores, most.VCores = b.least.VCores, b.most.VCores
	}
	return bounds{least, most}
}

// configured writes a configured amount. YARN writes a missing amount with the bounds of a container.
func (h *queuesAPI) configured(w *writer, name string, v creel.Resource, b bounds) {
	if v.IsZero() {
		h.bounded(w, name, v, b)
	} else {
		h.resource(w, name, v)
	}
}

// vector writes a configured capacity type by type.
func (h *queuesAPI) vector(w *writer, q *explain.QueueView) {
	c := codec.Written(q)
	names := h.resourceNames()
	if q.Spec.Written != nil && c.Unit == queues.Unset {
		names = nil
	}
	// A number is stored in 32 bits and written in 64, as in YARN: 33.3 is 33.29999923706055.
	number := func(v float64) []byte { return appendNumber(nil, float64(float32(v)), 64) }
	value := func(i int) string {
		switch unit, v := c.Of(names[i]); unit {
		case queues.Weight:
			return string(append(number(v), 'w'))
		case queues.Absolute:
			return string(appendNumber(nil, float64(h.inUnit(names[i], int64(v))), 64))
		case queues.Percent:
			return string(append(number(v), '%'))
		}
		return string(append(number(100*q.Capacity), '%'))
	}
	text := "["
	for i, name := range names {
		if i > 0 {
			text += ","
		}
		text += name + "=" + value(i)
	}
	w.Object("queueCapacityVectorInfo", func(w *writer) {
		w.Text("configuredCapacityVector", text+"]")
		w.List("capacityVectorEntries", len(names), func(w *writer, i int) {
			w.Text("resourceName", names[i])
			w.Text("resourceValue", value(i))
		})
	})
}

// containers counts a queue's containers. Hadoop has no fields for the opportunistic ones, so these are only written if
// there are any, and their maxima only if they are set.
func containers(w *writer, q *rm.QueueView) {
	w.Int("allocatedContainers", int64(q.Containers))
	w.Int("reservedContainers", int64(q.ReservedContainers))
	w.Int("pendingContainers", int64(q.PendingContainers)+int64(q.InLineContainers))
	if most := q.Spec.Opportunistic.All; most.Set {
		w.Int("maxOpportunisticContainers", int64(most.Most))
	}
	if most := q.Spec.Opportunistic.EachUser; most.Set {
		w.Int("maxOpportunisticContainersPerUser", int64(most.Most))
	}
	if q.OpportunisticContainers > 0 {
		w.Int("opportunisticContainers", int64(q.OpportunisticContainers))
		w.Int("opportunisticMemoryMB", q.Opportunistic.MemoryMB)
		w.Int("opportunisticVCores", q.Opportunistic.VCores)
	}
}

// acls writes a queue's access lists.
func acls(w *writer, q *rm.QueueView) {
	list := []struct{ kind, acl string }{
		{"ADMINISTER_QUEUE", q.Spec.Admin.String()},
		{"APPLICATION_MAX_PRIORITY", cmp.Or(q.Spec.PriorityACL, "*")},
		{"SUBMIT_APP", q.Spec.Submit.String()},
	}
	w.Object("queueAcls", func(w *writer) {
		w.List("queueAcl", len(list), func(w *writer, i int) {
			w.Text("accessType", list[i].kind)
			w.Text("accessControlList", list[i].acl)
		})
	})
}

// templates writes the settings of queues made on demand, as they are written.
func templates(w *writer, q *rm.QueueView) {
	a := q.Spec.AutoCreate
	if a == nil || a.Managed {
		a = &queues.AutoCreate{}
	}
	settingList(w, "autoQueueTemplateProperties", "", a.Any)
	settingList(w, "autoQueueParentTemplateProperties", "", a.OfParents)
	settingList(w, "autoQueueLeafTemplateProperties", "", a.OfLeaves)
}

// leafTemplate writes the settings of the leaves of a managed parent.
func leafTemplate(w *writer, q *rm.QueueView) {
	var list []queues.Setting
	if a := q.Spec.AutoCreate; a != nil && a.Managed {
		list = a.OfLeaves
	}
	settingList(w, "leafQueueTemplate", "leaf-queue-template.", list)
}

func settingList(w *writer, name, prefix string, list []queues.Setting) {
	w.Object(name, func(w *writer) {
		if len(list) > 0 {
			w.List("property", len(list), func(w *writer, i int) {
				w.Text("name", prefix+list[i].Key)
				w.Text("value", list[i].Value)
			})
		}
	})
}

func eligibility(q *rm.QueueView) string {
	switch a := q.Spec.AutoCreate; {
	case a != nil && a.Managed:
		return "legacy"
	case a != nil || q.Dynamic && !q.Leaf:
		return "flexible"
	}
	return "off"
}

// orderName returns the name of the ordering policy of a queue's children or applications.
func orderName(q *rm.QueueView) string {
	switch {
	case q.Spec.PolicyName != "":
		return q.Spec.PolicyName
	case q.Leaf:
		return "fifo"
	}
	return "utilization"
}

// health writes the scheduler's last operations, of which only the time is recorded.
func (h *queuesAPI) health(w *writer) {
	w.Object("health", func(w *writer) {
		w.Int("lastrun", time.Now().UnixMilli())
		operations := []string{"last-allocation", "last-release", "last-preemption", "last-reservation"}
		w.List("operationsInfo", len(operations), func(w *writer, i int) {
			w.Text("operation", operations[i])
			w.Text("nodeId", "N/A")
			w.Text("containerId", "N/A")
			w.Text("queue", "N/A")
		})
		details := []string{"releases", "allocations", "reservations"}
		w.List("lastRunDetails", len(details), func(w *writer, i int) {
			w.Text("operation", details[i])
			w.Int("count", 0)
			h.resource(w, "resources", creel.Resource{})
		})
	})
}

// in returns a queue of a list, nil for none.
func in(all map[creel.QueuePath]*rm.QueueView) func(creel.QueuePath) *rm.QueueView {
	return func(path creel.QueuePath) *rm.QueueView { return all[path] }
}

// isAbsent reports whether queues list a label that the cluster lacks.
func isAbsent(q *rm.QueueView, label string) bool {
	return slices.ContainsFunc(q.Absent, func(p explain.PartitionView) bool { return p.Label == label })
}

// children returns a queue's children in Hadoop's order: leaves, then parents.
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

// mode returns the unit of a queue's capacity, "mixed" if its resource types have several. A missing capacity has a
// unit in legacy mode only.
func (h *queuesAPI) mode(q *rm.QueueView) string {
	switch codec.Written(&q.QueueView).Uniform(h.resourceNames()) {
	case queues.Unset:
		if q.Vectors && q.Spec.Written != nil {
			return "unknown"
		}
	case queues.Weight:
		return "weight"
	case queues.Absolute:
		return "absolute"
	case queues.Mixed:
		return "mixed"
	}
	return "percentage"
}

// byManaged reports whether a managed parent made the queue.
func byManaged(q *rm.QueueView, all map[creel.QueuePath]*rm.QueueView) bool {
	p := all[q.Parent]
	return q.Dynamic && p != nil && p.Spec.AutoCreate != nil && p.Spec.AutoCreate.Managed
}

func creation(q *rm.QueueView, all map[creel.QueuePath]*rm.QueueView) string {
	switch {
	case byManaged(q, all):
		return "dynamicLegacy"
	case q.Dynamic:
		return "dynamicFlexible"
	}
	return "static"
}

// computed returns an amount that is neither configured nor counted. Under the memory-only calculator it has at most
// one core.
func computed(q *explain.QueueView, r creel.Resource) creel.Resource {
	if q.MemoryOnly {
		return creel.NewResource(r.MemoryMB, min(r.MemoryMB, 1))
	}
	return r
}

func queueType(q *rm.QueueView) string {
	if q.Leaf {
		return "leaf"
	}
	return "parent"
}

// leafClass names the class of leaves; parents have none in the documents.
func leafClass(queues []*rm.QueueView, class string) func(i int) string {
	return func(i int) string {
		if queues[i].Leaf {
			return class
		}
		return ""
	}
}

// usesOf returns the rows of a queue's use. A parent omits labels without use or requests.
func usesOf(q *rm.QueueView) []explain.PartitionView {
	all := codec.Rows(q)
	if q.Leaf {
		return all
	}
	return slices.DeleteFunc(all, func(p explain.PartitionView) bool {
		return p.Label != "" && p.Used.IsZero() && p.Pending.IsZero() && p.InLine.IsZero()
	})
}

// userUse is a leaf user's use of one partition.
type userUse struct {
	label string
	of    *explain.UserView
}

// usesOfUser returns the rows of a user's use. The first is for nodes without a label. The others are for labels in
// which the user's applications requested or borrowed resources.
func usesOfUser(q *rm.QueueView, u *explain.UserView) []userUse {
	out := []userUse{{"", u}}
	for i := range q.Partitions {
		p := &q.Partitions[i]
		for k := range p.Users {
			if p.Users[k].Name == u.Name {
				out = append(out, userUse{p.Label, &p.Users[k]})
			}
		}
	}
	return out
}

// lifeSeconds writes a limit that is not configured as -1, and one that 0 removes as 0.
func lifeSeconds(d time.Duration) int64 {
	switch d {
	case 0:
		return -1
	case queues.NoLifetime:
		return 0
	}
	return int64(d / time.Second)
}

func fairPolicy(q *rm.QueueView) string {
	switch q.Spec.Policy {
	case queues.Fifo:
		return "FIFO"
	case queues.DRF, queues.HDRF:
		return "DRF"
	}
	return "fair"
}

// preemptable reports whether neither the queue nor an ancestor forbids preemption.
func preemptable(q *rm.QueueView, all map[creel.QueuePath]*rm.QueueView) bool {
	for ; q != nil; q = all[q.Parent] {
		if q.Spec.PreemptionDisabled {
			return false
		}
	}
	return true
}

func (h *queuesAPI) fairQueue(
	w *writer,
	q *rm.QueueView,
	all map[creel.QueuePath]*rm.QueueView,
	total creel.Resource,
	b bounds,
) {
	w.Int("maxApps", int64(q.Spec.ParallelLimit()))
	missing := q.Spec.Minimum.Unit == queues.Unset
	if missing { // Hadoop writes a missing minimum with a container's bounds
		h.bounded(w, "minResources", q.Minimum, b)
	} else {
		h.resource(w, "minResources", q.Minimum)
	}
	// Hadoop limits 0 of a maximum and of the demand by the missing minimum, type by type.
	zero := func(v, above int64) bool { return missing && v == 0 && above != 0 }
	h.bounded(w, "maxResources", q.Max, b.of(zero(q.Max.MemoryMB, total.MemoryMB), zero(q.Max.VCores, total.VCores)))
	h.resource(w, "usedResources", q.Used)
	h.resource(w, "amUsedResources", q.AMUsed)
	h.resource(w, "amMaxResources", q.AMLimit)
	memory, cores := q.Max.MemoryMB, q.Max.VCores
	if !q.Leaf {
		memory, cores = 1, 1
	} else if total.IsZero() { // only a configured amount is above 0
		most := q.Spec.MaxCapacity
		memory, cores = 1, 1
		switch most.Unit {
		case queues.Percent, queues.PerType:
			memory, cores = 0, 0
		case queues.Absolute:
			memory, cores = most.Resource.MemoryMB, most.Resource.VCores
		}
	}
	h.bounded(w, "demandResources", q.Demand, b.of(zero(memory, 1), zero(cores, 1)))
	h.resource(w, "steadyFairResources", q.SteadyShare)
	h.resource(w, "fairResources", q.FairShare)
	h.resource(w, "clusterResources", total)
	h.resource(w, "reservedResources", q.Reserved)
	h.resource(w, "maxContainerAllocation", q.MaxAllocation)
	containers(w, q)
	w.Text("queueName", string(q.Path))
	w.Text("schedulingPolicy", fairPolicy(q))
	w.Bool("preemptable", preemptable(q, all))
	if below := children(q, all); len(below) > 0 {
		w.Object("childQueues", func(w *writer) {
			w.TypedList(
				"queue",
				len(below),
				leafClass(below, "fairSchedulerLeafQueueInfo"),
				func(w *writer, i int) { h.fairQueue(w, below[i], all, total, b) },
			)
		})
	}
	if q.Leaf {
		w.Int("numPendingApps", int64(q.PendingApps))
		w.Int("numActiveApps", int64(q.ActiveApps))
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
