// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"net/http"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
)

// A bean as Hadoop's /jmx shows it: exporters find beans by name and read
// attributes by name. Of a Java process' own beans those are kept that
// exporters chart, with this process' figures in them.
type bean struct {
	name, class string
	attributes  []attribute
}

type attribute struct {
	name  string
	value any // what encoding/json writes, a float64 with its point
}

func (b *bean) set(name string, value any) {
	b.attributes = append(b.attributes, attribute{name, value})
}

// jmx answers ?qry=PATTERN with the beans whose names match, ?get=NAME::ATTRIBUTE
// with one attribute, and everything without either. A question that makes no
// sense is answered with 200, as Hadoop's servlet does.
func (h *Handler) jmx(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf8")
	w.Header().Set("Access-Control-Allow-Methods", "GET")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	query, attr := r.URL.Query().Get("qry"), ""
	if get := r.URL.Query().Get("get"); get != "" {
		var ok bool
		if query, attr, ok = strings.Cut(get, "::"); !ok {
			w.Write([]byte("{\n  \"result\" : \"ERROR\",\n  \"message\" : \"query format is not as expected.\"\n}"))
			return
		}
	}
	if query != "" && !strings.Contains(query, ":") {
		w.Write([]byte("{ }"))
		return
	}
	var all []bean
	err := h.read(r.Context(), func(m *rm.Machine, now time.Time) { all = h.machineBeans(m, now) })
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		w.Write([]byte("{ }"))
		return
	}
	all = append(all, processBeans(h.s.Started())...)
	b := []byte("{\n  \"beans\" : [ ")
	written := 0
	for i := range all {
		if query != "" && !beanMatches(query, all[i].name) {
			continue
		}
		if written++; written > 1 {
			b = append(b, ", "...)
		}
		b = all[i].append(b, attr)
	}
	if written > 0 {
		b = append(b, ' ')
	}
	send(w, r, http.StatusOK, append(b, "]\n}\n"...))
}

func (b *bean) append(out []byte, only string) []byte {
	out = append(out, "{\n    \"name\" : "...)
	out = appendJSON(out, b.name)
	out = append(out, ",\n    \"modelerType\" : "...)
	out = appendJSON(out, b.class)
	for _, a := range b.attributes {
		if only != "" && a.name != only {
			continue
		}
		out = append(out, ",\n    "...)
		out = appendJSON(out, a.name)
		out = append(out, " : "...)
		if f, ok := a.value.(float64); ok {
			out = appendFloat(out, f)
			continue
		}
		v, err := json.Marshal(a.value)
		if err != nil {
			v = []byte("null")
		}
		out = append(out, v...)
	}
	return append(out, "\n  }"...)
}

// beanMatches follows javax.management.ObjectName: a pattern has * and ? in
// its domain and in the values of its properties, and a bare * among the
// properties admits others.
func beanMatches(pattern, name string) bool {
	glob := func(p, s string) bool {
		ok, err := path.Match(
			strings.NewReplacer("[", `\[`, "/", "\x00").Replace(p),
			strings.ReplaceAll(s, "/", "\x00"),
		)
		return err == nil && ok
	}
	pd, pp, _ := strings.Cut(pattern, ":")
	nd, np, _ := strings.Cut(name, ":")
	if !glob(pd, nd) {
		return false
	}
	have := map[string]string{}
	for kv := range strings.SplitSeq(np, ",") {
		k, v, _ := strings.Cut(kv, "=")
		have[k] = v
	}
	open, asked := false, 0
	for kv := range strings.SplitSeq(pp, ",") {
		if kv == "*" {
			open = true
			continue
		}
		k, v, _ := strings.Cut(kv, "=")
		got, ok := have[k]
		if !ok || !glob(v, got) {
			return false
		}
		asked++
	}
	return open || asked == len(have)
}

const rmBean = "Hadoop:service=ResourceManager,name="

