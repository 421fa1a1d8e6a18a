// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"bytes"
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

func drawPreemption(t *rapid.T) queues.Preemption {
	part := rapid.SampledFrom([]float64{0.1, 0.3, 1})
	return queues.Preemption{
		On:              true,
		Interval:        time.Duration(rapid.SampledFrom([]int{500, 3000}).Draw(t, "interval")) * time.Millisecond,
		Wait:            time.Duration(rapid.SampledFrom([]int{0, 2, 15}).Draw(t, "wait")) * time.Second,
		PerRound:        part.Draw(t, "round"),
		IgnoredOver:     rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "zone"),
		Termination:     part.Draw(t, "termination"),
		ConservativeDRF: rapid.Bool().Draw(t, "conservative"),
		IntraQueue:      rapid.Bool().Draw(t, "within"),
		IntraFirst: rapid.SampledFrom(
			[]queues.IntraOrder{queues.IntraUserLimitFirst, queues.IntraPriorityFirst}).Draw(t, "withinFirst"),
		IntraFrom:            rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "withinFrom"),
		IntraMost:            part.Draw(t, "withinMost"),
		Utilization:          rapid.SampledFrom([]float64{0.2, 0.8}).Draw(t, "utilization"),
		IntraConservativeDRF: rapid.Bool().Draw(t, "withinConservative"),
		ReservedFirst:        rapid.Bool().Draw(t, "reservedFirst"),
		ReservedTwice:        rapid.Bool().Draw(t, "reservedTwice"),
		Balance:              rapid.Bool().Draw(t, "balance"),
		BalanceWait:          time.Duration(rapid.SampledFrom([]int{0, 3, 20}).Draw(t, "balanceWait")) * time.Second,
	}
}

// keepSome draws the queues from which nothing is taken, and FairScheduler's times.
func keepSome(t *rapid.T, q *queues.Queue) {
	q.PreemptionDisabled = rapid.IntRange(0, 5).Draw(t, "keeps") == 0
	q.IntraPreemptionDisabled = rapid.IntRange(0, 3).Draw(t, "keepsWithin") == 0
	q.MinSharePreemption = time.Duration(rapid.SampledFrom([]int{0, 2}).Draw(t, "minTime")) * time.Second
	q.FairSharePreemption = time.Duration(rapid.SampledFrom([]int{0, 1, 5}).Draw(t, "fairTime")) * time.Second
	q.FairSharePreemptionAt = rapid.SampledFrom([]float64{0, 1}).Draw(t, "fairAt")
	q.MaxAMPercent = rapid.SampledFrom([]float64{0.5, 1, 1}).Draw(t, "room") // for more than an AM in each queue
	q.Victims = rapid.SampledFrom([]queues.Victims{0, queues.Newest, queues.LeastWork}).Draw(t, "victims")
	for i := range q.Children {
		keepSome(t, &q.Children[i])
	}
}

// victimChecks checks the promises about victims, action by action.
type victimChecks struct {
	r       *run
	open    map[creel.ContainerID]Preempted
	notices map[string]int // by rule and label, of all runs
	kills   int
	pardons int
}

// queuePartition is a queue in the partition of a label.
type queuePartition struct {
	queue creel.QueuePath
	label string
}

// servedNow reports whether an application was just granted a container, on a node of a label if one is named. Kills
// of a round for other asks may free resources for its last ask, for which the round has made a claim. The next round
// pardons its victims.
func (k *victimChecks) servedNow(id creel.ApplicationID, label string) bool {
	return slices.ContainsFunc(k.r.w.m.apps.byID[id].attempts, func(a *attempt) bool {
		return slices.ContainsFunc(k.r.w.m.Containers(a.id), func(c ContainerView) bool {
			return c.Created.Equal(k.r.w.now.Truncate(time.Millisecond)) &&
				(label == "" || k.r.w.m.nodes.byID[c.Node].Label() == label)
		})
	})
}

// label returns the label of a victim's node.
func (k *victimChecks) label(p Preempted) string {
	if n := k.r.w.m.nodes.byID[p.Node]; n != nil {
		return n.Label()
	}
	return ""
}

