// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
)

// Metrics returns a cluster's metrics for the REST protocol and for the member's heartbeat to the federation.
func Metrics(v *rm.ClusterView) subcluster.ClusterMetrics {
	n := func(states ...creel.NodeState) (sum int64) {
		for _, s := range states {
			sum += int64(v.Nodes[s])
		}
		return sum
	}
	return subcluster.ClusterMetrics{
		AppsSubmitted:         v.AppsSubmitted,
		AppsCompleted:         v.AppsCompleted,
		AppsPending:           v.AppsPending,
		AppsRunning:           v.AppsRunning,
		AppsFailed:            v.AppsFailed,
		AppsKilled:            v.AppsKilled,
		ReservedMB:            v.Reserved.MemoryMB,
		AvailableMB:           v.Available.MemoryMB,
		AllocatedMB:           v.Used.MemoryMB,
		PendingMB:             v.Pending.MemoryMB + v.InLine.MemoryMB,
		ReservedVirtualCores:  v.Reserved.VCores,
		AvailableVirtualCores: v.Available.VCores,
		AllocatedVirtualCores: v.Used.VCores,
		PendingVirtualCores:   v.Pending.VCores + v.InLine.VCores,
		ContainersAllocated: int64(
			v.Containers,
		),
		ContainersReserved:   int64(v.ReservedContainers),
		ContainersPending:    int64(v.PendingContainers) + int64(v.InLineContainers),
		TotalMB:              v.Total.MemoryMB,
		TotalVirtualCores:    v.Total.VCores,
		SchedulerBusyPercent: -1,
		TotalNodes: n(
			creel.NodeRunning,
			creel.NodeUnhealthy,
			creel.NodeDecommissioned,
			creel.NodeLost,
			creel.NodeRebooted,
			creel.NodeDecommissioning,
			creel.NodeShutdown,
		),
		LostNodes: n(
			creel.NodeLost,
		),
		UnhealthyNodes:       n(creel.NodeUnhealthy),
		DecommissioningNodes: n(creel.NodeDecommissioning),
		DecommissionedNodes:  n(creel.NodeDecommissioned),
		RebootedNodes:        n(creel.NodeRebooted),
		ActiveNodes:          n(creel.NodeRunning),
		ShutdownNodes:        n(creel.NodeShutdown),
	}
}

// Loads makes the load that a ResourceManager reports as a member of a
// federation. The zero value is ready.
type Loads struct {
	granted int64          // granted containers at the previous call, if there was one
	at      time.Time      // time of that call
	wants   creel.Resource // the cluster's use and pending demand at that time

	free, most map[subcluster.QueueOn]creel.Resource // of queues that may have children
}

// Next returns the present load. The rate of grants is the rate since the last call, 0 at the first.
func (l *Loads) Next(m *rm.Machine, now time.Time) subcluster.Load {
	v := m.Cluster()
	uams := m.UAMs()
	load := subcluster.Load{Metrics: Metrics(&v), BeginsAgain: true, Waits: slices.Clone(v.Waits.Counts[:])}
	load.UAMs.Pending, load.UAMs.Running = uams.Live()
	switch rules := m.Config().Placement; {
	case rules == nil:
	case rules.KeepsNamed():
		load.Places = subcluster.PlacesUnnamed
	default:
		load.Places = subcluster.PlacesAll
	}
	if s := now.Sub(l.at).Seconds(); s > 0 && !l.at.IsZero() {
		load.Metrics.ContainersPerSecond = int64(float64(v.Granted-l.granted) / s)
	}
	l.granted, l.at, l.wants = v.Granted, now, wants(&v)
	load.NodeQueues = rm.NodeQueues(m, subcluster.MaxNodeQueues)
	load.Labels = subcluster.Labels{Known: true}
	labels := m.ClusterLabels()
	if len(labels) > 0 {
		load.Labels.AMs = m.Config().AMLabel
	}
	clear(l.free)
	clear(l.most)
	for q := range m.Queues { // parents first
		if len(labels) > 0 {
			addLabels(&load.Labels, &q, labels)
		}
		load.MemoryOnly = q.MemoryOnly
		if q.Path.IsRoot() {
			load.PreemptionOff = q.PreemptionDisabled
		}
		if q.Makes && !load.MakesQueue(q.Path) {
			load.Makes = append(load.Makes, q.Path)
		}
		load.Queues = append(load.Queues, l.row(m, &q.QueueView, "", v.Available))
		of := &load.Queues[len(load.Queues)-1]
		of.AppsPending, of.AppsRunning = int64(q.PendingApps), int64(q.ActiveApps)
		of.UAMs.Pending, of.UAMs.Running = uams.LiveIn(q.Path)
		of.Opportunistic = q.Opportunistic
		if most := q.Spec.Opportunistic.All; most.Set {
			of.MostOpportunistic = &most.Most
		}
		if counts := counted(q.Waits.Counts[:]); len(counts) > 0 {
			load.QueueWaits = append(load.QueueWaits, subcluster.QueueWaits{Queue: q.Path, Counts: counts})
		}
		for i := range q.Partitions {
			p := &q.Partitions[i]
			idle := p.Guaranteed.Sub(p.Used).Sub(p.Reserved) // for the root: everything
			row := l.row(m, &p.QueueView, p.Label, idle)
			if p.Accessible || !row.Used.IsZero() || !row.Pending.IsZero() {
				load.Queues = append(load.Queues, row)
			}
		}
	}
	return load
}

