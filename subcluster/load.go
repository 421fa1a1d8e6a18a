// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/creelrm/creel"
)

// Heartbeat renews a member's lease and reports its load.
type Heartbeat struct {
	ID    creel.SubclusterID
	Epoch int64
	// Load is the JSON that Hadoop's ResourceManager writes as its capability and serves at /ws/v1/cluster/metrics,
	// {"clusterMetrics":{...}}, with creel's queue figures as an optional sibling (see Load). If it is empty, the
	// last load stays.
	Load []byte
	// Parts are the parts of Load, the head first, for partial reads; none: it is always read whole. Rows equal to
	// the previous heartbeat's may be left out.
	Parts []Part
	// AllParts: Parts is complete.
	AllParts bool
}

// Load is a member's last report, parsed. Its JSON form is
//
//	{"clusterMetrics":{"appsPending":3,...},"creel":{"queues":[...]}}
//
// so that readers of Hadoop's format find its fields.
type Load struct {
	Metrics ClusterMetrics
	Queues  []QueueLoad // sorted by queue, then label; nil from a Hadoop ResourceManager
	// UAMs counts proxies' unmanaged AMs among the applications of Metrics: parts of applications with a home
	// elsewhere. Members running Hadoop's ResourceManager do not report them.
	UAMs UAMLoad
	// Refusing is the reason why the member accepts no new applications, empty if it accepts them.
	Refusing string
	// Nodes is the digest of the member's published list of nodes, empty without a list; see subcluster/resolver.
	Nodes string
	// BeginsAgain: the member restarts an ended UAM if a submission names its last attempt (yarnpb.BeginAfter).
	// Otherwise it accepts an application id only once, like Hadoop's ResourceManager and older creel releases.
	BeginsAgain bool
	// Labels are its node labels.
	Labels Labels
	// MemoryOnly: the member reports that its scheduler compares only memory; see ComparesCores.
	MemoryOnly bool
	// PreemptionOff: the member reports that it preempts no containers.
	PreemptionOff bool
	// Places is the set of submissions that the member's placement rules may move to another queue than they name.
	Places Places
	// Makes are the queues below which the member creates queues that submissions name.
	Makes []creel.QueuePath
	// Waits counts granted containers by the time between ask and grant, since the member's start, in the buckets of
	// internal/waitstats; nil if the member does not count them.
	Waits []uint64
	// QueueWaits counts the same for each leaf queue that granted containers, by queue.
	QueueWaits []QueueWaits
	// NodeQueues are the lengths of the queues of opportunistic containers on the least loaded nodes without a label.
	// It is empty if all queues are full, and nil if the member allocates no such containers or does not report it.
	NodeQueues []int32
	// Preempted is the amount preempted in intervals of preemption budgets, for members that count it.
	Preempted []PreemptionSpent
}

// Places is a set of submissions. The empty one is of members without placement rules, and of Hadoop's.
type Places string

// The sets. Values of newer members are like PlacesAll.
const (
	PlacesUnnamed Places = "unnamed" // those that name no queue, or "default"
	PlacesAll     Places = "all"
)

// Has reports whether a submission that names a queue is in the set.
func (p Places) Has(queue creel.QueuePath) bool {
	return p != "" && (p != PlacesUnnamed || queue == "" || queue == "default")
}

