// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// version is the Hadoop release of these documents and protocols. Clients compare it with theirs.
const version = "3.4.2"

func (h *clusterAPI) info(w http.ResponseWriter, r *http.Request) {
	kept := &h.infoDoc[formOf(r)]
	body := kept.Load()
	if body == nil {
		made := h.infoBody(r)
		body = &made
		kept.Store(body)
	}
	w.Header()["Content-Type"] = contentType(r)
	send(w, r, http.StatusOK, *body)
}

// StandbyInfo serves the document of the standby of a pair about itself.
func StandbyInfo(started time.Time, conf Config) http.HandlerFunc {
	h := &Handler{conf: conf}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = contentType(r)
		send(w, r, http.StatusOK, clusterInfo(h, r, started.UnixMilli(), "STANDBY"))
	}
}

func (h *clusterAPI) infoBody(r *http.Request) []byte {
	return clusterInfo(h.Handler, r, h.s.Started().UnixMilli(), "ACTIVE")
}

func clusterInfo(h *Handler, r *http.Request, started int64, haState string) []byte {
	return h.document(r, "clusterInfo", rooted, func(w *writer) {
		w.Int("id", started)
		w.Int("startedOn", started)
		w.Text("state", "STARTED")
		w.Text("haState", haState)
		w.Text("rmStateStoreName", cmp.Or(h.conf.State, "memory"))
		w.Text("resourceManagerVersion", version)
		w.Text("resourceManagerBuildVersion", version+" by creel")
		w.Text("resourceManagerVersionBuiltOn", "")
		w.Text("hadoopVersion", version)
		w.Text("hadoopBuildVersion", version+" by creel")
		w.Text("hadoopVersionBuiltOn", "")
		w.Text(
			"haZooKeeperConnectionState",
			"Could not find leader elector. Verify both HA and automatic failover are enabled.",
		)
	})
}

func (h *clusterAPI) metrics(w http.ResponseWriter, r *http.Request) {
	kept := &h.metricsDoc
	if routed(r) {
		kept = &h.routedMetrics
	}
	if h.sendShort(w, r, kept) {
		return
	}
	moves, now := h.s.Moves(), time.Now()
	var v rm.ClusterView
	var use nodeUse
	var fair bool
	if err := h.read(r.Context(), func(m *rm.Machine, now time.Time) {
		v, use, fair = m.Cluster(), h.usage(m, now), m.Spec().Scheduler == queues.FairScheduler
		if routed(r) {
			m.UAMs().TakeFromCluster(&v)
		}
	}); err != nil {
		h.refuse(w, r, err)
		return
	}
	m := codec.Metrics(&v)
	m.UtilizedMB, m.UtilizedVirtualCores = use.memoryMB, int64(use.cpu)
	m.UtilizedMBPercent = int64(percentOf(float64(use.memoryMB), float64(use.physicalMB)))
	m.UtilizedVirtualCoresPercent = int64(percentOf(use.cpu, float64(use.physicalCores)))
	m.ContainersPerSecond = h.rate.per(v.Granted, now)
	body := h.document(r, "clusterMetrics", rooted, func(w *writer) {
		w.Int("appsSubmitted", m.AppsSubmitted)
		w.Int("appsCompleted", m.AppsCompleted)
		w.Int("appsPending", m.AppsPending)
		w.Int("appsRunning", m.AppsRunning)
		w.Int("appsFailed", m.AppsFailed)
		w.Int("appsKilled", m.AppsKilled)
		w.Int("reservedMB", m.ReservedMB)
		w.Int("availableMB", m.AvailableMB)
		w.Int("allocatedMB", m.AllocatedMB)
		w.Int("pendingMB", m.PendingMB)
		w.Int("reservedVirtualCores", m.ReservedVirtualCores)
		w.Int("availableVirtualCores", m.AvailableVirtualCores)
		w.Int("allocatedVirtualCores", m.AllocatedVirtualCores)
		w.Int("pendingVirtualCores", m.PendingVirtualCores)
		w.Int("containersAllocated", m.ContainersAllocated)
		w.Int("containersReserved", m.ContainersReserved)
		w.Int("containersPending", m.ContainersPending)
		w.Int("totalMB", m.TotalMB)
		w.Int("utilizedMB", m.UtilizedMB)
		w.Int("totalVirtualCores", m.TotalVirtualCores)
		w.Int("utilizedVirtualCores", m.UtilizedVirtualCores)
		w.Int("utilizedMBPercent", m.UtilizedMBPercent)
		w.Int("utilizedVirtualCoresPercent", m.UtilizedVirtualCoresPercent)
		w.Int("rmSchedulerBusyPercent", m.SchedulerBusyPercent)
		w.Int("totalNodes", m.TotalNodes)
		w.Int("lostNodes", m.LostNodes)
		w.Int("unhealthyNodes", m.UnhealthyNodes)
		w.Int("decommissioningNodes", m.DecommissioningNodes)
		w.Int("decommissionedNodes", m.DecommissionedNodes)
		w.Int("rebootedNodes", m.RebootedNodes)
		w.Int("activeNodes", m.ActiveNodes)
		w.Int("shutdownNodes", m.ShutdownNodes)
		w.Int("containerAssignedPerSecond", m.ContainersPerSecond)
		if !fair { // FairScheduler has no partitions
			h.resource(w, "totalUsedResourcesAcrossPartition", v.AllUsed)
			h.resource(w, "totalClusterResourcesAcrossPartition", v.AllTotal)
			h.resource(w, "totalReservedResourcesAcrossPartition", v.AllReserved)
			w.Int("totalAllocatedContainersAcrossPartition", m.ContainersAllocated)
		} else {
			w.Int("totalAllocatedContainersAcrossPartition", 0)
		}
		w.Bool("crossPartitionMetricsAvailable", !fair)
		w.Int("rmEventQueueSize", 0)
		w.Int("schedulerEventQueueSize", 0)
	})
	kept.form(r).Store(&shortDocument{moves: moves, made: now, body: body})
	w.Header()["Content-Type"] = contentType(r)
	send(w, r, http.StatusOK, body)
}

