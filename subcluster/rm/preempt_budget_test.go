// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// budgetWorld is a machine with 20 nodes of 1 GiB, of a label or of none: root.a, entitled to half,
// has all of it in containers of 1 GiB, and root.b asks for ten.
type budgetWorld struct {
	*world
	label    string
	a, b     creel.AttemptID
	noticed  int
	pardoned int
}

func newBudgeted(t *testing.T, label string) *budgetWorld {
	w := newWorld(t, func(c *Config) {
		c.Queues.Preemption = queues.Preemption{
			On: true, Interval: time.Second, Wait: 2 * time.Second, PerRound: 1, IgnoredOver: 0.1, Termination: 1,
		}
		c.Labels, c.Queues.Root.Labels, c.Queues.Root.Children = LabelsByCall, []string{"*"}, nil
		for _, name := range []string{"a", "b"} {
			q := queues.Queue{Name: name, Capacity: queues.WeightOf(1), UserFactor: -1, MaxAMPercent: 1}
			if label != "" {
				q.Labels, q.Shares = []string{label}, []queues.LabelShare{{Label: label, Capacity: queues.WeightOf(1)}}
			}
			c.Queues.Root.Children = append(c.Queues.Root.Children, q)
		}
	})
	if label != "" {
		if err := w.m.AddLabels(w.now, []Label{{Name: label, Exclusive: true}}); err != nil {
			t.Fatal(err)
		}
		w.pump()
	}
	for i := range 20 {
		n := w.node(fmt.Sprint("n", i), 1024, 1, "")
		if label == "" {
			continue
		}
		if err := w.m.ReplaceLabels(w.now, []NodeLabels{{n, []string{label}}}, false); err != nil {
			t.Fatal(err)
		}
		w.pump()
	}
	x := &budgetWorld{world: w, label: label, a: w.unmanaged("u", "root.a"), b: w.unmanaged("u", "root.b")}
	x.want(x.a, 20)
	x.want(x.b, 10)
	return x
}

// want has an application ask for so many containers on nodes of the label.
func (x *budgetWorld) want(app creel.AttemptID, n int32) {
	wanted := ask(1, "*", 1024, 1, n)
	wanted.Label = LabelExpression{x.label, x.label != ""}
	x.asks(app, wanted)
}

// pass advances the time, second by second, and counts the reports of victims.
func (x *budgetWorld) pass(seconds int) {
	for range seconds {
		x.now = x.now.Add(time.Second)
		x.m.Tick(x.now)
		for _, a := range x.m.Actions(nil) {
			p, ok := a.(Preempted)
			switch {
			case ok && p.What == Noticed:
				x.noticed++
			case ok && p.What == Pardoned:
				x.pardoned++
			}
		}
		x.allocate(x.b, AllocateRequest{})
	}
	x.audit()
}

func (x *budgetWorld) budget(mb int64, begins, ends, until time.Time) {
	x.m.SetPreemptionBudgets(x.now, []PreemptionBudget{{
		Queue: "root.b", Label: x.label, Share: creel.NewResource(mb, 100), Most: creel.NewResource(20480, 1000),
		Begins: begins, Ends: ends, Until: until,
	}})
}

// A budget limits the notices in its interval, however often it is sent. The next interval has its own budget, and
// when the lease is over only the local settings apply.
func TestBudgetBoundsPreemptionPerInterval(t *testing.T) {
	for label, on := range map[string]string{"": "", "gpu": " on nodes of label gpu"} {
		t.Run(label, func(t *testing.T) { boundInAnInterval(t, newBudgeted(t, label), on) })
	}
}

