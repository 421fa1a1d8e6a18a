// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
)

// after is a configuration with properties set.
func after(conf QueueConf, set map[string]string) QueueConf {
	out := maps.Clone(conf)
	for name, value := range set {
		if out[name] = value; value == "" {
			delete(out, name)
		}
	}
	return out
}

func TestHadoopSettingsFollowPlanAndRevert(t *testing.T) {
	for _, c := range []struct{ conf, a, b, limit string }{
		{"root.queues=a,b root.a.capacity=70 root.b.capacity=30", "20", "80", "3.5"},
		{"root.queues=a,b root.a.capacity=7w root.b.capacity=3w", "2w", "8w", "3.5"},
		{"root.queues=a,b root.a.capacity=70 root.b.capacity=30 root.b.maximum-capacity=60", "40", "60", "1.75"},
		{"root.queues=a,b root.a.capacity=70 root.b.capacity=30 root.a.user-limit-factor=2", "20", "80", "7"},
	} {
		conf := queueConf(c.conf)
		follow := func(conf QueueConf, a float64) (map[string]string, bool) {
			return FollowPlan(conf, planOf(map[creel.QueuePath]float64{"root.a": a, "root.b": 1 - a}), "sc-1", 0.02)
		}
		set, ok := follow(conf, 0.2)
		now := after(conf, set)
		got := func(name string) string { return now[capacityPrefix+name] }
		if !ok || got("root.a.capacity") != c.a || got("root.b.capacity") != c.b || got("root.a.user-limit-factor") != c.limit ||
			got("root.a.maximum-applications") != "7000" {
			t.Errorf("%s: %v %v", c.conf, ok, now)
		}
		if again, _ := follow(now, 0.21); again != nil {
			t.Errorf("%s: a change within the dead band sets %v", c.conf, again)
		}
		if s := now.ConfiguredShares(); math.Abs(s[subcluster.QueueOn{Queue: "root.a"}]-0.7) > 1e-9 {
			t.Errorf("%s: configured is said to be %v", c.conf, s)
		}
		if back := after(now, Restored(now)); !maps.Equal(back, conf) {
			t.Errorf("%s: put back it is %v", c.conf, back)
		}
	}
	amounts := queueConf("root.queues=a,b root.a.capacity=[memory=1024,vcores=1] root.b.capacity=[memory=1024,vcores=1]")
	if set, ok := FollowPlan(amounts, planOf(nil), "sc-1", 0); ok || set != nil {
		t.Errorf("amounts are set to %v", set)
	}
}

