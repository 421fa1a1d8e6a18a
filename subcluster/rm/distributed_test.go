// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

// remote plays a NodeManager that places containers of its AM.
type remote struct {
	*world
	am   creel.AttemptID
	next int64
}

func newRemote(w *world, am creel.AttemptID) *remote {
	w.t.Helper()
	p := &remote{world: w, am: am}
	p.next = p.terms().IDStart
	return p
}

func (p *remote) terms() SchedulingTerms {
	p.t.Helper()
	terms, err := SchedulingTermsOf(p.m, p.am)
	if err != nil {
		p.t.Fatal(err)
	}
	return terms
}

func (p *remote) on(n creel.NodeID) PlacedContainer {
	p.next--
	return PlacedContainer{
		ID: creel.ContainerID{Attempt: p.am, ID: p.next}, Node: n, Resource: creel.NewResource(1024, 1), Priority: 3,
	}
}

// state returns the state of a live container, "" if there is none.
func (p *remote) state(k PlacedContainer) string {
	v, _ := p.m.Container(k.ID)
	return v.Internal
}

func (p *remote) report(n creel.NodeID, k PlacedContainer, state creel.ContainerState, exit int32) {
	p.t.Helper()
	p.heartbeat(n, ContainerStatus{ID: k.ID, State: state, ExitStatus: exit})
}

// A container that a NodeManager placed is counted from the AM's call on, runs and ends as another. The AM gets it from
// its NodeManager, not in the answer. A repeat of the call changes nothing.
func TestPlacedContainersAreCountedOnce(t *testing.T) {
	w := newWorld(t, opportune)
	n := w.node("n1", 4096, 4, "/r1")
	w.queue(n, 0, 9)
	p := newRemote(w, w.unmanaged("u", "default"))
	a, b := p.on(n), p.on(n)
	request := AllocateRequest{ResponseID: w.ids[p.am], Placed: []PlacedContainer{a, b}}
	out := w.allocate(p.am, request)
	w.audit()
	if len(out.Granted)+len(out.NMTokens)+len(out.Completed) != 0 {
		t.Errorf("the answer has %+v", out)
	}
	for range 2 { // the answer is lost, and the next call lists the containers again
		if out, err := w.m.Allocate(w.now, p.am, &request); err != nil || !out.Duplicate {
			t.Fatal(out, err)
		}
		w.audit()
	}
	if v, _ := w.m.Opportunistic(); v.Containers != 2 || v.Granted != 2 || v.Placed != 2 || p.state(a) != "ACQUIRED" {
		t.Errorf("%+v, the first is %s", v, p.state(a))
	}
	if v, _ := w.m.Node(n); !v.Used.IsZero() {
		t.Errorf("the node uses %v of its guaranteed resources", v.Used)
	}
	p.report(n, a, creel.ContainerRunning, 0)
	if p.state(a) != "RUNNING" {
		t.Errorf("it is %s", p.state(a))
	}
	p.report(n, a, creel.ContainerComplete, 7)
	out = w.allocate(p.am, AllocateRequest{Placed: []PlacedContainer{a}, Release: []creel.ContainerID{b.ID}})
	if len(out.Completed) != 2 || out.Completed[0].ID != a.ID || out.Completed[0].ExitStatus != 7 {
		t.Errorf("completed %+v", out.Completed)
	}
	if out := w.heartbeat(n); !slices.Contains(out.Cleanup, b.ID) {
		t.Errorf("the node gets %+v", out)
	}
	w.audit()
	if v, _ := w.m.Opportunistic(); v.Containers != 0 || v.Released != 2 {
		t.Errorf("%+v", v)
	}
}

