// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm/queueconf"
	"pgregory.net/rapid"
)

// labelledMember is a member with as many nodes of label gpu as without one.
func labelledMember(id, version string, size creel.Resource, conf QueueConf) subcluster.Status {
	s := member(id, size, conf)
	s.Version = version
	s.Load.Labels.Put(subcluster.Partition{Label: "gpu", Total: size})
	tell(&s, "gpu", size, conf)
	return s
}

// refused returns why a configuration is rejected: by creel's own ResourceManager, or by Hadoop's further rules for
// labels (AbstractParentQueue.setChildQueues, AbstractCSQueue.setupQueueConfigs).
func refused(conf QueueConf, hadoop bool) error {
	props := make([]queueconf.Property, 0, len(conf))
	for _, name := range slices.Sorted(maps.Keys(conf)) {
		props = append(props, queueconf.Property{Name: name, Value: conf[name]})
	}
	read, err := queueconf.ReadCapacity(props, queueconf.Options{})
	if err == nil {
		err = read.Queues.Validate()
	}
	if err != nil || !hadoop {
		return err
	}
	plain, gpu := mender{conf: conf}, mender{conf: conf, label: "gpu"}
	var walk func(above creel.QueuePath, plainHas, gpuHas float64) error
	walk = func(above creel.QueuePath, plainHas, gpuHas float64) error {
		below := plain.children(above)
		if len(below) == 0 {
			return nil
		}
		kinds := map[unitOf]bool{}
		for _, x := range []struct {
			in  *mender
			has float64
		}{{&plain, plainHas}, {&gpu, gpuHas}} {
			sum, percent := 0.0, true
			for _, path := range below {
				if kind, v := unit(x.in.own(path, "capacity")); v > 0 {
					kinds[kind], sum, percent = true, sum+v, kind == percentUnit
				}
			}
			switch {
			case percent && x.has > 0 && math.Abs(sum-100) > 0.05, percent && x.has == 0 && sum > 0:
				return fmt.Errorf("below %s they sum to %v of label %q, and it has %v", above, sum, x.in.label, x.has)
			case len(kinds) > 1:
				return fmt.Errorf("units below %s are mixed", above)
			}
		}
		for _, path := range below {
			if names, own := gpu.labels(path); own && slices.Contains(names, "gpu") && !gpu.accesses(above) {
				return fmt.Errorf("%s has a label that %s has not", path, above)
			}
			_, p := unit(plain.own(path, "capacity"))
			_, g := unit(gpu.own(path, "capacity"))
			if err := walk(path, p, g); err != nil {
				return err
			}
		}
		return nil
	}
	_, root := unit(gpu.own(creel.RootQueue, "capacity"))
	return walk(creel.RootQueue, 100, root)
}