// view is a queue as it is in a partition.
func (k *victimChecks) view(at queuePartition) explain.QueueView {
	s := k.r.w.m.sched
	view := s.Explain().View(s.Tree().Find(string(at.queue)))
	for _, x := range view.Partitions {
		if x.Label == at.label {
			return x.QueueView
		}
	}
	return view
}

func (k *victimChecks) fail(format string, args ...any) {
	k.r.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), k.r.w.m.AppendState(nil))
}

func (k *victimChecks) see(actions []Action) {
	m := k.r.w.m
	killed := map[queuePartition]*amounts.Vec{}
	ams := false
	made := false
	var fresh []Preempted
	for _, a := range actions {
		p, ok := a.(Preempted)
		if !ok {
			continue
		}
		switch p.What {
		case Noticed:
			k.notices[strings.TrimSpace(p.Rule.String()+" "+k.label(p))]++
			made = true
			if _, twice := k.open[p.Container]; twice {
				k.fail("%s is under notice twice", p.Container)
			}
			k.open[p.Container] = p
			fresh = append(fresh, p)
			inter := p.Queue != p.ForQueue
			for q := m.sched.Tree().Find(string(p.Queue)); q != nil; q = q.Parent() {
				if q.Spec().PreemptionDisabled && inter && (q.IsLeaf() || m.cfg.Queues.Scheduler == queues.FairScheduler) {
					k.fail("%s is taken from %s, which keeps what it has", p.Container, p.Queue)
				}
				if q.IsLeaf() && !inter && q.Spec().IntraPreemptionDisabled {
					k.fail("%s is taken within %s, which keeps what it has", p.Container, p.Queue)
				}
			}
		case Pardoned, TakenBack:
			if _, there := k.open[p.Container]; !there {
				k.fail("%s of %s without a notice", p.What, p.Container)
			}
			delete(k.open, p.Container)
			if p.What == Pardoned {
				k.pardons++
				continue
			}
			k.kills++
			if p.By.After(k.r.w.now) {
				k.fail("%s is killed before its time", p.Container)
			}
			ams = ams || p.AM
			if p.Queue != p.ForQueue {
				at := queuePartition{p.Queue, k.label(p)}
				if killed[at] == nil {
					killed[at] = &amounts.Vec{}
				}
				killed[at].Add(new(m.sizes.Vec(p.Resource)))
			}
		}
	}
	for id := range k.open {
		if m.apps.container(id) == nil {
			delete(k.open, id) // it has ended by itself
		}
	}
	for _, p := range fresh {
		_, still := k.open[p.Container]
		if v, _ := m.App(p.For); still && v.PendingCount == 0 && !v.State.Ended() && !k.servedNow(p.For, "") {
			k.fail("%s is taken for %s, which asks for nothing", p.Container, p.For)
		}
		if l := k.label(p); still && l != "" && !k.servedNow(p.For, l) && !slices.ContainsFunc(m.sched.Explain().UseByPartition(&m.apps.byID[p.For].App),
			func(u explain.PartitionUse) bool { return u.Label == l && u.Pending.MemoryMB > 0 }) {
			k.fail("%s on a node of label %s is taken for %s, which asks for nothing there", p.Container, l, p.For)
		}
	}
	if m.cfg.Queues.Scheduler == queues.FairScheduler {
		return
	}
	for at, lost := range killed {
		path, view := at.queue, k.view(at)
		after, guaranteed := m.sizes.Vec(view.Used), m.sizes.Vec(view.Guaranteed)
		total := m.sizes.Vec(k.view(queuePartition{"root", at.label}).Guaranteed)
		before := after
		before.Add(lost)
		had, below := true, false
		var has, due float64 // shares of the cluster, one unit of each type given for rounding
		for i := 0; i < m.sizes.Check; i++ {
			had = had && before.At(i) >= guaranteed.At(i)
			below = below || before.At(i) > guaranteed.At(i) && after.At(i) < guaranteed.At(i)
			if all := float64(total.At(i)); all > 0 {
				has, due = max(has, float64(after.At(i)+1)/all), max(due, float64(guaranteed.At(i))/all)
			}
		}
		strict := m.sizes.Check == 1 || m.cfg.Queues.Preemption.ConservativeDRF
		if !ams && (strict && below || had && has < due) {
			k.fail("%s loses %v and has %v of its guarantee of %v", path, *lost, after, guaranteed)
		}
	}
	if made {
		var under amounts.Vec
		claims := map[string]bool{}
		for _, p := range k.open {
			under.Add(new(m.sizes.Vec(p.Resource)))
			claims[p.For.String()+p.Node.String()] = true
		}
		total, _ := m.sched.Total()
		for i := 0; len(claims) > 1 && i < m.sizes.Check; i++ {
			if most := int64(m.cfg.Queues.Preemption.PerRound * float64(total.At(i))); under.At(i) > most {
				k.fail("%v is under notice, of at most %d of type %d", under, most, i)
			}
		}
	}
}

