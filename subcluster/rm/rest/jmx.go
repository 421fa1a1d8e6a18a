// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/servlets"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/server"
)

const service = "ResourceManager"

// beans returns this ResourceManager's beans. /jmx serves them with those of the process.
func (h *clusterAPI) beans(r *http.Request) (all []servlets.Bean, err error) {
	err = h.read(r.Context(), func(m *rm.Machine, now time.Time) { all = h.machineBeans(m, now) })
	return all, err
}

func (h *clusterAPI) machineBeans(m *rm.Machine, now time.Time) []servlets.Bean {
	v := m.Cluster()
	info := servlets.Bean{Name: servlets.BeanName(service, "RMInfo"),
		Class: "org.apache.hadoop.yarn.server.resourcemanager.RMInfo"}
	info.Set("State", "active")
	info.Set("SecurityEnabled", false)
	info.Set("HostAndPort", h.s.Addresses().Client)

	c := servlets.Metrics(service, "ClusterMetrics", "yarn")
	c.Set("tag.ClusterMetrics", "ResourceManager")
	c.Set("CapabilityMB", v.Total.MemoryMB)
	c.Set("CapabilityVirtualCores", v.Total.VCores)
	c.Set("ContainerAssignedPerSecond", h.rate.per(v.Granted, now))
	for _, s := range []struct {
		name  string
		state creel.NodeState
	}{
		{"NumActiveNMs", creel.NodeRunning},
		{"NumDecommissionedNMs", creel.NodeDecommissioned},
		{"NumDecommissioningNMs", creel.NodeDecommissioning},
		{"NumLostNMs", creel.NodeLost},
		{"NumRebootedNMs", creel.NodeRebooted},
		{"NumShutdownNMs", creel.NodeShutdown},
		{"NumUnhealthyNMs", creel.NodeUnhealthy},
	} {
		c.Set(s.name, v.Nodes[s.state])
	}
	use := h.usage(m, now)
	c.Set("UtilizedMB", use.memoryMB)
	c.Set("UtilizedVirtualCores", int64(use.cpu))
	c.Set("RmDispatcherEventQueueSize", 0)
	c.Set("SchedulerDispatcherEventQueueSize", 0)
	h.delays.add(&c, "AMLaunchDelay", now, v.AMLaunch)
	h.delays.add(&c, "AMRegisterDelay", now, v.AMRegister)
	h.delays.add(&c, "AMContainerAllocationDelay", now, v.AMAllocation)

	nodes := servlets.Bean{Name: servlets.BeanName(service, "RMNMInfo"),
		Class: "org.apache.hadoop.yarn.server.resourcemanager.RMNMInfo"}
	nodes.Set("LiveNodeManagers", liveNodes(m))
	out := []servlets.Bean{info, c, nodes}
	if m.Spec().Scheduler != queues.FairScheduler {
		out = append(out, h.schedulerBean(&v, now))
	}
	if v, on := m.Opportunistic(); on {
		out = append(out, opportunisticBean(&v))
	}
	running := m.RunningTimes(runningBounds)
	for q := range m.Queues {
		out = append(out, queueBean(&q, running[q.Path]))
	}
	counts := servlets.Metrics(service, "RpcActivity", "rpc")
	calls := h.s.Metrics()
	counts.Set("NodeHeartbeats", calls.Heartbeats.Load())
	counts.Set("Allocates", calls.Allocates.Load())
	counts.Set("Submissions", calls.Submissions.Load())
	counts.Set("Launches", calls.Launches.Load())
	counts.Set("LaunchFailures", calls.LaunchFailures.Load())
	counts.Set("Kills", calls.Kills.Load())
	return append(out, counts)
}

// delays has the means of a ResourceManager's steps. The machine's owner uses it.
type delays map[string]*servlets.Mean

func (d delays) add(b *servlets.Bean, name string, now time.Time, of rm.Delay) {
	if d[name] == nil {
		d[name] = &servlets.Mean{}
	}
	b.SetRate(name, of.Count, d[name].At(now, of.Count, of.Sum))
}

// schedulerBean has the work of the scheduler. The times are of a sample of the calls, in nanoseconds. No commit can
// fail: the owner of the machine chooses a container and books it in one step.
func (h *clusterAPI) schedulerBean(v *rm.ClusterView, now time.Time) servlets.Bean {
	b := servlets.Metrics(service, "CapacitySchedulerMetrics", "yarn")
	b.Set("tag.CapacitySchedulerMetrics", "ResourceManager")
	calls := h.s.Metrics()
	rate := func(name string, total int64, sample *server.Sample) {
		n, sum := sample.Load()
		if h.delays[name] == nil {
			h.delays[name] = &servlets.Mean{}
		}
		b.Set(name+"NumOps", total)
		b.Set(name+"AvgTime", float64(h.delays[name].At(now, n, sum)))
	}
	rate("Allocate", calls.Allocates.Load(), &calls.AllocateTimes)
	rate("NodeUpdate", calls.Heartbeats.Load(), &calls.HeartbeatTimes)
	b.Set("CommitSuccessNumOps", v.Granted)
	return b
}