func TestLabelDriftChanges(t *testing.T) {
	size := creel.NewResource(100_000, 100)
	plain := "root.queues=x,y root.x.capacity=50 root.y.capacity=50 "
	const own, cap = ".accessible-node-labels", ".accessible-node-labels.gpu.capacity"
	const most = ".accessible-node-labels.gpu.maximum-capacity"
	for _, c := range []struct{ name, document, conf, want string }{
		{
			"neighbours make room there, and nothing changes elsewhere",
			`{"queues":[{"queue":"root.x","labels":{"gpu":{"guarantee":"40%"}}}]}`,
			plain + "root.x" + cap + "=10 root.y" + cap + "=90",
			`root.x GPU.capacity 10 > 40
			root.y GPU.capacity 90 > 60`,
		},
		{
			"in one change with nodes without a label",
			`{"queues":[{"queue":"root.x","guarantee":"60%","labels":{"gpu":{"guarantee":"40%","maximum":"70%"}}}]}`,
			plain + "root.x" + cap + "=10 root.y" + cap + "=90",
			`root.x GPU.capacity 10 > 40
			root.x GPU.maximum-capacity  > 70
			root.x capacity 50 > 60
			root.y GPU.capacity 90 > 60
			root.y capacity 50 > 40`,
		},
		{
			"a queue that may not use them gets the label",
			`{"queues":[{"queue":"root.x","labels":{"gpu":{"guarantee":"40%"}}}]}`,
			plain + "root.x" + own + "=fpga root.y" + cap + "=100",
			`root.x GPU.capacity  > 40
			root.x accessible-node-labels fpga > fpga,gpu
			root.y GPU.capacity 100 > 60`,
		},
		{
			"not below one that may not and is not named",
			`{"queues":[{"queue":"root.x.z","labels":{"gpu":{"guarantee":"40%"}}}]}`,
			plain + "root.x.queues=z root.x.z.capacity=100 root.x" + own + "=fpga root.x.z" + own + "=fpga " +
				"root.y" + cap + "=100",
			`on nodes of label gpu: root.x.z gets nothing: root.x may not use these nodes`,
		},
		{
			"what is new there is shared out below as elsewhere",
			`{"queues":[{"queue":"root.x","labels":{"gpu":{"guarantee":"50%"}}}]}`,
			plain + "root.x.queues=a,b,c root.x.a.capacity=60 root.x.b.capacity=20 root.x.c.capacity=20 " +
				"root.x.c" + own + "=fpga root.y" + cap + "=100",
			`root.x GPU.capacity  > 50
			root.x.a GPU.capacity  > 75
			root.x.b GPU.capacity  > 25
			root.y GPU.capacity 100 > 50`,
		},
		{
			"what is below a queue that comes to have nothing has nothing",
			`{"queues":[{"queue":"root.x","labels":{"gpu":{"guarantee":"100%"}}}]}`,
			plain + "root.y.queues=a,b root.y.a.capacity=50 root.y.b.capacity=50 root.x" + cap + "=50 root.y" + cap +
				"=50 root.y.a" + cap + "=30 root.y.b" + cap + "=70",
			`root.x GPU.capacity 50 > 100
			root.y GPU.capacity 50 > 0
			root.y.a GPU.capacity 30 > 0
			root.y.b GPU.capacity 70 > 0`,
		},
		{
			"nobody below may use them",
			`{"queues":[{"queue":"root.x","labels":{"gpu":{"guarantee":"50%"}}}]}`,
			plain + "root.x.queues=a root.x.a.capacity=100 root.x.a" + own + "=fpga root.y" + cap + "=100",
			`on nodes of label gpu: root.x gets nothing: none of the queues below it may use these nodes`,
		},
		{
			"the unit is that of nodes without a label where nothing is configured",
			`{"queues":[{"queue":"root.x","labels":{"gpu":{"guarantee":"60%"}}},
				{"queue":"root.y","labels":{"gpu":{"guarantee":"40%"}}}]}`,
			"root.queues=x,y root.x.capacity=1w root.y.capacity=3w",
			`root.x GPU.capacity  > 60w
			root.y GPU.capacity  > 40w`,
		},
		{
			"and amounts",
			`{"queues":[{"queue":"root.x","labels":{"gpu":{"guarantee":"60%"}}}]}`,
			"root.queues=x,y root.x.capacity=[memory=1000,vcores=1] root.y.capacity=[memory=1000,vcores=1] " +
				"root.x" + most + "=50",
			`root.x GPU.capacity  > [memory=60000,vcores=60]
			root.x GPU.maximum-capacity 50 > [memory=60000,vcores=60]`,
		},
		{
			"a maximum is not below the guarantee",
			`{"queues":[{"queue":"root.x","labels":{"gpu":{"guarantee":"40%"}}}]}`,
			plain + "root.x" + cap + "=10 root.x" + most + "=20 root.y" + cap + "=90",
			`root.x GPU.capacity 10 > 40
			root.x GPU.maximum-capacity 20 > 40
			root.y GPU.capacity 90 > 60`,
		},
		{
			"a maximum is judged by the one above it as that comes to be written",
			`{"queues":[{"queue":"root.x","labels":{"gpu":{"maximum":"1%"}}},
				{"queue":"root.x.a","labels":{"gpu":{"maximum":"1%"}}}]}`,
			"root.queues=x,y root.x.capacity=1w root.y.capacity=1w root.x.queues=a root.x.a.capacity=1w " +
				"root.x" + cap + "=26w root.y" + cap + "=76w root.x.a" + cap + "=1w",
			`root.x GPU.maximum-capacity  > 25.5
			root.x.a GPU.maximum-capacity  > 98.04`,
		},
		{
			"Hadoop's root must have the label, and its maxima count as held",
			`{"queues":[{"queue":"root.x","labels":{"gpu":{"guarantee":"100%","maximum":"100%"}}}]}`,
			"hadoop " + plain,
			`root GPU.capacity  > 100
			root.x GPU.capacity  > 100`,
		},
		{
			"in which a guarantee above such a maximum is not written",
			`{"queues":[{"queue":"root.x","labels":{"gpu":{"guarantee":"40%","maximum":"50%"}}}]}`,
			"hadoop " + plain + "root" + cap + "=100 root.x" + cap + "=10 root.x" + most + "=20 root.y" + cap + "=90",
			`on nodes of label gpu: the queues below root are left as they are: root.x would be guaranteed 40`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, hadoop := strings.CutPrefix(c.conf, "hadoop ")
			version := map[bool]string{true: subcluster.HadoopVersion, false: "creel"}[hadoop]
			conf := queueConf(text)
			view := &subcluster.View{Members: []subcluster.Status{labelledMember("a", version, size, conf)}}
			tree, err := ParseTree([]byte(c.document), 1)
			if err != nil {
				t.Fatal(err)
			}
			tree.ResolveIn(view, 0)
			var got []string
			made := Mend(view, tree, map[creel.SubclusterID]QueueConf{"a": conf})[0]
			for _, x := range made.Changes {
				key := strings.Replace(x.Key, "accessible-node-labels.gpu", "GPU", 1)
				got = append(got, fmt.Sprintf("%s %s %s > %s", x.Queue, key, x.Was, x.Is))
			}
			got = append(got, made.Notes...)
			var want []string
			for line := range strings.Lines(c.want) {
				want = append(want, strings.TrimSpace(line))
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.EqualFunc(got, want, strings.HasPrefix) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			after := applied(conf, made.Changes)
			if err := refused(after, hadoop); err != nil {
				t.Error(err)
			}
			view.Members[0] = labelledMember("a", version, size, after)
			again := Mend(view, tree, map[creel.SubclusterID]QueueConf{"a": after})[0]
			if len(again.Changes) > 0 {
				t.Errorf("a second mend finds %+v", again.Changes)
			}
		})
	}
}