// hadoopBean begins a bean of Hadoop's metrics.
func hadoopBean(name, context string) bean {
	b := bean{name: rmBean + name, class: name}
	b.set("tag.Context", context)
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	b.set("tag.Hostname", host)
	return b
}

func (h *Handler) machineBeans(m *rm.Machine, now time.Time) []bean {
	v := m.Cluster()
	info := bean{name: rmBean + "RMInfo", class: "org.apache.hadoop.yarn.server.resourcemanager.RMInfo"}
	info.set("State", "active")
	info.set("SecurityEnabled", false)
	info.set("HostAndPort", h.s.Addresses().Client)

	c := hadoopBean("ClusterMetrics", "yarn")
	c.set("tag.ClusterMetrics", "ResourceManager")
	c.set("CapabilityMB", v.Total.MemoryMB)
	c.set("CapabilityVirtualCores", v.Total.VCores)
	c.set("ContainerAssignedPerSecond", h.rate.per(v.Granted, now))
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
		c.set(s.name, v.Nodes[s.state])
	}
	use := h.usage(m, now)
	c.set("UtilizedMB", use.memoryMB)
	c.set("UtilizedVirtualCores", int64(use.cpu))
	c.set("RmDispatcherEventQueueSize", 0)
	c.set("SchedulerDispatcherEventQueueSize", 0)

	nodes := bean{name: rmBean + "RMNMInfo", class: "org.apache.hadoop.yarn.server.resourcemanager.RMNMInfo"}
	nodes.set("LiveNodeManagers", liveNodes(m))
	out := []bean{info, c, nodes}
	for q := range m.Queues {
		out = append(out, queueBean(&q))
	}
	counts := hadoopBean("RpcActivity", "rpc")
	calls := h.s.Metrics()
	counts.set("NodeHeartbeats", calls.Heartbeats.Load())
	counts.set("Allocates", calls.Allocates.Load())
	counts.set("Submissions", calls.Submissions.Load())
	counts.set("Launches", calls.Launches.Load())
	counts.set("LaunchFailures", calls.LaunchFailures.Load())
	counts.set("Kills", calls.Kills.Load())
	return append(out, counts)
}

// queueBean is QueueMetrics of one queue; its name holds the path part by part.
func queueBean(q *rm.QueueView) bean {
	name := "QueueMetrics"
	for i, part := range q.Path.Parts() {
		name += ",q" + strconv.Itoa(i) + "=" + part
	}
	b := hadoopBean(name, "yarn")
	b.set("tag.Queue", string(q.Path))
	b.set("AMResourceLimitMB", q.AMLimit.MemoryMB)
	b.set("AMResourceLimitVCores", q.AMLimit.VCores)
	b.set("AbsoluteUsedCapacity", q.AbsUsed)
	b.set("GuaranteedAbsoluteCapacity", q.AbsCapacity)
	b.set("GuaranteedCapacity", q.Capacity)
	b.set("GuaranteedMB", q.Guaranteed.MemoryMB)
	b.set("GuaranteedVCores", q.Guaranteed.VCores)
	b.set("MaxAbsoluteCapacity", q.AbsMaxCapacity)
	b.set("MaxCapacity", q.MaxCapacity)
	b.set("MaxCapacityMB", q.Max.MemoryMB)
	b.set("MaxCapacityVCores", q.Max.VCores)
	b.set("UsedAMResourceMB", q.AMUsed.MemoryMB)
	b.set("UsedAMResourceVCores", q.AMUsed.VCores)
	b.set("UsedCapacity", q.UsedCapacity)
	b.set("ActiveApplications", q.ActiveApps)
	b.set("ActiveUsers", len(q.Users))
	b.set("AggregateContainersAllocated", q.ContainersAllocated)
	b.set("AggregateContainersReleased", q.ContainersReleased)
	b.set("AggregateContainersPreempted", q.ContainersPreempted)
	b.set("AggregateMemoryMBPreempted", q.Preempted.MemoryMB)
	b.set("AggregateMemoryMBSecondsPreempted", q.PreemptedSeconds.MemoryMB)
	b.set("AggregateVcoreSecondsPreempted", q.PreemptedSeconds.VCores)
	b.set("AggregateVcoresPreempted", q.Preempted.VCores)
	b.set("AllocatedContainers", q.Containers)
	b.set("AllocatedMB", q.Used.MemoryMB)
	b.set("AllocatedVCores", q.Used.VCores)
	b.set("AppsSubmitted", q.AppsSubmitted)
	b.set("AppsCompleted", q.AppsCompleted)
	b.set("AppsFailed", q.AppsFailed)
	b.set("AppsKilled", q.AppsKilled)
	b.set("AppsPending", q.PendingApps)
	b.set("AppsRunning", q.ActiveApps)
	free := q.Max.Sub(q.Used).Max(creel.Resource{})
	b.set("AvailableMB", free.MemoryMB)
	b.set("AvailableVCores", free.VCores)
	b.set("PendingContainers", q.PendingContainers)
	b.set("PendingMB", q.Pending.MemoryMB)
	b.set("PendingVCores", q.Pending.VCores)
	b.set("ReservedContainers", q.ReservedContainers)
	b.set("ReservedMB", q.Reserved.MemoryMB)
	b.set("ReservedVCores", q.Reserved.VCores)
	return b
}

