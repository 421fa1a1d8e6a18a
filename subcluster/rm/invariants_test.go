// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
	"pgregory.net/rapid"
)

// model is the reference for the machine's answers, slow and obvious: each AM's asks, and every container it
// received.
type model struct {
	asked map[creel.AttemptID]map[string]int32 // "priority/id" -> containers outstanding at "*"
	live  map[creel.ContainerID]Grant
	ended map[creel.ContainerID]bool
	// For each application the completions in the last answer, and their attempt: the next attempt receives them
	// again, because that answer may have come too late.
	last map[creel.ApplicationID]lastAnswer
}

type lastAnswer struct {
	attempt int32
	ended   []creel.ContainerID
}

func newModel() *model {
	return &model{
		asked: map[creel.AttemptID]map[string]int32{},
		live:  map[creel.ContainerID]Grant{},
		ended: map[creel.ContainerID]bool{},
		last:  map[creel.ApplicationID]lastAnswer{},
	}
}

// key is the key of an ask. The asks for opportunistic containers of another size are others.
func (mo *model) key(p int32, id int64, as creel.ExecutionType, size creel.Resource) string {
	if as == creel.Opportunistic {
		return fmt.Sprintf("%d/%d of %v", p, id, size)
	}
	return fmt.Sprintf("%d/%d", p, id)
}

// answer holds one answer against the model.
// Grants that were on their way when the AM replaced the ask count against
// the old one.
func (mo *model) answer(
	t *rapid.T,
	id creel.AttemptID,
	a *Answer,
	replaced map[string]bool,
	early map[creel.ContainerID]bool,
) {
	for _, g := range a.Granted {
		if _, twice := mo.live[g.ID]; twice || mo.ended[g.ID] {
			t.Fatalf("container %s granted twice", g.ID)
		}
		k := mo.key(g.Priority, g.AllocationRequestID, g.ExecutionType, g.Resource)
		if !(replaced[k] && early[g.ID]) {
			if mo.asked[id][k]--; mo.asked[id][k] < 0 {
				t.Fatalf("%s got %s, which it had not asked for", id, g.ID)
			}
		}
		mo.live[g.ID] = g
	}
	last, now := mo.last[id.Application], lastAnswer{attempt: id.Attempt}
	defer func() { mo.last[id.Application] = now }()
	for _, c := range a.Completed {
		now.ended = append(now.ended, c.ID)
		if mo.ended[c.ID] && last.attempt < id.Attempt && slices.Contains(last.ended, c.ID) {
			continue
		}
		if mo.ended[c.ID] {
			t.Fatalf("container %s ended twice", c.ID)
		}
		if _, ok := mo.live[c.ID]; !ok {
			t.Fatalf("%s is told of the end of %s, of which it was never told", id, c.ID)
		}
		delete(mo.live, c.ID)
		mo.ended[c.ID] = true
	}
}

// unserved looks, the slow way, for an ask that its limits and some node admit
// and that nothing holds back: there must be none between two events.
func unserved(m *Machine) error {
	audit := m.sched.Audit()
	for _, a := range m.apps.list {
		if m.apps.byID[a.id] == a {
			audit.Unserved(&a.App)
		}
	}
	return audit.Err()
}

// waitsAsWhySays compares the wait reasons in lists with those of each single application.
func waitsAsWhySays(m *Machine) error {
	var look explain.Scan
	for a := range m.Apps {
		limit, where := m.Waits(a.ID, &look)
		y, _ := m.Why(a.ID)
		if !a.State.Ended() && (limit != y.Limit || limit != explain.LimitNone && where != y.Where) {
			return fmt.Errorf("%s waits for %s of %s by the list, and for %s of %s (%s) by itself",
				a.ID, limit, where, y.Limit, y.Where, y.Text)
		}
	}
	return nil
}

// bounds checks that no allocation took a queue or a node above its limits. A
// queue may stand above its maximum when the cluster or the maximum shrank;
// then it must not grow.
func (r *run) bounds(m *Machine) error {
	moved := strings.Contains(r.log[len(r.log)-1].what, "label") // containers changed partitions, limits or not
	for _, q := range m.sched.Tree().Queues() {
		most, bounded := q.Max()
		was, used := r.used[q.Path()], q.Used()
		for i := 0; bounded && !moved && i < m.sizes.Check; i++ {
			if used.At(i) > most.At(i) && used.At(i) > was.At(i) {
				return fmt.Errorf("queue %s grew from %v to %v, above its maximum %v", q.Path(), was, used, most)
			}
		}
		r.used[q.Path()] = used
	}
	for _, n := range m.nodes.list {
		if used, total := n.Used(), n.Total(); !n.override && !m.sizes.Fits(&used, &total) {
			return fmt.Errorf("node %s uses %v of %v", n.ID(), used, total)
		}
	}
	return nil
}

