// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"pgregory.net/rapid"
)

func opportune(c *Config) {
	o := opportunistic.Defaults()
	c.Opportunistic = &o
}

// queue sends a node's heartbeat with a queue of a length and a capacity, and with all its containers running.
func (w *world) queue(id creel.NodeID, length, capacity int32) *NodeAnswer {
	r := &NodeReport{
		ID: id, ResponseID: w.responses[id], Utilization: &NodeUse{QueueLength: length, QueueCapacity: capacity},
	}
	for _, c := range w.m.NodeContainers(id) {
		r.Containers = append(r.Containers, ContainerStatus{ID: c.ID, State: creel.ContainerRunning})
	}
	out := w.m.NodeHeartbeat(w.now, r)
	w.responses[id] = out.ResponseID
	w.pump()
	return out
}

func opportuneAsk(priority, count int32) Ask {
	k := ask(priority, "*", 1024, 1, count)
	k.ExecutionType = creel.Opportunistic
	return k
}

// A restarted ResourceManager takes each container over with its node's execution type, and charges only for
// guaranteed ones. Both may be promoted and demoted as before.
func TestExecutionTypesSurviveRestart(t *testing.T) {
	w := newWorld(t, func(c *Config) { opportune(c); c.Epoch = 1 })
	first := creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 7}, Attempt: 1}
	if err := w.m.Recover(w.now, &Recover{Apps: []AppRecord{{
		Submission: Submission{ID: first.Application, User: "u", Queue: "default", Unmanaged: true},
		Submitted:  w.now,
		Queue:      "root.default",
		Attempts:   []AttemptRecord{{ID: first, Started: w.now, ExitStatus: creel.ExitInvalid}},
	}}}); err != nil {
		t.Fatal(err)
	}
	w.register(first)
	node := creel.NodeID{Host: "n", Port: 1}
	running := func(seq int64, as creel.ExecutionType) NodeContainer {
		return NodeContainer{
			ID: creel.ContainerID{Attempt: first, ID: seq}, Resource: creel.NewResource(1024, 1), Version: 3,
			State: creel.ContainerRunning, ExecutionType: as,
		}
	}
	if _, err := w.m.RegisterNode(w.now, &RegisterNode{
		ID: node, Resource: creel.NewResource(8192, 8),
		Containers: []NodeContainer{running(2, creel.Guaranteed), running(3, creel.Opportunistic)},
	}); err != nil {
		t.Fatal(err)
	}
	w.responses[node] = 0
	w.audit()
	if v, _ := w.m.Node(node); v.Used.MemoryMB != 1024 || v.Containers != 1 {
		t.Errorf("the node uses %v in %d containers", v.Used, v.Containers)
	}
	out := w.allocate(first, AllocateRequest{Updates: []Update{
		{Container: creel.ContainerID{Attempt: first, ID: 3}, Version: 3, Kind: Promote},
		{Container: creel.ContainerID{Attempt: first, ID: 2}, Version: 3, Kind: Demote},
	}})
	w.audit()
	if len(out.Updated) != 2 || out.Updated[0].Grant.ExecutionType != creel.Guaranteed || len(out.NMTokens) != 1 {
		t.Errorf("updated %+v, tokens for %v; got back %v", out.Updated, out.NMTokens, out.FromPrevious)
	}
	if v, _ := w.m.Opportunistic(); v.Containers != 1 || v.Promoted != 1 || v.Demoted != 1 {
		t.Errorf("%+v", v)
	}
}