// counted returns a copy of counts up to the last one that is not 0.
func counted(counts []uint64) []uint64 {
	n := len(counts)
	for n > 0 && counts[n-1] == 0 {
		n--
	}
	return slices.Clone(counts[:n])
}

func wants(v *rm.ClusterView) creel.Resource { return v.Used.Add(v.Pending).Add(v.InLine) }

// farWants is the change of demand, as a fraction of the cluster, that causes an early heartbeat.
const farWants = 0.1

// Changed reports whether the cluster's demand differs much from the last result of Next. Then the rebalancer's plan
// and the choice of homes should not wait for a regular heartbeat.
func (l *Loads) Changed(m *rm.Machine) bool {
	v := m.Cluster()
	now := wants(&v)
	d := now.Sub(l.wants).Max(l.wants.Sub(now))
	return !v.Total.IsZero() && d.Dominant(v.Total) > farWants
}

// row returns a queue's load on the nodes of a label. idle is their free capacity, for the root.
func (l *Loads) row(m *rm.Machine, q *explain.QueueView, label string, idle creel.Resource) subcluster.QueueLoad {
	room := q.Max.Sub(q.Used).Sub(q.Reserved)
	if above, has := l.free[subcluster.QueueOn{Queue: q.Parent, Label: label}]; has {
		room = room.Min(above)
	} else {
		room = room.Min(idle)
	}
	room = room.Max(creel.Resource{})
	if !q.Leaf {
		if l.free == nil {
			l.free = map[subcluster.QueueOn]creel.Resource{}
		}
		l.free[subcluster.QueueOn{Queue: q.Path, Label: label}] = room
	}
	row := subcluster.QueueLoad{
		Queue: q.Path, Label: label, Capacity: q.Guaranteed, Used: q.Used,
		Pending: q.Pending.Add(q.InLine), // like PendingMB of Metrics
		Free:    room,
	}
	if q.Planned != nil {
		row.Planned = &q.Planned.Amount
	}
	l.limits(m, q, &row)
	return row
}

// limits adds to a row the limits of the queue and its users there.
func (l *Loads) limits(m *rm.Machine, q *explain.QueueView, row *subcluster.QueueLoad) {
	most := q.Max
	if above, has := l.most[subcluster.QueueOn{Queue: q.Parent, Label: row.Label}]; has {
		most = most.Min(above)
		if !l.most[subcluster.QueueOn{Queue: creel.RootQueue, Label: row.Label}].Fits(most) {
			row.Most = &most
		}
	}
	if !q.Leaf {
		if l.most == nil {
			l.most = map[subcluster.QueueOn]creel.Resource{}
		}
		l.most[subcluster.QueueOn{Queue: q.Path, Label: row.Label}] = most
		return
	}
	each, users := m.UsersWait(q.Path, row.Label)
	if !most.Fits(each) {
		row.EachUser = &each
	}
	for _, u := range users {
		row.Users = append(row.Users, subcluster.UserLoad(u))
	}
}

// addLabels adds a queue's shares of labels; for the root these are the partitions themselves. Parents come before
// their children.
func addLabels(l *subcluster.Labels, q *rm.QueueView, labels []rm.Label) {
	l.Add(q.Path, q.Labels, q.DefaultLabel)
	if q.Path != creel.RootQueue {
		return
	}
	for _, label := range labels {
		p := subcluster.Partition{Label: label.Name, Shared: !label.Exclusive}
		for i := range q.Partitions {
			if of := &q.Partitions[i]; of.Label == label.Name {
				p.Total, p.Used, p.Pending = of.Guaranteed, of.Used, of.Pending.Add(of.InLine)
			}
		}
		l.Partitions = append(l.Partitions, p)
	}
}
