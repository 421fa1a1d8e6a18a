// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

var preemptStart = time.Date(2026, 1, 1, 0, 0, 5, 0, time.UTC)

// inMembers returns a reading of one queue, root.b, in members of equal size of 100 GiB in total, and a plan for it:
// its use and share in each, in parts of the federation.
func inMembers(t interface{ Fatal(...any) }, document string, uses, given []float64) (*Reading, Plan) {
	tree, err := ParseTree([]byte(document), 1)
	if err != nil {
		t.Fatal(err)
	}
	r := &Reading{Tree: tree, Queues: []creel.QueuePath{"root.b"}, Total: creel.NewResource(102400, 100)}
	p := Plan{Entitled: []float64{0}}
	for m := range uses {
		r.Members = append(r.Members, creel.SubclusterID(fmt.Sprint("sc-", m+1)))
		r.Input.Members = append(r.Input.Members, 1/float64(len(uses)))
		r.Pairs = append(r.Pairs, Pair{Member: int32(m), Use: uses[m], Demand: 1})
		p.Given = append(p.Given, given[m])
		p.Entitled[0] += given[m]
	}
	r.Leaves = []Leaf{{Wants: 1}}
	return r, p
}

func document(budget string) string {
	return fmt.Sprintf(`{"queues":[{"queue":"root.b","preemption":%s}]}`, budget)
}

// Resources are taken back for a queue up to its shortfall in the federation, where the plan has it, and within its
// budget.
func TestPreemptionBudgetGoesWhereQueueIsShort(t *testing.T) {
	for _, c := range []struct {
		name, budget string
		uses, given  []float64
		want         string
	}{
		{
			"an application asks in both, the plan has it in one", `"100%"`,
			[]float64{0, 0}, []float64{0.3, 0}, "sc-1 <memory:30720, vCores:30>",
		},
		{
			"both are short", `{"memory":102400}`,
			[]float64{0.1, 0}, []float64{0.2, 0.3}, "sc-1 <memory:10240, vCores:10>, sc-2 <memory:30720, vCores:30>",
		},
		{
			"the budget goes to the shortest first", `{"memory":35840,"vCores":35}`,
			[]float64{0.1, 0}, []float64{0.2, 0.3}, "sc-1 <memory:5120, vCores:5>, sc-2 <memory:30720, vCores:30>",
		},
		{
			"it has its entitlement, in another member", `"100%"`,
			[]float64{0.4, 0}, []float64{0.2, 0.2}, "nothing",
		},
		{
			"what it has too much in one member it is not short of in another", `"100%"`,
			[]float64{0.3, 0}, []float64{0.2, 0.2}, "sc-2 <memory:10240, vCores:10>",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, p := inMembers(t, document(c.budget), c.uses, c.given)
			r.Tree.Resolve(r.Total, 0)
			out := &subcluster.Plan{}
			GivePreemption(r, p, out, nil, preemptStart)
			b := out.PreemptionOf("root.b")
			if b == nil {
				t.Fatal("no budget")
			}
			if want := "taken back for root.b until 00:01:00 at most: " + c.want; !strings.HasPrefix(b.Text(""), want) {
				t.Errorf("%s, not %s", b.Text(""), want)
			}
		})
	}
}

// Whatever queues lack from plan to plan, and whichever leader plans: within an interval shares only rise, and sum to
// no more than the budget and than the queue's largest shortfall.
func TestPreemptionSharesStayWithinBudget(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		budget := rapid.Int64Range(1, 60000).Draw(t, "budget")
		seconds := rapid.SampledFrom([]int{1, 30, 60, 300}).Draw(t, "seconds")
		text := fmt.Sprintf(`{"queues":[{"queue":"root.b","preemption":{"memory":%d},"preemption_seconds":%d}]}`,
			budget, seconds)
		members := rapid.IntRange(1, 5).Draw(t, "members")
		now := preemptStart
		var before *subcluster.Plan
		var lackedMost int64
		for range rapid.IntRange(1, 20).Draw(t, "plans") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "passes")) * time.Second)
			part := rapid.Float64Range(0, 1/float64(members))
			var uses, given []float64
			for range members {
				uses, given = append(uses, part.Draw(t, "uses")), append(given, part.Draw(t, "given"))
			}
			r, p := inMembers(t, text, uses, given)
			out := &subcluster.Plan{}
			GivePreemption(r, p, out, before, now)
			b, was := out.PreemptionOf("root.b"), before.PreemptionOf("root.b")
			if now.Before(b.Begins) || !now.Before(b.Ends) || b.Ends.Sub(b.Begins) != time.Duration(seconds)*time.Second {
				t.Fatalf("at %s the interval is from %s to %s", now, b.Begins, b.Ends)
			}
			same := was != nil && was.Begins.Equal(b.Begins)
			if !same {
				lackedMost = 0
			}
			lackedMost = max(lackedMost, b.Lacks.MemoryMB)
			sum := int64(0)
			for _, m := range b.Members {
				sum += m.Share.MemoryMB
			}
			if sum > min(budget, lackedMost) {
				t.Fatalf("shares sum to %d, of a budget of %d and %d that it lacked\n%s", sum, budget, lackedMost, b.Text(""))
			}
			if same {
				for _, m := range was.Members {
					if !m.Share.Fits(b.Share(m.Member)) {
						t.Fatalf("%s had %s in this interval and has %s", m.Member, m.Share, b.Share(m.Member))
					}
				}
			}
			before = out
		}
	})
}

func TestTheQueueTreeKeepsPreemptionBudgets(t *testing.T) {
	tree, err := ParseTree([]byte(`{"queues":[{"queue":"root.a","preemption":{"memory":1024},"preemption_seconds":90},
		{"queue":"root.b","preemption":"10%"},{"queue":"root.c",
		"labels":{"gpu":{"preemption":"5%","preemption_seconds":30}}}]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	tree.In("gpu").Resolve(creel.NewResource(4000, 40), 0)
	tree.Resolve(creel.NewResource(10000, 100), 0)
	data, err := tree.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseTree(data, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []*Tree{tree, again} {
		a, b, c := of.Find("root.a"), of.Find("root.b"), of.Find("root.c")
		if a.Preemption.MemoryMB != 1024 || a.Preemption.VCores != Unbounded || a.PreemptionEvery != 90*time.Second {
			t.Errorf("root.a: %+v", a)
		}
		if !b.Preemption.Equal(creel.NewResource(1000, 10)) || b.PreemptionEvery != time.Minute {
			t.Errorf("root.b: %+v", b)
		}
		if c.PreemptionBounded() {
			t.Errorf("root.c: %+v", c)
		}
		on := of.In("gpu").Find("root.c")
		if !on.Preemption.Equal(creel.NewResource(200, 2)) || on.PreemptionEvery != 30*time.Second {
			t.Errorf("root.c on nodes of the label: %+v", on)
		}
	}
	for text, why := range map[string]string{
		`{"queues":[{"queue":"root.a","preemption_seconds":90}]}`:                       "without preemption",
		`{"queues":[{"queue":"root.a","preemption":"1%","preemption_seconds":-1}]}`:     "from 1 to",
		`{"queues":[{"queue":"root.a","preemption":"200%"}]}`:                           "200%",
		`{"queues":[{"queue":"root.a","preemption":"1%","preemption_seconds":100000}]}`: "from 1 to",
		`{"queues":[{"queue":"root.a","labels":{"g":{"preemption_seconds":9}}}]}`:       "on nodes of label g: preemption of root.a: ",
	} {
		if _, err := ParseTree([]byte(text), 1); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s is answered %v", text, err)
		}
	}
}