func drawQueues(t *rapid.T) queues.Spec {
	q := Defaults().Queues
	q.Scheduler = rapid.SampledFrom([]queues.Scheduler{queues.CapacityScheduler, queues.FairScheduler}).
		Draw(t, "scheduler")
	q.Calculator = rapid.SampledFrom([]queues.Calculator{queues.MemoryOnly, queues.Dominant}).Draw(t, "calculator")
	q.ReservationsOff = rapid.Bool().Draw(t, "reservationsOff")
	q.NodeLocalityDelay = rapid.SampledFrom([]int{-1, 1, 40}).Draw(t, "nodeDelay")
	q.MaxClusterPriority = 10
	leaf := func(name string, capacity, most queues.Amount) queues.Queue {
		return queues.Queue{
			Name:        name,
			Capacity:    capacity,
			MaxCapacity: most,
			UserFactor: rapid.SampledFrom([]float64{0, 1, 2, -1}).
				Draw(t, "factor"),
			MinUserPercent: rapid.SampledFrom([]float64{0, 12.5, 50}).Draw(t, "minUser"),
			MaxAMPercent: rapid.SampledFrom([]float64{0, 0.5, 1}).
				Draw(t, "am"),
			MaxParallelApps: rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "parallel"),
			SizeWeight:      rapid.Bool().Draw(t, "sizeWeight"),
			NodeOrder:       rapid.SampledFrom([]queues.NodeOrder{queues.Spread, queues.Pack}).Draw(t, "order"),
			Policy: rapid.SampledFrom([]queues.Policy{queues.PolicyDefault, queues.Fifo, queues.FairShare, queues.DRF, queues.PriorityFirst}).
				Draw(t, "policy"),
		}
	}
	most := func() queues.Amount {
		return rapid.SampledFrom([]queues.Amount{{}, queues.PercentOf(100), queues.PercentOf(60), queues.AbsoluteOf(creel.Resource{MemoryMB: 20480, VCores: 20})}).
			Draw(t, "max")
	}
	part := queues.PercentOf
	if q.Scheduler == queues.FairScheduler {
		part = queues.WeightOf
	}
	parent := queues.Queue{
		Name:        "p",
		Capacity:    part(40),
		MaxCapacity: most(),
		Children:    []queues.Queue{leaf("c", part(25), most()), leaf("d", part(75), most())},
	}
	if q.Scheduler == queues.FairScheduler {
		parent.Policy = rapid.SampledFrom([]queues.Policy{queues.FairShare, queues.DRF, queues.HDRF}).
			Draw(t, "parentPolicy")
		parent.Minimum = rapid.SampledFrom([]queues.Amount{{}, queues.AbsoluteOf(creel.Resource{MemoryMB: 4096, VCores: 2})}).
			Draw(t, "min")
	}
	q.Root = queues.Queue{
		Name:     "root",
		Capacity: queues.PercentOf(100),
		Submit:   queues.ACL{All: true},
		Admin:    queues.ACL{All: true},
		Children: []queues.Queue{leaf("a", part(50), most()), parent, leaf("b", part(10), most())},
	}
	return q
}

var leaves = []string{"root.a", "root.p.c", "root.p.d", "root.b"}

// run plays a drawn day on a machine; each step is kept, so that it can be
// played again.
type run struct {
	t      *rapid.T
	w      *world
	mo     *model
	log    []loggedCall
	mine   []creel.AttemptID
	nodes  []creel.NodeID
	serial int
	first  Config
	used   map[creel.QueuePath]amounts.Vec
	near   *Auditor
	watch  func([]Action) // nil: not observed

	labelled  bool                       // asks name labels
	opportune bool                       // some asks are for opportunistic containers
	remote    *remoteDraws               // of NodeManagers that place containers; nil: none do
	seen      map[creel.ContainerID]bool // containers whose place was checked
}

