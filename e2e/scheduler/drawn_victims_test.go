// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm"
)

// victimNodes are the nodes of drawn states; each drawn container's size divides them.
var victimNodes = slices.Repeat([]creel.Resource{creel.NewResource(16384, 16)}, 8)

// A drawnApp is an application of a drawn state.
type drawnApp struct {
	queue, user string
	priority    int32
	size        creel.Resource // of its containers
	wants       int32          // containers of the size of the state's asks, after the cluster is full
}

// A drawnFill allocates containers of an application on one node.
type drawnFill struct {
	app, node int
	count     int32
}

// A drawnState is a cluster that is full, and the asks that come then.
type drawnState struct {
	r     *rand.Rand
	keys  map[string]string
	apps  []drawnApp
	fills []drawnFill
	size  creel.Resource // of the asks
}

func (d *drawnState) chance(percent int) bool { return d.r.IntN(100) < percent }

func drawState(r *rand.Rand) *drawnState {
	d := &drawnState{r: r, keys: map[string]string{
		"maximum-am-resource-percent":                             "1",
		"node-locality-delay":                                     "-1",
		"per-node-heartbeat.maximum-offswitch-assignments":        "100",
		"per-node-heartbeat.multiple-assignments-enabled":         "true",
		"user-limit-factor":                                       "100",
		monitorPrefix + "total_preemption_per_round":              pick(r, "0.1", "0.25", "0.5", "1"),
		monitorPrefix + "natural_termination_factor":              pick(r, "0.2", "0.5", "1", "1"),
		monitorPrefix + "max_ignored_over_capacity":               pick(r, "0", "0.1", "0.3"),
		monitorPrefix + "monitoring_interval":                     "1000000000",
		monitorPrefix + "select_based_on_reserved_containers":     pick(r, "false", "false", "true"),
		monitorPrefix + "intra-queue-preemption.enabled":          pick(r, "false", "true"),
		monitorPrefix + intra + "preemption-order-policy":         pick(r, "userlimit_first", "priority_first"),
		monitorPrefix + intra + "max-allowable-limit":             pick(r, "0.2", "0.5", "1"),
		monitorPrefix + intra + "minimum-threshold":               pick(r, "0", "0.5"),
		monitorPrefix + "cross-queue-preemption.conservative-drf": pick(r, "false", "true"),
		monitorPrefix + intra + "conservative-drf":                pick(r, "false", "true"),
	}}
	dominant := d.chance(15)
	if dominant {
		d.keys["resource-calculator"] = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
	}
	d.children("root", 1)
	d.fill(dominant)
	return d
}

func (d *drawnState) children(path string, depth int) {
	n := 2 + d.r.IntN(2)
	var names []string
	left := 100
	if d.chance(30) {
		d.keys[path+".ordering-policy"] = "priority-utilization"
	}
	for i := range n {
		name := string(rune('a' + i))
		if path != "root" {
			name = path[strings.LastIndexByte(path, '.')+1:] + strconv.Itoa(i)
		}
		names = append(names, name)
		q := path + "." + name
		part := left
		if i < n-1 {
			part = min(left-5*(n-1-i), pick(d.r, 5, 10, 20, 25, 30, 40, 50))
		}
		left -= part
		d.keys[q+".capacity"] = strconv.Itoa(part)
		if d.chance(20) {
			d.keys[q+".maximum-capacity"] = strconv.Itoa(min(100, part+pick(d.r, 10, 25, 50)))
		}
		if d.chance(15) {
			d.keys[q+".disable_preemption"] = pick(d.r, "true", "false")
		}
		if d.chance(30) {
			d.keys[q+".priority"] = pick(d.r, "1", "2", "5")
		}
		if depth < 3 && d.chance(35/depth) {
			d.children(q, depth+1)
			continue
		}
		if d.chance(5) {
			d.keys[q+".minimum-user-limit-percent"] = pick(d.r, "25", "50")
		}
		if d.chance(15) {
			d.keys[q+".ordering-policy"] = "fair"
		}
	}
	d.keys[path+".queues"] = strings.Join(names, ",")
}

func (d *drawnState) leaves() (out []string) {
	for _, q := range pathsBelow(d.keys) {
		if d.keys[q+".queues"] == "" {
			out = append(out, q)
		}
	}
	return out
}