// ClusterMetrics has the fields of Hadoop's clusterMetrics. Memory is in MB.
type ClusterMetrics struct {
	AppsSubmitted               int64 `json:"appsSubmitted"`
	AppsCompleted               int64 `json:"appsCompleted"`
	AppsPending                 int64 `json:"appsPending"`
	AppsRunning                 int64 `json:"appsRunning"`
	AppsFailed                  int64 `json:"appsFailed"`
	AppsKilled                  int64 `json:"appsKilled"`
	ReservedMB                  int64 `json:"reservedMB"`
	AvailableMB                 int64 `json:"availableMB"`
	AllocatedMB                 int64 `json:"allocatedMB"`
	PendingMB                   int64 `json:"pendingMB"`
	ReservedVirtualCores        int64 `json:"reservedVirtualCores"`
	AvailableVirtualCores       int64 `json:"availableVirtualCores"`
	AllocatedVirtualCores       int64 `json:"allocatedVirtualCores"`
	PendingVirtualCores         int64 `json:"pendingVirtualCores"`
	ContainersAllocated         int64 `json:"containersAllocated"`
	ContainersReserved          int64 `json:"containersReserved"`
	ContainersPending           int64 `json:"containersPending"`
	TotalMB                     int64 `json:"totalMB"`
	UtilizedMB                  int64 `json:"utilizedMB"`
	TotalVirtualCores           int64 `json:"totalVirtualCores"`
	UtilizedVirtualCores        int64 `json:"utilizedVirtualCores"`
	UtilizedMBPercent           int64 `json:"utilizedMBPercent"`
	UtilizedVirtualCoresPercent int64 `json:"utilizedVirtualCoresPercent"`
	SchedulerBusyPercent        int64 `json:"rmSchedulerBusyPercent"` // -1: monitor off
	TotalNodes                  int64 `json:"totalNodes"`
	LostNodes                   int64 `json:"lostNodes"`
	UnhealthyNodes              int64 `json:"unhealthyNodes"`
	DecommissioningNodes        int64 `json:"decommissioningNodes"`
	DecommissionedNodes         int64 `json:"decommissionedNodes"`
	RebootedNodes               int64 `json:"rebootedNodes"`
	ActiveNodes                 int64 `json:"activeNodes"`
	ShutdownNodes               int64 `json:"shutdownNodes"`
	ContainersPerSecond         int64 `json:"containerAssignedPerSecond"`
}

// Available returns the cluster's unused resources.
func (m ClusterMetrics) Available() creel.Resource {
	return creel.Resource{MemoryMB: m.AvailableMB, VCores: m.AvailableVirtualCores}
}

// Pending returns the resources that its applications ask for and lack.
func (m ClusterMetrics) Pending() creel.Resource {
	return creel.Resource{MemoryMB: m.PendingMB, VCores: m.PendingVirtualCores}
}

// Total is the size of the cluster.
func (m ClusterMetrics) Total() creel.Resource {
	return creel.Resource{MemoryMB: m.TotalMB, VCores: m.TotalVirtualCores}
}

// Allocated returns the resources in use.
func (m ClusterMetrics) Allocated() creel.Resource {
	return creel.Resource{MemoryMB: m.AllocatedMB, VCores: m.AllocatedVirtualCores}
}

// ComparesCores reports whether cores limit the member's grants. They do not if the member reports so, if it reports
// no cores, or if more are in use than exist. A CapacityScheduler with the DefaultResourceCalculator, Hadoop's
// default, grants while memory is left; its free cores reach zero, or less, long before.
func (l *Load) ComparesCores() bool {
	m := &l.Metrics
	return !l.MemoryOnly && m.TotalVirtualCores > 0 && m.AllocatedVirtualCores <= m.TotalVirtualCores
}

// UAMLoad counts unmanaged AMs of proxies.
type UAMLoad struct {
	Pending int64 `json:"pending"`
	Running int64 `json:"running"`
}

// TakenFrom subtracts these UAMs from numbers of applications: the rest have their home here. A member that reports
// more UAMs than applications is home to none.
func (u UAMLoad) TakenFrom(pending, running int64) (int64, int64) {
	less := func(n, by int64) int64 {
		if n <= 0 || by <= 0 {
			return n
		}
		return max(0, n-by)
	}
	return less(pending, u.Pending), less(running, u.Running)
}

// QueueLoad is a queue's figures in one member and one node label partition.
type QueueLoad struct {
	Queue       creel.QueuePath
	Label       string // node label partition, "" for the default one
	Capacity    creel.Resource
	Used        creel.Resource
	Pending     creel.Resource
	Free        creel.Resource // available to a new ask here now, including other queues' unused shares
	AppsPending int64
	AppsRunning int64
	UAMs        UAMLoad // included in the above
	// Planned is the amount by the federation's plan that applies there instead of Capacity, the configured one; nil:
	// no plan applies.
	Planned *creel.Resource
	// Most is the maximum that it may use there, by its own limit and its ancestors'; nil: everything, or unknown.
	Most *creel.Resource
	// EachUser is the maximum that one user of a leaf may use there; nil: as much as the queue, or unknown. Users
	// lists users with pending asks that a limit delays; it may list others too.
	EachUser *creel.Resource
	Users    []UserLoad
	// Opportunistic is the use of opportunistic containers, which no other field has; on all nodes, whatever the label.
	Opportunistic creel.Resource
	// MostOpportunistic is the maximum of opportunistic containers that the member sets for the queue; nil: none.
	MostOpportunistic *int
}