// loggedCall is a call of the machine with its time.
type loggedCall struct {
	at   time.Time
	what string
	call func(m *Machine, now time.Time)
}

// do performs a call that may be refused: a drawn day asks for much that cannot be had.
func (r *run) do(what string, call func(m *Machine, now time.Time)) {
	r.log = append(r.log, loggedCall{r.w.now, what, call})
	call(r.w.m, r.w.now)
	r.after()
	actions := r.w.m.Actions(nil)
	if r.watch != nil {
		r.watch(actions)
	}
	for _, a := range actions {
		if l, ok := a.(LaunchAM); ok && !l.Unmanaged {
			r.do("launched", func(m *Machine, now time.Time) { m.AMLaunched(now, l.Attempt) })
		}
	}
}

func (r *run) after() {
	m := r.w.m
	if err := errors.Join(m.Audit(), r.near.Check()); err != nil {
		r.t.Fatalf("after %s: %v\n%s", r.log[len(r.log)-1].what, err, m.AppendState(nil))
	}
	if err := unserved(m); err != nil {
		r.t.Fatalf("after %s: %v\n%s", r.log[len(r.log)-1].what, err, m.AppendState(nil))
	}
	if err := waitsAsWhySays(m); err != nil {
		r.t.Fatalf("after %s: %v\n%s", r.log[len(r.log)-1].what, err, m.AppendState(nil))
	}
	if err := r.bounds(m); err != nil {
		r.t.Fatalf("after %s: %v\n%s", r.log[len(r.log)-1].what, err, m.AppendState(nil))
	}
	if r.labelled {
		r.labels(m)
	}
}

func (r *run) pick() (creel.AttemptID, bool) {
	if len(r.mine) == 0 {
		return creel.AttemptID{}, false
	}
	return rapid.SampledFrom(r.mine).Draw(r.t, "attempt"), true
}