// fill draws applications, node after node their containers, and the asks that come then.
func (d *drawnState) fill(dominant bool) {
	sizes := []creel.Resource{creel.NewResource(2048, 1), creel.NewResource(4096, 2)}
	if dominant {
		sizes[0].VCores, sizes[1].VCores = pick[int64](d.r, 1, 2), pick[int64](d.r, 1, 4)
	}
	one := d.chance(85)
	d.size = pick(d.r, sizes...)
	leaves := d.leaves()
	d.r.Shuffle(len(leaves), func(i, j int) { leaves[i], leaves[j] = leaves[j], leaves[i] })
	running := max(1, len(leaves)-1-d.r.IntN(len(leaves)))
	for i, q := range leaves {
		for range 1 + d.r.IntN(3) {
			a := drawnApp{
				queue: q, user: pick(d.r, "u1", "u2", "u3"), priority: pick[int32](d.r, 0, 0, 1, 5),
				size: pick(d.r, sizes...),
			}
			if one {
				a.size = d.size
			}
			if i >= running || d.chance(20) {
				a.wants = pick[int32](d.r, 1, 5, 12, 30, 60)
			}
			d.apps = append(d.apps, a)
		}
	}
	var able []int
	for i, a := range d.apps {
		if slices.Index(leaves, a.queue) < running {
			able = append(able, i)
		}
	}
	d.r.Shuffle(len(able), func(i, j int) { able[i], able[j] = able[j], able[i] })
	last := able[len(able)-1] // can use each node to its end
	d.apps[last].size = d.size
	if !one {
		d.apps[last].size = sizes[0]
	}
	delete(d.keys, d.apps[last].queue+".minimum-user-limit-percent")
	for q := d.apps[last].queue; q != "root"; q = q[:strings.LastIndexByte(q, '.')] {
		delete(d.keys, q+".maximum-capacity")
	}
	for node := range victimNodes {
		for range 3 {
			d.fills = append(d.fills, drawnFill{able[d.r.IntN(len(able))], node, 1 + d.r.Int32N(5)})
		}
		for _, i := range able { // the rest of the node, if its limits permit
			d.fills = append(d.fills, drawnFill{i, node, 8})
		}
	}
}

func (d *drawnState) conf() hadoop.Conf {
	out := hadoop.Conf{}
	for key := range hadoop.Queues() {
		out[key] = ""
	}
	for key, value := range d.keys {
		if !strings.HasPrefix(key, "yarn.") {
			key = prefix + key
		}
		out[key] = value
	}
	return out
}

func (d *drawnState) String() string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(d.keys)) {
		fmt.Fprintf(&b, "    %s = %s\n", strings.TrimPrefix(key, monitorPrefix), d.keys[key])
	}
	return b.String()
}

// guarantee is a queue's part of the cluster.
func (d *drawnState) guarantee(q string) float64 {
	part := 1.0
	for ; q != "root"; q = q[:strings.LastIndexByte(q, '.')] {
		percent, _ := strconv.Atoi(d.keys[q+".capacity"])
		part *= float64(percent) / 100
	}
	return part
}

// loss is the containers that an application loses, and their sum.
type loss struct{ containers, memory, vcores int64 }

// victimsOf are both sides' losses by application, with each application's containers before.
type victimsOf struct {
	has          []int32
	theirs, ours []loss
}