// A NodeManager hands its AM each container before the ResourceManager knows it. One that cannot be taken ends for the
// AM, not in the same answer but in the next one. If its node runs it nevertheless, the node kills it.
func TestRefusedPlacedContainerEndsForItsAM(t *testing.T) {
	w := newWorld(t, opportune)
	n := w.node("n1", 4096, 4, "")
	w.queue(n, 0, 9)
	p := newRemote(w, w.unmanaged("u", "default"))
	other := w.unmanaged("v", "default")
	gone, odd, large, earlier, unsigned := p.on(creel.NodeID{Host: "n9", Port: 1}), p.on(n), p.on(n), p.on(n), p.on(n)
	odd.Resource = creel.NewResource(1000, 1)
	large.Resource = creel.NewResource(1<<20, 1)
	earlier.ID.ID = 77
	unsigned.Invalid = "no NodeManager has signed its token"
	stolen := p.on(n)
	stolen.ID.Attempt = other
	good := p.on(n)
	out := w.allocate(p.am, AllocateRequest{
		Placed: []PlacedContainer{gone, odd, large, earlier, unsigned, stolen, good},
	})
	if len(out.Completed) != 0 {
		t.Errorf("the same answer has %+v", out.Completed)
	}
	out = w.allocate(p.am, AllocateRequest{})
	want := []struct {
		id  creel.ContainerID
		why string
	}{
		{gone.ID, "n9:1 is not running"}, {odd.ID, "rounds to"}, {large.ID, "greater than the maximum"},
		{earlier.ID, "outside the range"}, {unsigned.ID, "no NodeManager"},
	}
	if len(out.Completed) != len(want) {
		t.Fatalf("completed %+v", out.Completed)
	}
	for i, c := range out.Completed {
		if c.ID != want[i].id || c.ExitStatus != creel.ExitAborted || !strings.Contains(c.Diagnostics, want[i].why) {
			t.Errorf("%v: exit %d, %s", c.ID, c.ExitStatus, c.Diagnostics)
		}
	}
	if v, _ := w.m.Opportunistic(); v.Containers != 1 || p.state(good) != "ACQUIRED" {
		t.Errorf("%+v, the good one is %q", v, p.state(good))
	}
	if _, there := w.m.Container(stolen.ID); there {
		t.Error("an AM put a container into the books of another")
	}
	got := w.heartbeat(n, ContainerStatus{ID: odd.ID, State: creel.ContainerRunning})
	if !slices.Contains(got.Cleanup, odd.ID) {
		t.Errorf("the node gets %+v", got)
	}
	w.audit()
}

// A container that its AM never starts expires, as one of the ResourceManager does.
func TestPlacedContainerExpiresUnlessItStarts(t *testing.T) {
	w := newWorld(t, opportune)
	n := w.node("n1", 4096, 4, "")
	w.queue(n, 0, 9)
	p := newRemote(w, w.unmanaged("u", "default"))
	k := p.on(n)
	w.allocate(p.am, AllocateRequest{Placed: []PlacedContainer{k}})
	for range 3 {
		w.now = w.now.Add(w.m.cfg.ContainerExpiry / 2)
		w.heartbeat(n)
		w.allocate(p.am, AllocateRequest{})
		w.m.Tick(w.now)
	}
	if p.state(k) != "" {
		t.Errorf("it is %s", p.state(k))
	}
	w.audit()
}

// After a restart a node brings the container of the earlier epoch. The NodeManager gets numbers of the new epoch, and
// none of them is one of the ResourceManager's.
func TestPlacedContainerSurvivesRestart(t *testing.T) {
	w := newWorld(t, opportune)
	before := newRemote(w, w.unmanaged("u", "default"))
	node := creel.NodeID{Host: "n", Port: 1}
	k := before.on(node)
	if k.ID.Epoch() != 0 || k.ID.ID <= 0 {
		t.Fatalf("the first id is %v", k.ID)
	}

	w = newWorld(t, func(c *Config) { opportune(c); c.Epoch = 1 })
	if err := w.m.Recover(w.now, &Recover{Apps: []AppRecord{{
		Submission: Submission{ID: k.ID.Attempt.Application, User: "u", Queue: "default", Unmanaged: true},
		Submitted:  w.now, Queue: "root.default",
		Attempts: []AttemptRecord{{ID: k.ID.Attempt, Started: w.now, ExitStatus: creel.ExitInvalid}},
	}}}); err != nil {
		t.Fatal(err)
	}
	w.register(k.ID.Attempt)
	if _, err := w.m.RegisterNode(w.now, &RegisterNode{
		ID: node, Resource: creel.NewResource(8192, 8),
		Containers: []NodeContainer{{
			ID: k.ID, Resource: k.Resource, State: creel.ContainerRunning, ExecutionType: creel.Opportunistic,
		}},
	}); err != nil {
		t.Fatal(err)
	}
	w.responses[node] = 0
	w.queue(node, 0, 9)
	w.audit()
	after := newRemote(w, k.ID.Attempt)
	if after.state(k) != "RUNNING" {
		t.Errorf("it is %q", after.state(k))
	}
	next := after.on(node)
	if next.ID.Epoch() != 1 {
		t.Errorf("the next id is %v", next.ID)
	}
	w.allocate(after.am, AllocateRequest{Placed: []PlacedContainer{next, k}})
	w.audit()
	if v, _ := w.m.Opportunistic(); v.Containers != 2 || v.Placed != 1 {
		t.Errorf("%+v", v)
	}
}

