// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

func mb(n int64) creel.Resource { return creel.NewResource(n, n/1024) }

// waiting returns a member's two queues on nodes of a label, of which root.b waits with less than its guarantee or
// not.
func waiting(short bool, label string) []subcluster.QueueLoad {
	b := subcluster.QueueLoad{Queue: "root.b.c", Capacity: mb(8192), Used: mb(8192), Pending: mb(1024)}
	if short {
		b.Used = mb(1024)
	}
	a := subcluster.QueueLoad{Queue: "root.a", Capacity: mb(4096), Used: mb(6144), Pending: mb(1024)}
	a.Label, b.Label = label, label
	return []subcluster.QueueLoad{a, b}
}

// A round may take the rest of the share while the queue is short, nothing when the interval is over, and as much as
// the member's settings allow without a plan, or when the queue has not been short for a while.
func TestRoundTakesRestOfShare(t *testing.T) {
	start := time.Unix(1000, 0)
	first := PacedBudget{
		QueueOn: subcluster.QueueOn{Queue: "root.b"}, Share: mb(4096), Begins: start, Ends: start.Add(time.Minute), Until: start.Add(5 * time.Minute),
	}
	second := first
	second.Begins, second.Ends = first.Ends, first.Ends.Add(time.Minute)
	const own = -1
	p := &Pace{}
	for _, c := range []struct {
		what  string
		at    int // seconds
		of    []PacedBudget
		short bool
		taken int64 // since the ResourceManager's start
		most  int64
		spent int64
	}{
		{"what was taken before does not count", 0, []PacedBudget{first}, true, 9216, 4096, 0},
		{"two are taken", 5, []PacedBudget{first}, true, 11264, 2048, 2048},
		{"one more, and it is short no more", 10, []PacedBudget{first}, false, 12288, 2048, 3072},
		{"what is taken then is not for it", 15, []PacedBudget{first}, false, 20480, 2048, 3072},
		{"it is short again", 20, []PacedBudget{first}, true, 20480, 1024, 3072},
		{"its ResourceManager was started again", 25, []PacedBudget{first}, true, 1024, 0, 4096},
		{"more than its share", 30, []PacedBudget{first}, true, 2048, 0, 5120},
		{"the interval is over", 61, []PacedBudget{first}, true, 2048, 0, 5120},
		{"the next", 65, []PacedBudget{second}, true, 2048, 4096, 0},
		{"not short for long", 94, []PacedBudget{second}, false, 2048, 4096, 0},
		{"not short for half a minute", 95, []PacedBudget{second}, false, 2048, own, 0},
		{"short again", 97, []PacedBudget{second}, true, 2048, 4096, 0},
		{"the lease is over", 300, []PacedBudget{second}, true, 2048, own, 0},
		{"no budget", 301, nil, true, 4096, own, 0},
	} {
		most, bound := p.Look(start.Add(time.Duration(c.at)*time.Second), c.of, waiting(c.short, ""), mb(c.taken))
		if got := most.MemoryMB; bound != (c.most != own) || bound && got != c.most {
			t.Errorf("%s: a round may take %d (bound %t), want %d", c.what, got, bound, c.most)
		}
		spent := p.Spent(c.of, false)
		if len(spent) != len(c.of) || len(spent) == 1 && spent[0].Taken.MemoryMB != c.spent {
			t.Errorf("%s: %+v are spent, want %d", c.what, spent, c.spent)
		}
	}
}