// beside plays a state on both sides. It returns false if the containers could not be placed alike.
func (d *drawnState) beside(t *testing.T, h *hadoopTrees) (*victimsOf, bool) {
	t.Helper()
	h.write(t, d.conf())
	if no := h.do(t, "start", "file"); no != "" {
		t.Fatalf("%s\n%s", no, d)
	}
	defer func() {
		if no := h.do(t, "end"); no != "" {
			t.Fatal(no)
		}
	}()
	if no := h.do(t, "nodes", len(victimNodes)); no != "" {
		t.Fatal(no)
	}
	ours := d.machine(t, h.conf)
	for i, a := range d.apps {
		if no := h.do(t, "app", a.queue, a.user, a.priority); no != "" {
			t.Fatal(no)
		}
		ours.submit(t, job{name: strconv.Itoa(i), user: a.user, queue: a.queue, priority: a.priority})
	}
	out := &victimsOf{has: make([]int32, len(d.apps))}
	free := slices.Clone(victimNodes)
	for _, f := range d.fills {
		a := d.apps[f.app]
		// Hadoop reserves a node for what does not fit.
		f.count = int32(min(int64(f.count), free[f.node].MemoryMB/a.size.MemoryMB, free[f.node].VCores/a.size.VCores))
		if f.count == 0 {
			continue
		}
		theirs := h.numbers(t, "fill", f.app, f.node, a.size.MemoryMB, a.size.VCores, f.count)[0]
		host := fmt.Sprintf("127.0.0.%d", f.node+2)
		on := func(count int32) int {
			m := ours.ams[f.app]
			return ours.allocate(t, m, []rm.Ask{
				{Priority: 1, ResourceName: host, Resource: a.size, Count: count},
				{Priority: 1, ResourceName: "/default-rack", Resource: a.size, Count: count, StrictLocality: true},
				{Priority: 1, ResourceName: "*", Resource: a.size, Count: count, StrictLocality: true},
			}, nil)
		}
		mine := on(f.count)
		on(0)
		if int64(mine) != theirs {
			return nil, false
		}
		out.has[f.app] += int32(mine)
		free[f.node] = free[f.node].Sub(a.size.Scale(int64(mine), 1))
	}
	for i, a := range d.apps {
		if a.wants == 0 {
			continue
		}
		if no := h.do(t, "ask", i, "*", d.size.MemoryMB, d.size.VCores, a.wants); no != "" {
			t.Fatal(no)
		}
		if ours.allocate(t, ours.ams[i], []rm.Ask{
			{Priority: 1, ResourceName: "*", Resource: d.size, Count: a.wants},
		}, nil) > 0 {
			return nil, false // the cluster is not full
		}
	}
	n := h.numbers(t, "round")
	for i := range d.apps {
		out.theirs = append(out.theirs, loss{n[3*i], n[3*i+1], n[3*i+2]})
	}
	out.ours = ours.round(t)
	return out, true
}