// UserLoad is a user's usage and pending asks in a queue of one member, as part of its Used and Pending. Most is the
// user's maximum there, by the member's limits and the member's part of a federation-wide limit.
type UserLoad struct {
	User                string
	Used, Pending, Most creel.Resource
}

// Granted returns the part of Pending that the limit permits there.
func (u *UserLoad) Granted() creel.Resource {
	return u.Pending.Min(u.Most.Sub(u.Used)).Max(creel.Resource{})
}

// QueueWaits counts a queue's granted containers as Waits does, without the empty buckets at the end.
type QueueWaits struct {
	Queue  creel.QueuePath
	Counts []uint64
}

// QueueOn is a queue on the nodes of a label, "" for nodes without a label.
type QueueOn struct {
	Queue creel.QueuePath
	Label string
}

// Name returns its name in the store and in messages. No queue path has two dots in a row, so names are unique.
func (q QueueOn) Name() string {
	if q.Label == "" {
		return string(q.Queue)
	}
	return string(q.Queue) + ".." + q.Label
}

// CompareQueueOn compares by queue, then by label.
func CompareQueueOn(a, b QueueOn) int {
	return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Label, b.Label))
}

// Queue finds the figures of a queue in the default partition.
func (l *Load) Queue(q creel.QueuePath) (QueueLoad, bool) {
	if found := l.Find(q); found != nil {
		return *found, true
	}
	return QueueLoad{}, false
}

// Find is Queue without a copy: nil if there is none. The result must not be changed.
func (l *Load) Find(q creel.QueuePath) *QueueLoad { return l.FindOn(q, "") }

// FindOn is Find of a queue's figures on the nodes of a label.
func (l *Load) FindOn(q creel.QueuePath, label string) *QueueLoad {
	low, high := 0, len(l.Queues)
	for low < high {
		mid := int(uint(low+high) / 2)
		switch e := &l.Queues[mid]; {
		case e.Queue == q && e.Label == label:
			return e
		case e.Queue < q || e.Queue == q && e.Label < label:
			low = mid + 1
		default:
			high = mid
		}
	}
	return nil
}

func compareQueue(e QueueLoad, q creel.QueuePath, label string) int {
	if e.Queue != q {
		if e.Queue < q {
			return -1
		}
		return 1
	}
	switch {
	case e.Label < label:
		return -1
	case e.Label > label:
		return 1
	}
	return 0
}

// maxLoad limits a report, in bytes: 10,000 queues fit.
const maxLoad = 4 << 20

// MaxNodeQueues limits NodeQueues of a report.
const MaxNodeQueues = 16

// maxWaitBuckets limits the buckets of a report's Waits.
const maxWaitBuckets = 64

// loadJSON and the types below are the JSON form. Numbers may be quoted or fractional, because Hadoop 3.4 and 3.5
// differ in that.
type loadJSON struct {
	ClusterMetrics map[string]json.RawMessage `json:"clusterMetrics"`
	Creel          *creelJSON                 `json:"creel,omitempty"`
	Leaf           string                     `json:"leaf,omitempty"` // of a part other than the head
}

type creelJSON struct {
	UAMs          UAMLoad     `json:"uams,omitzero"`
	Refusing      string      `json:"refusing,omitempty"`
	Nodes         string      `json:"nodes,omitempty"`
	BeginsAgain   bool        `json:"beginsAgain,omitempty"`
	Labels        *labelsJSON `json:"labels,omitempty"`
	Places        string      `json:"places,omitempty"`
	Makes         []string    `json:"makes,omitempty"`
	MemoryOnly    bool        `json:"memoryOnly,omitempty"`
	PreemptionOff bool        `json:"preemptionOff,omitempty"`
	Waits         []uint64    `json:"waits,omitempty"`
	QueueWaits    []waitsJSON `json:"queueWaits,omitempty"`
	Queues        []queueJSON `json:"queues,omitempty"`
	Preempted     []spentJSON `json:"preempted,omitempty"`
	NodeQueues    []int32     `json:"nodeQueues,omitzero"`
}