// Use over time is that of all containers, before and after the end of the opportunistic ones.
func TestUseOverTimeHasOpportunisticContainers(t *testing.T) {
	w := newWorld(t, opportune)
	n := w.node("n1", 4096, 4, "")
	w.queue(n, 0, 9)
	id := w.unmanaged("u", "default")
	out := w.asks(id, opportuneAsk(1, 2), ask(1, "*", 2048, 1, 1))
	if len(out.Granted) != 3 {
		t.Fatalf("granted %v", out.Granted)
	}
	w.now = w.now.Add(10 * time.Second)
	w.m.Tick(w.now)
	for range 2 {
		if v, _ := w.m.App(id.Application); v.ResourceSeconds[0].Value != 4*1024*10 || v.Used.MemoryMB != 2048 {
			t.Errorf("used %v now, %v over time", v.Used, v.ResourceSeconds)
		}
		for _, g := range out.Granted {
			if g.ExecutionType == creel.Opportunistic {
				w.release(id, g.ID)
			}
		}
	}
	if got := w.m.apps.record(w.m.apps.byID[id.Application]).Usage.OverTime.MemoryMB; got != 4*1024*10_000 {
		t.Errorf("the record has %d", got)
	}
}

// The report of an application has its containers in queues of nodes, each since the first heartbeat with it, until it
// runs, ends or is promoted. The queue's row has all its opportunistic containers.
func TestReportHasWaitingContainers(t *testing.T) {
	w := newWorld(t, opportune)
	n := w.node("n1", 4096, 4, "")
	w.queue(n, 0, 9)
	id := w.unmanaged("u", "default")
	granted := w.asks(id, opportuneAsk(1, 5)).Granted
	w.allocate(id, AllocateRequest{})
	report := func(waiting ...bool) {
		var list []ContainerStatus
		for i, q := range waiting {
			list = append(list, ContainerStatus{ID: granted[i].ID, State: creel.ContainerRunning, Waiting: q})
		}
		w.heartbeat(n, list...)
	}
	want := func(containers, waiting int32, longest time.Duration) {
		t.Helper()
		queued := 0
		for _, c := range w.m.NodeContainers(n) {
			if !c.Queued.IsZero() {
				queued++
			}
		}
		if queued != int(waiting) {
			t.Errorf("%d containers of the node wait in its queue, want %d", queued, waiting)
		}
		v, all := OpportunisticOf(w.m, id.Application), w.m.opportunistic.counts.Waiting
		if v == nil || v.Containers != containers || v.Waiting != waiting || all != waiting {
			t.Fatalf("%+v, all waiting %d; want %d containers, %d waiting", v, all, containers, waiting)
		}
		if waiting > 0 && (len(v.Nodes) != 1 || v.Nodes[0].Node != n || w.now.Sub(v.Nodes[0].Since) != longest) {
			t.Errorf("%+v, want %s for %s", v.Nodes, n, longest)
		}
		q, _ := w.m.Queue("root.default")
		root, _ := w.m.Queue("root")
		if q.OpportunisticContainers != containers || q.Opportunistic.MemoryMB != 1024*int64(containers) ||
			root.OpportunisticContainers != containers {
			t.Errorf("queue %d of %v, root %d", q.OpportunisticContainers, q.Opportunistic, root.OpportunisticContainers)
		}
		w.audit()
	}
	want(5, 0, 0)
	report(false, true, true, true)
	w.now = w.now.Add(7 * time.Second)
	report(false, true, true, true, true)
	want(5, 4, 7*time.Second)
	w.allocate(id, AllocateRequest{Updates: []Update{{Container: granted[1].ID, Kind: Promote}}})
	want(4, 3, 7*time.Second)
	w.heartbeat(n,
		ContainerStatus{ID: granted[2].ID, State: creel.ContainerComplete, ExitStatus: -108,
			Diagnostics: "Opportunistic container queue is full.\n"},
		ContainerStatus{ID: granted[3].ID, State: creel.ContainerRunning})
	want(3, 1, 0)
	if got := w.m.opportunistic.counts.Killed; got != [opportunistic.Kills]int64{opportunistic.QueueFull: 1} {
		t.Errorf("killed %v", got)
	}
	w.release(id, granted[4].ID)
	want(2, 0, 0)
}

