// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/subcluster"
)

// Limits of an accepted scheduler document.
const (
	maxSchedulerQueues = 20_000
	maxSchedulerDepth  = 64
)

// ParseScheduler parses the queues of Hadoop's /ws/v1/cluster/scheduler, as JSON. It supports the CapacityScheduler
// (a queue's guarantee is its effective minimum), including nodes with a label that the queue may use or uses. It
// also supports the FairScheduler (its steady fair share). A queue's Free is the rest of its maximum, not of the
// cluster. The FIFO scheduler has no queues. The error is an *creel.Error of kind creel.ErrInvalidRequest.
func ParseScheduler(data []byte) ([]subcluster.QueueLoad, error) {
	var doc struct {
		Scheduler struct{ SchedulerInfo json.RawMessage }
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, unreadableDocument("scheduler", err)
	}
	var head struct {
		Type      string
		RootQueue *fairQueue
	}
	if err := json.Unmarshal(doc.Scheduler.SchedulerInfo, &head); err != nil {
		return nil, unreadableDocument("scheduler", err)
	}
	var out []subcluster.QueueLoad
	var err error
	switch head.Type {
	case "capacityScheduler":
		var root capacityQueue
		if err := json.Unmarshal(doc.Scheduler.SchedulerInfo, &root); err != nil {
			return nil, unreadableDocument("scheduler", err)
		}
		err = root.add(&out, "", 0)
	case "fairScheduler":
		if head.RootQueue != nil {
			err = head.RootQueue.add(&out, 0)
		}
	case "fifoScheduler":
	default:
		err = fmt.Errorf("its scheduler is %.60q", head.Type)
	}
	if err != nil {
		return nil, unreadableDocument("scheduler", err)
	}
	on := func(q *subcluster.QueueLoad) subcluster.QueueOn {
		return subcluster.QueueOn{Queue: q.Queue, Label: q.Label}
	}
	slices.SortFunc(out, func(a, b subcluster.QueueLoad) int { return subcluster.CompareQueueOn(on(&a), on(&b)) })
	for i := 1; i < len(out); i++ {
		if on(&out[i]) == on(&out[i-1]) {
			return nil, unreadableDocument("scheduler", fmt.Errorf("queue %q occurs twice", out[i].Queue))
		}
	}
	return out, nil
}

// resourceInfo is Hadoop's ResourceInfo; numbers may be missing.
type resourceInfo struct {
	Memory               int64
	VCores               int64
	ResourceInformations struct {
		ResourceInformation webdoc.Many[struct {
			Name  string
			Value int64
		}]
	}
}

func (r *resourceInfo) resource() creel.Resource {
	out := creel.Resource{MemoryMB: r.Memory, VCores: r.VCores}
	for _, i := range r.ResourceInformations.ResourceInformation {
		if i.Name != "memory-mb" && i.Name != "vcores" && i.Name != "" {
			out = out.With(i.Name, i.Value)
		}
	}
	return out
}

func pathOf(s string) (creel.QueuePath, error) {
	p, err := creel.ParseQueuePath(s)
	if err != nil {
		return "", fmt.Errorf("queue %.100q: %w", s, err)
	}
	return p, nil
}

func room(out []subcluster.QueueLoad, depth int) error {
	if len(out) >= maxSchedulerQueues || depth > maxSchedulerDepth {
		return fmt.Errorf("it has more than %d queues, or levels than %d", maxSchedulerQueues, maxSchedulerDepth)
	}
	return nil
}

// capacityQueue is a queue of the CapacityScheduler; yarn-rest.md 7.8.
type capacityQueue struct {
	QueueName  string
	Queues     *struct{ Queue webdoc.Many[capacityQueue] }
	Capacities struct {
		QueueCapacitiesByPartition webdoc.Many[struct {
			PartitionName                              string
			EffectiveMinResource, EffectiveMaxResource resourceInfo
		}]
	}
	ResourcesUsed resourceInfo
	Resources     struct {
		ResourceUsagesByPartition webdoc.Many[struct {
			PartitionName string
			Used, Pending resourceInfo
		}]
	}
	NumActiveApplications, NumPendingApplications int64

	NodeLabels                 webdoc.Many[string]
	DefaultNodeLabelExpression string

	AutoCreationEligibility     string    // legacy, flexible or off; releases up to 3.3 only have the next field
	AutoCreateChildQueueEnabled looseBool // a managed parent
}

// ParseMakes reads, from the document of ParseScheduler, the queues below which others are created when submissions
// name them. A document that it does not understand has none. In the FairScheduler this is the root: if its placement
// rules create no queue, they choose another.
func ParseMakes(data []byte) (makes []creel.QueuePath) {
	var doc struct {
		Scheduler struct {
			SchedulerInfo struct {
				Type string
				capacityQueue
			}
		}
	}
	switch err := json.Unmarshal(data, &doc); {
	case doc.Scheduler.SchedulerInfo.Type == "fairScheduler":
		return []creel.QueuePath{creel.RootQueue}
	case err != nil || doc.Scheduler.SchedulerInfo.Type != "capacityScheduler":
		return nil
	}
	doc.Scheduler.SchedulerInfo.makes(&makes, "")
	return makes
}