// TestPreemptionKeepsItsPromises: no queue is taken below its guaranteed share of the cluster, and none with
// preemption disabled is a victim. No more is under notice than a round allows. Each victim serves a waiting ask,
// every notice ends in a kill or a pardon, and equal events lead to equal victims.
func TestPreemptionKeepsItsPromises(t *testing.T) {
	k := &victimChecks{notices: map[string]int{}}
	propertytest.Check(t, func(rt *rapid.T) {
		spec := drawQueues(rt)
		spec.Preemption = drawPreemption(rt)
		keepSome(rt, &spec.Root)
		k.begin(newRunOf(rt, t, spec))
		for range rapid.IntRange(30, 140).Draw(rt, "steps") {
			k.r.step()
			k.r.tick(0)
		}
		k.end(t)
	})
	t.Logf("notices by rule: %v; %d kills", k.notices, k.kills)
	if len(k.notices) == 0 {
		t.Error("no container was ever put under notice")
	}
}

// TestPreemptionKeepsItsPromisesInEachPartition: the same in a cluster that is full, of
// labels x, exclusive, and y, shared, in which every queue always asks for more.
func TestPreemptionKeepsItsPromisesInEachPartition(t *testing.T) {
	k := &victimChecks{notices: map[string]int{}}
	propertytest.Check(t, func(rt *rapid.T) {
		spec := Defaults().Queues
		spec.Calculator = rapid.SampledFrom([]queues.Calculator{queues.MemoryOnly, queues.Dominant}).Draw(rt, "calculator")
		spec.Root.Children = nil
		names := []string{"a", "b", "c"}
		parts := [][]int{{50, 30, 20}, {10, 20, 70}, {0, 60, 40}}[rapid.IntRange(0, 2).Draw(rt, "parts")]
		for i, name := range names {
			share := func(label string, of int) queues.LabelShare {
				return queues.LabelShare{Label: label, Capacity: queues.PercentOf(float64(parts[of%3])), MaxAMPercent: 1}
			}
			spec.Root.Children = append(spec.Root.Children, queues.Queue{
				Name: name, Capacity: queues.PercentOf(float64(parts[i])), UserFactor: -1, MaxAMPercent: 1,
				Shares:  []queues.LabelShare{share("x", i+1), share("y", i+2)},
				Victims: rapid.SampledFrom([]queues.Victims{queues.Newest, queues.LeastWork}).Draw(rt, "victims"),
			})
		}
		spec.Preemption = drawPreemption(rt)
		r := newLabelledRun(rt, t, spec)
		k.begin(r)
		for i, label := range []string{"", "x", "y", "y", ""} {
			id := creel.NodeID{Host: fmt.Sprintf("h%d", i), Port: 1}
			size := creel.Resource{MemoryMB: int64(rapid.IntRange(4, 12).Draw(rt, "mb")) * 1024, VCores: 16}
			r.do("node", func(m *Machine, now time.Time) {
				_, _ = m.RegisterNode(now, &RegisterNode{ID: id, Resource: size})
				if label != "" {
					_ = m.ReplaceLabels(now, []NodeLabels{{id, []string{label}}}, false)
				}
			})
			r.nodes = append(r.nodes, id)
		}
		for i, name := range names {
			id := creel.ApplicationID{ClusterTimestamp: 1, ID: int32(i + 1)}
			r.do("submit", func(m *Machine, now time.Time) {
				_ = m.Submit(now, &Submission{ID: id, User: "u", Queue: "root." + name, Unmanaged: true})
			})
			at := creel.AttemptID{Application: id, Attempt: 1}
			r.do("register", func(m *Machine, now time.Time) { _, _ = m.RegisterAM(now, &RegisterAM{Attempt: at, Host: "am"}) })
			r.mine = append(r.mine, at)
		}
		responses := map[creel.AttemptID]int32{}
		for range rapid.IntRange(10, 40).Draw(rt, "steps") {
			at := rapid.SampledFrom(r.mine).Draw(rt, "who")
			req := AllocateRequest{ResponseID: responses[at]}
			switch rapid.IntRange(0, 9).Draw(rt, "op") {
			case 0: // some of its containers are released
				for _, c := range r.w.m.Containers(at) {
					if rapid.IntRange(0, 3).Draw(rt, "goes") == 0 {
						req.Release = append(req.Release, c.ID)
					}
				}
			case 1:
				r.labelStep()
			default:
				req.Asks = []Ask{{
					Priority: 1, ResourceName: "*", Count: int32(rapid.IntRange(1, 12).Draw(rt, "count")),
					Resource: creel.Resource{MemoryMB: int64(rapid.IntRange(1, 4).Draw(rt, "size")) * 1024, VCores: 1},
					Label:    LabelExpression{rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "label"), true},
				}}
				req.Asks[0].Priority += int32(len(req.Asks[0].Label.Text)) * int32(req.Asks[0].Resource.MemoryMB/1024)
			}
			r.do("allocate", func(m *Machine, now time.Time) {
				if out, err := m.Allocate(now, at, &req); err == nil {
					responses[at] = out.ResponseID
				}
			})
			r.tick(time.Duration(rapid.IntRange(0, 4000).Draw(rt, "ms")) * time.Millisecond)
		}
		k.end(t)
	})
	t.Logf("notices by rule and label: %v; %d kills", k.notices, k.kills)
	for _, of := range []string{"guarantee", "guarantee x", "guarantee y"} {
		if k.notices[of] == 0 {
			t.Errorf("no container was ever put under notice for the %s", of)
		}
	}
}