func (r *run) step() {
	t, w := r.t, r.w
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
	switch rapid.SampledFrom([]string{"node", "node", "submit", "submit", "ask", "ask", "ask", "ask", "release", "release", "end", "heartbeat", "heartbeat", "gone", "kill", "finish", "move",
		"priority", "resize", "tick", "drain", "blacklist", "update", "reload", "fail", "state", "hold", "hold"}).
		Draw(t, "op") {
	case "node":
		r.serial++
		id := creel.NodeID{Host: fmt.Sprintf("h%d", r.serial%9), Port: int32(1 + r.serial/9)}
		size := r.others(
			creel.Resource{
				MemoryMB: int64(rapid.IntRange(1, 16).Draw(t, "mb")) * 1024,
				VCores:   int64(rapid.IntRange(1, 16).Draw(t, "cores")),
			},
		)
		reg := &RegisterNode{ID: id, Rack: fmt.Sprintf("/r%d", r.serial%9%3), Resource: size}
		r.do("register node", func(m *Machine, now time.Time) { _, _ = m.RegisterNode(now, reg) })
		w.responses[id] = 0
		r.nodes = append(r.nodes, id)
	case "submit":
		w.apps++
		s := &Submission{
			ID:   creel.ApplicationID{ClusterTimestamp: 1, ID: w.apps},
			User: rapid.SampledFrom([]string{"u", "v", "w"}).Draw(t, "user"),
			Queue: rapid.SampledFrom(leaves).
				Draw(t, "queue"),
			Unmanaged:      rapid.Bool().Draw(t, "unmanaged"),
			KeepContainers: rapid.Bool().Draw(t, "keep"),
			Priority:       int32(rapid.IntRange(0, 3).Draw(t, "priority")),
			HasPriority:    true,
			AM:             Ask{ResourceName: "*", Resource: creel.Resource{MemoryMB: 1024, VCores: 1}, Count: 1},
		}
		var err error
		r.do("submit", func(m *Machine, now time.Time) { err = m.Submit(now, s) })
		if err == nil {
			r.mine = append(r.mine, creel.AttemptID{Application: s.ID, Attempt: 1})
		}
	case "ask":
		id, ok := r.pick()
		if !ok {
			return
		}
		r.converse(id, AllocateRequest{Asks: r.drawAsks()})
	case "release":
		id, ok := r.pick()
		if !ok {
			return
		}
		var mine []creel.ContainerID
		for _, c := range w.m.Containers(r.current(id)) {
			if _, told := r.mo.live[c.ID]; told && !c.AM {
				mine = append(mine, c.ID)
			}
		}
		if len(mine) == 0 {
			return
		}
		r.converse(id, AllocateRequest{Release: mine[:rapid.IntRange(1, len(mine)).Draw(t, "n")]})
	case "end", "heartbeat":
		if len(r.nodes) == 0 {
			return
		}
		id := rapid.SampledFrom(r.nodes).Draw(t, "node")
		rep := &NodeReport{ID: id, ResponseID: w.responses[id]}
		for _, c := range w.m.NodeContainers(id) {
			if rapid.IntRange(0, 3).Draw(t, "fate") == 0 {
				rep.Containers = append(
					rep.Containers,
					ContainerStatus{ID: c.ID, State: creel.ContainerComplete, ExitStatus: 1},
				)
			} else {
				rep.Containers = append(rep.Containers, ContainerStatus{ID: c.ID, State: creel.ContainerRunning})
			}
		}
		if app, ok := r.pick(); ok && rapid.IntRange(0, 3).Draw(t, "logs") == 0 {
			status := creel.LogAggregationStatus(rapid.Int32Range(0, 8).Draw(t, "log status"))
			rep.Logs = []LogReport{{App: app.Application, Status: status, Message: "said"}}
		}
		if r.opportune {
			rep.Utilization = &NodeUse{
				QueueLength: rapid.Int32Range(0, 4).Draw(t, "queue"), QueueCapacity: rapid.Int32Range(0, 8).Draw(t, "capacity"),
			}
		}
		r.do("node heartbeat", func(m *Machine, now time.Time) { w.responses[id] = m.NodeHeartbeat(now, rep).ResponseID })
	case "gone":
		if len(r.nodes) > 0 && rapid.IntRange(0, 2).Draw(t, "really") == 0 {
			id := rapid.SampledFrom(r.nodes).Draw(t, "node")
			r.do("unregister node", func(m *Machine, now time.Time) { m.UnregisterNode(now, id) })
		}
	case "kill":
		if id, ok := r.pick(); ok && rapid.IntRange(0, 2).Draw(t, "really") == 0 {
			r.do("kill", func(m *Machine, now time.Time) { _, _ = m.Kill(now, id.Application, "test") })
		}
	case "fail":
		if id, ok := r.pick(); ok && rapid.IntRange(0, 2).Draw(t, "really") == 0 {
			id = r.current(id)
			r.do("fail attempt", func(m *Machine, now time.Time) { _ = m.FailAttempt(now, id) })
		}
	case "finish":
		if id, ok := r.pick(); ok && rapid.IntRange(0, 2).Draw(t, "really") == 0 {
			fin := &FinishAM{Attempt: r.current(id), Status: creel.FinalSucceeded}
			r.do("finish", func(m *Machine, now time.Time) { _, _ = m.FinishAM(now, fin) })
		}
	case "hold":
		if id, ok := r.pick(); ok {
			app, claim := id.Application, int64(rapid.IntRange(1, 20).Draw(t, "claim"))
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				r.do("release hold", func(m *Machine, now time.Time) { _ = m.ReleaseHold(now, app, claim) })
			case 1:
				r.do("drop held", func(m *Machine, now time.Time) { _ = m.DropHeld(now, app, claim) })
			default:
				r.do("hold", func(m *Machine, now time.Time) { _, _ = m.Hold(now, app, claim, "there") })
			}
		}
	case "move":
		if id, ok := r.pick(); ok {
			to := rapid.SampledFrom(leaves).Draw(t, "to")
			r.do("move", func(m *Machine, now time.Time) { _ = m.Move(now, id.Application, to) })
		}
	case "priority":
		if id, ok := r.pick(); ok {
			to := int32(rapid.IntRange(0, 5).Draw(t, "to"))
			r.do("priority", func(m *Machine, now time.Time) { _, _ = m.SetPriority(now, id.Application, to) })
		}
	case "resize":
		if len(r.nodes) > 0 {
			id := rapid.SampledFrom(r.nodes).Draw(t, "node")
			size := r.others(creel.Resource{MemoryMB: int64(rapid.IntRange(0, 20).Draw(t, "mb")) * 1024, VCores: 8})
			r.do("resize", func(m *Machine, now time.Time) { _ = m.SetNodeResource(now, id, size) })
		}
	case "drain":
		if len(r.nodes) > 0 && rapid.IntRange(0, 2).Draw(t, "really") == 0 {
			id := rapid.SampledFrom(r.nodes).Draw(t, "node")
			d := &Decommission{ID: id, Graceful: rapid.Bool().Draw(t, "graceful")}
			r.do("decommission", func(m *Machine, now time.Time) { _ = m.Decommission(now, d) })
			r.do("recommission", func(m *Machine, now time.Time) { _ = m.Recommission(now, id) })
		}
	case "tick":
		w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int{1, 30, 700}).Draw(t, "s")) * time.Second)
		r.do("tick", func(m *Machine, now time.Time) { m.Tick(now) })
	case "blacklist":
		if id, ok := r.pick(); ok {
			name := rapid.SampledFrom([]string{"h1", "h2", "/r0", "/r1"}).Draw(t, "name")
			if rapid.Bool().Draw(t, "add") {
				r.converse(id, AllocateRequest{BlacklistAdd: []string{name}})
			} else {
				r.converse(id, AllocateRequest{BlacklistRemove: []string{name}})
			}
		}
	case "update":
		id, ok := r.pick()
		if !ok {
			return
		}
		cs := w.m.Containers(r.current(id))
		if len(cs) == 0 {
			return
		}
		c := rapid.SampledFrom(cs).Draw(t, "container")
		u := Update{
			Container: c.ID,
			Version:   c.Version,
			Kind:      UpdateKind(rapid.IntRange(0, 3).Draw(t, "kind")),
			Resource: creel.Resource{
				MemoryMB: 1024 * int64(rapid.IntRange(1, 8).Draw(t, "mb")),
				VCores:   int64(rapid.IntRange(1, 4).Draw(t, "cores")),
			},
		}
		r.converse(id, AllocateRequest{Updates: []Update{u}})
	case "reload":
		q := *w.m.Spec()
		q.Root.Children = slices.Clone(q.Root.Children)
		q.Root.Children[0].MaxCapacity = rapid.SampledFrom([]queues.Amount{{}, queues.PercentOf(50), queues.PercentOf(100)}).
			Draw(t, "max")
		q.Root.Children[0].Policy = rapid.SampledFrom([]queues.Policy{queues.Fifo, queues.FairShare, queues.DRF}).
			Draw(t, "policy")
		r.do("reload", func(m *Machine, now time.Time) { _ = m.ReloadQueues(now, q) })
	case "state":
		q := creel.QueuePath(rapid.SampledFrom(leaves).Draw(t, "q"))
		state := rapid.SampledFrom([]creel.QueueState{creel.QueueStopped, creel.QueueRunning, creel.QueueRunning}).
			Draw(t, "s")
		r.do("queue state", func(m *Machine, now time.Time) { _ = m.SetQueueState(now, q, state) })
	}
}