// resource writes a ResourceInfo.
func (h *Handler) resource(w *writer, name string, v creel.Resource) {
	w.Object(name, func(w *writer) { h.resourceFields(w, v, 0, 1<<63-1, 0, 1<<63-1) })
}

// resourceFields writes a ResourceInfo whose memory and vcores have bounds.
func (h *Handler) resourceFields(w *writer, v creel.Resource, minMB, maxMB, minCores, maxCores int64) {
	w.Int("memory", v.MemoryMB)
	w.Int("vCores", v.VCores)
	w.Object("resourceInformations", func(w *writer) {
		w.List("resourceInformation", 2+len(h.conf.Resources), func(w *writer, i int) {
			name, unit, least, most, value := creel.MemoryName, "Mi", minMB, maxMB, v.MemoryMB
			switch {
			case i == 1:
				name, unit, least, most, value = creel.VCoresName, "", minCores, maxCores, v.VCores
			case i > 1:
				t := h.conf.Resources[i-2]
				name, unit, least, most = t.Name, t.Unit, t.Min, t.Max
				if plain := v.Get(name); plain >= 1<<62 { // no bound
					value = math.MaxInt64
				} else {
					value = t.InUnit(plain)
				}
			}
			w.Object("attributes", func(*writer) {})
			w.Int("maximumAllocation", most)
			w.Int("minimumAllocation", least)
			w.Text("name", name)
			w.Text("resourceType", "COUNTABLE")
			w.Text("units", unit)
			w.Int("value", value)
		})
	})
}

func (h *Handler) resourceNames() []string {
	names := []string{creel.MemoryName, creel.VCoresName}
	for _, t := range h.conf.Resources {
		names = append(names, t.Name)
	}
	return names
}

// inUnit returns an amount in the configured unit of its resource type.
func (h *Handler) inUnit(name string, amount int64) int64 {
	for _, t := range h.conf.Resources {
		if t.Name == name {
			return t.InUnit(amount)
		}
	}
	return amount
}

// nodeUse is the sum of the nodes' measurements.
type nodeUse struct {
	memoryMB, physicalMB int64
	cpu                  float64
	physicalCores        int64
}

// usage sums the nodes' measurements, at most once a second because it reads every node. It runs in the machine's
// goroutine.
func (h *clusterAPI) usage(m *rm.Machine, now time.Time) nodeUse {
	if now.Sub(h.useAt) < time.Second && !h.useAt.IsZero() {
		return h.use
	}
	h.use, h.useAt = nodeUse{}, now
	for n := range m.Nodes {
		if n.State.Usable() {
			h.use.memoryMB += int64(n.Utilization.NodePhysicalMB)
			h.use.cpu += float64(n.Utilization.NodeCPU)
			h.use.physicalMB += n.Physical.MemoryMB
			h.use.physicalCores += n.Physical.VCores
		}
	}
	return h.use
}

