// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
)

// BenchmarkAskForCap compares the processor time of grants and releases in a ResourceManager whose queues have
// federation-wide maxima with the same one without them. It reports the median ratio of pairs of half-seconds in
// turns, and as control that of two ResourceManagers without maxima. (Two equal ones differ by some percent,
// depending on their place in memory.) 20 AMs in 20 of 100 leaf queues cause grants at full speed. Twice a second (of
// processor time) the keeper has its turns: it reads the use and needs of the 20 queues and their ancestors, and puts
// their caps in force, once for the request and once for its answer. round-us is the cost of one such round. The
// keeper's work outside its turns delays no allocation.
//
//	go test ./subcluster/rm -run XXX -bench AskForCap -cpu 1 -benchtime 40x
func BenchmarkAskForCap(b *testing.B) {
	w := cluster(b, 500, 64<<10, 64, deep(100))
	var apps []creel.AttemptID
	var caps []QueueCap
	for _, q := range w.m.sched.Tree().Queues() {
		if q.IsLeaf() && len(apps) < 20 {
			path := string(q.Path())
			apps = append(apps, w.unmanaged("u", path))
			for _, of := range []string{path, strings.Join(strings.Split(path, ".")[:2], ".")} {
				c := QueueCap{Queue: creel.QueuePath(of), Maximum: creel.NewResource(1<<40, 1<<40)}
				if !slices.ContainsFunc(caps, func(x QueueCap) bool { return x.Queue == c.Queue }) {
					caps = append(caps, c)
				}
			}
		}
	}
	version := int64(0)
	keeper := func() {
		for k := range caps {
			c := &caps[k]
			uses, needs, ok := w.m.QueueUse(c.Queue, "")
			if !ok || needs.MemoryMB < uses.MemoryMB {
				b.Fatalf("%s uses %s and needs %s", c.Queue, uses, needs)
			}
			for range 2 {
				version++
				c.Version, c.Until = version, w.now.Add(15*time.Second)
				c.Cap = creel.NewResource(16<<20+version%7, 1<<20)
				w.m.SetQueueCap(w.now, *c)
			}
		}
	}
	work := func() {
		w.now = w.now.Add(time.Millisecond)
		for _, id := range apps {
			out := w.asks(id, ask(1, "*", 1024, 1, 250))
			if len(out.Granted) != 250 {
				b.Fatalf("%d of 250 granted", len(out.Granted))
			}
			ids := make([]creel.ContainerID, len(out.Granted))
			for k := range out.Granted {
				ids[k] = out.Granted[k].ID
			}
			w.release(id, ids...)
		}
		for _, n := range w.m.nodes.list {
			w.m.nodes.commands.Drop(n.Serial())
		}
	}
	rounds, asked := 0, time.Duration(0)
	stretch := func(asks bool) time.Duration { // half a second
		if !asks {
			for _, c := range caps {
				w.m.ClearQueueCap(w.now, c.Queue, "")
			}
		} else {
			keeper()
		}
		work()
		runtime.GC()
		began := processorTime()
		if asks {
			keeper()
			rounds++
			asked += processorTime() - began
		}
		for range 50 {
			work()
		}
		return processorTime() - began
	}
	var control, ratios []float64
	for n := 0; b.Loop(); n++ {
		var took [3]time.Duration // the last asks
		for k := range took {
			i := (k + n) % 3
			took[i] = stretch(i == 2)
		}
		control = append(control, float64(took[1])/float64(took[0]))
		ratios = append(ratios, 2*float64(took[2])/float64(took[0]+took[1]))
	}
	slices.Sort(ratios)
	slices.Sort(control)
	b.ReportMetric(ratios[len(ratios)/2], "asks/not")
	b.ReportMetric(control[len(control)/2], "control")
	b.ReportMetric(float64(asked.Microseconds())/float64(rounds), "round-us")
	b.ReportMetric(0, "ns/op")
}