type waitsJSON struct {
	Queue  string   `json:"queue"`
	Counts []uint64 `json:"counts"`
}

type spentJSON struct {
	Queue   string       `json:"queue"`
	Label   string       `json:"label,omitempty"`
	Begins  time.Time    `json:"begins"`
	Taken   resourceJSON `json:"taken"`
	Unbound bool         `json:"unbound,omitempty"`
}

type queueJSON struct {
	Queue       string       `json:"queue"`
	Label       string       `json:"label,omitempty"`
	Capacity    resourceJSON `json:"capacity"`
	Used        resourceJSON `json:"used"`
	Pending     resourceJSON `json:"pending"`
	Free        resourceJSON `json:"free"`
	AppsPending int64        `json:"appsPending"`
	AppsRunning int64        `json:"appsRunning"`
	UAMs        UAMLoad      `json:"uams,omitzero"`

	Planned  *resourceJSON `json:"planned,omitempty"`
	Most     *resourceJSON `json:"most,omitempty"`
	EachUser *resourceJSON `json:"eachUser,omitempty"`
	Users    []userJSON    `json:"users,omitempty"`

	Opportunistic *resourceJSON `json:"opportunistic,omitempty"`

	MostOpportunistic *int `json:"mostOpportunistic,omitempty"`
}

type userJSON struct {
	User    string       `json:"user"`
	Used    resourceJSON `json:"used"`
	Pending resourceJSON `json:"pending"`
	Most    resourceJSON `json:"most"`
}

// form returns the JSON form of a queue.
func (q *QueueLoad) form() queueJSON {
	optional := func(r *creel.Resource) *resourceJSON {
		if r == nil {
			return nil
		}
		j := toJSON(*r)
		return &j
	}
	j := queueJSON{
		Queue: string(q.Queue), Label: q.Label, Capacity: toJSON(q.Capacity), Used: toJSON(q.Used),
		Pending: toJSON(q.Pending), Free: toJSON(q.Free), AppsPending: q.AppsPending, AppsRunning: q.AppsRunning,
		UAMs: q.UAMs, Planned: optional(q.Planned), Most: optional(q.Most), EachUser: optional(q.EachUser),
		MostOpportunistic: q.MostOpportunistic,
	}
	for _, u := range q.Users {
		j.Users = append(j.Users, userJSON{u.User, toJSON(u.Used), toJSON(u.Pending), toJSON(u.Most)})
	}
	if !q.Opportunistic.IsZero() {
		j.Opportunistic = optional(&q.Opportunistic)
	}
	return j
}

// queue parses the JSON form.
func (j *queueJSON) queue() (QueueLoad, error) {
	path, err := creel.ParseQueuePath(j.Queue)
	if err != nil {
		return QueueLoad{}, err
	}
	optional := func(j *resourceJSON) *creel.Resource {
		if j == nil {
			return nil
		}
		r := j.resource()
		return &r
	}
	q := QueueLoad{
		Queue: path, Label: j.Label, Capacity: j.Capacity.resource(), Used: j.Used.resource(),
		Pending: j.Pending.resource(), Free: j.Free.resource(), AppsPending: j.AppsPending, AppsRunning: j.AppsRunning,
		UAMs: j.UAMs, Planned: optional(j.Planned), Most: optional(j.Most), EachUser: optional(j.EachUser),
		MostOpportunistic: j.MostOpportunistic,
	}
	if j.Opportunistic != nil {
		q.Opportunistic = j.Opportunistic.resource()
	}
	for _, u := range j.Users {
		q.Users = append(q.Users, UserLoad{u.User, u.Used.resource(), u.Pending.resource(), u.Most.resource()})
	}
	return q, nil
}

type resourceJSON struct {
	Memory int64            `json:"memory"`
	VCores int64            `json:"vCores"`
	Others map[string]int64 `json:"others,omitempty"`
}