func boundInAnInterval(t *testing.T, x *budgetWorld, on string) {
	first, second := x.now, x.now.Add(10*time.Second)
	x.budget(3*1024, first, second, x.now.Add(time.Minute))
	x.pass(4)
	x.budget(3*1024, first, second, x.now.Add(time.Minute)) // sent again: the same interval
	x.pass(4)
	if x.noticed != 3 {
		t.Fatalf("%d containers under notice of a budget of 3", x.noticed)
	}
	why, _ := x.m.Why(x.b.Application)
	if !strings.Contains(why.Text, "The federation's preemption budget here"+on+" for queue root.b is <memory:3072, vCores:100> until ") ||
		!strings.Contains(why.Text, "<memory:0, vCores:97> of it is left") {
		t.Errorf("why says %q", why.Text)
	}
	x.pass(10) // the interval is over and no other is known
	if x.noticed != 3 {
		t.Fatalf("%d containers under notice without a share of this interval", x.noticed)
	}
	x.budget(2*1024, second, x.now.Add(10*time.Second), x.now.Add(10*time.Second))
	x.pass(8)
	if x.noticed != 5 {
		t.Fatalf("%d containers under notice after budgets of 3 and 2", x.noticed)
	}
	x.pass(12)
	if x.noticed != 10 {
		t.Fatalf("%d containers under notice when the lease is over: the local keys give 10", x.noticed)
	}
}

// A budget is for the nodes of its label: it does not limit preemption on others.
func TestABudgetOfOtherNodesBindsNothing(t *testing.T) {
	for label, other := range map[string]string{"": "gpu", "gpu": ""} {
		x := newBudgeted(t, label)
		x.m.SetPreemptionBudgets(x.now, []PreemptionBudget{{
			Queue: "root.b", Label: other, Begins: x.now, Ends: x.now.Add(time.Minute), Until: x.now.Add(time.Minute),
		}})
		x.pass(10)
		if x.noticed != 10 {
			t.Errorf("%d containers on nodes of label %q under notice by a budget of those of %q", x.noticed, label, other)
		}
	}
}

// A pardon returns its amount to the budget of the interval, and budgets of an ancestor queue count too.
func TestPardonedContainersDoNotUseBudget(t *testing.T) {
	x := newBudgeted(t, "")
	ends := x.now.Add(time.Minute)
	x.budget(3*1024, x.now, ends, ends)
	x.pass(1)
	x.want(x.b, 0)
	x.pass(2)
	if x.noticed != 3 || x.pardoned != 3 {
		t.Fatalf("%d under notice, %d pardoned", x.noticed, x.pardoned)
	}
	x.want(x.b, 10)
	x.pass(3)
	if x.noticed != 6 {
		t.Fatalf("%d under notice in all: three were pardoned, and a budget of 3 is there for others", x.noticed)
	}
	// A queue above has a budget of less.
	x.m.SetPreemptionBudgets(x.now, []PreemptionBudget{{
		Queue: "root", Share: creel.NewResource(4096, 100), Begins: x.now, Ends: ends, Until: ends,
	}})
	x.pass(10)
	if x.noticed != 10 {
		t.Fatalf("%d under notice in all: 4 more by the budget of root", x.noticed)
	}
}

// An application's use and losses are in its record when it ends, and reports are the same after a restart.
func TestPreemptionTotalsSurviveRestart(t *testing.T) {
	x := newBudgeted(t, "")
	x.pass(5)
	if _, err := x.m.Kill(x.now, x.a.Application, ""); err != nil {
		t.Fatal(err)
	}
	x.pump()
	saved := x.m.apps.record(x.m.apps.byID[x.a.Application])
	was, _ := x.m.App(x.a.Application)
	if was.PreemptedContainers != 10 || was.PreemptedSeconds[0].Value == 0 || !was.State.Ended() {
		t.Fatalf("%v lost %d containers: %v", was.State, was.PreemptedContainers, was.PreemptedSeconds)
	}
	again := newWorld(t, nil)
	if err := again.m.Recover(x.now, &Recover{Apps: []AppRecord{saved}}); err != nil {
		t.Fatal(err)
	}
	is, _ := again.m.App(x.a.Application)
	for _, v := range []*AppView{&was, &is} {
		t.Log(v.ResourceSeconds, v.Preempted, v.PreemptedSeconds, v.PreemptedContainers, v.PreemptedAMs)
	}
	if !slices.Equal(is.ResourceSeconds, was.ResourceSeconds) || !slices.Equal(is.PreemptedSeconds, was.PreemptedSeconds) ||
		!is.Preempted.Equal(was.Preempted) || is.PreemptedContainers != was.PreemptedContainers ||
		is.PreemptedAMs != was.PreemptedAMs {
		t.Errorf("after a restart it is told of otherwise")
	}
}
