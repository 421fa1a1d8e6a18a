// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"strings"

	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/subcluster"
)

var queuesPage = pages.Page{
	Path: "/cluster/scheduler", Name: "queues", Title: "Queues", Section: "queues", Load: loadQueues,
	Command: func(c *pages.Call) string { return "creel queue list" + at(c) },
}

// queues is the queue tree.
type queues struct {
	Scheduler string
	Queues    []queue
}

// queue is one queue, in percent of the cluster's memory (CapacityScheduler: of the dominant resource).
type queue struct {
	Path                            string
	Depth                           int
	Leaf                            bool
	Used, Guaranteed, Most, Pending float64
	State                           string
	Active, Waiting                 int64 // applications
	Containers, Asked               int64 // containers asked for and not granted
	UsedMB, UsedVCores              int64
	Opportunistic                   int64  // containers, which are not in Containers
	MostOpportunistic               *int64 // nil: no maximum
}

// Bar is the queue's bullet bar.
func (q queue) Bar() pages.Bar { return pages.NewBar(q.Used, q.Pending, q.Guaranteed, q.Most) }

// amounts is a ResourceInfo.
type amounts struct {
	Memory pages.Figure `json:"memory"`
	VCores pages.Figure `json:"vCores"`
}

// schedulerQueue is a queue of YARN's scheduler document, of either scheduler.
type schedulerQueue struct {
	Type      string `json:"type"`
	QueueName string `json:"queueName"`
	QueuePath string `json:"queuePath"`
	State     string `json:"state"`

	// Fields of CapacityScheduler; the root has no absolute values.
	Capacity, UsedCapacity, MaxCapacity                         pages.Real
	AbsoluteCapacity, AbsoluteUsedCapacity, AbsoluteMaxCapacity *pages.Real
	ResourcesUsed                                               amounts
	NumActiveApplications, NumPendingApplications               pages.Figure
	Resources                                                   struct {
		ResourceUsagesByPartition []struct {
			PartitionName string
			Pending       amounts
		}
	}
	Queues struct{ Queue []schedulerQueue }

	// Fields of FairScheduler.
	UsedResources, SteadyFairResources, MaxResources, DemandResources amounts
	NumActiveApps, NumPendingApps                                     pages.Figure
	ChildQueues                                                       struct{ Queue []schedulerQueue }

	AllocatedContainers, PendingContainers, OpportunisticContainers pages.Figure
	MaxOpportunisticContainers                                      *int64
}

// loadTree reads the queues, each before its children.
func loadTree(c *pages.Call) ([]queue, string, error) {
	var doc struct {
		Scheduler struct {
			Info struct {
				schedulerQueue
				Root schedulerQueue `json:"rootQueue"`
			} `json:"schedulerInfo"`
		} `json:"scheduler"`
	}
	if err := c.Get("/ws/v1/cluster/scheduler", &doc); err != nil {
		return nil, "", err
	}
	s := &doc.Scheduler.Info
	var metrics struct {
		Metrics subcluster.ClusterMetrics `json:"clusterMetrics"`
	}
	if err := c.Get("/ws/v1/cluster/metrics", &metrics); err != nil {
		return nil, "", err
	}
	all := metrics.Metrics.Total()
	part := func(a amounts) float64 {
		return max(pages.Share(int64(a.Memory), all.MemoryMB), pages.Share(int64(a.VCores), all.VCores))
	}
	if s.Type == "fairScheduler" {
		return s.Root.tree(nil, true, part), "FairScheduler", nil
	}
	return s.schedulerQueue.tree(nil, false, part), "CapacityScheduler", nil
}

// tree adds the queue and its descendants. part converts amounts to percent of the cluster's dominant resource.
func (t *schedulerQueue) tree(out []queue, fair bool, part func(amounts) float64) []queue {
	q := queue{
		Path: t.QueuePath, State: t.State, Containers: int64(t.AllocatedContainers),
		Asked: int64(t.PendingContainers),

		Opportunistic: int64(t.OpportunisticContainers), MostOpportunistic: t.MaxOpportunisticContainers,
		Active: int64(t.NumActiveApplications), Waiting: int64(t.NumPendingApplications),
		UsedMB: int64(t.ResourcesUsed.Memory), UsedVCores: int64(t.ResourcesUsed.VCores),
	}
	children := t.Queues.Queue
	if fair {
		children = t.ChildQueues.Queue
		q.Path, q.State = t.QueueName, "RUNNING"
		q.Used, q.Guaranteed, q.Most = part(t.UsedResources), part(t.SteadyFairResources), part(t.MaxResources)
		q.Pending = max(0, part(t.DemandResources)-q.Used) // demand is use plus pending
		q.Active, q.Waiting = int64(t.NumActiveApps), int64(t.NumPendingApps)
		q.UsedMB, q.UsedVCores = int64(t.UsedResources.Memory), int64(t.UsedResources.VCores)
	} else {
		absolute := func(of *pages.Real, own pages.Real) float64 {
			if of == nil {
				return float64(own)
			}
			return float64(*of)
		}
		q.Used = absolute(t.AbsoluteUsedCapacity, t.UsedCapacity)
		q.Guaranteed = absolute(t.AbsoluteCapacity, t.Capacity)
		q.Most = absolute(t.AbsoluteMaxCapacity, t.MaxCapacity)
		for _, p := range t.Resources.ResourceUsagesByPartition {
			if p.PartitionName == "" {
				q.Pending = part(p.Pending)
			}
		}
		if q.State == "" {
			q.State = "RUNNING" // the root, which cannot be stopped
		}
	}
	q.Depth, q.Leaf = strings.Count(q.Path, "."), len(children) == 0
	at := len(out)
	out = append(out, q)
	for i := range children {
		from := len(out)
		out = children[i].tree(out, fair, part)
		out[at].Active += out[from].Active // YARN counts applications only at leaves
		out[at].Waiting += out[from].Waiting
	}
	return out
}

func loadQueues(c *pages.Call) (any, error) {
	all, name, err := loadTree(c)
	return &queues{name, all}, err
}