// opportunisticBean counts opportunistic containers. As in Hadoop, a demotion counts as a grant, and a promotion as a
// release.
func opportunisticBean(v *rm.OpportunisticCounts) servlets.Bean {
	b := servlets.Metrics(service, "OpportunisticSchedulerMetrics", "yarn")
	b.Set("tag.OpportunisticSchedulerMetrics", "ResourceManager")
	b.Set("AllocatedOContainers", v.Containers)
	b.Set("AggregateOContainersAllocated", v.Granted+v.Demoted)
	b.Set("AggregateOContainersReleased", v.Released+v.Promoted)
	b.Set("AggregateNodeLocalOContainersAllocated", v.NodeLocal)
	b.Set("AggregateRackLocalOContainersAllocated", v.OnRack)
	b.Set("AggregateOffSwitchOContainersAllocated", v.Elsewhere)
	return b
}

// runningBounds are the default of yarn.resourcemanager.metrics.runtime.buckets.
var runningBounds = []time.Duration{time.Hour, 5 * time.Hour, 24 * time.Hour}

// queueBean is the QueueMetrics bean of one queue. Its name lists the parts of the path.
func queueBean(q *rm.QueueView, running []int) servlets.Bean {
	name := "QueueMetrics"
	for i, part := range q.Path.Parts() {
		name += ",q" + strconv.Itoa(i) + "=" + part
	}
	b := servlets.Metrics(service, name, "yarn")
	b.Set("tag.Queue", string(q.Path))
	b.Set("AMResourceLimitMB", q.AMLimit.MemoryMB)
	b.Set("AMResourceLimitVCores", q.AMLimit.VCores)
	b.Set("AbsoluteUsedCapacity", q.AbsUsed)
	b.Set("GuaranteedAbsoluteCapacity", q.AbsCapacity)
	b.Set("GuaranteedCapacity", q.Capacity)
	b.Set("GuaranteedMB", q.Guaranteed.MemoryMB)
	b.Set("GuaranteedVCores", q.Guaranteed.VCores)
	b.Set("MaxAbsoluteCapacity", q.AbsMaxCapacity)
	b.Set("MaxCapacity", q.MaxCapacity)
	b.Set("MaxCapacityMB", q.Max.MemoryMB)
	b.Set("MaxCapacityVCores", q.Max.VCores)
	b.Set("UsedAMResourceMB", q.AMUsed.MemoryMB)
	b.Set("UsedAMResourceVCores", q.AMUsed.VCores)
	b.Set("UsedCapacity", q.UsedCapacity)
	b.Set("ActiveApplications", q.ActiveApps)
	b.Set("ActiveUsers", len(q.Users))
	b.Set("AggregateContainersAllocated", q.ContainersAllocated)
	b.Set("AggregateNodeLocalContainersAllocated", q.NodeLocal)
	b.Set("AggregateRackLocalContainersAllocated", q.RackLocal)
	b.Set("AggregateOffSwitchContainersAllocated", q.OffSwitch)
	b.Set("AggregateContainersReleased", q.ContainersReleased)
	b.Set("AggregateContainersPreempted", q.ContainersPreempted)
	b.Set("AggregateMemoryMBPreempted", q.Preempted.MemoryMB)
	b.Set("AggregateMemoryMBSecondsPreempted", q.PreemptedSeconds.MemoryMB)
	b.Set("AggregateVcoreSecondsPreempted", q.PreemptedSeconds.VCores)
	b.Set("AggregateVcoresPreempted", q.Preempted.VCores)
	b.Set("AllocatedContainers", q.Containers)
	b.Set("AllocatedMB", q.Used.MemoryMB)
	b.Set("AllocatedVCores", q.Used.VCores)
	b.Set("AppsSubmitted", q.AppsSubmitted)
	b.Set("AppsCompleted", q.AppsCompleted)
	b.Set("AppsFailed", q.AppsFailed)
	b.Set("AppsKilled", q.AppsKilled)
	b.Set("AppsPending", q.PendingApps)
	b.Set("AppsRunning", q.ActiveApps)
	free := q.Max.Sub(q.Used).Max(creel.Resource{})
	b.Set("AvailableMB", free.MemoryMB)
	b.Set("AvailableVCores", free.VCores)
	b.Set("PendingContainers", q.PendingContainers)
	b.Set("PendingMB", q.Pending.MemoryMB)
	b.Set("PendingVCores", q.Pending.VCores)
	b.Set("ReservedContainers", q.ReservedContainers)
	b.Set("ReservedMB", q.Reserved.MemoryMB)
	b.Set("ReservedVCores", q.Reserved.VCores)
	for i := range len(runningBounds) + 1 {
		from, n := 0, 0
		if i > 0 {
			from = int(runningBounds[i-1].Minutes())
		}
		if running != nil {
			n = running[i]
		}
		b.Set("running_"+strconv.Itoa(from), n)
	}
	return b
}

// liveNodes is a JSON document, as a string within the outer document.
func liveNodes(m *rm.Machine) string {
	type live struct {
		HostName           string
		Rack               string
		State              string
		NodeID             string `json:"NodeId"`
		NodeHTTPAddress    string
		LastHealthUpdate   int64
		HealthReport       string
		NodeManagerVersion string
		NumContainers      int32
		UsedMemoryMB       int64
		AvailableMemoryMB  int64
	}
	list := []live{}
	for n := range m.Nodes {
		if n.State.Usable() || n.State == creel.NodeUnhealthy {
			list = append(
				list,
				live{
					n.ID.Host,
					n.Rack,
					n.State.String(),
					n.ID.String(),
					n.HTTPAddress,
					millis(n.LastHeartbeat),
					n.HealthReport,
					n.Version,
					n.Containers,
					n.Used.MemoryMB,
					n.Total.MemoryMB - n.Used.MemoryMB,
				},
			)
		}
	}
	b, err := json.Marshal(list)
	if err != nil {
		return "[]"
	}
	return string(b)
}
