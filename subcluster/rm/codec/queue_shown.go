// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// Written returns a queue's capacity as it is configured.
func Written(q *explain.QueueView) *queues.Amount {
	if q.Spec.Written != nil {
		return q.Spec.Written
	}
	return &q.Spec.Capacity
}

// WeightOf returns a queue's configured weight, -1 for none. A list of equal weights for all resource types, which
// names has, is one.
func WeightOf(q *explain.QueueView, names []string) float64 {
	c := Written(q)
	if c.Uniform(names) != queues.Weight {
		return -1
	}
	_, weight := c.Of(names[0])
	for _, name := range names[1:] {
		if _, v := c.Of(name); v != weight {
			return -1
		}
	}
	return weight
}

// Share returns the queue's promised part of its parent. A queue with a weight returns 0, unless capacities are set per
// resource type.
func Share(q *explain.QueueView) float64 {
	if q.Spec.Capacity.Unit == queues.Weight && !q.Vectors {
		return 0
	}
	return q.Capacity
}

// Amounts returns the amounts configured for a queue. A missing maximum is the parent's. queue returns a queue by its
// path, nil for none.
func Amounts(q *explain.QueueView, queue func(creel.QueuePath) *rm.QueueView) (least, most creel.Resource) {
	least, most = q.Spec.Capacity.Amounts(), q.Spec.MaxCapacity.Amounts()
	if most.IsZero() && !least.IsZero() {
		if p := queue(q.Parent); p != nil {
			_, most = Amounts(&p.QueueView, queue)
		}
	}
	return least, most
}

// Effective returns the amounts in force for a queue. In a cluster without nodes the minimum is the configured one.
func Effective(q *explain.QueueView, queue func(creel.QueuePath) *rm.QueueView) (least, most creel.Resource) {
	if root := queue(creel.RootQueue); root != nil && root.Max.IsZero() && !q.Vectors {
		least, _ = Amounts(q, queue)
		return least, q.Max
	}
	return q.Guaranteed, q.Max
}

// Rows returns a queue's partitions in documents. The first is for nodes without a label. Others are for labels in
// which the queue has capacities (a dynamic queue: access) or uses resources.
func Rows(q *rm.QueueView) []explain.PartitionView {
	out := []explain.PartitionView{{QueueView: q.QueueView}}
	for _, list := range [][]explain.PartitionView{q.Partitions, q.Absent} {
		for i := range list {
			p := &list[i]
			own := q.Parent == "" || q.Dynamic || slices.ContainsFunc(q.Spec.Shares, func(s queues.LabelShare) bool {
				return s.Label == p.Label
			})
			if p.Accessible && own || !p.Used.IsZero() {
				out = append(out, *p)
			}
		}
	}
	return out
}

// rowsOfClients is Rows for the client protocol, which has all labels that the queue lists.
func rowsOfClients(q *rm.QueueView) []explain.PartitionView {
	if slices.Contains(q.Labels, queues.AnyLabel) {
		return Rows(q)
	}
	out := []explain.PartitionView{{QueueView: q.QueueView}}
	for _, p := range slices.Concat(q.Partitions, q.Absent) {
		if p.Accessible {
			out = append(out, p)
		}
	}
	return out
}
