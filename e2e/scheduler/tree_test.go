// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// hadoopQueue is a queue in the answer of /ws/v1/cluster/scheduler.
type hadoopQueue struct {
	QueueName, QueuePath, State                                          string
	Capacity, MaxCapacity, AbsoluteCapacity, AbsoluteMaxCapacity, Weight float64
	NormalizedWeight, UserLimit, UserLimitFactor                         float64
	MaxApplications, MaxApplicationsPerUser                              int
	MaxParallelApps                                                      int64
	DefaultPriority                                                      int32
	QueuePriority                                                        int32
	OrderingPolicyInfo                                                   string
	PreemptionDisabled, IntraQueuePreemptionDisabled                     bool
	MaxApplicationLifetime, DefaultApplicationLifetime                   int64
	MaximumAllocation                                                    *struct{ Memory, VCores int64 }
	AMResourceLimit                                                      *struct{ Memory, VCores int64 }
	Queues                                                               *struct{ Queue []hadoopQueue }
	QueueCapacityVectorInfo                                              any
	QueueAcls                                                            struct {
		QueueAcl []struct{ AccessType, AccessControlList string }
	}
	Capacities struct {
		QueueCapacitiesByPartition []struct {
			EffectiveMinResource, EffectiveMaxResource struct{ Memory, VCores int64 }
			ConfiguredMaxResource                      struct{ Memory, VCores int64 }
			MaxAMLimitPercentage                       float64
			AbsoluteMaxCapacity                        float64
		}
	}
}

// schedulerTree is the whole answer, root first.
func schedulerTree(t *testing.T, r *hadoop.ResourceManager) []hadoopQueue {
	t.Helper()
	var doc struct {
		Scheduler struct{ SchedulerInfo hadoopQueue } `json:"scheduler"`
	}
	get(t, r, "/ws/v1/cluster/scheduler", &doc)
	var out []hadoopQueue
	var walk func(q hadoopQueue)
	walk = func(q hadoopQueue) {
		out = append(out, q)
		if q.Queues != nil {
			for _, c := range q.Queues.Queue {
				walk(c)
			}
		}
	}
	walk(doc.Scheduler.SchedulerInfo)
	return out
}