// The application comes back after it was killed and left the list. Nodes and logs have the numbers that its
// NodeManager used, so the new one continues below them.
func TestReturnedApplicationPlacesWithNewNumbers(t *testing.T) {
	w := newWorld(t, func(c *Config) { opportune(c); c.MaxCompletedApps = 1 })
	n := w.node("n1", 4096, 4, "")
	w.queue(n, 0, 9)
	am := w.unmanaged("ann", "default")
	p := newRemote(w, am)
	k := p.on(n)
	w.allocate(am, AllocateRequest{Placed: []PlacedContainer{k}})
	if got := p.terms().IDStart; got != k.ID.ID {
		t.Errorf("ids would start below %d, want %d", got, k.ID.ID)
	}
	w.forget(am.Application)
	if err := w.m.Submit(w.now, &Submission{ID: am.Application, User: "ann", Queue: "default", Unmanaged: true}); err != nil {
		t.Fatal(err)
	}
	w.pump()
	w.register(am)
	if got := p.terms().IDStart; got != k.ID.ID {
		t.Errorf("ids start below %d, want %d", got, k.ID.ID)
	}
}

// NodeManagers get the least loaded nodes of each label, without full, draining and lost ones.
func TestNodeManagersGetLeastLoadedNodes(t *testing.T) {
	w := newWorld(t, func(c *Config) { opportune(c); c.Opportunistic.NodesUsed = 2 })
	nodes := map[string]creel.NodeID{}
	lengths := map[string]int32{"busy": 3, "idle": 0, "full": 9, "some": 1, "leaves": 0}
	for _, name := range []string{"busy", "idle", "full", "some", "leaves"} {
		nodes[name] = w.node(name, 4096, 4, "/r-"+name)
	}
	for range 2 {
		w.now = w.now.Add(time.Second)
		for name, id := range nodes {
			w.queue(id, lengths[name], 9)
		}
	}
	p := newRemote(w, w.unmanaged("u", "default"))
	if err := w.m.Decommission(w.now, &Decommission{ID: nodes["leaves"]}); err != nil {
		t.Fatal(err)
	}
	listed := func(want ...string) {
		t.Helper()
		var got []string
		for _, n := range LeastLoaded(w.m, p.am) {
			got = append(got, n.Node.Host+n.Rack+" "+n.HTTPAddress)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	listed("idle/r-idle idle:8042", "some/r-some some:8042")
	// The idle node's queue is filled before nodes are sorted again.
	var fill []PlacedContainer
	for range 9 {
		fill = append(fill, p.on(nodes["idle"]))
	}
	w.allocate(p.am, AllocateRequest{Placed: fill})
	listed("some/r-some some:8042", "busy/r-busy busy:8042")
}

// remoteDraws are the NodeManagers of a drawn run that place containers for their AMs.
type remoteDraws struct {
	next map[creel.AttemptID]int64
	last map[creel.AttemptID][]PlacedContainer
}

// draw returns containers that the NodeManager of an attempt placed, some of which the machine must refuse. It may
// repeat those of the last call.
func (d *remoteDraws) draw(r *run, id creel.AttemptID) []PlacedContainer {
	t := r.t
	if len(r.nodes) == 0 || !rapid.Bool().Draw(t, "places") {
		return nil
	}
	if rapid.IntRange(0, 4).Draw(t, "repeats") == 0 {
		return d.last[id]
	}
	if d.next[id] == 0 {
		terms, err := SchedulingTermsOf(r.w.m, id)
		if err != nil {
			return nil
		}
		d.next[id] = terms.IDStart
	}
	var out []PlacedContainer
	for range rapid.IntRange(1, 3).Draw(t, "placed") {
		d.next[id]--
		k := PlacedContainer{
			ID: creel.ContainerID{Attempt: id, ID: d.next[id]}, Priority: 1,
			Node:     rapid.SampledFrom(r.nodes).Draw(t, "placed on"),
			Resource: creel.NewResource(rapid.SampledFrom([]int64{1024, 1024, 1000}).Draw(t, "placed size"), 1),
		}
		out = append(out, k)
	}
	d.last[id] = out
	return out
}

// All invariants hold when NodeManagers place containers too: an AM gets the end of each of its containers once, also
// of those that the machine refused, and a replay of the calls gives the same state.
func TestInvariantsHoldWithPlacedContainers(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		r := newRun(rt, t)
		opportune(&r.first)
		r.w = newWorld(t, func(c *Config) { *c = r.first })
		r.near = NewAuditor(r.w.m, 0)
		r.opportune = true
		r.remote = &remoteDraws{map[creel.AttemptID]int64{}, map[creel.AttemptID][]PlacedContainer{}}
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
