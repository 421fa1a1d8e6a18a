// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// preemptWorld is a full cluster: so many queues with an application each, which
// between them hold every container, of 1 GiB.
func preemptWorld(b *testing.B, nodes, perNode, leaves int, p queues.Preemption) (*world, []creel.AttemptID) {
	b.Helper()
	w := newWorld(b, func(c *Config) {
		c.Volatile = true
		c.Queues.Preemption = p
		c.Queues.Root.Children = nil
		for i := range leaves {
			c.Queues.Root.Children = append(c.Queues.Root.Children, queues.Queue{
				Name: fmt.Sprintf("q%d", i), Capacity: queues.WeightOf(1), UserFactor: -1, MaxAMPercent: 1,
			})
		}
		c.Queues.MaxApplications = 10 * leaves
	})
	for i := range nodes {
		w.node(fmt.Sprintf("n%d", i), int64(perNode)*1024, int64(perNode), "")
	}
	var apps []creel.AttemptID
	for i := range leaves {
		apps = append(apps, w.unmanaged("u", fmt.Sprintf("root.q%d", i)))
	}
	return w, apps
}

var benchPreemption = queues.Preemption{
	On: true, Interval: time.Second, Wait: 15 * time.Second, PerRound: 1, IgnoredOver: 0.1, Termination: 1,
}

// BenchmarkPreemptIdle is a round without starved queues: no application waits, or one waits whose queue has its
// guarantee; 10,000 queues and 1,500,000 containers.
func BenchmarkPreemptIdle(b *testing.B) {
	w, apps := preemptWorld(b, 30_000, 50, 10_000, benchPreemption)
	for _, id := range apps {
		w.asks(id, ask(1, "*", 1024, 1, 150))
	}
	round := func(b *testing.B) {
		for b.Loop() {
			w.now = w.now.Add(time.Second)
			w.m.Tick(w.now)
		}
		if n := w.m.sched.Preemption().Victims(); n != 0 {
			b.Fatalf("%d victims where nobody is short", n)
		}
	}
	b.Run("nobody-waits", round)
	w.asks(apps[0], ask(1, "*", 1024, 1, 10))
	b.Run("one-waits", round)
}

// BenchmarkPreemptWave chooses 39,000 victims of 300,000 containers on 20,000 nodes.
func BenchmarkPreemptWave(b *testing.B) {
	for _, kind := range []queues.Victims{queues.Newest, queues.LeastWork} {
		b.Run(map[queues.Victims]string{queues.Newest: "newest", queues.LeastWork: "least-work"}[kind], func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				w, apps := preemptWorld(b, 20_000, 15, 100, benchPreemption)
				w.m.Spec().Root.Victims = kind
				each := 300_000 / 87
				for _, id := range apps[:87] {
					w.asks(id, ask(1, "*", 1024, 1, int32(each+1)))
				}
				for _, id := range apps[87:] {
					w.asks(id, ask(1, "*", 1024, 1, 3000))
				}
				w.now = w.now.Add(time.Second)
				b.StartTimer()
				w.m.Tick(w.now)
				b.StopTimer()
				b.ReportMetric(float64(w.m.sched.Preemption().Victims()), "victims")
			}
		})
	}
}

// BenchmarkPreemptMixedWave is a wave of containers of 1 to 4 GiB, for asks of 3 GiB, by
// least-work: 20,000 nodes, 120,000 containers.
func BenchmarkPreemptMixedWave(b *testing.B) {
	for range b.N {
		b.StopTimer()
		w, apps := preemptWorld(b, 20_000, 15, 100, benchPreemption)
		w.m.Spec().Root.Victims = queues.LeastWork
		for i, id := range apps[:87] {
			size := int64(i%4+1) * 1024
			w.asks(id, ask(1, "*", size, 1, int32(300_000*1024/87/size+1)))
		}
		for _, id := range apps[87:] {
			w.asks(id, ask(1, "*", 3*1024, 1, 1000))
		}
		w.now = w.now.Add(time.Second)
		b.StartTimer()
		w.m.Tick(w.now)
		b.StopTimer()
		b.ReportMetric(float64(w.m.sched.Preemption().Victims()), "victims")
	}
}

// BenchmarkPreemptOnAndIdle is the cost of 5,000 grants and releases with rounds on, relative to rounds off: the
// median of pairs, one right after the other.
func BenchmarkPreemptOnAndIdle(b *testing.B) {
	type side struct {
		w    *world
		apps []creel.AttemptID
	}
	var sides [2]side
	for i := range sides {
		p := benchPreemption
		p.On, p.Interval = i == 1, 100*time.Millisecond
		sides[i].w, sides[i].apps = preemptWorld(b, 500, 50, 2, p)
	}
	var ratios []float64
	pairs := 0
	var spent [2]time.Duration
	round := func(i int) time.Duration {
		w, id := sides[i].w, sides[i].apps[0]
		began := time.Now()
		w.now = w.now.Add(100 * time.Millisecond)
		w.m.Tick(w.now)
		out := w.asks(id, ask(1, "*", 1024, 1, 5000))
		if len(out.Granted) != 5000 {
			b.Fatalf("%d of 5000 granted: nodes are lost after ten minutes of rounds", len(out.Granted))
		}
		ids := make([]creel.ContainerID, len(out.Granted))
		for k := range out.Granted {
			ids[k] = out.Granted[k].ID
		}
		pairs += len(ids)
		w.release(id, ids...)
		took := time.Since(began)
		spent[i] += took
		return took
	}
	for n := 0; b.Loop(); n++ {
		var took [2]time.Duration
		for _, i := range [][]int{{0, 1}, {1, 0}}[n%2] {
			took[i] = round(i)
		}
		ratios = append(ratios, float64(took[1])/float64(took[0]))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "on/off")
	b.ReportMetric(float64(pairs)/(spent[0]+spent[1]).Seconds(), "pairs/s")
}