// userinfo serves the user of this process and the caller.
func (h *clusterAPI) userinfo(w http.ResponseWriter, r *http.Request) {
	user, _ := h.who(r)
	h.reply(w, r, http.StatusOK, "clusterUserInfo", mapped, func(w *writer) {
		w.Text("rmLoginUser", h.conf.LoginUser)
		w.Text("requestedUser", user)
	})
}

// overview describes the scheduler on one line.
func (h *queuesAPI) overview(w http.ResponseWriter, r *http.Request) {
	var least, most creel.Resource
	var priority int32
	name := "Capacity Scheduler"
	err := h.read(r.Context(), func(m *rm.Machine, _ time.Time) {
		c := m.Config()
		least, most, priority = c.MinAllocation, c.MaxAllocation, m.Spec().MaxClusterPriority
		if m.Spec().Scheduler == queues.FairScheduler {
			name = "Fair Scheduler"
		}
	})
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.reply(w, r, http.StatusOK, "scheduler", mapped, func(w *writer) {
		w.Text("schedulerType", name)
		types := []string{"memory-mb (unit=Mi)", "vcores"}
		for _, t := range h.conf.Resources {
			if t.Unit != "" {
				t.Name += " (unit=" + t.Unit + ")"
			}
			types = append(types, t.Name)
		}
		slices.Sort(types)
		w.Text("schedulingResourceType", strings.Join(types, ","))
		h.resource(w, "minimumAllocation", least)
		h.resource(w, "maximumAllocation", most)
		w.Int("applicationPriority", int64(priority))
		w.Int("schedulerBusy", -1)
		w.Int("rmDispatcherEventQueueSize", 0)
		w.Int("schedulerDispatcherEventQueueSize", 0)
	})
}

func (h *nodesAPI) nodes(w http.ResponseWriter, r *http.Request) {
	var wanted []creel.NodeState
	for _, list := range r.URL.Query()["states"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); name == "" {
				continue
			}
			s, err := creel.ParseNodeState(name)
			if err != nil {
				h.refuse(
					w,
					r,
					&refusal{
						http.StatusBadRequest,
						classIllegal,
						"No enum constant org.apache.hadoop.yarn.api.records.NodeState." + strings.ToUpper(name),
					},
				)
				return
			}
			wanted = append(wanted, s)
		}
	}
	var nodes []rm.NodeView
	err := h.read(r.Context(), func(m *rm.Machine, _ time.Time) {
		for n := range m.Nodes {
			if len(wanted) == 0 || slices.Contains(wanted, n.State) {
				nodes = append(nodes, n)
			}
		}
	})
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.reply(w, r, http.StatusOK, "nodes", rooted, func(w *writer) {
		w.List("node", len(nodes), func(w *writer, i int) { h.nodeFields(w, &nodes[i]) })
	})
}

// nodeOf reads the node of a path.
func nodeOf(r *http.Request) (creel.NodeID, error) {
	text := param(r, "nodeId")
	id, err := creel.ParseNodeID(text)
	if err != nil {
		return id, illegal("Invalid NodeId [" + text + "]. Expected host:port")
	}
	return id, nil
}

