// SPDX-License-Identifier: Apache-2.0

package queueconf

import (
	"encoding/xml"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// hadoopProperties reads a <configuration> the plain way; settings has the real
// reader, which this package must not import.
func hadoopProperties(t testing.TB, file string) []Property {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Property []struct {
			Name  string `xml:"name"`
			Value string `xml:"value"`
		} `xml:"property"`
	}
	if err := xml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	var props []Property
	for _, p := range doc.Property {
		props = append(
			props,
			Property{
				Name:  p.Name,
				Value: p.Value,
				File:  file,
				Line:  1 + strings.Count(string(data[:strings.Index(string(data), p.Name)]), "\n"),
			},
		)
	}
	return props
}

// properties parses "key = value" lines; a property has its line's number, and keys without yarn. or creel. are below
// yarn.scheduler.capacity.
func properties(text string) []Property {
	var props []Property
	for i, line := range strings.Split(text, "\n") {
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		key = strings.TrimSpace(key)
		if !strings.HasPrefix(key, "yarn.") && !strings.HasPrefix(key, "creel.") {
			key = capacityPrefix + key
		}
		props = append(props, Property{Name: key, Value: strings.TrimPrefix(value, " "), File: "cs.xml", Line: i})
	}
	return props
}

var cluster = Options{
	MaxAllocation: creel.NewResource(8192, 4, creel.Amount{Name: "yarn.io/gpu", Value: 4}),
	ResourceTypes: []creel.ResourceType{{Name: "yarn.io/gpu"}},
}