// numbers sends a command and returns the numbers of its answer.
func (h *hadoopTrees) numbers(t *testing.T, words ...any) (out []int64) {
	t.Helper()
	reply, ok := strings.CutPrefix(h.do(t, words...), "ok ")
	if !ok {
		t.Fatal(reply)
	}
	for word := range strings.FieldsSeq(reply) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

// machine is creel's side with the nodes of drawn states.
func (d *drawnState) machine(t *testing.T, dir string) *ourSide {
	t.Helper()
	config, err := role.QueueConfig(configured(t, dir), false)
	if err != nil {
		t.Fatal(err)
	}
	c := rm.Defaults()
	c.ClusterTimestamp, c.Volatile = 1, true
	c.MinAllocation, c.MaxAllocation = creel.NewResource(128, 1), creel.NewResource(8192, 8)
	c.Queues, c.Placement = config.Queues, config.Placement
	c.Queues.Preemption.Interval = time.Second
	m, err := rm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for i, size := range victimNodes {
		if _, err := m.RegisterNode(start, &rm.RegisterNode{
			ID:       creel.NodeID{Host: fmt.Sprintf("127.0.0.%d", i+2), Port: 1},
			HTTPPort: 1, Resource: size, Version: "3.4.2",
		}); err != nil {
			t.Fatal(err)
		}
	}
	return &ourSide{m: m, now: start}
}

// round lets the first round pass, and returns what each application would lose.
func (s *ourSide) round(t *testing.T) []loss {
	t.Helper()
	s.m.Actions(nil)
	s.m.Tick(s.now.Add(time.Second))
	out := make([]loss, len(s.ams))
	for _, a := range s.m.Actions(nil) {
		if p, ok := a.(rm.Preempted); ok && p.What == rm.Noticed {
			of := &out[p.Container.Attempt.Application.ID-1]
			of.containers++
			of.memory += p.Resource.MemoryMB
			of.vcores += p.Resource.VCores
		}
	}
	return out
}

// sums are a leaf's amounts of memory.
type sums struct {
	guarantee, used, wants, theirs, ours int64
	vcores                               int64 // used

	oneType bool // it is above its guarantee of memory or of vcores, but not of both
	within  bool // one of its applications waits while another runs
	limited bool // it has a minimum-user-limit-percent
	unequal bool // an application of it loses a different number
}

// byLeaf sums a state up.
func (d *drawnState) byLeaf(v *victimsOf) map[string]*sums {
	out := map[string]*sums{}
	for _, q := range d.leaves() {
		out[q] = &sums{
			guarantee: int64(d.guarantee(q) * d.cluster()),
			limited:   d.keys[q+".minimum-user-limit-percent"] != "",
		}
	}
	for i, a := range d.apps {
		x := out[a.queue]
		x.used += int64(v.has[i]) * a.size.MemoryMB
		x.vcores += int64(v.has[i]) * a.size.VCores
		x.wants += int64(a.wants) * d.size.MemoryMB
		x.theirs += v.theirs[i].memory
		x.ours += v.ours[i].memory
		x.unequal = x.unequal || v.theirs[i] != v.ours[i]
		for j, b := range d.apps {
			x.within = x.within || i != j && a.queue == b.queue && a.wants > 0 && v.has[j] > 0
		}
	}
	cores := float64(victimNodes[0].VCores) * float64(len(victimNodes))
	for q, x := range out {
		x.oneType = (x.used > x.guarantee) != (float64(x.vcores) > d.guarantee(q)*cores)
	}
	return out
}

// keeps reports whether a queue's containers may not be taken.
func (d *drawnState) keeps(q string) bool {
	for ; q != "root"; q = q[:strings.LastIndexByte(q, '.')] {
		if on := d.keys[q+".disable_preemption"]; on != "" {
			return on == "true"
		}
	}
	return false
}

// promises checks the promises that creel keeps in every state, also where it differs.
func (d *drawnState) promises(leaves map[string]*sums) (out []string) {
	total := int64(0)
	for _, q := range slices.Sorted(maps.Keys(leaves)) {
		x := leaves[q]
		total += x.ours
		if x.ours > 0 && d.keeps(q) {
			out = append(out, q+" loses containers, though its preemption is disabled")
		}
		inside := x.within && d.keys[monitorPrefix+"intra-queue-preemption.enabled"] == "true"
		if x.ours > 0 && x.used-x.ours < x.guarantee && !inside {
			out = append(out, q+" falls below its guarantee")
		}
	}
	if part := d.number("total_preemption_per_round") * d.cluster(); float64(total) > part {
		out = append(out, fmt.Sprintf("%d MB are chosen, the limit of a round is %.0f", total, part))
	}
	return out
}

func (d *drawnState) cluster() float64 {
	return float64(victimNodes[0].MemoryMB) * float64(len(victimNodes))
}

func (d *drawnState) number(key string) float64 {
	n, _ := strconv.ParseFloat(d.keys[monitorPrefix+key], 64)
	return n
}

// TestDrawnVictimsMatchHadoop compares how many containers of each application the first round of preemption chooses,
// in drawn states of a full cluster. Both sides' containers are placed alike. In a search the states are others.
func TestDrawnVictimsMatchHadoop(t *testing.T) {
	h := startTreesOf(t, hadoop.Conf{"yarn.resourcemanager.scheduler.monitor.enable": "true"}, victimNodes)
	r := propertytest.Rand(t)
	compared, alike, some := 0, 0, 0
	used := map[string]int{}
	for i := range drawn() {
		d := drawState(r)
		v, ok := d.beside(t, h)
		if !ok {
			continue
		}
		compared++
		if slices.ContainsFunc(v.theirs, func(l loss) bool { return l.containers > 0 }) {
			some++
		}
		leaves := d.byLeaf(v)
		for _, broken := range d.promises(leaves) {
			t.Errorf("state %d: %s\n%s%s", i, broken, d, d.describe(v))
		}
		if slices.Equal(v.theirs, v.ours) {
			alike++
			continue
		}
		k := slices.IndexFunc(victimsKnown, func(k knownVictims) bool { return k.when(d, leaves) })
		if k < 0 {
			t.Errorf("state %d\n%s%s", i, d, d.describe(v))
			continue
		}
		used[victimsKnown[k].where]++
	}
	t.Logf("%d states compared, %d alike, %d with victims; known: %v", compared, alike, some, used)
	if compared < drawn()*5/6 || some < compared/2 {
		t.Error("too few states are comparable, or have victims: the draws have changed")
	}
	for _, k := range victimsKnown {
		if used[k.where] == 0 && !propertytest.Searching() {
			t.Errorf("no state has the difference %q: remove it from the list", k.where)
		}
	}
}

func (d *drawnState) describe(v *victimsOf) string {
	var b strings.Builder
	for i, a := range d.apps {
		fmt.Fprintf(&b, "    %s %s priority %d has %d of %v, wants %d of %v: Hadoop %d, creel %d\n", a.queue, a.user,
			a.priority, v.has[i], a.size, a.wants, d.size, v.theirs[i].containers, v.ours[i].containers)
	}
	leaves := d.byLeaf(v)
	for _, q := range slices.Sorted(maps.Keys(leaves)) {
		fmt.Fprintf(&b, "    leaf %s %d\n", q, leaves[q].guarantee)
	}
	return b.String()
}
