// SPDX-License-Identifier: Apache-2.0

package queueconf

import (
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

var fairCluster = Options{
	MaxAllocation: creel.NewResource(8192, 4),
	ResourceTypes: []creel.ResourceType{{Name: "yarn.io/gpu"}},
	Fair: FairOptions{
		UserAsDefaultQueue:    true,
		AllowUndeclaredPools:  true,
		NodeLocalityThreshold: -1,
		RackLocalityThreshold: -1,
	},
}

func readFair(t testing.TB, text string) Config {
	t.Helper()
	c, err := ReadFair("fair.xml", []byte(text), fairCluster)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// documentedFair is the example of Hadoop's FairScheduler page in other words: the same queues and rules.
const documentedFair = `<?xml version="1.0"?>
<allocations>
  <queue name="sample_queue">
    <minResources>10000 mb,0vcores</minResources>
    <maxResources>90000 mb,0vcores</maxResources>
    <maxRunningApps>50</maxRunningApps>
    <maxAMShare>0.1</maxAMShare>
    <weight>2.0</weight>
    <schedulingPolicy>fair</schedulingPolicy>
    <queue name="sample_sub_queue">
      <aclSubmitApps>charlie</aclSubmitApps>
      <minResources>5000 mb,0vcores</minResources>
    </queue>
    <queue name="sample_reservable_queue"><reservation></reservation></queue>
  </queue>
  <queueMaxAMShareDefault>0.4</queueMaxAMShareDefault>
  <queueMaxResourcesDefault>40000 mb,0vcores</queueMaxResourcesDefault>
  <queue name="secondary_group_queue" type="parent">
    <weight>3.0</weight>
    <maxChildResources>4096 mb,4vcores</maxChildResources>
  </queue>
  <user name="sample_user"><maxRunningApps>30</maxRunningApps></user>
  <userMaxAppsDefault>5</userMaxAppsDefault>
  <queuePlacementPolicy>
    <rule name="specified" />
    <rule name="primaryGroup" create="false" />
    <rule name="nestedUserQueue"><rule name="secondaryGroupExistingQueue" create="false" /></rule>
    <rule name="default" queue="sample_queue"/>
  </queuePlacementPolicy>
</allocations>`

func TestTheDocumentedAllocationFile(t *testing.T) {
	c := readFair(t, documentedFair)
	root := &c.Queues.Root
	q := queueAt(t, root, "root.sample_queue")
	gpuFree := func(r creel.Resource) creel.Resource { return r.With("yarn.io/gpu", math.MaxInt64) }
	if !reflect.DeepEqual(q.Capacity, queues.WeightOf(2)) || !q.Minimum.Resource.Equal(creel.NewResource(10000, 0)) ||
		!q.MaxCapacity.Resource.Equal(gpuFree(creel.NewResource(90000, 0))) ||
		q.MaxParallelApps != 50 ||
		q.MaxAMPercent != 0.1 ||
		q.Policy != queues.FairShare {
		t.Errorf("sample_queue %+v", q)
	}
	sub := queueAt(t, root, "root.sample_queue.sample_sub_queue")
	if !sub.Submit.Allows("charlie", nil) || sub.Submit.All || sub.MaxAMPercent != 0.4 ||
		!sub.MaxCapacity.Resource.Equal(gpuFree(creel.NewResource(40000, 0))) ||
		sub.AutoCreate != nil {
		t.Errorf("sample_sub_queue %+v", sub)
	}
	parent := queueAt(t, root, "root.secondary_group_queue")
	if parent.AutoCreate == nil || parent.IsLeaf() ||
		!reflect.DeepEqual(parent.AutoCreate.Leaf.MaxCapacity, parent.MaxChild) ||
		!parent.MaxChild.Resource.Equal(gpuFree(creel.NewResource(4096, 4))) {
		t.Errorf("secondary_group_queue %+v", parent)
	}
	if !root.Submit.All || !root.MaxCapacity.Resource.Equal(gpuFree(creel.NewResource(40000, 0))) || c.Queues.UserMaxAppsDefault != 5 ||
		!reflect.DeepEqual(c.Queues.UserMaxApps, []queues.UserLimit{{User: "sample_user", Max: 30}}) {
		t.Errorf("root %+v, users %v", root, c.Queues.UserMaxApps)
	}
	if len(c.Warnings) != 1 || c.Warnings[0].Line != 14 || !strings.Contains(c.Warnings[0].Text, "reservation") {
		t.Errorf("warnings %v", c.Warnings)
	}
}

func TestFairSampleFilesOfHadoopParse(t *testing.T) {
	for name, policy := range map[string]queues.Policy{"sample": queues.FairShare, "test": queues.DRF} {
		file := "testdata/fair-scheduler." + name + ".xml"
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ReadFair(file, data, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for queue, weight := range map[string]float64{"sls_queue_1": 0.25, "sls_queue_2": 0.25, "sls_queue_3": 0.5} {
			q := queueAt(t, &c.Queues.Root, "root."+queue)
			if !reflect.DeepEqual(q.Capacity, queues.WeightOf(weight)) ||
				!q.Minimum.Resource.Equal(creel.NewResource(1024, 1)) ||
				q.Policy != policy ||
				q.MinSharePreemption != 2*time.Second {
				t.Errorf("%s: %s is %+v", name, queue, q)
			}
		}
		if c.Queues.UserMaxAppsDefault != 1000 {
			t.Errorf("%s: users may run %d", name, c.Queues.UserMaxAppsDefault)
		}
		if !strings.Contains(
			c.Warnings[0].Text,
			"<maxRunningJobs> is unknown and has no effect; did you mean <maxRunningApps>?",
		) {
			t.Errorf("%s: warnings %v", name, c.Warnings)
		}
	}
}

func TestResourcesInEveryForm(t *testing.T) {
	r := &fairReader{opt: fairCluster}
	free := int64(math.MaxInt64)
	gpu := func(n int64) creel.Amount { return creel.Amount{Name: "yarn.io/gpu", Value: n} }
	for text, want := range map[string]queues.Amount{
		"1024 mb, 2 vcores":             queues.AbsoluteOf(creel.NewResource(1024, 2, gpu(free))),
		"1024mb,2vcores":                queues.AbsoluteOf(creel.NewResource(1024, 2, gpu(free))),
		"2 vcores, 1024 MB":             queues.AbsoluteOf(creel.NewResource(1024, 2, gpu(free))),
		"vcores=2, memory-mb=1024":      queues.AbsoluteOf(creel.NewResource(1024, 2, gpu(free))),
		"memory-mb=1024":                queues.AbsoluteOf(creel.NewResource(1024, free, gpu(free))),
		"vcores=2,yarn.io/gpu=1":        queues.AbsoluteOf(creel.NewResource(free, 2, gpu(1))),
		"50%":                           queues.PercentOf(50),
		"50.5% memory, 25% cpu":         {Unit: queues.PerType, Types: []queues.TypePercent{{Type: "memory-mb", Percent: 50.5}, {Type: "vcores", Percent: 25}, {Type: "yarn.io/gpu", Percent: 100}}},
		"vcores=25%, memory-mb=50%":     {Unit: queues.PerType, Types: []queues.TypePercent{{Type: "vcores", Percent: 25}, {Type: "memory-mb", Percent: 50}, {Type: "yarn.io/gpu", Percent: 100}}},
		"memory-mb=1Gi,vcores=1":        queues.AbsoluteOf(creel.NewResource(1024, 1, gpu(free))),
		"memory-mb=0,vcores=0":          queues.AbsoluteOf(creel.NewResource(0, 0, gpu(free))),
		"memory-mb=150%,yarn.io/gpu=0%": {Unit: queues.PerType, Types: []queues.TypePercent{{Type: "memory-mb", Percent: 150}, {Type: "yarn.io/gpu", Percent: 0}, {Type: "vcores", Percent: 100}}},
	} {
		if got, err := r.upper(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
	if got, _ := r.lower("memory-mb=1024"); !reflect.DeepEqual(got, queues.AbsoluteOf(creel.NewResource(1024, 0))) {
		t.Errorf("types that a minimum does not name: %+v", got)
	}
	for _, bad := range []string{"", "1024", "1024 mb", "2 vcores", "x mb, 1 vcores", "1 mb, 1 mb", "memory-mb=", "memory-mb=-1", "memory=1,vcores=5%", "50% memory", "50% memory, 5% coffee",
		"-5%", "coffee=3", "9999999999999999999 mb, 1 vcores", "1 gb, 1 vcores", "50% memory, 50% memory"} {
		if got, err := r.upper(bad); err == nil {
			t.Errorf("%q was taken for %+v", bad, got)
		}
	}
}

// Hadoop warns of it too. The maximum applies.
func TestFairMaximumBelowMinimumWarns(t *testing.T) {
	const text = `<allocations><queue name="a"><minResources>memory-mb=1, vcores=2</minResources>
<maxResources>memory-mb=1, vcores=1</maxResources></queue></allocations>`
	c, err := ReadFair("fair.xml", []byte(text), fairCluster)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Queues.Validate(); err != nil {
		t.Error(err)
	}
	if warned := fmt.Sprint(c.Warnings); !strings.Contains(warned, "fair.xml:2: queue root.a: the maximum <memory:1, ") ||
		!strings.Contains(warned, "is below the minimum <memory:1, vCores:2>") {
		t.Errorf("warnings %s", warned)
	}
}

// With a limit of 0 or less Hadoop runs none; it starts no AM with a negative share, and ignores these percentages.
func TestFairNumbersBelowOneAreRead(t *testing.T) {
	const text = `<allocations><queueMaxAppsDefault>-3</queueMaxAppsDefault><userMaxAppsDefault>0</userMaxAppsDefault>
<queue name="a"><maxRunningApps>0</maxRunningApps><maxAMShare>-3</maxAMShare></queue>
<queue name="b"><minResources>50%</minResources><maxContainerAllocation>50%</maxContainerAllocation></queue></allocations>`
	c, err := ReadFair("fair.xml", []byte(text), fairCluster)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Queues.Validate(); err != nil {
		t.Error(err)
	}
	a, b := c.Queues.Root.Children[0], c.Queues.Root.Children[1]
	if a.MaxParallelApps != queues.NoApps || a.ParallelLimit() != 0 || b.ParallelLimit() != -3 || b.MaxParallelApps >= 0 {
		t.Errorf("limits %d, %d", a.MaxParallelApps, b.MaxParallelApps)
	}
	if c.Queues.UserMaxAppsDefault != queues.NoApps {
		t.Errorf("limit of users %d", c.Queues.UserMaxAppsDefault)
	}
	if a.MaxAMPercent != explicitZero || b.Minimum.Unit != queues.Unset || !b.MaxAllocation.IsZero() {
		t.Errorf("share %g, minimum %+v, container %v", a.MaxAMPercent, b.Minimum, b.MaxAllocation)
	}
	warned := fmt.Sprint(c.Warnings)
	for _, name := range []string{"minResources", "maxContainerAllocation"} {
		if !strings.Contains(warned, "fair.xml:3: <"+name+">: a percentage has no effect") {
			t.Errorf("no warning of %s: %s", name, warned)
		}
	}
}

func TestWrongAllocationFilesNameEachLine(t *testing.T) {
	text := `<allocations>
  <queue name="a">
    <weight>heavy</weight>
    <maxAMShare>most</maxAMShare>
    <schedulingPolicy>lottery</schedulingPolicy>
    <minResources>1 mb, 2 vcores</minResources>
    <maxResources>1 mb, 1 vcores</maxResources>
    <queue name="b"><maxRunningApps>1.5</maxRunningApps></queue>
    <queue name="b"/>
    <queue/>
    <queue name="x.y"/>
    <queue name="root"/>
  </queue>
  <queue name="c" type="child"/>
  <queue name="d"><schedulingPolicy>fifo</schedulingPolicy>
    <queue name="e"/>
  </queue>
  <queue name="f"><weight>1</weight>
    <weight>2</weight></queue>
  <queue name="g"><schedulingPolicy>drf</schedulingPolicy></queue>
  <user><maxRunningApps>3</maxRunningApps></user>
  <queueMaxAppsDefault>many</queueMaxAppsDefault>
  <queuePlacementPolicy>
    <rule name="specifed"/>
    <rule name="nestedUserQueue"/>
    <rule name="user"/>
    <rule name="default"/>
    <rulez/>
  </queuePlacementPolicy>
</allocations>`
	_, err := ReadFair("fair.xml", []byte(text), fairCluster)
	if err == nil {
		t.Fatal("accepted")
	}
	want := []string{
		`fair.xml:3: <weight>: "heavy" is not a number`,
		`fair.xml:4: <maxAMShare>: "most" is not a number`,
		`fair.xml:5: <schedulingPolicy>: "lottery" is none of fair, fifo, drf`,
		`fair.xml:8: <maxRunningApps>: "1.5" is not a whole number of 32 bits`,
		`fair.xml:9: queue root.a.b stands in the file twice`,
		`fair.xml:10: a queue below root.a has no name`,
		`fair.xml:11: queue name "x.y" has a dot; nest the queues instead`,
		`fair.xml:12: a queue below root.a is called root`,
		`fair.xml:14: type "child" of queue root.c is not parent`,
		`fair.xml:15: queue root.d has queues below it and cannot be fifo`,
		`fair.xml:19: queue root.f has <weight> twice, first in line 18`,
		`fair.xml:20: queue root.g is drf below root, which is fair; make the parent drf`,
		`fair.xml:21: a <user> without a name`,
		`fair.xml:22: <queueMaxAppsDefault>: "many" is not a whole number of 32 bits`,
		`fair.xml:24: placement rule "specifed" is not known; did you mean specified?`,
		`fair.xml:25: nestedUserQueue needs one rule inside it, that names the parent queue`,
		`fair.xml:27: this rule is never reached: rule user before it always ends the search`,
		`fair.xml:28: <rulez> inside <queuePlacementPolicy>; only <rule> belongs there`,
	}
	if got := err.Error(); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	for name, tc := range map[string][2]string{
		"not closed": {"<allocations>\n<queue>", "fair.xml:2: not well-formed XML"},
		"root":       {"<configuration/>", "fair.xml:1: the root element is <configuration>, not <allocations>"},
		"entities":   {"<!DOCTYPE a [<!ENTITY b 'c'>]><allocations/>", "fair.xml:1: a DOCTYPE with declarations is refused"},
		"no end":     {"<allocations>\n<queuePlacementPolicy><rule name='specified'/></queuePlacementPolicy></allocations>", "fair.xml:2: <queuePlacementPolicy>: a submission could pass the last rule"},
		"too deep":   {"<allocations>" + strings.Repeat("<queue name='a'>", 80), "fair.xml:1: more elements, or nested deeper"},
		"too nested": {"<allocations>" + strings.Repeat("<queue name='a'>", 40) + strings.Repeat("</queue>", 40) + "</allocations>", "fair.xml:1: more than 100000 queues, or nested deeper than 32"},
		"two roots":  {"<allocations/>\n<allocations/>", "fair.xml:2: <allocations> after the end of <allocations>"},
		"binary":     {"\x00", "fair.xml:1"},
	} {
		_, err := ReadFair("fair.xml", []byte(tc[0]), fairCluster)
		var ce *Error
		if err == nil || !strings.HasPrefix(err.Error(), tc[1]) || !errors.As(err, &ce) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadFair(
		"big.xml",
		make([]byte, 9<<20),
		fairCluster,
	); err == nil ||
		!strings.Contains(err.Error(), "larger than 8 MiB") {
		t.Errorf("a big file: %v", err)
	}
}

func TestRootAndPoolElements(t *testing.T) {
	c := readFair(t, `<allocations>
<queue name="root"><aclSubmitApps> </aclSubmitApps><aclAdministerApps>adm grp</aclAdministerApps><schedulingPolicy>drf</schedulingPolicy>
  <pool name="a"><schedulingPolicy>fifo</schedulingPolicy><maxContainerAllocation>memory-mb=4096</maxContainerAllocation><allowPreemptionFrom>false</allowPreemptionFrom>
    <allowOversubscription>false</allowOversubscription>
    <maxOpportunisticContainers>5</maxOpportunisticContainers>
    <maxOpportunisticContainersPerUser>2</maxOpportunisticContainersPerUser></pool></queue>
<queue name="b"><schedulingPolicy>drf</schedulingPolicy><weight>0</weight><maxAMShare>-1.0f</maxAMShare></queue>
<defaultFairSharePreemptionTimeout>30</defaultFairSharePreemptionTimeout><defaultFairSharePreemptionThreshold>0.8</defaultFairSharePreemptionThreshold>
<queueMaxAppsDefault>7</queueMaxAppsDefault>
</allocations>`)
	root := &c.Queues.Root
	a, b := queueAt(t, root, "root.a"), queueAt(t, root, "root.b")
	if root.Submit.All || !root.Admin.Allows("x", []string{"grp"}) || root.Policy != queues.DRF ||
		root.FairSharePreemption != 30*time.Second ||
		root.FairSharePreemptionAt != 0.8 ||
		root.MaxParallelApps != 7 {
		t.Errorf("root %+v", root)
	}
	if a.Policy != queues.Fifo || !a.MaxAllocation.Equal(creel.NewResource(4096, 4)) || !a.PreemptionDisabled ||
		!a.NoOversubscription || b.NoOversubscription ||
		a.Opportunistic.All != (queues.Maximum{Set: true, Most: 5}) || a.Opportunistic.EachUser.Most != 2 ||
		a.MaxParallelApps != 7 {
		t.Errorf("a %+v", a)
	}
	if b.Policy != queues.DRF || !reflect.DeepEqual(b.Capacity, queues.WeightOf(0)) || b.MaxAMPercent != -1 {
		t.Errorf("b %+v", b)
	}
}

// Hadoop starts with each of these.
func TestLegalAllocationFilesAreAccepted(t *testing.T) {
	for text, right := range map[string]func(root *queues.Queue) bool{
		`<queue name="a"><weight>-1</weight></queue>`: func(root *queues.Queue) bool {
			return root.Children[0].Capacity.Value == 0
		},
		`<queue name="a"><fairSharePreemptionThreshold>1.5</fairSharePreemptionThreshold></queue>`: func(root *queues.Queue) bool {
			return root.Children[0].FairSharePreemptionAt == 1
		},
		`<defaultFairSharePreemptionThreshold>7</defaultFairSharePreemptionThreshold>`: func(root *queues.Queue) bool {
			return root.FairSharePreemptionAt == 1
		},
		`<queue name="root"><maxContainerAllocation>memory-mb=2048</maxContainerAllocation></queue>`: func(root *queues.Queue) bool {
			return root.MaxAllocation.MemoryMB == 2048
		},
	} {
		c := readFair(t, "<allocations>"+text+"</allocations>")
		if !right(&c.Queues.Root) {
			t.Errorf("%s is read as %+v", text, c.Queues.Root)
		}
	}
}

func FuzzReadFair(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add([]byte(documentedFair))
	f.Add([]byte(`<allocations><queue name="a" type="parent"><maxResources>5%</maxResources></queue></allocations>`))
	f.Add(
		[]byte(
			`<allocations><queuePlacementPolicy><rule name="nestedUserQueue"><rule name="default" queue="a.b"/></rule><rule name="reject"/></queuePlacementPolicy></allocations>`,
		),
	)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ReadFair("f", data, fairCluster)
		if err != nil {
			var ce *Error
			if !errors.As(err, &ce) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		request := queues.PlacementRequest{User: "u.v", Groups: []string{"g", "h"}, Queue: "q"}
		placed, err := c.Placement.Place(request, func(creel.QueuePath) bool { return false })
		if err == nil && !placed.Queue.IsFull() {
			t.Fatalf("placed at %q", placed.Queue)
		}
	})
}

// yarn.scheduler.fair.sizebasedweight holds for every queue, those made on demand too.
func TestSizeBasedWeightHoldsForTheTree(t *testing.T) {
	opt := fairCluster
	opt.Fair.SizeBasedWeight = true
	for _, c := range []struct {
		opt  Options
		want bool
	}{{opt, true}, {fairCluster, false}} {
		got, err := ReadFair("fair.xml", []byte("<allocations><queue name=\"a\"/></allocations>"), c.opt)
		if err != nil {
			t.Fatal(err)
		}
		if got.Queues.SizeWeight != c.want {
			t.Errorf("%v, want %v", got.Queues.SizeWeight, c.want)
		}
	}
}