// An application that waits only for a short queue says so.
func TestWhyNamesOpportunisticAsks(t *testing.T) {
	w := newWorld(t, opportune)
	w.queue(w.node("n1", 4096, 4, ""), 3, 3)
	id := w.unmanaged("u", "default")
	w.asks(id, opportuneAsk(1, 5))
	if y, _ := w.m.Why(id.Application); y.Text !=
		"It asks for 5 opportunistic containers, for which no node's queue is short enough." {
		t.Error(y.Text)
	}
	if v := OpportunisticOf(w.m, id.Application); v == nil || v.Asked != 5 || v.Containers != 0 {
		t.Errorf("%+v", v)
	}
}

// Preemption takes nothing from opportunistic containers, and a demoted victim is none any more.
func TestOpportunisticContainersAreNoVictims(t *testing.T) {
	w := newWorld(t, opportune)
	n := w.node("n1", 4096, 4, "")
	w.queue(n, 0, 9)
	id := w.unmanaged("u", "default")
	out := w.asks(id, opportuneAsk(1, 2), ask(1, "*", 1024, 1, 1))
	var list machineContainers
	list.m = w.m
	got := list.Newest(&w.m.apps.byID[id.Application].App, nil)
	if len(got) != 1 || got[0].Owner.(*container).uncharged() {
		t.Errorf("of %d containers %d may be preempted", len(out.Granted), len(got))
	}
}

// A heartbeat's answer has the limit for the queue, with commands and without.
func TestHeartbeatAnswerHasQueueLimit(t *testing.T) {
	w := newWorld(t, opportune)
	n := w.node("n1", 4096, 4, "")
	if got := w.queue(n, 7, 99).Limit; got == nil || *got != (QueueLimit{7, -1}) {
		t.Errorf("limit %v", got)
	}
	id := w.unmanaged("u", "default")
	w.release(id, w.asks(id, ask(1, "*", 1024, 1, 1)).Granted[0].ID)
	out := w.queue(n, 7, 99)
	if out.Limit == nil || out.Limit.Length != 7 || len(out.Cleanup) != 1 {
		t.Errorf("limit %v beside %v", out.Limit, out.Cleanup)
	}
	moves := newWorld(t, func(c *Config) {
		opportune(c)
		c.Opportunistic.Moves, c.Opportunistic.Lengths = true, opportunistic.Range{Min: 7, Max: 7}
	})
	long, short := moves.node("n1", 4096, 4, ""), moves.node("n2", 4096, 4, "")
	moves.queue(long, 12, 99)
	moves.queue(short, 5, 99)
	moves.now = moves.now.Add(time.Second)
	if got := moves.queue(long, 12, 99).Limit; got == nil || *got != (QueueLimit{10, -1}) {
		t.Errorf("a shorter queue has two places: limit %v", got)
	}
	if got := moves.queue(long, 12, 99).Limit; got == nil || *got != (QueueLimit{-1, -1}) {
		t.Errorf("the places are used: limit %v", got)
	}
	off := newWorld(t, nil)
	if got := off.queue(off.node("n1", 4096, 4, ""), 7, 99).Limit; got != nil {
		t.Errorf("without opportunistic allocation: limit %v", got)
	}
}

// An opportunistic ask without a label runs where its AM may, and one with a label only there.
func TestOpportunisticAskStaysInLabel(t *testing.T) {
	w := newWorld(t, func(c *Config) { opportune(c); c.Labels = LabelsByCall })
	plain, special := w.node("n1", 4096, 4, ""), w.node("n2", 4096, 4, "")
	if err := w.m.AddLabels(w.now, []Label{{Name: "x", Exclusive: true}}); err != nil {
		t.Fatal(err)
	}
	w.pump()
	if err := w.m.ReplaceLabels(w.now, []NodeLabels{{special, []string{"x"}}}, false); err != nil {
		t.Fatal(err)
	}
	w.pump()
	w.queue(plain, 0, 9)
	w.now = w.now.Add(time.Second)
	w.queue(special, 0, 9)
	id := w.unmanaged("u", "default")
	for label, want := range map[string]creel.NodeID{"": plain, "x": special} {
		k := opportuneAsk(1, 2)
		k.Label = LabelExpression{Text: label, Given: label != ""}
		w.m.apps.byID[id.Application].amLabel = ""
		for _, g := range w.asks(id, k).Granted {
			if g.Node != want {
				t.Errorf("label %q: on %s", label, g.Node)
			}
		}
	}
	w.m.apps.byID[id.Application].amLabel = "x" // as if its AM's ask had it
	if got := w.asks(id, opportuneAsk(3, 1)).Granted; len(got) != 1 || got[0].Node != special {
		t.Errorf("with the AM's label: %v", got)
	}
	w.audit()
}