// current is the present attempt of an application.
func (r *run) current(id creel.AttemptID) creel.AttemptID {
	v, _ := r.w.m.App(id.Application)
	return v.Attempt
}

// normal is the size of containers for an ask of a size.
func (r *run) normal(size creel.Resource) creel.Resource {
	v, err := r.w.m.sizes.Normalize(size, &r.w.m.sizes.Most)
	if err != nil {
		return size // refused
	}
	return r.w.m.sizes.Resource(&v)
}

// converse registers if need be, and sends one request.
func (r *run) converse(first creel.AttemptID, req AllocateRequest) {
	id := r.current(first)
	v, ok := r.w.m.Attempt(id)
	if !ok {
		return
	}
	if v.State == creel.AttemptLaunched {
		var err error
		r.do("register", func(m *Machine, now time.Time) {
			_, err = m.RegisterAM(now, &RegisterAM{Attempt: id, Host: "h"})
		})
		if err != nil {
			r.t.Fatal(err)
		}
		r.w.ids[id] = 0
	}
	if r.remote != nil {
		req.Placed = r.remote.draw(r, id)
	}
	req.ResponseID = r.w.ids[id]
	early := map[creel.ContainerID]bool{}
	for _, c := range r.w.m.apps.attempt(id).fresh {
		early[c.id()] = true
	}
	var ans *Answer
	var err error
	r.do("allocate", func(m *Machine, now time.Time) { ans, err = m.Allocate(now, id, &req) })
	if err != nil {
		return
	}
	r.w.ids[id] = ans.ResponseID
	if r.mo.asked[id] == nil {
		r.mo.asked[id] = map[string]int32{}
	}
	replaced := map[string]bool{}
	for _, a := range req.Asks {
		if a.ResourceName == "*" {
			k := r.mo.key(a.Priority, a.AllocationRequestID, a.ExecutionType, r.normal(a.Resource))
			r.mo.asked[id][k], replaced[k] = a.Count, true
		}
	}
	r.mo.answer(r.t, id, ans, replaced, early)
	for _, k := range req.Placed { // its AM has it from its NodeManager
		if !r.mo.ended[k.ID] {
			r.mo.live[k.ID] = Grant{ID: k.ID}
		}
	}
	left := map[string]int32{}
	for _, a := range r.w.m.Asks(id.Application) {
		if a.ResourceName == "*" {
			left[r.mo.key(a.Priority, a.AllocationRequestID, a.ExecutionType, a.Resource)] += a.Count
		}
	}
	for k, n := range r.mo.asked[id] {
		if n != left[k] {
			r.t.Fatalf("%s: %d outstanding at %s, the machine says %d", id, n, k, left[k])
		}
	}
}