// begin watches a run.
func (k *victimChecks) begin(r *run) {
	k.r, k.open = r, map[creel.ContainerID]Preempted{}
	r.watch = k.see
}

// end lets all time pass that sentences may take, and plays the run again.
func (k *victimChecks) end(t *testing.T) {
	r := k.r
	p := r.first.Queues.Preemption
	r.tick(p.Wait + p.BalanceWait + 10*time.Second)
	for id, of := range k.open {
		if late := r.w.now.Sub(of.By); late > 2*p.Interval {
			k.fail("%s is under notice %s after its time", id, late)
		}
	}
	again := newWorld(t, func(c *Config) { *c = r.first })
	for _, l := range r.log {
		l.call(again.m, l.at)
	}
	if a, b := r.w.m.AppendState(nil), again.m.AppendState(nil); !bytes.Equal(a, b) {
		r.t.Fatalf("a replay gave another state:\n%s\n---\n%s", a, b)
	}
}

// tick lets time pass, deadline by deadline.
func (r *run) tick(d time.Duration) {
	until := r.w.now.Add(d)
	for n := 0; n < 200; n++ {
		next := r.w.m.NextDeadline()
		if next.IsZero() || next.After(until) {
			break
		}
		if next.After(r.w.now) {
			r.w.now = next
		}
		r.do("tick", func(m *Machine, now time.Time) { m.Tick(now) })
	}
	if r.w.now.Before(until) {
		r.w.now = until
	}
}

