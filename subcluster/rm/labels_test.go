// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
	"pgregory.net/rapid"
)

// labels checks the nodes of new containers: with a label a node that has it, without one a node without a label or
// with a shared label. It also checks that queues' use by partition equals the sum of their containers on its nodes.
func (r *run) labels(m *Machine) {
	where := r.log[len(r.log)-1].what
	used := map[string]map[creel.QueuePath]int64{}
	for _, n := range m.nodes.list {
		label := n.Label()
		if want := m.LabelOf(n.ID()); label != want {
			r.t.Fatalf("after %s: node %s is in partition %q, not in %q", where, n.ID(), label, want)
		}
		for _, c := range n.live {
			if c == nil {
				continue
			}
			for q := c.owner().app.Queue(); q != nil; q = q.Parent() {
				if used[label] == nil {
					used[label] = map[creel.QueuePath]int64{}
				}
				used[label][q.Path()] += m.sizeOf(c).V.Memory
			}
			if r.seen[c.id()] {
				continue
			}
			r.seen[c.id()] = true
			asked := c.rare().Label
			exclusive := m.labels.set.cluster[label]
			if asked != "" && label != asked || asked == "" && label != "" && (exclusive || c.am) {
				r.t.Fatalf("after %s: %s (AM %v) asked for with label %q is on %s of label %q",
					where, c.id(), c.am, asked, n.ID(), label)
			}
		}
	}
	for _, q := range m.sched.Tree().Queues() {
		for _, p := range m.sched.Explain().View(q).Partitions {
			if got, want := p.Used.MemoryMB, used[p.Label][q.Path()]; got != want {
				r.t.Fatalf("after %s: queue %s uses %d MiB of partition %q, its containers hold %d",
					where, q.Path(), got, p.Label, want)
			}
		}
	}
}

// drawShares draws the queues' shares of labels x and y.
func drawShares(t *rapid.T, q *queues.Queue, labels []string) {
	for i := range q.Children {
		c := &q.Children[i]
		if rapid.IntRange(0, 3).Draw(t, "accessible") == 0 {
			c.Labels = [][]string{{}, {"x"}, {"y"}}[rapid.IntRange(0, 2).Draw(t, "labels")]
		}
		if c.Labels == nil {
			c.Labels = labels
		}
		drawShares(t, c, c.Labels)
	}
	for _, label := range []string{"x", "y"} {
		left := 100
		var users []*queues.Queue
		for i := range q.Children {
			if queues.Accesses(q.Children[i].Labels, label) {
				users = append(users, &q.Children[i])
			}
		}
		for i, c := range users {
			part := left
			if i < len(users)-1 {
				part = rapid.IntRange(0, left).Draw(t, "part")
			}
			left -= part
			most := rapid.SampledFrom([]queues.Amount{{}, queues.PercentOf(100), queues.PercentOf(float64(max(part, 60)))}).
				Draw(t, "labelMax")
			c.Shares = append(c.Shares, queues.LabelShare{
				Label: label, Capacity: queues.PercentOf(float64(part)), MaxCapacity: most,
				MaxAMPercent: rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "labelAM"),
			})
		}
	}
}

func (r *run) labelStep() {
	t := r.t
	label := func() []string {
		return rapid.SampledFrom([][]string{nil, {"x"}, {"y"}}).Draw(t, "of")
	}
	switch rapid.IntRange(0, 4).Draw(t, "labelOp") {
	case 0:
		exclusive := rapid.Bool().Draw(t, "exclusive")
		r.do("add labels", func(m *Machine, now time.Time) {
			_ = m.AddLabels(now, []Label{{"x", true}})
			_ = m.AddLabels(now, []Label{{"y", exclusive}})
		})
	case 1:
		gone := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "removed")
		r.do("remove label", func(m *Machine, now time.Time) { _ = m.RemoveLabels(now, []string{gone}) })
	default:
		if len(r.nodes) == 0 {
			return
		}
		n := NodeLabels{Node: rapid.SampledFrom(r.nodes).Draw(t, "node"), Labels: label()}
		if rapid.IntRange(0, 3).Draw(t, "host") == 0 {
			n.Node.Port = 0
		}
		r.do("replace labels", func(m *Machine, now time.Time) { _ = m.ReplaceLabels(now, []NodeLabels{n}, false) })
	}
}