// drawLabels draws a configuration of percentages or weights in which some queues may use
// the label and some have a part of it, as Hadoop takes it.
func drawLabels(t *rapid.T) QueueConf {
	conf := QueueConf{}
	unit := rapid.SampledFrom([]string{"", "w"}).Draw(t, "unit")
	x := mender{conf: conf, label: "gpu"}
	set := func(path creel.QueuePath, key, value string) { conf[capacityPrefix+string(path)+"."+key] = value }
	set(creel.RootQueue, "queues", "p,q,r")
	set("root.p", "queues", "a,b")
	share := func(paths []creel.QueuePath, key string) {
		left := 100
		for i, path := range paths {
			part := left
			if i < len(paths)-1 {
				part = rapid.IntRange(0, left).Draw(t, "part of "+string(path))
			}
			if left -= part; unit == "w" || part > 0 || key == "capacity" {
				if unit == "w" {
					part++
				}
				set(path, key, strconv.Itoa(part)+unit)
			}
		}
	}
	for _, path := range []creel.QueuePath{"root.p", "root.q", "root.r", "root.p.a", "root.p.b"} {
		lists := []string{"", "", " "}
		other := mender{conf: conf, label: "fpga"}
		if other.accesses(path.Parent()) {
			lists = append(lists, "fpga")
		}
		if x.accesses(path.Parent()) {
			lists = append(lists, "gpu")
		}
		if other.accesses(path.Parent()) && x.accesses(path.Parent()) {
			lists = append(lists, "fpga,gpu")
		}
		if list := rapid.SampledFrom(lists).Draw(t, "labels of "+string(path)); list != "" {
			set(path, labelList, list)
		}
	}
	var level func(above creel.QueuePath, plain, has bool)
	level = func(above creel.QueuePath, plain, has bool) {
		below := x.children(above)
		if plain {
			share(below, "capacity")
		}
		usable := slices.DeleteFunc(slices.Clone(below), func(path creel.QueuePath) bool { return !x.usable(path) })
		if has {
			share(usable, x.key("capacity"))
		}
		for _, path := range below {
			if v := x.own(path, "capacity"); v != "" && unit == "" && rapid.Bool().Draw(t, "maximum of "+string(path)) {
				_, least := mendUnit(v)
				most := rapid.IntRange(int(least), 100).Draw(t, "maximum")
				set(path, x.key("maximum-capacity"), strconv.Itoa(most))
			}
			p, _ := strings.CutSuffix(x.get(path, "capacity"), "w")
			if len(x.children(path)) > 0 {
				level(path, p != "0", x.own(path, "capacity") != "")
			}
		}
	}
	some := x.usable(creel.RootQueue) && rapid.Bool().Draw(t, "some have it")
	set(creel.RootQueue, x.key("capacity"), "100")
	if !some {
		delete(conf, capacityPrefix+"root."+x.key("capacity"))
	}
	level(creel.RootQueue, true, some)
	return conf
}