func toJSON(r creel.Resource) resourceJSON {
	j := resourceJSON{Memory: r.MemoryMB, VCores: r.VCores}
	for _, a := range r.Others {
		if j.Others == nil {
			j.Others = map[string]int64{}
		}
		j.Others[a.Name] = a.Value
	}
	return j
}

func (j resourceJSON) resource() creel.Resource {
	r := creel.Resource{MemoryMB: j.Memory, VCores: j.VCores}
	for name, v := range j.Others { // With sorts them, so the map's order has no effect
		r = r.With(name, v)
	}
	return r
}

// JSON writes the load in the form that ParseLoad and Hadoop read.
func (l *Load) JSON() ([]byte, error) {
	var c *creelJSON
	if len(l.Queues)+len(l.Makes)+len(l.Preempted)+len(l.QueueWaits) > 0 || l.Refusing != "" || l.Nodes != "" ||
		l.BeginsAgain || l.Labels.Known || l.Waits != nil || l.MemoryOnly || l.UAMs != (UAMLoad{}) ||
		l.PreemptionOff || l.Places != "" || l.NodeQueues != nil {
		c = &creelJSON{
			Refusing: l.Refusing, Nodes: l.Nodes, BeginsAgain: l.BeginsAgain, Labels: l.Labels.form(), Waits: l.Waits,
			MemoryOnly: l.MemoryOnly, UAMs: l.UAMs, Places: string(l.Places),
			PreemptionOff: l.PreemptionOff, NodeQueues: l.NodeQueues,
		}
		for i := range l.Queues {
			c.Queues = append(c.Queues, l.Queues[i].form())
		}
		for _, q := range l.Makes {
			c.Makes = append(c.Makes, string(q))
		}
	}
	for _, w := range l.QueueWaits {
		c.QueueWaits = append(c.QueueWaits, waitsJSON{string(w.Queue), w.Counts})
	}
	for _, p := range l.Preempted {
		c.Preempted = append(c.Preempted, spentJSON{string(p.Queue), p.Label, p.Begins, toJSON(p.Taken), p.Unbound})
	}
	return json.Marshal(struct {
		ClusterMetrics ClusterMetrics `json:"clusterMetrics"`
		Creel          *creelJSON     `json:"creel,omitempty"`
	}{l.Metrics, c})
}

// ParseLoad reads a report, or the output of JoinParts. Unknown fields are ignored. Data without a clusterMetrics
// root is parsed as the bare object; null and missing fields are zero. The error is an *creel.Error of kind
// creel.ErrInvalidRequest.
func ParseLoad(data []byte) (Load, error) {
	bad := func(why string) (Load, error) {
		return Load{}, &creel.Error{Kind: creel.ErrInvalidRequest, What: "load report cannot be read", Why: why,
			Try: `send {"clusterMetrics":{...}} as /ws/v1/cluster/metrics serves it`}
	}
	if len(data) > maxLoad {
		return bad("it is longer than 4 MiB")
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return Load{}, nil
	}
	if inParts(string(data[:1])) {
		return parseParts(string(data))
	}
	var j loadJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return bad(err.Error())
	}
	if j.ClusterMetrics == nil && j.Leaf == "" {
		if err := json.Unmarshal(data, &j.ClusterMetrics); err != nil {
			return bad(err.Error())
		}
	}
	var l Load
	for _, f := range l.Metrics.fields() {
		raw, ok := j.ClusterMetrics[f.name]
		if !ok || string(raw) == "null" {
			continue
		}
		n, err := number(raw)
		if err != nil {
			return bad(fmt.Sprintf("%s: %v", f.name, err))
		}
		*f.value = n
	}
	if j.Creel == nil {
		return l, nil
	}
	l.Refusing, l.Nodes = fmt.Sprintf("%.200s", j.Creel.Refusing), fmt.Sprintf("%.64s", j.Creel.Nodes)
	l.MemoryOnly, l.PreemptionOff, l.UAMs = j.Creel.MemoryOnly, j.Creel.PreemptionOff, j.Creel.UAMs
	l.Places = Places(fmt.Sprintf("%.64s", j.Creel.Places))
	l.NodeQueues = j.Creel.NodeQueues[:min(len(j.Creel.NodeQueues), MaxNodeQueues)]
	l.BeginsAgain, l.Waits = j.Creel.BeginsAgain, j.Creel.Waits[:min(len(j.Creel.Waits), maxWaitBuckets)]
	var err error
	if l.Labels, err = j.Creel.Labels.labels(); err != nil {
		return bad(err.Error())
	}
	for i := range j.Creel.Queues {
		q, err := j.Creel.Queues[i].queue()
		if err != nil {
			return bad(err.Error())
		}
		l.Queues = append(l.Queues, q)
	}
	for _, text := range j.Creel.Makes {
		path, err := creel.ParseQueuePath(text)
		if err != nil {
			return bad(err.Error())
		}
		l.Makes = append(l.Makes, path)
	}
	for _, w := range j.Creel.QueueWaits {
		path, err := creel.ParseQueuePath(w.Queue)
		if err != nil {
			return bad(err.Error())
		}
		l.QueueWaits = append(l.QueueWaits, QueueWaits{path, w.Counts[:min(len(w.Counts), maxWaitBuckets)]})
	}
	for _, p := range j.Creel.Preempted {
		path, err := creel.ParseQueuePath(p.Queue)
		if err != nil {
			return bad(err.Error())
		}
		l.Preempted = append(l.Preempted, PreemptionSpent{path, p.Label, p.Begins, p.Taken.resource(), p.Unbound})
	}
	slices.SortStableFunc(l.Queues, func(a, b QueueLoad) int { return compareQueue(a, b.Queue, b.Label) })
	slices.SortStableFunc(l.QueueWaits, func(a, b QueueWaits) int { return cmp.Compare(a.Queue, b.Queue) })
	return l, nil
}