// drawLabelled draws queues with shares of labels x and y.
func drawLabelled(rt *rapid.T) queues.Spec {
	spec := drawQueues(rt)
	spec.Scheduler, spec.Preemption = queues.CapacityScheduler, queues.Preemption{}
	if spec.Validate() != nil { // drawn for the FairScheduler
		spec = Defaults().Queues
		leaf := func(name string, part float64) queues.Queue {
			return queues.Queue{Name: name, Capacity: queues.PercentOf(part), UserFactor: 4, MaxAMPercent: 1}
		}
		spec.Root.Children = []queues.Queue{leaf("a", 50), leaf("b", 10), {
			Name: "p", Capacity: queues.PercentOf(40), Children: []queues.Queue{leaf("c", 25), leaf("d", 75)},
		}}
	}
	drawShares(rt, &spec.Root, []string{queues.AnyLabel})
	return spec
}

// newLabelledRun is a run whose asks name labels x, exclusive, and y, shared.
func newLabelledRun(rt *rapid.T, t testing.TB, spec queues.Spec) *run {
	r := newRunOf(rt, t, spec)
	r.labelled, r.seen = true, map[creel.ContainerID]bool{}
	r.do("add labels", func(m *Machine, now time.Time) {
		_ = m.AddLabels(now, []Label{{"x", true}, {"y", false}})
	})
	return r
}

func TestLabelledInvariantsHoldAfterEveryEvent(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		r := newLabelledRun(rt, t, drawLabelled(rt))
		for range rapid.IntRange(5, 60).Draw(rt, "steps") {
			if rapid.IntRange(0, 5).Draw(rt, "which") == 0 {
				r.labelStep()
			} else {
				r.step()
			}
		}
		again := newWorld(t, func(c *Config) { *c = r.first })
		for _, l := range r.log {
			l.call(again.m, l.at)
		}
		if a, b := r.w.m.AppendState(nil), again.m.AppendState(nil); !bytes.Equal(a, b) {
			rt.Fatalf("a replay gave another state:\n%s\n---\n%s", a, b)
		}
	})
}

func TestLabelsAreRefusedInHadoopsWords(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Labels = LabelsByCall
		c.Queues.Root.Children[0].Labels = []string{"gpu"}
	})
	m := w.m
	add := func(l ...Label) error { return m.AddLabels(w.now, l) }
	for _, c := range []struct {
		err  error
		want string
	}{
		{add(Label{"gpu", true}), ""},
		{add(Label{"gpu", true}, Label{"ssd", false}), ""},
		{add(Label{"gpu", false}), "Exclusivity cannot be modified for an existing label with : <gpu:exclusivity=false>"},
		{add(Label{"-x", true}), "should not started with {-,_}, now it is= -x"},
		{add(Label{" ", true}), "label added is empty or exceeds 255 character(s)"},
		{m.RemoveLabels(w.now, []string{"gpu"}), "Cannot remove label=gpu, because queue=root.default is using this label"},
		{m.RemoveLabels(w.now, []string{"no"}), "Node label=no to be removed doesn't existed in cluster"},
		{
			m.ReplaceLabels(w.now, []NodeLabels{{creel.NodeID{Host: "h"}, []string{"gpu", "ssd"}}}, false),
			"2 labels specified on host=h",
		},
		{
			m.ReplaceLabels(w.now, []NodeLabels{{creel.NodeID{Host: "h"}, []string{"no"}}}, false),
			"Not all labels being replaced contained by known label collections, please check, new labels=[no]",
		},
		{
			m.ReplaceLabels(w.now, []NodeLabels{{creel.NodeID{Host: "h"}, []string{"gpu"}}}, true),
			"Replace labels on node failed. Unknown Nodes:[h:0]",
		},
		{m.ReplaceLabels(w.now, []NodeLabels{{creel.NodeID{Host: "h"}, []string{"gpu"}}}, false), ""},
		{m.RemoveLabels(w.now, []string{"ssd"}), ""},
	} {
		switch {
		case c.want == "" && c.err != nil:
			t.Errorf("refused: %v", c.err)
		case c.want != "" && (c.err == nil || !strings.Contains(c.err.Error(), c.want)):
			t.Errorf("%v, want %q", c.err, c.want)
		}
	}
	if got := m.LabelOf(creel.NodeID{Host: "h", Port: 7}); got != "gpu" {
		t.Errorf("a node of a labelled host has label %q", got)
	}
	apps := int32(0)
	submit := func(label string) error {
		apps++
		return m.Submit(w.now, &Submission{
			ID: creel.ApplicationID{ClusterTimestamp: 1, ID: apps}, User: "u", Queue: "default",
			AM:    Ask{ResourceName: "*", Resource: creel.Resource{MemoryMB: 1024, VCores: 1}, Count: 1},
			Label: LabelExpression{label, true},
		})
	}
	for label, want := range map[string]string{
		"ssd": "queue=default doesn't have permission to access all labels in resource request. " +
			"labelExpression of resource request=ssd. Queue labels=gpu",
		"gpu&&ssd": "specified more than one node label",
		"gpu":      "",
	} {
		err := submit(label)
		if want == "" && err != nil || want != "" && (!errors.Is(err, creel.ErrInvalidLabel) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", label, err, want)
		}
	}
}