func readCapacity(t testing.TB, text string) Config {
	t.Helper()
	c, err := ReadCapacity(properties(text), cluster)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// queueAt finds a queue of a tree by its path.
func queueAt(t testing.TB, root *queues.Queue, path string) *queues.Queue {
	t.Helper()
	q := root
	for _, name := range creel.QueuePath(path).Parts()[1:] {
		found := false
		for i := range q.Children {
			if q.Children[i].Name == name {
				q, found = &q.Children[i], true
				break
			}
		}
		if !found {
			t.Fatalf("no queue %s", path)
		}
	}
	return q
}

func TestCapacitySampleFilesOfHadoopParse(t *testing.T) {
	for _, name := range []string{"sample", "test"} {
		c, err := ReadCapacity(
			hadoopProperties(t, "testdata/capacity-scheduler."+name+".xml"),
			Options{},
		)
		if err != nil {
			t.Fatal(err)
		}
		for queue, capacity := range map[string]float64{"sls_queue_1": 25, "sls_queue_2": 25, "sls_queue_3": 50} {
			q := queueAt(t, &c.Queues.Root, "root."+queue)
			if !reflect.DeepEqual(q.Capacity, queues.PercentOf(capacity)) ||
				!reflect.DeepEqual(q.MaxCapacity, queues.PercentOf(100)) {
				t.Errorf("%s: %s has %v of at most %v", name, queue, q.Capacity, q.MaxCapacity)
			}
		}
		want := map[string]int{"sample": 0, "test": 2}[name] // reservable, show-reservations-as-queues
		if len(c.Warnings) != want {
			t.Errorf("%s: warnings %v", name, c.Warnings)
		}
	}
}

// The three-level example of Hadoop's CapacityScheduler page.
func TestTheDocumentedTree(t *testing.T) {
	c := readCapacity(t, `
root.queues = a,b,c
root.a.queues = a1, a2
root.b.queues = b1,b2 ,b3
root.a.capacity = 50
root.b.capacity = 30.5
root.c.capacity = 19.5
root.a.a1.capacity = 3w
root.a.a2.capacity = 2.5w
root.b.b1.capacity = 10
root.b.b2.capacity = 20
root.b.b3.capacity = 70
`)
	var got []string
	var walk func(path string, q *queues.Queue)
	walk = func(path string, q *queues.Queue) {
		got = append(got, fmt.Sprintf("%s %v", path, q.Capacity.Value))
		for i := range q.Children {
			walk(path+"."+q.Children[i].Name, &q.Children[i])
		}
	}
	walk("root", &c.Queues.Root)
	want := "root 100;root.a 50;root.a.a1 3;root.a.a2 2.5;root.b 30.5;root.b.b1 10;root.b.b2 20;root.b.b3 70;root.c 19.5"
	if s := strings.Join(got, ";"); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	if a1 := queueAt(t, &c.Queues.Root, "root.a.a1"); a1.Capacity.Unit != queues.Weight {
		t.Errorf("a1 is in %v", a1.Capacity.Unit)
	}
	a := queueAt(t, &c.Queues.Root, "root.c")
	if a.MinUserPercent != 100 || a.UserFactor != 1 || a.MaxAMPercent != 0.1 || a.MaxApps != 0 ||
		a.MaxParallelApps != 0 ||
		a.State != creel.QueueRunning {
		t.Errorf("defaults of a queue: %+v", a)
	}
	q := c.Queues
	if q.MaxApplications != 10000 || q.NodeLocalityDelay != 40 || q.RackLocalityAdditionalDelay != -1 ||
		q.Calculator != queues.MemoryOnly ||
		q.Scheduler != queues.CapacityScheduler {
		t.Errorf("defaults of the tree: %+v", q)
	}
}

func TestEverySettingOfAQueue(t *testing.T) {
	c := readCapacity(t, `
maximum-applications = 500
maximum-am-resource-percent = 0.3
global-queue-max-application = 77
max-parallel-apps = 40
user.max-parallel-apps = 9
user.bob.max-parallel-apps = 3
user.ann.max-parallel-apps = 4
minimum-user-limit-percent = 50
user-limit-factor = 2
node-locality-delay = -1
rack-locality-additional-delay = 7
resource-calculator = org.apache.hadoop.yarn.util.resource.DominantResourceCalculator
root.queues = p,s
root.acl_submit_applications =  
root.acl_administer_queue = admin ops
root.ordering-policy = priority-utilization
root.p.queues = leaf,other
root.p.capacity = 60
root.p.state = STOPPED
root.p.maximum-application-lifetime = 3600
root.p.default-application-lifetime = 60
root.p.leaf.capacity = 100
root.p.leaf.maximum-capacity = -1
root.p.leaf.minimum-user-limit-percent = 12.5
root.p.leaf.user-limit-factor = -1
root.p.leaf.maximum-am-resource-percent = 0.5
root.p.leaf.maximum-applications = 12
root.p.leaf.max-parallel-apps = 2
root.p.leaf.priority = 3
root.p.leaf.default-application-priority = 5
root.p.leaf.ordering-policy = fair
root.p.leaf.ordering-policy.fair.enable-size-based-weight = true
root.p.leaf.acl_submit_applications = u1,u2 g1,g2
root.p.leaf.acl_administer_queue =  g3
root.p.leaf.maximum-allocation-mb = 4096
root.p.leaf.user-settings.ann.weight = 1.5
root.p.leaf.user-settings.bob.weight = 0.5
root.p.leaf.disable_preemption = true
root.p.leaf.intra-queue-preemption.disable_preemption = true
root.p.leaf.allow-oversubscription = false
root.p.leaf.maximum-opportunistic-containers = 5
root.p.leaf.maximum-opportunistic-containers-per-user = 0
root.p.maximum-opportunistic-containers = -1
root.p.leaf.maximum-application-lifetime = 0
root.p.leaf.accessible-node-labels = gpu
root.p.leaf.accessible-node-labels.gpu.capacity = 50
root.p.other.capacity = 0
root.s.capacity = 40
root.s.maximum-capacity = 40
root.s.maximum-allocation = memory-mb=2Gi,yarn.io/gpu=1
creel.scheduler.root.p.leaf.node-order = pack
`)
	root := &c.Queues.Root
	leaf := queueAt(t, root, "root.p.leaf")
	want := queues.Queue{
		Name:               "leaf",
		Capacity:           queues.PercentOf(100),
		MaxCapacity:        queues.PercentOf(100),
		State:              creel.QueueStopped,
		Submit:             queues.ACL{Users: []string{"u1", "u2"}, Groups: []string{"g1", "g2"}},
		Admin:              queues.ACL{Groups: []string{"g3"}},
		Priority:           3,
		Policy:             queues.FairShare,
		NoOversubscription: true,
		Opportunistic: queues.OpportunisticMaxima{
			All: queues.Maximum{Set: true, Most: 5}, EachUser: queues.Maximum{Set: true},
		},
		PolicyName:              "fair",
		SizeWeight:              true,
		NodeOrder:               queues.Pack,
		MinUserPercent:          12.5,
		UserFactor:              -1,
		UserWeights:             []queues.UserLimit{{User: "ann", Weight: 1.5}, {User: "bob", Weight: 0.5}},
		MaxAMPercent:            0.5,
		MaxApps:                 12,
		MaxParallelApps:         2,
		MaxAllocation:           creel.NewResource(4096, 4, creel.Amount{Name: "yarn.io/gpu", Value: 4}),
		DefaultPriority:         5,
		MaxLifetime:             queues.NoLifetime,
		DefaultLifetime:         queues.NoLifetime,
		PreemptionDisabled:      true,
		IntraPreemptionDisabled: true,
		Labels:                  []string{"gpu"},
		Shares:                  []queues.LabelShare{{Label: "gpu", Capacity: queues.PercentOf(50)}},
	}
	if !reflect.DeepEqual(*leaf, want) {
		t.Errorf("leaf\n got %+v\nwant %+v", *leaf, want)
	}
	other, s := queueAt(t, root, "root.p.other"), queueAt(t, root, "root.s")
	if other.MaxLifetime != time.Hour || other.DefaultLifetime != time.Minute || other.MaxApps != 77 ||
		other.MaxParallelApps != 40 ||
		other.MinUserPercent != 50 ||
		other.UserFactor != 2 ||
		other.MaxAMPercent != 0.3 ||
		other.State != creel.QueueStopped {
		t.Errorf("what is inherited: %+v", other)
	}
	if got := s.MaxAllocation; !got.Equal(creel.NewResource(2048, 4, creel.Amount{Name: "yarn.io/gpu", Value: 1})) {
		t.Errorf("maximum-allocation %v", got)
	}
	if root.Submit.All || len(root.Submit.Users)+len(root.Submit.Groups) != 0 || !root.Admin.Allows("admin", nil) ||
		!root.Admin.Allows("x", []string{"ops"}) ||
		root.Admin.Allows("x", []string{"y"}) {
		t.Errorf("root's ACLs %+v %+v", root.Submit, root.Admin)
	}
	if root.Policy != queues.PriorityUtilization || queueAt(t, root, "root.p").State != creel.QueueStopped {
		t.Errorf("parents: %v %v", root.Policy, queueAt(t, root, "root.p").State)
	}
	q := c.Queues
	if q.MaxApplications != 500 || q.UserMaxAppsDefault != 9 ||
		!reflect.DeepEqual(q.UserMaxApps, []queues.UserLimit{{User: "ann", Max: 4}, {User: "bob", Max: 3}}) ||
		q.NodeLocalityDelay != -1 ||
		q.RackLocalityAdditionalDelay != 7 ||
		q.Calculator != queues.Dominant {
		t.Errorf("tree: %+v", q)
	}
}

// A maximum of 0 removes the parent's. A default is at most the maximum, and none in a queue without one.
func TestLifetimesAreInherited(t *testing.T) {
	const none = queues.NoLifetime
	for _, c := range []struct {
		lines          string
		most, standard time.Duration
	}{
		{"", 0, 0},
		{"root.a.maximum-application-lifetime = 0", none, none},
		{"root.a.default-application-lifetime = 0", 0, 0},
		{"root.a.default-application-lifetime = 30", 0, 30 * time.Second},
		{"root.default-application-lifetime = 30", 0, 0},
		{"root.maximum-application-lifetime = 60", time.Minute, time.Minute},
		{"root.maximum-application-lifetime = 60\nroot.default-application-lifetime = 90", time.Minute, time.Minute},
		{"root.maximum-application-lifetime = 60\nroot.default-application-lifetime = 30", time.Minute, 30 * time.Second},
		{"root.maximum-application-lifetime = 60\nroot.a.default-application-lifetime = 0", time.Minute, time.Minute},
		{"root.maximum-application-lifetime = 60\nroot.a.maximum-application-lifetime = 0", none, none},
		{"root.maximum-application-lifetime = 60\nroot.a.maximum-application-lifetime = -1", time.Minute, time.Minute},
	} {
		conf := readCapacity(t, "root.queues = a\nroot.a.capacity = 100\n"+c.lines)
		if a := queueAt(t, &conf.Queues.Root, "root.a"); a.MaxLifetime != c.most || a.DefaultLifetime != c.standard {
			t.Errorf("%q: %v and %v, want %v and %v", c.lines, a.MaxLifetime, a.DefaultLifetime, c.most, c.standard)
		}
	}
}

// A queue has its parent's largest container, and so do queues that are created.
func TestLargestContainerIsInherited(t *testing.T) {
	c := readCapacity(t, `
root.queues = a
root.a.capacity = 100
root.a.maximum-allocation-mb = 2048
root.a.queues = b,c
root.a.b.capacity = 50
root.a.c.capacity = 50
root.a.c.maximum-allocation-vcores = 2
root.a.c.auto-create-child-queue.enabled = true
root.a.c.leaf-queue-template.capacity = 10`)
	made := queueAt(t, &c.Queues.Root, "root.a.c").AutoCreate.Leaf
	for path, got := range map[string]creel.Resource{
		"root.a.b":      queueAt(t, &c.Queues.Root, "root.a.b").MaxAllocation,
		"root.a.c":      queueAt(t, &c.Queues.Root, "root.a.c").MaxAllocation,
		"root.a.c.made": made.MaxAllocation,
	} {
		want := creel.NewResource(2048, 4, creel.Amount{Name: "yarn.io/gpu", Value: 4})
		if path != "root.a.b" {
			want.VCores = 2
		}
		if !got.Equal(want) {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

// A queue that may not create queues is a leaf, whatever else is configured.
func TestQueueThatMayNotCreateIsALeaf(t *testing.T) {
	c := readCapacity(t, `
root.queues = a,b
root.a.capacity = 50
root.a.auto-queue-creation-v2.enabled = false
root.a.ordering-policy = fair
root.b.capacity = 50
root.b.auto-create-child-queue.enabled = false
root.b.ordering-policy = fifo-with-partitions`)
	for path, want := range map[string]queues.Policy{"root.a": queues.FairShare, "root.b": queues.Fifo} {
		if q := queueAt(t, &c.Queues.Root, path); !q.IsLeaf() || q.Policy != want {
			t.Errorf("%s: leaf %v, order %v", path, q.IsLeaf(), q.Policy)
		}
	}
}

func TestAbsoluteResources(t *testing.T) {
	c := readCapacity(t, `
root.queues = a,b
root.a.capacity = [memory=10240,vcores=12]
root.a.maximum-capacity = [memory=20480,vcores=24]
root.b.capacity = [memory-mb=1Gi, vcores=1, yarn.io/gpu=2]
root.b.maximum-capacity = [memory=2048]
root.a.queues = x
root.a.x.capacity = [memory=4096,vcores=2]
`)
	b := queueAt(t, &c.Queues.Root, "root.b")
	if !b.Capacity.Resource.Equal(creel.NewResource(1024, 1, creel.Amount{Name: "yarn.io/gpu", Value: 2})) {
		t.Errorf("b's capacity %v", b.Capacity)
	}
	if m := b.MaxCapacity.Resource; m.MemoryMB != 2048 || m.VCores != math.MaxInt64 ||
		m.Get("yarn.io/gpu") != math.MaxInt64 {
		t.Errorf("types that a maximum does not name are bounded: %v", m)
	}
	if a := queueAt(
		t,
		&c.Queues.Root,
		"root.a",
	); !a.Capacity.Resource.Equal(creel.NewResource(10240, 12)) ||
		a.Capacity.Unit != queues.Absolute {
		t.Errorf("a's capacity %v", a.Capacity)
	}
	per := readCapacity(
		t,
		"root.queues = a\nlegacy-queue-mode.enabled = false\nroot.a.capacity = [memory=50%,vcores=25%]",
	)
	if got := queueAt(
		t,
		&per.Queues.Root,
		"root.a",
	).Capacity; got.Unit != queues.PerType ||
		!reflect.DeepEqual(
			got.Types,
			[]queues.TypePercent{{Type: "memory-mb", Percent: 50}, {Type: "vcores", Percent: 25}},
		) {
		t.Errorf("percentages per type: %+v", got)
	}
}

// Without legacy mode every mix of units is accepted, among siblings and within a queue; invalid maximums are still
// rejected.
func TestUnitsMixWithoutLegacyMode(t *testing.T) {
	const off = "legacy-queue-mode.enabled = false\n"
	c := readCapacity(t, off+`
root.queues = a,b,c
root.a.capacity = [memory=50%, vcores=2w, yarn.io/gpu=1]
root.a.maximum-capacity = [memory=60%,vcores=9]
root.b.capacity = 2w
root.b.queues = x,y
root.b.x.capacity = 70
root.b.y.capacity = [memory=4Gi,vcores=1]
root.c.capacity = 80
root.c.maximum-capacity = 40`)
	if !c.Queues.Vectors {
		t.Error("the units of queues are not to be mixed")
	}
	a := queueAt(t, &c.Queues.Root, "root.a")
	if want := []queues.TypeAmount{
		{Type: "memory-mb", Unit: queues.Percent, Value: 50},
		{Type: "vcores", Unit: queues.Weight, Value: 2},
		{Type: "yarn.io/gpu", Unit: queues.Absolute, Value: 1},
	}; a.Capacity.Unit != queues.Mixed || !reflect.DeepEqual(a.Capacity.Mixed, want) {
		t.Errorf("capacity of a: %+v", a.Capacity)
	}
	if unit, v := a.MaxCapacity.Of("yarn.io/gpu"); unit != queues.Percent || v != 100 {
		t.Errorf("a type that a maximum does not name is bounded by %v of unit %d", v, unit)
	}
	if y := queueAt(t, &c.Queues.Root, "root.b.y").Capacity; y.Unit != queues.Absolute || y.Resource.MemoryMB != 4096 {
		t.Errorf("capacity of y: %+v", y)
	}
	for _, text := range []string{
		off + "root.queues = a\nroot.a.capacity = 1w\nroot.a.maximum-capacity = 3w",
		off + "root.queues = a\nroot.a.capacity = 1w\nroot.a.maximum-capacity = [memory=3w]",
		off + "root.queues = a\nroot.a.capacity = 120",
		off + "root.queues = a\nroot.a.capacity = [memory=xw]",
		off + "root.queues = a\nroot.a.capacity = 1w\nroot.a.maximum-allocation = memory=2w",
		"root.queues = a\nroot.a.capacity = [memory=2w,vcores=1]",
	} {
		if _, err := ReadCapacity(properties(text), cluster); err == nil {
			t.Errorf("taken: %s", text)
		}
	}
}

// Limits of priorities come with the lowest first, none above the cluster's largest.
func TestLimitsOfPriorities(t *testing.T) {
	opt := cluster
	opt.MaxClusterPriority = 10
	c, err := ReadCapacity(properties(`
root.queues = a,b
root.a.capacity = 50
root.b.capacity = 50
root.a.default-application-priority = 1
root.a.acl_application_max_priority = [user=alice,al max_priority=7 default_priority=9] [group=staff max_priority=3]  [user=* max_priority=900 default_priority=2]
root.b.acl_application_max_priority = *`), opt)
	if err != nil {
		t.Fatal(err)
	}
	a := queueAt(t, &c.Queues.Root, "root.a")
	want := []queues.PriorityLimit{
		{Who: queues.ACL{Groups: []string{"staff"}}, Max: 3},
		{Who: queues.ACL{Users: []string{"alice", "al"}}, Max: 7, Default: 7, HasDefault: true},
		{Who: queues.ACL{All: true}, Max: 10, Default: 2, HasDefault: true},
	}
	if !reflect.DeepEqual(a.PriorityLimits, want) {
		t.Errorf("limits %+v, want %+v", a.PriorityLimits, want)
	}
	if b := queueAt(t, &c.Queues.Root, "root.b"); b.PriorityLimits != nil || !b.MayHavePriority("eve", nil, 10) {
		t.Errorf("no limits are %+v", b.PriorityLimits)
	}
	a.PriorityLimits = a.PriorityLimits[:2]
	for _, k := range []struct {
		user, group string
		most, usual int32
	}{{"al", "", 7, 7}, {"bob", "staff", 3, 1}, {"alice", "staff", 7, 7}, {"eve", "", -1, 1}} {
		groups := []string{k.group}
		if k.most >= 0 && !a.MayHavePriority(k.user, groups, k.most) || a.MayHavePriority(k.user, groups, k.most+1) {
			t.Errorf("%s of %q may not have exactly %d", k.user, k.group, k.most)
		}
		if got := a.DefaultPriorityOf(k.user, groups, true); got != k.usual || a.DefaultPriorityOf(k.user, groups, false) != 1 {
			t.Errorf("%s of %q has %d by default", k.user, k.group, got)
		}
	}
	for _, text := range []string{
		"user=a max_priority=1", "[user=a", "[max_priority=1]", "[user=a max_priority=x]", "[user=a most=1]", "[user=a default_priority=-1]",
	} {
		_, err := ReadCapacity(properties("root.queues = a\nroot.a.capacity = 100\nroot.a.acl_application_max_priority = "+text), cluster)
		if err == nil || !strings.Contains(err.Error(), "acl_application_max_priority") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAutoCreatedQueues(t *testing.T) {
	c := readCapacity(t, `
root.queues = managed,flex
root.managed.capacity = 2w
root.flex.capacity = 1w
root.managed.auto-create-child-queue.enabled = true
root.managed.auto-create-child-queue.max-queues = 10
root.managed.leaf-queue-template.capacity = 20
root.managed.leaf-queue-template.maximum-capacity = 80
root.managed.leaf-queue-template.user-limit-factor = 3
root.flex.auto-queue-creation-v2.enabled = true
root.flex.auto-queue-creation-v2.maximum-queue-depth = 3
root.flex.auto-queue-creation-v2.template.maximum-applications = 5
root.flex.auto-queue-creation-v2.leaf-template.capacity = 4w
root.flex.auto-queue-creation-v2.parent-template.acl_submit_applications = *
root.*.auto-queue-creation-v2.template.max-parallel-apps = 6
auto-queue-creation-v2.queue-expiration-time = 60
`)
	m, f := queueAt(t, &c.Queues.Root, "root.managed").AutoCreate, queueAt(t, &c.Queues.Root, "root.flex").AutoCreate
	if m == nil || m.Depth != 1 || m.Max != 10 || m.KeepIdle >= 0 ||
		!reflect.DeepEqual(m.Leaf.Capacity, queues.PercentOf(20)) ||
		!reflect.DeepEqual(m.Leaf.MaxCapacity, queues.PercentOf(80)) ||
		m.Leaf.UserFactor != 3 {
		t.Errorf("managed parent %+v", m)
	}
	if f == nil || f.Depth != 3 || f.Max != 1000 || f.KeepIdle != time.Minute || !reflect.DeepEqual(f.Leaf.Capacity, queues.WeightOf(4)) || !reflect.DeepEqual(f.Parent.Capacity, queues.WeightOf(1)) ||
		f.Leaf.MaxApps != 5 ||
		f.Leaf.MaxParallelApps != 6 ||
		f.Leaf.UserFactor != -1 ||
		f.Leaf.MaxAMPercent != 1 ||
		!f.Parent.Submit.All ||
		f.Leaf.Submit.All {
		t.Errorf("flexible parent %+v", f)
	}
	if len(c.Warnings) != 0 {
		t.Errorf("warnings %v", c.Warnings)
	}
}

// Queues created on demand have labels from their templates: the template of their kind precedes the one of both
// kinds, and a queue's own precedes a wildcard's.
func TestLabelsOfAutoCreatedQueues(t *testing.T) {
	c := readCapacity(t, `
root.queues = managed,flex
root.managed.capacity = 2w
root.flex.capacity = 1w
root.managed.auto-create-child-queue.enabled = true
root.managed.leaf-queue-template.capacity = 20
root.managed.leaf-queue-template.accessible-node-labels = x
root.managed.leaf-queue-template.accessible-node-labels.x.capacity = 25
root.managed.leaf-queue-template.accessible-node-labels.x.maximum-capacity = 70
root.managed.leaf-queue-template.default-node-label-expression = x
root.flex.auto-queue-creation-v2.enabled = true
root.flex.auto-queue-creation-v2.template.accessible-node-labels = x,y
root.flex.auto-queue-creation-v2.template.accessible-node-labels.x.capacity = 2w
root.flex.auto-queue-creation-v2.template.accessible-node-labels.x.maximum-am-resource-percent = 0.5
root.flex.auto-queue-creation-v2.leaf-template.accessible-node-labels.x.capacity = 3w
root.*.auto-queue-creation-v2.parent-template.accessible-node-labels.y.capacity = 4w
root.*.auto-queue-creation-v2.template.accessible-node-labels.x.capacity = 9w
root.flex.*.auto-queue-creation-v2.template.accessible-node-labels.x.capacity = 5w
`)
	share := func(label string, capacity, most queues.Amount, am float64) queues.LabelShare {
		return queues.LabelShare{Label: label, Capacity: capacity, MaxCapacity: most, MaxAMPercent: am}
	}
	none, w := queues.Amount{}, queues.WeightOf
	m, f := queueAt(t, &c.Queues.Root, "root.managed").AutoCreate, queueAt(t, &c.Queues.Root, "root.flex").AutoCreate
	for _, x := range []struct {
		name   string
		made   *queues.Queue
		labels []string
		shares []queues.LabelShare
	}{
		{"managed leaf", &m.Leaf, []string{"x"}, []queues.LabelShare{share("x", queues.PercentOf(25), queues.PercentOf(70), 0)}},
		{"leaf", &f.Leaf, []string{"x", "y"}, []queues.LabelShare{share("x", w(3), none, 0.5)}},
		{"parent", &f.Parent, []string{"x", "y"}, []queues.LabelShare{share("x", w(2), none, 0.5), share("y", w(4), none, 0)}},
		{"leaf below a made parent", &f.Below.Leaf, nil, []queues.LabelShare{share("x", w(5), none, 0)}},
	} {
		if !reflect.DeepEqual(x.made.Labels, x.labels) || !reflect.DeepEqual(x.made.Shares, x.shares) {
			t.Errorf("%s: labels %q, shares %+v", x.name, x.made.Labels, x.made.Shares)
		}
	}
	if m.Leaf.DefaultLabel != "x" || f.Leaf.DefaultLabel != "" {
		t.Errorf("default labels %q, %q", m.Leaf.DefaultLabel, f.Leaf.DefaultLabel)
	}
}

func TestNothingAtAllIsOneQueue(t *testing.T) {
	c, err := ReadCapacity(nil, Options{})
	if err != nil || len(c.Queues.Root.Children) != 1 || c.Queues.Root.Children[0].Name != "default" ||
		c.Placement != nil {
		t.Errorf("%+v, %v", c, err)
	}
}

// Hadoop's value for a setting that is not set.
func TestMinusOneIsNotSet(t *testing.T) {
	read := func(values map[string]string) Config {
		t.Helper()
		props := []Property{
			{Name: "yarn.scheduler.capacity.root.queues", Value: "a"},
			{Name: "yarn.scheduler.capacity.root.a.capacity", Value: "100"},
			{Name: "yarn.scheduler.capacity.global-queue-max-application", Value: "70"},
		}
		for name, value := range values {
			props = append(props, Property{Name: "yarn.scheduler.capacity." + name, Value: value})
		}
		c, err := ReadCapacity(props, Options{})
		if err != nil {
			t.Fatalf("%v: %v", values, err)
		}
		return c
	}
	c := read(map[string]string{
		"root.accessible-node-labels.x.capacity":         "-1",
		"root.accessible-node-labels.x.maximum-capacity": "-1",
		"root.capacity":               "-1.0",
		"root.maximum-capacity":       "-1",
		"root.a.maximum-applications": "-1",
		"root.a.maximum-capacity":     "-1",

		"root.maximum-allocation-mb":       "4096",
		"root.a.maximum-allocation-mb":     "-1",
		"root.a.maximum-allocation-vcores": "-1",
	})
	root, a := c.Queues.Root, c.Queues.Root.Children[0]
	if !isWhole(root.Capacity) || len(root.Shares) > 0 || a.MaxApps != 70 {
		t.Errorf("root %+v %+v, %d applications", root.Capacity, root.Shares, a.MaxApps)
	}
	if root.MaxAllocation.MemoryMB != 4096 || !a.MaxAllocation.Equal(root.MaxAllocation) {
		t.Errorf("containers of at most %v below %v", a.MaxAllocation, root.MaxAllocation)
	}
	if a := read(map[string]string{"root.a.maximum-applications": "5"}).Queues.Root.Children[0]; a.MaxApps != 5 {
		t.Errorf("%d applications", a.MaxApps)
	}
}

func TestWrongCapacityFilesNameEachLine(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string // each a whole line of the error
	}{
		{"sum", "\nroot.queues = a,b\nroot.a.capacity = 50\nroot.b.capacity = 40", []string{
			"cs.xml:2: yarn.scheduler.capacity.root.a.capacity: the capacities of the queues below root sum to 90 percent, not to 100"}},
		{"mixed", "\nroot.queues = a,b\nroot.a.capacity = 50\nroot.b.capacity = 2w", []string{
			"cs.xml:2: yarn.scheduler.capacity.root.a.capacity: the queues below root mix percentages, weights and resources; use one of them for all, or yarn.scheduler.capacity.legacy-queue-mode.enabled=false"}},
		{"no queues", "\nroot.capacity = 100", []string{
			"yarn.scheduler.capacity.root.queues: the root has no queues; list them, separated by commas"}},
		{"twice", "\nroot.queues = a,a\nroot.a.capacity = 100", []string{
			`cs.xml:1: yarn.scheduler.capacity.root.queues: queue "a" is listed twice`}},
		{"maximum below", "\nroot.queues = a\nroot.a.capacity = 100\nroot.a.maximum-capacity = 50", []string{
			"cs.xml:3: yarn.scheduler.capacity.root.a.maximum-capacity: the maximum of 50 percent is below the capacity of 100 percent"}},
		{"maximum weight", "\nroot.queues = a\nroot.a.capacity = 1w\nroot.a.maximum-capacity = 2w", []string{
			"cs.xml:3: yarn.scheduler.capacity.root.a.maximum-capacity: a maximum cannot be a weight; write percent or [memory=..,vcores=..]"}},
		{"children too many resources", "\nroot.queues = a\nroot.a.queues = x,y\nroot.a.capacity = [memory=100,vcores=1]\nroot.a.x.capacity = [memory=60,vcores=1]\nroot.a.y.capacity = [memory=60,vcores=0]", []string{
			"cs.xml:4: yarn.scheduler.capacity.root.a.x.capacity: the queues below root.a are promised <memory:120, vCores:1> in all, more than its own <memory:100, vCores:1>"}},
		{"resources below percent", "\nroot.queues = a\nroot.a.queues = x\nroot.a.capacity = 100\nroot.a.x.capacity = [memory=60,vcores=1]", []string{
			"cs.xml:4: yarn.scheduler.capacity.root.a.x.capacity: the queues below root.a are given in resources, so it must be"}},
		{"running below stopped", "\nroot.queues = a\nroot.a.queues = x\nroot.a.capacity = 100\nroot.a.state = STOPPED\nroot.a.x.capacity = 100\nroot.a.x.state = RUNNING", []string{
			"cs.xml:6: yarn.scheduler.capacity.root.a.x.state: queue root.a.x cannot run below root.a, which is stopped"}},
		{"everything at once", `
root.queues = a,b.c
root.a.capacity = lots
root.a.user-limit-factor = -3
root.a.minimum-user-limit-percent = 101
root.a.state = RESTING
root.a.maximum-am-resource-percent = -1
root.a.maximum-allocation-mb = 99999
root.a.max-parallel-apps = 0
root.a.ordering-policy = random
root.a.maximum-application-lifetime = 10
root.a.default-application-lifetime = 20
root.a.user-settings.bob.weight = 0
resource-calculator = com.example.Mine
node-locality-delay = forty
root.a.accessible-node-labels =
creel.scheduler.root.a.node-order = heap`, []string{
			`cs.xml:1: yarn.scheduler.capacity.root.queues: "b.c" is not a queue name; it has no dots, and no spaces around it`,
			`cs.xml:2: yarn.scheduler.capacity.root.a.capacity: "lots" is none of: percent (25), a weight (2w), resources ([memory=1024,vcores=2])`,
			`cs.xml:3: yarn.scheduler.capacity.root.a.user-limit-factor: -3 is neither -1 nor at least 0`,
			`cs.xml:4: yarn.scheduler.capacity.root.a.minimum-user-limit-percent: 101 is not a percentage from 0 to 100`,
			`cs.xml:5: yarn.scheduler.capacity.root.a.state: "RESTING" is neither RUNNING nor STOPPED`,
			`cs.xml:6: yarn.scheduler.capacity.root.a.maximum-am-resource-percent: -1 is below 0`,
			`cs.xml:7: yarn.scheduler.capacity.root.a.maximum-allocation-mb: the largest container of the queue, <memory:99999, vCores:4, yarn.io/gpu: 4>, exceeds the cluster's, <memory:8192, vCores:4, yarn.io/gpu: 4>`,
			`cs.xml:8: yarn.scheduler.capacity.root.a.max-parallel-apps: 0 is not above 0`,
			`cs.xml:9: yarn.scheduler.capacity.root.a.ordering-policy: "random" is not an order of a leaf queue: fifo, fair, drf, priority`,
			`cs.xml:11: yarn.scheduler.capacity.root.a.default-application-lifetime: the default of 20s is longer than maximum-application-lifetime of 10s`,
			`cs.xml:12: yarn.scheduler.capacity.root.a.user-settings.bob.weight: the weight 0 of user bob is not above 0 and at most 100`,
			`cs.xml:13: yarn.scheduler.capacity.resource-calculator: known calculators are org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator and DominantResourceCalculator`,
			`cs.xml:14: yarn.scheduler.capacity.node-locality-delay: "forty" is not a whole number of 32 bits`,
			`cs.xml:16: creel.scheduler.root.a.node-order: "heap" is neither spread nor pack`}},
		{"vectors", "\nroot.queues = a,b,c,d\nroot.a.capacity = [memory=1,memory-mb=2]\nroot.b.capacity = [coffee=1]\nroot.c.capacity = [memory=10%,vcores=1]\nroot.d.capacity = [memory]", []string{
			`cs.xml:2: yarn.scheduler.capacity.root.a.capacity: resource type "memory-mb" is given twice`,
			`cs.xml:3: yarn.scheduler.capacity.root.b.capacity: resource type "coffee" is not known; types are memory-mb, vcores, yarn.io/gpu`,
			`cs.xml:4: yarn.scheduler.capacity.root.c.capacity: amounts and percentages are mixed; use one for all resource types, or yarn.scheduler.capacity.legacy-queue-mode.enabled=false`,
			`cs.xml:5: yarn.scheduler.capacity.root.d.capacity: "memory" is not type=amount`}},
		{"weight", "\nroot.queues = a\nroot.a.capacity = 10001w", []string{
			"cs.xml:2: yarn.scheduler.capacity.root.a.capacity: the weight 10001 is above 10000"}},
		{"underscore", "\nroot.queues = a\nroot.a.capacity = 100\nroot.a.maximum-capacity = 1_0", []string{
			`cs.xml:3: yarn.scheduler.capacity.root.a.maximum-capacity: "1_0" is none of: percent (25), a weight (2w), resources ([memory=1024,vcores=2])`}},
		{"label of the parent", "\nroot.queues = a\nroot.a.queues = b\nroot.a.capacity = 100\nroot.a.b.capacity = 100\nroot.a.accessible-node-labels = x\nroot.a.b.accessible-node-labels = x,y", []string{
			`cs.xml:6: yarn.scheduler.capacity.root.a.b.accessible-node-labels: root.a.b may not use nodes of label "y"; add it to the parent's accessible-node-labels`}},
		{"labels of a parent with some", "\nroot.queues = a\nroot.a.queues = b\nroot.a.capacity = 100\nroot.a.b.capacity = 100\nroot.a.accessible-node-labels = x\nroot.a.b.accessible-node-labels = *", []string{
			`cs.xml:6: yarn.scheduler.capacity.root.a.b.accessible-node-labels: root.a.b may not use nodes of label "*"; add it to the parent's accessible-node-labels`}},
		{"units over labels", "\nroot.queues = a\nroot.accessible-node-labels.x.capacity = 100\nroot.a.capacity = 100\nroot.a.accessible-node-labels.x.capacity = 1w", []string{
			`cs.xml:4: yarn.scheduler.capacity.root.a.accessible-node-labels.x.capacity: the queues below root mix percentages, weights and resources over labels; use one of them for all, or yarn.scheduler.capacity.legacy-queue-mode.enabled=false`}},
		{"default label", "\nroot.queues = a\nroot.a.capacity = 100\nroot.a.accessible-node-labels = x\nroot.a.default-node-label-expression = y", []string{
			`cs.xml:4: yarn.scheduler.capacity.root.a.default-node-label-expression: root.a may not use nodes of label "y"; add it to accessible-node-labels`}},
	} {
		c, err := ReadCapacity(properties(tc.text), cluster)
		if err == nil {
			t.Errorf("%s: accepted as %+v", tc.name, c)
			continue
		}
		got := strings.Split(err.Error(), "\n")
		for _, want := range tc.want {
			found := false
			for _, line := range got {
				found = found || line == want
			}
			if !found {
				t.Errorf("%s: missing\n  %s\nin\n  %s", tc.name, want, strings.Join(got, "\n  "))
			}
		}
		var ce *Error
		if !errors.As(err, &ce) || !errors.Is(err, creel.ErrInvalidRequest) {
			t.Errorf("%s: %T", tc.name, err)
		}
		if !reflect.DeepEqual(c, Config{}) {
			t.Errorf("%s: half a tree came back", tc.name)
		}
	}
}

func TestNotesListIneffectiveSettings(t *testing.T) {
	c := readCapacity(t, `
root.queues = a
root.a.capacity = 100
root.a.capcity = 50
root.b.capacity = 50
root.a.accessible-node-labels.gpu.capaciti = 20
schedule-asynchronously.enable = true
node-localty-delay = 3
root.a.x.y.maximum-capacity = 3
creel.scheduler.root.nowhere.node-order = pack
`)
	want := []string{
		`cs.xml:3: yarn.scheduler.capacity.root.a.capcity: unknown setting "capcity" of queue root.a; did you mean capacity?`,
		`cs.xml:4: yarn.scheduler.capacity.root.b.capacity: queue root.b is not listed in root.queues; it does not exist`,
		`cs.xml:5: yarn.scheduler.capacity.root.a.accessible-node-labels.gpu.capaciti: kept and not used yet`,
		`cs.xml:6: yarn.scheduler.capacity.schedule-asynchronously.enable: has no effect: it configures internals of Hadoop's scheduler`,
		`cs.xml:7: yarn.scheduler.capacity.node-localty-delay: unknown setting; did you mean yarn.scheduler.capacity.node-locality-delay?`,
		`cs.xml:8: yarn.scheduler.capacity.root.a.x.y.maximum-capacity: queue root.a.x.y is not listed in root.a.queues; it does not exist`,
		`cs.xml:9: creel.scheduler.root.nowhere.node-order: there is no queue root.nowhere`,
	}
	var got []string
	for _, n := range c.Warnings {
		got = append(got, n.String())
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestACLsAsHadoopWritesThem(t *testing.T) {
	for text, want := range map[string]queues.ACL{
		"*": {All: true}, " ": {}, "": {}, "a,b": {Users: []string{"a", "b"}}, "a b": {Users: []string{"a"}, Groups: []string{"b"}},
		" b,c": {Groups: []string{"b", "c"}}, "a, b": {Users: []string{"a"}, Groups: []string{"b"}}, "*,a b": {Users: []string{"*", "a"}, Groups: []string{"b"}},
		"a *": {All: true}, "* b": {All: true},
	} {
		if got := queues.ParseACL(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func FuzzReadCapacity(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add("root.queues = a,b\nroot.a.capacity = 50\nroot.b.capacity = 50")
	f.Add("root.queues = a\nroot.a.capacity = [memory=1,vcores=2]\nroot.a.auto-queue-creation-v2.enabled = true")
	f.Add(
		"root.queues = a\nroot.a.queues = a\nroot.a.a.queues=a\nroot.a.capacity=1w\nqueue-mappings=u:%user:%primary_group.%user",
	)
	f.Add("root.queues = \xff,,..\nroot..capacity = nan\nmapping-rule-format = json\nmapping-rule-json = {}")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ReadCapacity(properties(text), cluster)
		if err != nil {
			return
		}
		var walk func(q *queues.Queue, depth int)
		walk = func(q *queues.Queue, depth int) {
			if q.Name == "" || strings.Contains(q.Name, ".") || depth > maxDepth+1 || q.Capacity.Value < 0 ||
				math.IsNaN(q.Capacity.Value) {
				t.Fatalf("queue %+v", q)
			}
			for i := range q.Children {
				walk(&q.Children[i], depth+1)
			}
		}
		walk(&c.Queues.Root, 1)
	})
}

// An application of a workflow has the priority of the nearest queue that speaks of it.
func TestWorkflowPriorities(t *testing.T) {
	with := func(text string) (Config, error) {
		return ReadCapacity(properties("root.queues = a,b\nroot.a.capacity = 50\nroot.b.capacity = 50\n"+
			"root.b.queues = b1\nroot.b.b1.capacity = 100\nworkflow-priority-mappings = "+text),
			Options{WorkflowTag: "workflowid:"})
	}
	c, err := with("WF1 : root.b : 2, wf1:root.b.b1:5,wf2:root.b:3\nworkflow-priority-mappings-override.enable = true")
	if err != nil || len(c.Warnings) > 0 {
		t.Fatal(err, c.Warnings)
	}
	for _, tc := range []struct {
		queue creel.QueuePath
		tags  []string
		want  int32
		ok    bool
	}{
		{"root.b.b1", []string{"workflowid:wf1"}, 5, true},
		{"root.b.b1", []string{"x", "workflowid:wf2"}, 3, true},
		{"root.b.b1", []string{"workflowid:wf1", "workflowid:wf2"}, 3, true},
		{"root.b", []string{"workflowid:wf1"}, 2, true},
		{"root.a", []string{"workflowid:wf1"}, 0, false},
		{"root.b.b1", []string{"wf1", "workflowid:", "workflowid:wf3"}, 0, false},
	} {
		if got, ok := c.Queues.WorkflowPriority(tc.tags, tc.queue); got != tc.want || ok != tc.ok {
			t.Errorf("%v in %s: %d %v, not %d %v", tc.tags, tc.queue, got, ok, tc.want, tc.ok)
		}
	}
	if c, err = with("wf1:root.b:2"); err != nil || c.Queues.Workflows != nil {
		t.Errorf("without the override: %v %v", err, c.Queues.Workflows)
	}
	for text, want := range map[string]string{
		"wf1:root.b":      `"wf1:root.b" is not workflow:queue:priority`,
		"wf1::2":          `"wf1::2" is not workflow:queue:priority`,
		"wf1:root.b:high": `"wf1:root.b:high": the priority is not a whole number`,
	} {
		if _, err := with(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestParentsInheritOrderingPolicy(t *testing.T) {
	c := readCapacity(t, `
root.queues = p,q
root.ordering-policy = priority-utilization
root.p.queues = a
root.p.capacity = 2w
root.p.a.capacity = 1w
root.p.a.auto-queue-creation-v2.enabled = true
root.p.a.auto-queue-creation-v2.maximum-queue-depth = 3
root.q.queues = b
root.q.capacity = 1w
root.q.ordering-policy = utilization
root.q.b.queues = leaf
root.q.b.capacity = 1w
root.q.b.leaf.capacity = 1w
`)
	root := &c.Queues.Root
	for path, want := range map[string]queues.Policy{
		"root.p":        queues.PriorityUtilization,
		"root.p.a":      queues.PriorityUtilization,
		"root.q.b":      queues.Utilization,
		"root.q.b.leaf": queues.PolicyDefault,
	} {
		if q := queueAt(t, root, path); q.Policy != want {
			t.Errorf("%s has order %v %q, not %v", path, q.Policy, q.PolicyName, want)
		}
	}
	for a := queueAt(t, root, "root.p.a").AutoCreate; a != nil; a = a.Below {
		if a.Parent.Policy != queues.PriorityUtilization || a.Parent.PolicyName != "priority-utilization" {
			t.Errorf("a parent made %d levels deep has order %v %q", a.Depth, a.Parent.Policy, a.Parent.PolicyName)
		}
		if a.Leaf.Policy != queues.PolicyDefault {
			t.Errorf("a leaf made %d levels deep has order %v", a.Depth, a.Leaf.Policy)
		}
	}
}

func TestSettingsOfQueuesToBeMade(t *testing.T) {
	c := readCapacity(t, `
root.queues = flex
root.flex.capacity = 1w
root.flex.disable_preemption = true
root.flex.auto-queue-creation-v2.enabled = true
root.flex.auto-queue-creation-v2.maximum-queue-depth = 3
root.flex.auto-queue-creation-v2.template.capacity = 2w
root.flex.*.auto-queue-creation-v2.template.capacity = 3w
root.flex.team.capacity = 9w
root.flex.team.user-settings.ann.weight = 2
root.flex.team.accessible-node-labels.x.capacity = 4w
root.flex.team.auto-queue-creation-v2.template.capacity = 5w
root.flex.team.auto-queue-creation-v2.leaf-template.maximum-applications = 6
root.flex.team.*.auto-queue-creation-v2.template.capacity = 7w
root.flex.team.ann.maximum-applications = 8
root.flex.team.ann.ordering-policy = fair
root.flex.team.ann.acl_application_max_priority = [user=* max_priority=3]
root.flex.auto-queue-creation-v2.template.ordering-policy = fair
`)
	flex := queueAt(t, &c.Queues.Root, "root.flex").AutoCreate
	type made struct {
		capacity float64
		apps     int
	}
	of := func(q queues.Queue) made { return made{q.Capacity.Value, q.MaxApps} }
	team, other := flex.For("team", false), flex.For("other", false)
	sub := team.AutoCreate.For("sub", false)
	for _, x := range []struct {
		name string
		got  queues.Queue
		want made
	}{
		{"root.flex.other", other, made{2, 0}},
		{"root.flex.leaf", flex.For("leaf", true), made{2, 0}},
		{"root.flex.other.leaf", other.AutoCreate.For("leaf", true), made{3, 0}},
		{"root.flex.team", team, made{9, 0}},
		{"root.flex.team as a leaf", flex.For("team", true), made{9, 0}},
		{"root.flex.team.leaf", team.AutoCreate.For("leaf", true), made{5, 6}},
		{"root.flex.team.ann", team.AutoCreate.For("ann", true), made{5, 8}},
		{"root.flex.team.sub", sub, made{5, 0}},
		{"root.flex.team.sub.leaf", sub.AutoCreate.For("leaf", true), made{7, 0}},
	} {
		if of(x.got) != x.want {
			t.Errorf("%s is made with %+v, not %+v", x.name, of(x.got), x.want)
		}
		if !x.got.PreemptionDisabled {
			t.Errorf("%s does not inherit disable_preemption", x.name)
		}
	}
	if q := team.AutoCreate.For("ann", true); q.Policy != queues.FairShare || len(q.PriorityLimits) != 1 {
		t.Errorf("root.flex.team.ann has order %v and the limits %+v", q.Policy, q.PriorityLimits)
	}
	if w := team.UserWeights; len(w) != 1 || w[0].User != "ann" {
		t.Errorf("root.flex.team has the weights %+v", w)
	}
	if s := team.Share("x"); s == nil || s.Capacity.Value != 4 {
		t.Errorf("root.flex.team has the shares %+v", team.Shares)
	}
	if len(c.Warnings) != 0 {
		t.Errorf("warnings %v", c.Warnings)
	}
}

// A queue deeper than the parent makes queues, and one below a parent that makes none, is named in a warning.
func TestSettingsOfQueuesNeverMadeAreReported(t *testing.T) {
	c := readCapacity(t, `
root.queues = flex,plain
root.flex.capacity = 1w
root.plain.capacity = 1w
root.flex.auto-queue-creation-v2.enabled = true
root.flex.auto-queue-creation-v2.maximum-queue-depth = 1
root.flex.a.b.capacity = 2w
root.plain.x.capacity = 2w
`)
	if len(c.Warnings) != 2 {
		t.Errorf("warnings %v", c.Warnings)
	}
}

// Hadoop starts with each of these.
func TestLegalCapacityFilesAreAccepted(t *testing.T) {
	const policies = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.policy."
	for _, tc := range []struct {
		name, text string
		right      func(root *queues.Queue) bool
	}{
		{"order by class", "root.queues = a\nroot.a.capacity = 100\nroot.a.ordering-policy = " + policies + "FairOrderingPolicy",
			func(root *queues.Queue) bool {
				a := queueAt(t, root, "root.a")
				return a.Policy == queues.FairShare && a.PolicyName == "fair"
			}},
		{"order of pending applications by class", "root.queues = a\nroot.a.capacity = 100\nroot.a.ordering-policy = " + policies +
			"FifoOrderingPolicyForPendingApps",
			func(root *queues.Queue) bool {
				a := queueAt(t, root, "root.a")
				return a.Policy == queues.Fifo && a.PolicyName == "fifo-for-pending-apps"
			}},
		{"managed parent without a template", "root.queues = a\nroot.a.capacity = 100\nroot.a.auto-create-child-queue.enabled = true",
			func(root *queues.Queue) bool {
				made := queueAt(t, root, "root.a").AutoCreate.For("u", true)
				return made.Capacity.Unit == queues.Percent && made.Capacity.Value == 0
			}},
		{"percent with a maximum in resources", "root.queues = a,b\nroot.a.capacity = 50\nroot.b.capacity = 50\n" +
			"root.a.maximum-capacity = [memory=4096,vcores=4]",
			func(root *queues.Queue) bool {
				a := queueAt(t, root, "root.a")
				return a.Capacity.Unit == queues.Percent && a.MaxCapacity.Resource.MemoryMB == 4096
			}},
		{"shares of a label that one queue may not use", "root.queues = a,b\nroot.a.capacity = 50\nroot.b.capacity = 50\n" +
			"root.a.accessible-node-labels = x\nroot.a.accessible-node-labels.x.capacity = 60\n" +
			"root.b.accessible-node-labels = \nroot.b.accessible-node-labels.x.capacity = 40",
			func(root *queues.Queue) bool {
				part := (&queues.Spec{Root: *root}).Partition("x")
				return part.Root.Children[0].Capacity.Value == 60 && part.Root.Children[1].Capacity.Value == 0
			}},
		{"children without capacity below a weight", "root.queues = a,b\nroot.a.queues = x\nroot.a.capacity = 1w\nroot.b.capacity = 1w\n" +
			"root.a.x.capacity = 0",
			func(root *queues.Queue) bool { return queueAt(t, root, "root.a.x").Capacity.Unit == queues.Percent }},
		{"limit of each queue above the cluster's", "root.queues = a,b\nroot.a.capacity = 50\nroot.b.capacity = 50\n" +
			"root.b.maximum-applications = 60\nglobal-queue-max-application = 50\nmaximum-applications = 37",
			func(root *queues.Queue) bool {
				return queueAt(t, root, "root.a").MaxApps == 37 && queueAt(t, root, "root.b").MaxApps == 60
			}},
		{"limit of each queue beside amounts", "root.queues = a\nroot.a.capacity = [memory=1024,vcores=1]\n" +
			"global-queue-max-application = 50",
			func(root *queues.Queue) bool { return queueAt(t, root, "root.a").MaxApps == 0 }},
		{"default label that the queue may use", "root.queues = a\nroot.a.queues = b\nroot.a.capacity = 100\n" +
			"root.a.accessible-node-labels = x\nroot.a.accessible-node-labels.x.capacity = 100\n" +
			"root.a.b.capacity = 100\nroot.a.b.default-node-label-expression = x",
			func(root *queues.Queue) bool { return queueAt(t, root, "root.a.b").DefaultLabel == "x" }},
	} {
		c, err := ReadCapacity(properties(tc.text), cluster)
		if err == nil {
			err = c.Queues.Validate()
		}
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		} else if !tc.right(&c.Queues.Root) {
			t.Errorf("%s: read as %+v", tc.name, c.Queues.Root)
		}
	}
}