// mendUnit is unit, by a name that no local one hides.
func mendUnit(text string) (unitOf, float64) { return unit(text) }

// Whatever labels members have: no ResourceManager rejects the result of a mend, and the drift is gone afterwards,
// unless the mend reports why it cannot remove it.
func TestMendEndsLabelDrift(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		confs, versions := map[creel.SubclusterID]QueueConf{}, map[creel.SubclusterID]string{}
		sizes := map[creel.SubclusterID]creel.Resource{}
		for i := range rapid.IntRange(1, 3).Draw(t, "members") {
			id := creel.SubclusterID(fmt.Sprint("m", i))
			n := rapid.Int64Range(1, 9).Draw(t, "size")
			sizes[id] = creel.NewResource(n*100_000, n*100)
			versions[id] = rapid.SampledFrom([]string{"creel", subcluster.HadoopVersion}).Draw(t, "version")
			confs[id] = drawLabels(t)
			if err := refused(confs[id], true); err != nil {
				t.Fatalf("what is drawn is no good: %v\n%v", err, confs[id])
			}
		}
		view := func() *subcluster.View {
			v := &subcluster.View{}
			for _, id := range slices.Sorted(maps.Keys(confs)) {
				v.Members = append(v.Members, labelledMember(string(id), versions[id], sizes[id], confs[id]))
			}
			return v
		}
		tree := &Tree{Labels: map[string][]Queue{}}
		left := map[creel.QueuePath]float64{"root": 100}
		for _, path := range []creel.QueuePath{"root.p", "root.p.a", "root.p.b", "root.q", "root.r"} {
			if !rapid.Bool().Draw(t, "named "+string(path)) {
				continue
			}
			q := Queue{Path: path}
			if most := left[path.Parent()]; rapid.Bool().Draw(t, "guaranteed") {
				q.GuaranteePercent = float64(rapid.IntRange(0, int(most)).Draw(t, "guarantee"))
				left[path.Parent()] -= q.GuaranteePercent
				left[path] = q.GuaranteePercent
			}
			if rapid.Bool().Draw(t, "bounded") {
				q.MaximumPercent = max(1, float64(rapid.IntRange(int(q.GuaranteePercent), 100).Draw(t, "maximum")))
			}
			tree.Labels["gpu"] = append(tree.Labels["gpu"], q)
			tree.Queues = append(tree.Queues, Queue{Path: path})
		}
		tree.ResolveIn(view(), 0)
		before, told := maps.Clone(confs), false
		mends := Mend(view(), tree, confs)
		for _, m := range mends {
			told = told || len(m.Notes) > 0
			confs[m.Member] = applied(confs[m.Member], m.Changes)
			if err := refused(confs[m.Member], versions[m.Member] != "creel"); err != nil {
				t.Fatalf("%s refuses what mends it: %v\nwas %v\n%+v", m.Member, err, before[m.Member], m.Changes)
			}
		}
		for _, s := range Compare(view(), tree) {
			if s.Label != "" && len(s.Drift) > 0 && !told {
				t.Fatalf("%s still drifts: %v\nwas %v\nis %v", s.Queue, s.Drift, before, confs)
			}
		}
		for _, m := range Mend(view(), tree, confs) {
			if len(m.Changes) > 0 {
				t.Fatalf("a second look at %s finds %+v\nthe first %+v\nwas %v", m.Member, m.Changes, mends, before)
			}
		}
		for i := range mends {
			if m := &mends[i]; len(m.Changes) > 0 {
				back, err := m.Undo(confs[m.Member])
				if err != nil {
					t.Fatal(err)
				}
				if conf := applied(confs[m.Member], back); !maps.Equal(conf, before[m.Member]) {
					t.Fatalf("undone it is %v and was %v", conf, before[m.Member])
				}
			}
		}
	})
}