// A queue's guarantee and maximum of a label bound its asks there. An ask for another label waits, whatever is free
// elsewhere, and why names the label. A shared partition lends its idle resources, an exclusive one does not.
func TestAsksStayOnNodesOfTheirLabel(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Labels = LabelsByCall
		c.Queues.Root.Children = []queues.Queue{
			{
				Name: "a", Capacity: queues.PercentOf(50), UserFactor: 4, MaxAMPercent: 1,
				Shares: []queues.LabelShare{{Label: "gpu", Capacity: queues.PercentOf(25), MaxCapacity: queues.PercentOf(50)}},
			},
			{
				Name: "b", Capacity: queues.PercentOf(50), UserFactor: 4, MaxAMPercent: 1, Labels: []string{"gpu"},
				Shares:       []queues.LabelShare{{Label: "gpu", Capacity: queues.PercentOf(75)}},
				DefaultLabel: "gpu",
			},
		}
	})
	m := w.m
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(m.AddLabels(w.now, []Label{{"gpu", true}, {"ssd", false}}))
	plain := w.node("plain", 2048, 2, "/r")
	gpu := w.node("gpu", 8192, 8, "/r")
	ssd := w.node("ssd", 4096, 4, "/r")
	must(m.ReplaceLabels(w.now, []NodeLabels{{gpu, []string{"gpu"}}, {creel.NodeID{Host: "ssd"}, []string{"ssd"}}}, true))
	w.pump()

	ask := func(id creel.AttemptID, label LabelExpression, count int32) []Grant {
		t.Helper()
		r := &AllocateRequest{ResponseID: w.ids[id], Asks: []Ask{{
			Priority: 1, ResourceName: "*", Count: count, Label: label,
			Resource: creel.Resource{MemoryMB: 1024, VCores: 1},
		}}}
		ans, err := m.Allocate(w.now, id, r)
		must(err)
		w.ids[id] = ans.ResponseID
		if err := errors.Join(m.Audit(), unserved(m), waitsAsWhySays(m)); err != nil {
			t.Fatal(err)
		}
		return append([]Grant(nil), ans.Granted...)
	}
	on := func(grants []Grant) map[creel.NodeID]int {
		out := map[creel.NodeID]int{}
		for _, g := range grants {
			out[g.Node]++
		}
		return out
	}
	given := func(label string) LabelExpression { return LabelExpression{label, true} }

	// 50 percent of 8 GiB is the maximum of a: four containers, and why shows it.
	a := w.unmanaged("u", "a")
	if got := on(ask(a, given("gpu"), 6)); got[gpu] != 4 || len(got) != 1 {
		t.Fatalf("queue a got %v of gpu, want 4 containers there", got)
	}
	why, _ := m.Why(a.Application)
	if why.Limit != explain.LimitQueue || !strings.Contains(why.Text, "On the nodes of label gpu: Queue root.a uses <memory:4096") {
		t.Errorf("why: %v %q", why.Limit, why.Text)
	}
	// Asks without a label go to nodes without one, then to idle nodes of ssd; gpu is idle and lends nothing.
	free := w.unmanaged("v", "a")
	if got := on(ask(free, given(""), 9)); got[plain] != 2 || got[ssd] != 4 || len(got) != 2 {
		t.Fatalf("asks without a label got %v", got)
	}
	// b's default label is gpu, where 4 GiB are left.
	b := w.unmanaged("w", "b")
	if got := on(ask(b, LabelExpression{}, 9)); got[gpu] != 4 || len(got) != 1 {
		t.Fatalf("asks of b got %v", got)
	}
	// Only asks without a label may use ssd here; a label without nodes is reported as such.
	must(m.ReplaceLabels(w.now, []NodeLabels{{ssd, nil}}, true))
	c := w.unmanaged("x", "a")
	if got := ask(c, given("ssd"), 1); len(got) != 0 {
		t.Fatalf("a label without nodes gave %v", got)
	}
	if why, _ = m.Why(c.Application); why.Limit != explain.LimitQueue && why.Limit != explain.LimitLabel {
		t.Errorf("why: %v %q", why.Limit, why.Text)
	}
	// Its four containers are now of the default partition.
	for _, q := range m.sched.Tree().Queues() {
		if v := m.sched.Explain().View(q); q.Path() == "root.a" && (v.Used.MemoryMB != 6144 || v.AllContainers != 10) {
			t.Errorf("root.a uses %v without a label, %d containers in all", v.Used, v.AllContainers)
		}
	}
}