// Whatever rounds take of their limit: with a look after each of them no more than the share is taken in an interval,
// and if the queue is short enough all of it may be.
func TestRoundsStayWithinTheShare(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		share, taken := rapid.Int64Range(0, 100).Draw(t, "share"), int64(0)
		start := time.Unix(1000, 0)
		b := PacedBudget{QueueOn: subcluster.QueueOn{Queue: "root.b"}, Share: mb(share * 1024), Begins: start,
			Ends: start.Add(time.Hour), Until: start.Add(time.Hour)}
		p := &Pace{}
		for i := range rapid.IntRange(1, 30).Draw(t, "rounds") {
			most, bound := p.Look(start.Add(time.Duration(i)*time.Second), []PacedBudget{b}, waiting(true, ""), mb(taken*1024))
			if !bound || most.MemoryMB != (share-taken)*1024 {
				t.Fatalf("%s of %d GB may be taken where %d are, bound %t", most, share, taken, bound)
			}
			taken += rapid.Int64Range(0, most.MemoryMB/1024).Draw(t, "takes")
		}
		if taken > share {
			t.Fatalf("%d GB are taken, of %d", taken, share)
		}
	})
}

// A budget on nodes of a label is for asks that wait there. Amounts taken while some did count against it and against
// no other budget of the queue.
func TestLabelBudgetBindsWhileQueueIsShort(t *testing.T) {
	start := time.Unix(1000, 0)
	both := []PacedBudget{}
	for _, label := range []string{"", "gpu"} {
		both = append(both, PacedBudget{
			QueueOn: subcluster.QueueOn{Queue: "root.b", Label: label}, Share: mb(4096), Begins: start,
			Ends: start.Add(time.Minute), Until: start.Add(time.Minute),
		})
	}
	p := &Pace{}
	if most, bound := p.Look(start, both, waiting(true, "gpu"), mb(0)); !bound || most.MemoryMB != 4096 {
		t.Errorf("short on nodes of the label a round may take %s (bound %t)", most, bound)
	}
	if most, bound := p.Look(start, both, waiting(true, "gpu"), mb(1024)); !bound || most.MemoryMB != 3072 {
		t.Errorf("after one container a round may take %s (bound %t)", most, bound)
	}
	spent := p.Spent(both, false)
	if len(spent) != 2 || !spent[0].Taken.IsZero() || spent[1].Label != "gpu" || spent[1].Taken.MemoryMB != 1024 {
		t.Errorf("%+v", spent)
	}
}

// Amounts that a member takes by its own settings count against the budget before other members get a share, and so
// do amounts that a member took beyond its share.
func TestHadoopPreemptionCountsAgainstBudget(t *testing.T) {
	begins := preemptStart.Truncate(time.Minute)
	for _, c := range []struct {
		name  string
		spent subcluster.PreemptionSpent
		want  string
	}{
		{"nothing yet", subcluster.PreemptionSpent{Begins: begins, Unbound: true},
			"sc-1 <memory:0, vCores:0> taken by its own settings, sc-2 <memory:20480, vCores:20>"},
		{"some", subcluster.PreemptionSpent{Begins: begins, Taken: mb(10240), Unbound: true},
			"sc-1 <memory:10240, vCores:10> taken by its own settings, sc-2 <memory:10240, vCores:10>"},
		{"more than all", subcluster.PreemptionSpent{Begins: begins, Taken: mb(30720), Unbound: true},
			"sc-1 <memory:30720, vCores:30> taken by its own settings"},
		{"of the interval before", subcluster.PreemptionSpent{Begins: begins.Add(-time.Minute), Taken: mb(10240), Unbound: true},
			"sc-1 <memory:20480, vCores:20>"},
		{"bound, and beyond its share", subcluster.PreemptionSpent{Begins: begins, Taken: mb(5120)},
			"sc-1 <memory:20480, vCores:20>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, p := inMembers(t, document(`{"memory":20480,"vCores":20}`), []float64{0, 0}, []float64{0.3, 0.3})
			c.spent.Queue = "root.b"
			r.Preempted = map[creel.SubclusterID][]subcluster.PreemptionSpent{"sc-1": {c.spent}}
			out := &subcluster.Plan{}
			GivePreemption(r, p, out, nil, preemptStart)
			got := out.PreemptionOf("root.b").Text("")
			if want := "taken back for root.b until 00:01:00 at most: " + c.want; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