// liveNodes is a document within the document: a string that holds JSON.
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

// processBeans are figures of this process under the names that charts of a
// Java one look for.
func processBeans(started time.Time) []bean {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	const mib = 1 << 20
	jvm := hadoopBean("JvmMetrics", "jvm")
	jvm.set("tag.ProcessName", "ResourceManager")
	jvm.set("MemNonHeapUsedM", float64(s.StackInuse+s.MSpanInuse+s.MCacheInuse+s.OtherSys)/mib)
	jvm.set("MemNonHeapCommittedM", float64(s.Sys-s.HeapSys)/mib)
	jvm.set("MemHeapUsedM", float64(s.HeapAlloc)/mib)
	jvm.set("MemHeapCommittedM", float64(s.HeapSys-s.HeapReleased)/mib)
	jvm.set("MemHeapMaxM", float64(s.HeapSys)/mib)
	jvm.set("MemMaxM", float64(s.Sys)/mib)
	jvm.set("GcCount", s.NumGC)
	jvm.set("GcTimeMillis", int64(s.PauseTotalNs/1e6))
	jvm.set("ThreadsRunnable", runtime.NumGoroutine())

	memory := bean{name: "java.lang:type=Memory", class: "sun.management.MemoryImpl"}
	memory.set(
		"HeapMemoryUsage",
		map[string]uint64{"committed": s.HeapSys - s.HeapReleased, "init": 0, "max": s.HeapSys, "used": s.HeapAlloc},
	)
	memory.set(
		"NonHeapMemoryUsage",
		map[string]uint64{
			"committed": s.Sys - s.HeapSys,
			"init":      0,
			"max":       s.Sys,
			"used":      s.StackInuse + s.MSpanInuse + s.MCacheInuse,
		},
	)
	threads := bean{name: "java.lang:type=Threading", class: "sun.management.ThreadImpl"}
	threads.set("ThreadCount", runtime.NumGoroutine())
	process := bean{name: "java.lang:type=Runtime", class: "sun.management.RuntimeImpl"}
	process.set("StartTime", started.UnixMilli())
	process.set("Uptime", time.Since(started).Milliseconds())
	process.set("VmName", runtime.Version())
	system := bean{name: "java.lang:type=OperatingSystem", class: "sun.management.OperatingSystemImpl"}
	system.set("AvailableProcessors", runtime.NumCPU())
	system.set("Arch", runtime.GOARCH)
	system.set("Name", runtime.GOOS)
	return []bean{jvm, memory, threads, process, system}
}