// A queue created on demand has its template's share of a label, counts among its siblings from its creation, and
// follows a refreshed template. Without a capacity of the label it gets nothing there.
func TestQueuesMadeOnDemandHaveLabels(t *testing.T) {
	made := func(weight float64, shares ...queues.LabelShare) *queues.AutoCreate {
		return &queues.AutoCreate{Depth: 1, Leaf: queues.Queue{
			Capacity: queues.WeightOf(weight), UserFactor: -1, MaxAMPercent: 1, Shares: shares, DefaultLabel: "gpu",
		}}
	}
	gpu := func(weight, most float64) queues.LabelShare {
		return queues.LabelShare{Label: "gpu", Capacity: queues.WeightOf(weight), MaxCapacity: queues.PercentOf(most)}
	}
	var spec queues.Spec
	w := newWorld(t, func(c *Config) {
		c.Labels = LabelsByCall
		whole := []queues.LabelShare{{Label: "gpu", Capacity: queues.WeightOf(1)}}
		c.Queues.Root.Children = []queues.Queue{
			{
				Name: "f", Capacity: queues.WeightOf(1), Labels: []string{"gpu"}, Shares: whole,
				AutoCreate: made(1, gpu(3, 75)),
			},
			{Name: "silent", Capacity: queues.WeightOf(1), Labels: []string{"gpu"}, AutoCreate: made(1)},
			{Name: "without", Capacity: queues.WeightOf(1), Labels: []string{}, AutoCreate: made(1, gpu(1, 100))},
		}
		c.Queues.Root.Children[2].AutoCreate.Leaf.DefaultLabel = ""
		spec = c.Queues
	})
	m := w.m
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(m.AddLabels(w.now, []Label{{"gpu", true}}))
	w.node("plain", 8192, 8, "/r")
	id := w.node("gpu", 8192, 8, "/r")
	must(m.ReplaceLabels(w.now, []NodeLabels{{id, []string{"gpu"}}}, true))
	w.pump()
	ask := func(user, queue string, count int32) int {
		t.Helper()
		ans := w.allocate(w.unmanaged(user, queue), AllocateRequest{Asks: []Ask{{
			Priority: 1, ResourceName: "*", Count: count, Resource: creel.Resource{MemoryMB: 1024, VCores: 1},
		}}})
		must(errors.Join(m.Audit(), unserved(m), waitsAsWhySays(m)))
		for _, g := range ans.Granted {
			if g.Node != id {
				t.Errorf("%s: %v is not on the node of its label", queue, g)
			}
		}
		return len(ans.Granted)
	}
	of := func(path creel.QueuePath) explain.PartitionView {
		t.Helper()
		for _, q := range m.sched.Tree().Queues() {
			if v := m.sched.Explain().View(q); q.Path() == path {
				return v.Partitions[0]
			}
		}
		t.Fatalf("there is no %s", path)
		return explain.PartitionView{}
	}
	if got := ask("alice", "root.f.alice", 9); got != 6 {
		t.Errorf("alice got %d containers of gpu, of at most 75 percent", got)
	}
	if got := ask("bob", "root.f.bob", 9); got != 2 {
		t.Errorf("bob got %d containers, two were left", got)
	}
	if a := of("root.f.alice"); a.AbsCapacity != 0.5 || a.AbsMaxCapacity != 0.75 || !a.Accessible {
		t.Errorf("alice has %v to %v of gpu", a.AbsCapacity, a.AbsMaxCapacity)
	}
	if got := ask("carol", "root.silent.carol", 1); got != 0 || !of("root.silent.carol").Accessible {
		t.Errorf("carol got %d containers without a capacity of the label", got)
	}
	w.unmanaged("dave", "root.without.dave")
	if v := of("root.without.dave"); v.Accessible || v.AbsCapacity != 0 || v.AbsMaxCapacity != 0 {
		t.Errorf("below a queue that may not use gpu there is %v to %v of it", v.AbsCapacity, v.AbsMaxCapacity)
	}
	if err := m.RemoveLabels(w.now, []string{"gpu"}); err == nil {
		t.Error("a label that queues name was removed")
	}
	again := spec
	again.Root.Children = append([]queues.Queue(nil), spec.Root.Children...)
	again.Root.Children[0].AutoCreate = made(1, gpu(1, 100))
	must(m.ReloadQueues(w.now, again))
	if a := of("root.f.alice"); a.AbsCapacity != 0.5 || a.AbsMaxCapacity != 1 {
		t.Errorf("after a refresh alice has %v to %v of gpu", a.AbsCapacity, a.AbsMaxCapacity)
	}
	must(errors.Join(m.Audit(), unserved(m), waitsAsWhySays(m)))
}