// On nodes of a label queues follow that label's plan, in the same change. A queue that has none of the label, or may
// not use it, stays so where Hadoop allows its siblings to be at zero too.
func TestHadoopLabelSettingsFollowPlan(t *testing.T) {
	const gpu = ".accessible-node-labels.gpu."
	conf := queueConf("root.queues=a,b,c,d root.a.capacity=70 root.b.capacity=30 root.c.capacity=0 root.d.capacity=0 " +
		"root.accessible-node-labels.gpu.capacity=100 root.a.accessible-node-labels=gpu root.b.accessible-node-labels=* " +
		"root.c.accessible-node-labels=ssd root.d.queues=e root.d.e.capacity=100 root.a" + gpu + "capacity=0 " +
		"root.b" + gpu + "capacity=100 root.b" + gpu + "maximum-am-resource-percent=0.3")
	of := func(a float64) *subcluster.Plan {
		p := planOf(map[creel.QueuePath]float64{"root.a": 0.7, "root.b": 0.3})
		on := *planOf(map[creel.QueuePath]float64{"root.a": a, "root.b": 1 - a, "root.c": 0.2, "root.d.e": 0.2})
		p.Labels = []subcluster.LabelPlan{{Label: "gpu", Plan: on}}
		return p
	}
	set, ok := FollowPlan(conf, of(0.4), "sc-1", 0.02)
	now := after(conf, set)
	is := func(name string) string { return now[capacityPrefix+name] }
	if !ok || is("root.a"+gpu+"capacity") != "40" || is("root.b"+gpu+"capacity") != "60" ||
		is("root.a.capacity") != "70" || is("root.b.user-limit-factor") != "1.667" ||
		is("root.b"+gpu+"maximum-am-resource-percent") != "0.5" || is("root.b.maximum-applications") != "10000" ||
		is("root.c"+gpu+"capacity")+is("root.d"+gpu+"capacity")+is("root.d.e"+gpu+"capacity") != "" {
		t.Errorf("%v %v", ok, set)
	}
	if again, _ := FollowPlan(now, of(0.41), "sc-1", 0.02); again != nil {
		t.Errorf("a change within the dead band sets %v", again)
	}
	if s := now.ConfiguredShares(); s[subcluster.QueueOn{Queue: "root.b", Label: "gpu"}] != 1 ||
		s[subcluster.QueueOn{Queue: "root.a"}] != 0.7 {
		t.Errorf("configured is said to be %v", s)
	}
	if back := after(now, Restored(now)); !maps.Equal(back, conf) {
		t.Errorf("put back it is %v", back)
	}
	// The plan no longer covers the label: the configured values are back there.
	if set, ok = FollowPlan(now, planOf(map[creel.QueuePath]float64{"root.a": 0.5, "root.b": 0.5}), "sc-1", 0.02); !ok {
		t.Fatal("nothing follows")
	}
	now = after(now, set)
	if is("root.a"+gpu+"capacity") != "0" || is("root.b"+gpu+"capacity") != "100" || is("root.a.capacity") != "50" {
		t.Errorf("without a plan of the label it has %v", now)
	}
	// An administrator changes the label's capacities: the other ones are still restored.
	now[capacityPrefix+"root.a"+gpu+"capacity"], now[capacityPrefix+"root.b"+gpu+"capacity"] = "10", "90"
	if now = after(now, Restored(now)); is("root.a"+gpu+"capacity") != "10" || is("root.a.capacity") != "70" {
		t.Errorf("put back it is %v", now)
	}
	set, _ = FollowPlan(conf, of(0.4), "sc-1", 0.02)
	now = after(conf, set)
	now[capacityPrefix+"root.a"+gpu+"capacity"] = "20" // one alone: the others of its level count as they are
	if now = after(now, Restored(now)); is("root.a"+gpu+"capacity") != "20" || is("root.b"+gpu+"capacity") != "60" {
		t.Errorf("put back beside a change it is %v", now)
	}
}

// An administrator who changes capacities while they follow a plan sees those in force: the new values are the
// configured ones from then on, on that level.
func TestAdministratorChangesStay(t *testing.T) {
	conf := queueConf("root.queues=a,b root.a.capacity=70 root.b.capacity=30")
	plan := planOf(map[creel.QueuePath]float64{"root.a": 0.2, "root.b": 0.8})
	set, _ := FollowPlan(conf, plan, "sc-1", 0.02)
	now := after(conf, set)
	now[capacityPrefix+"root.a.capacity"], now[capacityPrefix+"root.b.capacity"] = "55", "45"
	back := after(now, Restored(now))
	if back[capacityPrefix+"root.a.capacity"] != "55" || back[capacityPrefix+"root.b.capacity"] != "45" {
		t.Errorf("put back it is %v", back)
	}
	set, _ = FollowPlan(now, plan, "sc-1", 0.02)
	if s := after(now, set).ConfiguredShares(); math.Abs(s[subcluster.QueueOn{Queue: "root.a"}]-0.55) > 1e-9 {
		t.Errorf("configured is said to be %v", s)
	}
}