func (h *nodesAPI) node(w http.ResponseWriter, r *http.Request) {
	id, err := nodeOf(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	var n rm.NodeView
	found := false
	if err := h.read(r.Context(), func(m *rm.Machine, _ time.Time) { n, found = m.Node(id) }); err != nil {
		h.refuse(w, r, err)
		return
	}
	if !found {
		h.refuse(w, r, notFound("nodeId, "+id.String()+", is not found"))
		return
	}
	h.reply(w, r, http.StatusOK, "node", rooted, func(w *writer) { h.nodeFields(w, &n) })
}

func (h *nodesAPI) nodeFields(w *writer, n *rm.NodeView) {
	active := n.State.Usable() || n.State == creel.NodeUnhealthy || n.State == creel.NodeNew
	http := n.HTTPAddress
	if !active {
		http = ""
	}
	u := n.Utilization
	free := n.Total.Sub(n.Used)
	if !active {
		free = creel.Resource{}
	}
	w.Text("rack", n.Rack)
	w.Text("state", n.State.String())
	w.Text("id", n.ID.String())
	w.Text("nodeHostName", n.ID.Host)
	w.Text("nodeHTTPAddress", http)
	w.Int("lastHealthUpdate", millis(n.LastHeartbeat))
	w.Text("version", n.Version)
	w.Text("healthReport", n.HealthReport)
	w.Int("numContainers", int64(n.Containers))
	w.Int("usedMemoryMB", n.Used.MemoryMB)
	w.Int("availMemoryMB", free.MemoryMB)
	w.Int("usedVirtualCores", n.Used.VCores)
	w.Int("availableVirtualCores", free.VCores)
	w.Float("memUtilization", percentOf(float64(u.NodePhysicalMB), float64(n.Physical.MemoryMB)))
	w.Float("cpuUtilization", percentOf(float64(u.NodeCPU), float64(n.Physical.VCores)))
	w.Int("numRunningOpportContainers", int64(u.OpportunisticRunning))
	w.Int("usedMemoryOpportGB", u.OpportunisticMB)
	w.Int("usedVirtualCoresOpport", int64(u.OpportunisticVCores))
	w.Int("numQueuedContainers", int64(u.OpportunisticQueued))
	if n.Label != "" {
		w.Texts("nodeLabels", []string{n.Label})
	}
	w.Object("allocationTags", func(w *writer) {
		if len(n.Tags) == 0 {
			return
		}
		w.List("allocationTagInfo", len(n.Tags), func(w *writer, i int) {
			w.Text("allocationTag", n.Tags[i].Tag)
			w.Int("allocationsCount", int64(n.Tags[i].Count))
		})
	})
	w.Object("resourceUtilization", func(w *writer) {
		w.Int("nodePhysicalMemoryMB", int64(u.NodePhysicalMB))
		w.Int("nodeVirtualMemoryMB", int64(u.NodeVirtualMB))
		w.Float("nodeCPUUsage", float64(u.NodeCPU))
		w.Int("aggregatedContainersPhysicalMemoryMB", int64(u.ContainersPhysicalMB))
		w.Int("aggregatedContainersVirtualMemoryMB", int64(u.ContainersVirtualMB))
		w.Float("containersCPUUsage", float64(u.ContainersCPU))
	})
	if n.Overallocation != (rm.Overallocation{}) { // Hadoop has no such object
		w.Object("overallocation", func(w *writer) {
			w.Float("memoryThreshold", n.Overallocation.Memory)
			w.Float("cpuThreshold", n.Overallocation.CPU)
			w.Int("predictedMemoryMB", int64(u.PeakMB))
			w.Float("predictedCPUUsage", float64(u.PeakCPU))
		})
	}
	if active {
		h.resource(w, "usedResource", n.Used)
		h.resource(w, "availableResource", free)
	}
	w.Object("nodeAttributesInfo", func(w *writer) {
		if len(n.Attributes) == 0 {
			return
		}
		w.List("nodeAttributeInfo", len(n.Attributes), func(w *writer, i int) {
			a := &n.Attributes[i]
			w.Text("prefix", a.Prefix)
			w.Text("name", a.Name)
			w.Text("type", "STRING")
			w.Text("value", a.Value)
		})
	})
	h.resource(w, "totalResource", n.Total)
}

func percentOf(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * part / whole
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// scheduler writes the queue tree.
func (h *queuesAPI) scheduler(w http.ResponseWriter, r *http.Request) {
	views := map[creel.QueuePath]*rm.QueueView{}
	var fair bool
	var total creel.Resource
	var bound bounds
	err := h.read(r.Context(), func(m *rm.Machine, _ time.Time) {
		fair, total = m.Spec().Scheduler == queues.FairScheduler, m.Cluster().Total
		bound = bounds{m.Config().MinAllocation, m.Config().MaxAllocation}
		for q := range m.Queues {
			views[q.Path] = &q
		}
		if routed(r) {
			uams := m.UAMs()
			for _, q := range views {
				uams.TakeFromQueue(q)
			}
		}
	})
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	root := views[creel.RootQueue]
	if root == nil {
		h.refuse(w, r, fmt.Errorf("the queue tree has no root"))
		return
	}
	h.reply(w, r, http.StatusOK, "scheduler", rooted, func(w *writer) {
		if fair {
			w.Typed("schedulerInfo", "fairScheduler", func(w *writer) {
				w.Object("rootQueue", func(w *writer) { h.fairQueue(w, root, views, total, bound) })
			})
			return
		}
		w.Typed("schedulerInfo", "capacityScheduler", func(w *writer) {
			(&capacityDocument{h, views, bound}).root(w, root)
		})
	})
}