// number parses 3, 3.7, "3" and -1, all of which Hadoop's REST API may write.
func number(raw json.RawMessage) (int64, error) {
	s := string(bytes.Trim(raw, `"`))
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || f > math.MaxInt64/2 || f < math.MinInt64/2 {
		return 0, fmt.Errorf("%.40q is not a number", s)
	}
	return int64(f), nil
}

type metricField struct {
	name  string
	value *int64
}

// fields pairs each metric with its name on the wire.
func (m *ClusterMetrics) fields() []metricField {
	return []metricField{
		{"appsSubmitted", &m.AppsSubmitted},
		{"appsCompleted", &m.AppsCompleted},
		{"appsPending", &m.AppsPending},
		{"appsRunning", &m.AppsRunning},
		{"appsFailed", &m.AppsFailed},
		{"appsKilled", &m.AppsKilled},
		{
			"reservedMB",
			&m.ReservedMB,
		},
		{"availableMB", &m.AvailableMB},
		{"allocatedMB", &m.AllocatedMB},
		{"pendingMB", &m.PendingMB},
		{"reservedVirtualCores", &m.ReservedVirtualCores},
		{"availableVirtualCores", &m.AvailableVirtualCores},
		{"allocatedVirtualCores", &m.AllocatedVirtualCores},
		{"pendingVirtualCores", &m.PendingVirtualCores},
		{
			"containersAllocated",
			&m.ContainersAllocated,
		},
		{"containersReserved", &m.ContainersReserved},
		{"containersPending", &m.ContainersPending},
		{
			"totalMB",
			&m.TotalMB,
		},
		{"utilizedMB", &m.UtilizedMB},
		{"totalVirtualCores", &m.TotalVirtualCores},
		{"utilizedVirtualCores", &m.UtilizedVirtualCores},
		{"utilizedMBPercent", &m.UtilizedMBPercent},
		{"utilizedVirtualCoresPercent", &m.UtilizedVirtualCoresPercent},
		{"rmSchedulerBusyPercent", &m.SchedulerBusyPercent},
		{"totalNodes", &m.TotalNodes},
		{"lostNodes", &m.LostNodes},
		{
			"unhealthyNodes",
			&m.UnhealthyNodes,
		},
		{"decommissioningNodes", &m.DecommissioningNodes},
		{"decommissionedNodes", &m.DecommissionedNodes},
		{"rebootedNodes", &m.RebootedNodes},
		{"activeNodes", &m.ActiveNodes},
		{"shutdownNodes", &m.ShutdownNodes},
		{"containerAssignedPerSecond", &m.ContainersPerSecond},
	}
}
