// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/json"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/subcluster"
)

// labelRules adds the labels that a queue and its descendants may use, by yarn-rest.md 7.8; the root may use all.
func (q *capacityQueue) labelRules(l *subcluster.Labels, parent string) {
	name := creel.QueuePath(parent).Child(queueName(q.QueueName))
	accessible := []string(q.NodeLabels)
	if parent == "" {
		name, accessible = creel.RootQueue, []string{"*"}
	}
	l.Add(name, accessible, q.DefaultNodeLabelExpression)
	if q.Queues != nil {
		for i := range q.Queues.Queue {
			q.Queues.Queue[i].labelRules(l, string(name))
		}
	}
}

// partition returns the root's numbers for a label: its total, and the usage and asks of the queues below.
func (q *capacityQueue) partition(label string) subcluster.Partition {
	p := subcluster.Partition{Label: label}
	for _, c := range q.Capacities.QueueCapacitiesByPartition {
		if c.PartitionName == label {
			p.Total = c.EffectiveMinResource.resource()
		}
	}
	if q.Queues == nil {
		return p
	}
	for i := range q.Queues.Queue {
		used, pending := q.Queues.Queue[i].inPartition(label)
		p.Used, p.Pending = p.Used.Add(used), p.Pending.Add(pending)
	}
	return p
}

// inPartition returns a queue's usage and asks for a label. If a parent reports none, they are its children's sums.
func (q *capacityQueue) inPartition(label string) (used, pending creel.Resource) {
	for _, u := range q.Resources.ResourceUsagesByPartition {
		if u.PartitionName == label {
			return u.Used.resource(), u.Pending.resource()
		}
	}
	if q.Queues == nil {
		return used, pending
	}
	for i := range q.Queues.Queue {
		u, p := q.Queues.Queue[i].inPartition(label)
		used, pending = used.Add(u), pending.Add(p)
	}
	return used, pending
}

// ParseLabels parses a ResourceManager's labels from Hadoop's /ws/v1/cluster/scheduler and
// /ws/v1/cluster/get-node-labels, both as JSON. Only the CapacityScheduler separates nodes by label. The error is an
// *creel.Error of kind creel.ErrInvalidRequest.
func ParseLabels(scheduler, labels []byte) (subcluster.Labels, error) {
	out := subcluster.Labels{Known: true}
	var list struct {
		NodeLabelInfo webdoc.Many[struct {
			Name        string
			Exclusivity looseBool
		}]
	}
	if err := json.Unmarshal(labels, &list); err != nil {
		return subcluster.Labels{}, unreadableDocument("node labels", err)
	}
	if len(list.NodeLabelInfo) == 0 {
		return out, nil
	}
	var doc struct {
		Scheduler struct {
			SchedulerInfo struct {
				Type string
				capacityQueue
			}
		}
	}
	if err := json.Unmarshal(scheduler, &doc); err != nil {
		return subcluster.Labels{}, unreadableDocument("scheduler", err)
	}
	if doc.Scheduler.SchedulerInfo.Type != "capacityScheduler" {
		return out, nil
	}
	root := &doc.Scheduler.SchedulerInfo.capacityQueue
	for _, label := range list.NodeLabelInfo {
		if label.Name == "" || out.Find(label.Name) != nil {
			continue
		}
		p := root.partition(label.Name)
		p.Shared = !bool(label.Exclusivity)
		out.Put(p)
	}
	root.labelRules(&out, "")
	if err := out.Check(); err != nil {
		return subcluster.Labels{}, unreadableDocument("node labels", err)
	}
	return out, nil
}

// looseBool is a boolean that may be quoted.
type looseBool bool

// UnmarshalJSON implements json.Unmarshaler.
func (b *looseBool) UnmarshalJSON(data []byte) error {
	*b = string(data) == "true" || string(data) == `"true"`
	return nil
}