func (r *run) drawAsks() []Ask {
	t := r.t
	p := int32(rapid.IntRange(1, 3).Draw(t, "askPriority"))
	size := r.others(
		creel.Resource{
			MemoryMB: int64(rapid.IntRange(1, 8).Draw(t, "askMB")) * 1024,
			VCores:   int64(rapid.IntRange(1, 4).Draw(t, "askCores")),
		},
	)
	n := int32(rapid.IntRange(0, 12).Draw(t, "count"))
	strict := rapid.IntRange(0, 3).Draw(t, "strict") == 0
	asks := []Ask{{Priority: p, ResourceName: "*", Resource: size, Count: n, StrictLocality: strict}}
	if r.labelled {
		asks[0].Label = LabelExpression{rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "label"), true}
	}
	for range rapid.IntRange(0, 2).Draw(t, "hosts") {
		h := rapid.IntRange(0, 8).Draw(t, "host")
		asks = append(
			asks,
			Ask{Priority: p, ResourceName: fmt.Sprintf("h%d", h), Resource: size, Count: n},
			Ask{
				Priority:       p,
				ResourceName:   fmt.Sprintf("/r%d", h%3),
				Resource:       size,
				Count:          n,
				StrictLocality: rapid.Bool().Draw(t, "strictRack"),
			},
		)
	}
	if r.opportune && rapid.Bool().Draw(t, "opportunistic") {
		for i := range asks {
			asks[i].ExecutionType = creel.Opportunistic
		}
	}
	return asks
}

func newRun(t *rapid.T, tb testing.TB) *run { return newRunOf(t, tb, drawQueues(t)) }

func newRunOf(t *rapid.T, tb testing.TB, spec queues.Spec) *run {
	first := Config{}
	types := rapid.SampledFrom([][]creel.ResourceType{nil, {{Name: "yarn.io/gpu"}}, {{Name: "yarn.io/gpu"}, {Name: "disk", Unit: "Gi"}}}).
		Draw(t, "types")
	w := newWorld(tb, func(c *Config) {
		c.Queues, c.ResourceTypes, c.Labels = spec, types, LabelsByCall
		c.LogAggregation, c.LogTimeOut = true, 10*time.Second
		first = *c
	})
	return &run{
		t:     t,
		w:     w,
		mo:    newModel(),
		first: first,
		used:  map[creel.QueuePath]amounts.Vec{},
		near:  NewAuditor(w.m, 0),
	}
}

// others draws some of each further resource type, mostly none.
func (r *run) others(of creel.Resource) creel.Resource {
	for _, x := range r.first.ResourceTypes {
		of = of.With(x.Name, rapid.SampledFrom([]int64{0, 0, 1, 2, 5}).Draw(r.t, x.Name))
	}
	return of
}

func TestInvariantsHoldAfterEveryEvent(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		r := newRun(rt, t)
		for range rapid.IntRange(5, 60).Draw(rt, "steps") {
			r.step()
		}
		// The same events give the same bytes.
		again := newWorld(t, func(c *Config) { *c = r.first })
		for _, l := range r.log {
			l.call(again.m, l.at)
		}
		if a, b := r.w.m.AppendState(nil), again.m.AppendState(nil); !bytes.Equal(a, b) {
			rt.Fatalf("a replay gave another state:\n%s\n---\n%s", a, b)
		}
	})
}