// Labels outlive a restart, and a node that comes back is in its partition before its
// containers are.
func TestLabelsOutliveARestart(t *testing.T) {
	labels := Labels{
		Cluster: []Label{{"gpu", true}},
		Nodes:   []NodeLabel{{creel.NodeID{Host: "g"}, "gpu"}, {creel.NodeID{Host: "g", Port: 9}, ""}},
	}
	w := newWorld(t, func(c *Config) { c.Labels = LabelsByCall })
	if err := w.m.Recover(w.now, &Recover{Labels: labels}); err != nil {
		t.Fatal(err)
	}
	g := w.node("g", 4096, 4, "/r")
	for id, want := range map[creel.NodeID]string{g: "gpu", {Host: "g", Port: 9}: "", {Host: "h", Port: 1}: ""} {
		if got := w.m.LabelOf(id); got != want {
			t.Errorf("%s has label %q, want %q", id, got, want)
		}
	}
	if total, nodes := w.m.sched.Total(); nodes != 1 || total.Memory != 4096 {
		t.Errorf("%v on %d nodes", total, nodes)
	}
	if n := w.m.nodes.byID[g]; n.Label() != "gpu" {
		t.Errorf("the node is in partition %q", n.Label())
	}
}

// Labels that nodes report are accepted if the labels are known; otherwise the node receives the reason.
func TestNodesReportTheirLabels(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Labels = LabelsByNode })
	m := w.m
	if err := m.AddLabels(w.now, []Label{{"gpu", true}}); err != nil {
		t.Fatal(err)
	}
	id := creel.NodeID{Host: "h", Port: 1}
	r, err := m.RegisterNode(w.now, &RegisterNode{
		ID: id, Resource: creel.Resource{MemoryMB: 4096, VCores: 4}, Reported: NodeProperties{Labels: []string{"gpu"}, HasLabels: true},
	})
	if err != nil || !r.Taken.Labels || m.LabelOf(id) != "gpu" || m.nodes.byID[id].Label() != "gpu" {
		t.Fatalf("%+v %v, label %q", r, err, m.LabelOf(id))
	}
	ans := m.NodeHeartbeat(w.now, &NodeReport{ID: id, Reported: NodeProperties{Labels: []string{"no"}, HasLabels: true}})
	if ans.Taken.Labels || !strings.Contains(ans.Diagnostics, "Not all labels being replaced") || m.LabelOf(id) != "gpu" {
		t.Errorf("%+v, label %q", ans, m.LabelOf(id))
	}
	ans = m.NodeHeartbeat(w.now, &NodeReport{ID: id, ResponseID: 1, Reported: NodeProperties{HasLabels: true}})
	if !ans.Taken.Labels || m.LabelOf(id) != "" || m.nodes.byID[id].Label() != "" {
		t.Errorf("%+v, label %q", ans, m.LabelOf(id))
	}
	if err := m.ReplaceLabels(w.now, []NodeLabels{{id, []string{"gpu"}}}, false); err == nil ||
		!strings.Contains(err.Error(), "distributed node label configuration enabled") {
		t.Errorf("an administrator may label nodes that label themselves: %v", err)
	}
}