// Containers stay on a node that gets another label, and opportunistic ones still count in no queue.
func TestOpportunisticContainerKeepsItsNodeWithNewLabel(t *testing.T) {
	w := newWorld(t, func(c *Config) { opportune(c); c.Labels = LabelsByCall })
	n := w.node("n1", 4096, 4, "")
	w.queue(n, 0, 9)
	id := w.unmanaged("u", "default")
	out := w.asks(id, opportuneAsk(1, 2), ask(1, "*", 1024, 1, 1))
	if err := w.m.AddLabels(w.now, []Label{{Name: "x"}}); err != nil {
		t.Fatal(err)
	}
	w.pump()
	if err := w.m.ReplaceLabels(w.now, []NodeLabels{{n, []string{"x"}}}, false); err != nil {
		t.Fatal(err)
	}
	w.pump()
	w.audit()
	for _, g := range out.Granted {
		w.release(id, g.ID)
	}
	w.audit()
}

// The days of TestInvariantsHoldAfterEveryEvent with asks of both execution types: never more is granted than was
// asked for, and sums of both kinds hold after every event.
func TestInvariantsHoldWithOpportunisticContainers(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		r := newRun(rt, t)
		opportune(&r.first)
		r.first.Opportunistic.Comparator = opportunistic.Comparator(rapid.IntRange(0, 2).Draw(rt, "comparator"))
		r.first.AutoUpdate = rapid.Bool().Draw(rt, "auto update")
		r.opportune = true
		r.w = newWorld(t, func(c *Config) { *c = r.first })
		r.near = NewAuditor(r.w.m, 0)
		for range rapid.IntRange(5, 60).Draw(rt, "steps") {
			r.step()
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

// A member reports the queues of its least loaded nodes without a label, with granted containers on their way.
func TestLeastQueuesAreReported(t *testing.T) {
	w := newWorld(t, func(c *Config) { opportune(c); c.Labels = LabelsByCall })
	if got := NodeQueues(w.m, 9); got == nil || len(got) != 0 {
		t.Errorf("without nodes %v", got)
	}
	var nodes [4]creel.NodeID
	for i := range nodes {
		nodes[i] = w.node(fmt.Sprint("n", i), 4096, 4, "")
	}
	special, long, full, short := nodes[0], nodes[1], nodes[2], nodes[3]
	if err := w.m.AddLabels(w.now, []Label{{Name: "x", Exclusive: true}}); err != nil {
		t.Fatal(err)
	}
	w.pump()
	if err := w.m.ReplaceLabels(w.now, []NodeLabels{{special, []string{"x"}}}, false); err != nil {
		t.Fatal(err)
	}
	w.pump()
	w.queue(special, 0, 9)
	w.queue(long, 7, 9)
	w.queue(full, 9, 9)
	w.now = w.now.Add(time.Second)
	w.queue(short, 2, 9)
	if got := NodeQueues(w.m, 9); !slices.Equal(got, []int32{2, 7}) {
		t.Errorf("queues %v", got)
	}
	if got := NodeQueues(w.m, 1); !slices.Equal(got, []int32{2}) {
		t.Errorf("the shortest: %v", got)
	}
	w.m.opportunistic.nodes.Put(w.m.nodes.byID[short].Serial(), &amounts.Vec{}, false)
	if got := NodeQueues(w.m, 9); !slices.Equal(got, []int32{3, 7}) {
		t.Errorf("with a grant %v", got)
	}
	if got := NodeQueues(newWorld(t, nil).m, 9); got != nil {
		t.Errorf("without opportunistic allocation %v", got)
	}
}