// machine builds creel's machine from a real ResourceManager's configuration directory and adds the same nodes.
func machine(t *testing.T, confDir string, nodes []node) *rm.Machine {
	t.Helper()
	s, config := ours(t, confDir)
	c := rm.Defaults()
	c.ClusterTimestamp, c.Volatile = 1, true
	c.MinAllocation = creel.NewResource(
		s.Long("yarn.scheduler.minimum-allocation-mb"),
		s.Long("yarn.scheduler.minimum-allocation-vcores"),
	)
	c.MaxAllocation = creel.NewResource(
		s.Long("yarn.scheduler.maximum-allocation-mb"),
		s.Long("yarn.scheduler.maximum-allocation-vcores"),
	)
	c.Queues, c.Placement = config.Queues, config.Placement
	m, err := rm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if _, err := m.RegisterNode(
			start,
			&rm.RegisterNode{ID: n.id, HTTPPort: 1, Resource: n.size, Version: "3.4.2"},
		); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

var trees = map[string]string{
	"percent": `
root.queues = a,b,c
root.a.queues = a1,a2
root.a.capacity = 50
root.a.maximum-capacity = 80
root.a.a1.capacity = 30
root.a.a1.maximum-capacity = 60
root.a.a1.user-limit-factor = 2.5
root.a.a1.minimum-user-limit-percent = 25
root.a.a2.capacity = 70
root.a.a2.maximum-applications = 11
root.a.a2.maximum-am-resource-percent = 0.5
root.b.capacity = 37.5
root.b.state = STOPPED
root.b.priority = 4
root.b.default-application-priority = 2
root.b.ordering-policy = fair
root.b.disable_preemption = true
root.b.maximum-application-lifetime = 100
root.b.default-application-lifetime = 50
root.b.acl_submit_applications = u1,u2 g1
root.b.acl_administer_queue =  g2
root.c.capacity = 12.5
root.c.maximum-capacity = -1
root.c.maximum-allocation-mb = 1024
root.c.maximum-allocation-vcores = 2
root.c.max-parallel-apps = 5
root.maximum-application-lifetime = 500
maximum-am-resource-percent = 0.3
maximum-applications = 1000
max-parallel-apps = 50`,
	"weights": `
root.queues = a,b,c
root.a.queues = a1,a2
root.a.capacity = 3w
root.a.a1.capacity = 2w
root.a.a2.capacity = 2.5w
root.a.maximum-capacity = 60
root.b.capacity = 1.5w
root.b.queues = x,y
root.b.x.capacity = 40
root.b.x.maximum-capacity = 50
root.b.y.capacity = 60
root.c.capacity = 0.5w
global-queue-max-application = 70
resource-calculator = org.apache.hadoop.yarn.util.resource.DominantResourceCalculator`,
	"resources": `
root.queues = a,b
root.a.queues = a1,a2
root.a.capacity = [memory=8192,vcores=8]
root.a.maximum-capacity = [memory=16384,vcores=16]
root.a.a1.capacity = [memory=2048,vcores=2]
root.a.a2.capacity = [memory=6144,vcores=4]
root.a.a2.maximum-capacity = [memory=8192,vcores=8]
root.b.capacity = [memory=12288,vcores=4]
resource-calculator = org.apache.hadoop.yarn.util.resource.DominantResourceCalculator`,
	"made": `
root.queues = default,flex
root.default.capacity = 1w
root.flex.capacity = 3w
root.flex.auto-queue-creation-v2.enabled = true
root.flex.auto-queue-creation-v2.template.maximum-applications = 5
root.flex.queues = fixed
root.flex.fixed.capacity = 2w
root.flex.fixed.user-limit-factor = 4`,
}

// TestTreeMatchesHadoop reads one file by a real ResourceManager and by creel and compares every
// queue, on the same four nodes.
func TestTreeMatchesHadoop(t *testing.T) {
	for name, lines := range trees {
		t.Run(name, func(t *testing.T) {
			// Without its monitor Hadoop shows every queue as not to be preempted.
			real := startRM(t, lines+"\nyarn.resourcemanager.scheduler.monitor.enable = true")
			nodes := fourNodes
			register(t, real, nodes)
			m := machine(t, real.ConfDir, nodes)
			theirs := schedulerTree(t, real)
			compared := 0
			for _, h := range theirs {
				path := h.QueuePath
				if path == "" {
					path = h.QueueName
				}
				q, ok := m.Queue(path)
				if !ok {
					t.Errorf("no queue %s", path)
					continue
				}
				compared++
				compareQueue(t, path, h, q)
			}
			count := 0
			m.Queues(func(rm.QueueView) bool { count++; return true })
			if compared != count || count < 4 {
				t.Errorf("Hadoop has %d queues, we %d", compared, count)
			}
		})
	}
}

func compareQueue(t *testing.T, path string, h hadoopQueue, q rm.QueueView) {
	t.Helper()
	near := func(what string, ours, theirs float64) {
		if math.Abs(ours-theirs) > 0.01 {
			t.Errorf("%s: %s is %v, Hadoop's %v", path, what, ours, theirs)
		}
	}
	same := func(what string, ours, theirs any) {
		if fmt.Sprint(ours) != fmt.Sprint(theirs) {
			t.Errorf("%s: %s is %v, Hadoop's %v", path, what, ours, theirs)
		}
	}
	partition := h.Capacities.QueueCapacitiesByPartition[0]
	least, most := partition.EffectiveMinResource, partition.EffectiveMaxResource
	same("guaranteed", fmt.Sprint(q.Guaranteed.MemoryMB, q.Guaranteed.VCores), fmt.Sprint(least.Memory, least.VCores))
	same("maximum", fmt.Sprint(q.Max.MemoryMB, q.Max.VCores), fmt.Sprint(most.Memory, most.VCores))
	if h.Weight < 0 || path == "root" { // Hadoop shows no percentage of a queue with a weight
		near("capacity", q.Capacity*100, h.Capacity)
	}
	near("maximum capacity", q.MaxCapacity*100, h.MaxCapacity)
	if path == "root" { // the answer has these for the queues below it only
		return
	}
	near("absolute capacity", q.AbsCapacity*100, h.AbsoluteCapacity)
	near("absolute maximum capacity", q.AbsMaxCapacity*100, h.AbsoluteMaxCapacity)
	if h.Weight >= 0 {
		near("normalized weight", q.NormalizedWeight, h.NormalizedWeight)
	}
	same("state", q.State, h.State)
	if h.MaximumAllocation != nil {
		same(
			"largest container",
			fmt.Sprint(q.MaxAllocation.MemoryMB, q.MaxAllocation.VCores),
			fmt.Sprint(h.MaximumAllocation.Memory, h.MaximumAllocation.VCores),
		)
	}
	parallel := int64(math.MaxInt32)
	if q.Spec.MaxParallelApps > 0 {
		parallel = int64(q.Spec.MaxParallelApps)
	}
	same("parallel applications", parallel, h.MaxParallelApps)
	for _, acl := range h.QueueAcls.QueueAcl {
		mine := q.Spec.Submit
		switch acl.AccessType {
		case "SUBMIT_APP":
		case "ADMINISTER_QUEUE":
			mine = q.Spec.Admin
		default:
			continue
		}
		same(acl.AccessType, sortedACL(mine), sortedACL(queues.ParseACL(acl.AccessControlList)))
	}
	if !q.Leaf {
		return
	}
	near("minimum user limit", q.MinUserPercent, h.UserLimit)
	near("user limit factor", q.UserFactor, h.UserLimitFactor)
	same("applications", q.MaxApps, h.MaxApplications)
	same("applications of a user", q.MaxAppsPerUser, h.MaxApplicationsPerUser)
	near("share of AMs", q.MaxAMPercent*100, partition.MaxAMLimitPercentage)
	if h.AMResourceLimit != nil {
		same("room for AMs", q.AMLimit.MemoryMB, h.AMResourceLimit.Memory)
	}
	same("default priority", q.Spec.DefaultPriority, h.DefaultPriority)
	same("priority", q.Spec.Priority, h.QueuePriority)
	same("not preempted", q.Spec.PreemptionDisabled, h.PreemptionDisabled)
	unlimited := func(d int64) int64 { return max(d, -1) }
	mine := int64(q.Spec.MaxLifetime.Seconds())
	if mine == 0 {
		mine = -1
	}
	same("longest life", mine, unlimited(h.MaxApplicationLifetime))
	if mine = int64(q.Spec.DefaultLifetime.Seconds()); mine == 0 {
		mine = int64(q.Spec.MaxLifetime.Seconds())
	}
	if mine == 0 {
		mine = -1
	}
	same("life by default", mine, unlimited(h.DefaultApplicationLifetime))
	order := map[queues.Policy]string{queues.PolicyDefault: "fifo", queues.Fifo: "fifo", queues.FairShare: "fair"}[q.Spec.Policy]
	if !strings.Contains(strings.ToLower(h.OrderingPolicyInfo), order) {
		t.Errorf("%s: order is %s, Hadoop's %s", path, order, h.OrderingPolicyInfo)
	}
}

func sortedACL(a queues.ACL) string {
	if a.All {
		return "everybody"
	}
	users, groups := slices.Clone(a.Users), slices.Clone(a.Groups)
	slices.Sort(users)
	slices.Sort(groups)
	return fmt.Sprint(users, groups)
}