func (q *capacityQueue) makes(out *[]creel.QueuePath, parent string) {
	name := queueName(q.QueueName)
	if parent != "" {
		name = parent + "." + name
	}
	creates := q.AutoCreationEligibility == "legacy" || q.AutoCreationEligibility == "flexible"
	if creates || bool(q.AutoCreateChildQueueEnabled) {
		if path, err := pathOf(name); err == nil {
			*out = append(*out, path)
		}
		return
	}
	if q.Queues != nil {
		for i := range q.Queues.Queue {
			q.Queues.Queue[i].makes(out, name)
		}
	}
}

// queueName returns the last part of a queue's name, for older releases that write the path there.
func queueName(s string) string { return s[strings.LastIndexByte(s, '.')+1:] }

func (q *capacityQueue) add(out *[]subcluster.QueueLoad, parent string, depth int) error {
	if err := room(*out, depth); err != nil {
		return err
	}
	name := queueName(q.QueueName)
	if parent != "" {
		name = parent + "." + name
	}
	path, err := pathOf(name)
	if err != nil {
		return err
	}
	load := subcluster.QueueLoad{
		Queue: path, Used: q.ResourcesUsed.resource(),
		AppsPending: q.NumPendingApplications, AppsRunning: q.NumActiveApplications,
	}
	for i := range q.Resources.ResourceUsagesByPartition {
		if u := &q.Resources.ResourceUsagesByPartition[i]; u.PartitionName == "" {
			load.Used, load.Pending = u.Used.resource(), u.Pending.resource()
		}
	}
	for i := range q.Capacities.QueueCapacitiesByPartition {
		if c := &q.Capacities.QueueCapacitiesByPartition[i]; c.PartitionName == "" {
			load.Capacity = c.EffectiveMinResource.resource()
			load.Free = c.EffectiveMaxResource.resource().Sub(load.Used).Max(creel.Resource{})
		}
	}
	at := len(*out)
	*out = append(append(*out, load), q.labelled(path)...)
	if q.Queues == nil {
		return nil
	}
	for i := range q.Queues.Queue {
		child := len(*out)
		if err := q.Queues.Queue[i].add(out, name, depth+1); err != nil {
			return err
		}
		// Parents report neither pending amounts nor applications: add their children's.
		if p, c := &(*out)[at], &(*out)[child]; true {
			if q.Resources.ResourceUsagesByPartition == nil {
				p.Pending = p.Pending.Add(c.Pending)
			}
			p.AppsPending += c.AppsPending
			p.AppsRunning += c.AppsRunning
		}
	}
	return nil
}

// labelled returns the queue's rows on nodes with a label.
func (q *capacityQueue) labelled(path creel.QueuePath) (rows []subcluster.QueueLoad) {
	at := map[string]int{} // of rows, by label
	row := func(label string) *subcluster.QueueLoad {
		i, known := at[label]
		if !known {
			i, rows = len(rows), append(rows, subcluster.QueueLoad{Queue: path, Label: label})
			at[label] = i
		}
		return &rows[i]
	}
	for i := range q.Resources.ResourceUsagesByPartition {
		u := &q.Resources.ResourceUsagesByPartition[i]
		if used, pending := u.Used.resource(), u.Pending.resource(); u.PartitionName != "" &&
			!(used.IsZero() && pending.IsZero()) {
			r := row(u.PartitionName)
			r.Used, r.Pending = used, pending
		}
	}
	for i := range q.Capacities.QueueCapacitiesByPartition {
		c := &q.Capacities.QueueCapacitiesByPartition[i]
		if most := c.EffectiveMaxResource.resource(); c.PartitionName != "" && !most.IsZero() {
			r := row(c.PartitionName)
			r.Capacity, r.Free = c.EffectiveMinResource.resource(), most.Sub(r.Used).Max(creel.Resource{})
		}
	}
	return rows
}

// fairQueue is a queue of the FairScheduler; yarn-rest.md 7.9.
type fairQueue struct {
	QueueName                                                         string // the full path
	MaxResources, UsedResources, DemandResources, SteadyFairResources resourceInfo
	ChildQueues                                                       *struct{ Queue webdoc.Many[fairQueue] }
	NumActiveApps, NumPendingApps                                     int64
}

func (q *fairQueue) add(out *[]subcluster.QueueLoad, depth int) error {
	if err := room(*out, depth); err != nil {
		return err
	}
	path, err := pathOf(q.QueueName)
	if err != nil {
		return err
	}
	used := q.UsedResources.resource()
	at := len(*out)
	*out = append(*out, subcluster.QueueLoad{
		Queue:       path,
		Capacity:    q.SteadyFairResources.resource(),
		Used:        used,
		Pending:     q.DemandResources.resource().Sub(used).Max(creel.Resource{}),
		Free:        q.MaxResources.resource().Sub(used).Max(creel.Resource{}),
		AppsPending: q.NumPendingApps,
		AppsRunning: q.NumActiveApps,
	})
	if q.ChildQueues == nil {
		return nil
	}
	for i := range q.ChildQueues.Queue {
		child := len(*out)
		if err := q.ChildQueues.Queue[i].add(out, depth+1); err != nil {
			return err
		}
		(*out)[at].AppsPending += (*out)[child].AppsPending
		(*out)[at].AppsRunning += (*out)[child].AppsRunning
	}
	return nil
}