// TestQueuesThatTradeRoomFindRest: queues that always want more, whatever their sizes of containers, stop taking from
// each other.
func TestQueuesThatTradeRoomFindRest(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		share := rapid.IntRange(1, 9).Draw(rt, "share") * 10
		fair := rapid.Bool().Draw(rt, "fair")
		p := drawPreemption(rt)
		p.Wait, p.BalanceWait, p.Utilization = min(p.Wait, 3*time.Second), min(p.BalanceWait, 3*time.Second), 0.1
		keep := rapid.SampledFrom([]float64{0, 0.1}).Draw(rt, "zone")
		p.IgnoredOver = keep
		w := newWorld(t, func(c *Config) {
			c.Queues.Preemption = p
			amount := queues.PercentOf
			if fair {
				c.Queues.Scheduler, amount = queues.FairScheduler, queues.WeightOf
				c.Queues.Root.FairSharePreemption, c.Queues.Root.FairSharePreemptionAt = time.Second, 1
			}
			c.Queues.Root.Children = nil
			for i, s := range []int{share, 100 - share} {
				c.Queues.Root.Children = append(c.Queues.Root.Children, queues.Queue{
					Name: string(rune('a' + i)), Capacity: amount(float64(s)), UserFactor: -1, MaxAMPercent: 1,
				})
			}
		})
		nodes := rapid.IntRange(1, 4).Draw(rt, "nodes")
		for i := range nodes {
			w.node(fmt.Sprintf("h%d", i), int64(rapid.IntRange(2, 16).Draw(rt, "mb"))*1024, 64, "")
		}
		var apps []creel.AttemptID
		var sizes []int64
		for i := range 2 {
			apps = append(apps, w.unmanaged("u", "root."+string(rune('a'+i))))
			sizes = append(sizes, int64(rapid.IntRange(1, 6).Draw(rt, "size"))*1024)
		}
		kills, taken := 0, int64(0)
		for round := range 400 {
			i := round % 2
			w.asks(apps[i], ask(1, "*", sizes[i], 1, 50))
			w.now = w.now.Add(500 * time.Millisecond)
			w.m.Tick(w.now)
			for _, a := range w.m.Actions(nil) {
				if x, ok := a.(Preempted); ok && x.What == TakenBack {
					kills++
					taken += x.Resource.MemoryMB
				}
			}
			if err := w.m.Audit(); err != nil {
				rt.Fatal(err)
			}
		}
		// Nothing is taken twice, so all that is taken is at most all there is.
		if total, _ := w.m.sched.Total(); taken > total.Memory {
			rt.Fatalf("%d kills of %d MiB in a cluster of %v\n%s", kills, taken, total, w.m.AppendState(nil))
		}
	})
}

// root.a has all GPUs, of which root.b asks for some, and too little memory: its asks for memory take from root.b, not
// from itself.
func TestShortQueueSparesItsOwnContainers(t *testing.T) {
	const gpu = "yarn.io/gpu"
	w := newWorld(t, func(c *Config) {
		c.ResourceTypes = []creel.ResourceType{{Name: gpu}}
		c.Queues.Calculator = queues.Dominant
		c.Queues.Preemption = queues.Preemption{
			On: true, Interval: time.Second, Wait: 2 * time.Second, PerRound: 1, Termination: 1,
		}
		c.Queues.Root.Children = nil
		for _, name := range []string{"a", "b"} {
			c.Queues.Root.Children = append(c.Queues.Root.Children, queues.Queue{
				Name: name, Capacity: queues.PercentOf(50), UserFactor: -1, MaxAMPercent: 1,
			})
		}
	})
	if _, err := w.m.RegisterNode(w.now, &RegisterNode{
		ID: creel.NodeID{Host: "h", Port: 1}, Resource: creel.NewResource(32<<10, 32, creel.Amount{Name: gpu, Value: 4}),
	}); err != nil {
		t.Fatal(err)
	}
	w.pump()
	gpus, more, other := w.unmanaged("u", "root.a"), w.unmanaged("v", "root.a"), w.unmanaged("u", "root.b")
	one := ask(1, "*", 1024, 1, 4)
	one.Resource = one.Resource.With(gpu, 1)
	w.asks(gpus, one)
	w.asks(other, ask(1, "*", 1024, 1, 28))
	one.Priority, one.Count = 2, 2
	w.asks(other, one)
	w.asks(more, ask(1, "*", 1024, 1, 8))
	taken := map[creel.QueuePath]int{}
	for range 20 {
		w.now = w.now.Add(500 * time.Millisecond)
		w.m.Tick(w.now)
		for _, a := range w.m.Actions(nil) {
			if x, ok := a.(Preempted); ok && x.What == TakenBack {
				taken[x.Queue]++
			}
		}
	}
	if taken["root.a"] != 0 || taken["root.b"] != 8 {
		t.Errorf("taken for root.a: %v", taken)
	}
}