// Percentages of children sum to 100 and none is above its maximum, which Hadoop would reject; restoring puts back
// the original values.
func TestSettingsOfHadoopAreValid(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		conf, plan := QueueConf{}, map[creel.QueuePath]float64{}
		var level func(above string, depth, gpu int)
		level = func(above string, depth, gpu int) {
			n, left := rapid.IntRange(1, 4).Draw(t, "children"), 100
			var names []string
			for i := range n {
				path := fmt.Sprintf("%s.q%d", above, i)
				names = append(names, fmt.Sprintf("q%d", i))
				has, on := left, gpu
				if i < n-1 {
					has, on = rapid.IntRange(0, left).Draw(t, "capacity"), rapid.IntRange(0, gpu).Draw(t, "of the label")
				}
				left, gpu = left-has, gpu-on
				conf[capacityPrefix+path+".capacity"] = strconv.Itoa(has)
				conf[capacityPrefix+path+"."+labelKey("gpu", "capacity")] = strconv.Itoa(on)
				if rapid.Bool().Draw(t, "bounded") {
					most := rapid.Float64Range(float64(has), 100).Draw(t, "maximum")
					conf[capacityPrefix+path+".maximum-capacity"] = strconv.FormatFloat(most, 'f', 3, 64)
				}
				plan[creel.QueuePath(path)] = rapid.Float64Range(0, 0.3).Draw(t, "planned")
				if depth > 0 && rapid.Bool().Draw(t, "parent") {
					level(path, depth-1, map[bool]int{true: 100}[on > 0])
				}
			}
			conf[capacityPrefix+above+".queues"] = strings.Join(names, ",")
		}
		level("root", 2, 100)
		both := planOf(plan)
		both.Labels = []subcluster.LabelPlan{{Label: "gpu", Plan: *planOf(plan)}}
		set, ok := FollowPlan(conf, both, "sc-1", 0)
		now := after(conf, set)
		for _, label := range []string{"", "gpu"} {
			list, valid := now.queues(label)
			if !ok || !valid {
				t.Fatal("it is left as it is")
			}
			sums, has := map[creel.QueuePath]float64{}, map[creel.QueuePath]float64{creel.RootQueue: 100}
			for _, q := range list {
				has[q.Queue] = q.value
				if sums[q.above] += q.value; q.value > q.most+1e-9 {
					t.Errorf("%s has %v of at most %v", q.Queue, q.value, q.most)
				}
			}
			for above, sum := range sums {
				if math.Abs(sum-100) > 1e-6 {
					t.Errorf("below %s it is %v on nodes of label %q", above, sum, label)
				}
				if label != "" && has[above] == 0 {
					t.Errorf("%s has none of the label, and those below it %v", above, sum)
				}
			}
		}
		if back := after(now, Restored(now)); !maps.Equal(back, conf) {
			t.Errorf("put back it is %v, was %v", back, conf)
		}
	})
}

// While a plan is followed the capacities are the plan's, so there is nothing for a mend to compare with.
func TestMendSkipsPlannedQueues(t *testing.T) {
	conf := queueConf("root.queues=a,b root.a.capacity=70 root.b.capacity=30")
	set, _ := FollowPlan(conf, planOf(map[creel.QueuePath]float64{"root.a": 0.2, "root.b": 0.8}), "sc-1", 0.02)
	size := creel.NewResource(100_000, 100)
	view := &subcluster.View{Members: []subcluster.Status{member("sc-1", size, after(conf, set))}}
	tree, err := ParseTree([]byte(`{"queues":[{"queue":"root.a","guarantee":{"memory":50000,"vcores":50}}]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		conf    QueueConf
		changes int
	}{{after(conf, set), 0}, {conf, 2}} {
		mends := Mend(view, tree, map[creel.SubclusterID]QueueConf{"sc-1": c.conf})
		if len(mends) != 1 || len(mends[0].Changes) != c.changes || (len(mends[0].Notes) > 0) != (c.changes == 0) {
			t.Errorf("%+v", mends)
		}
	}
}
