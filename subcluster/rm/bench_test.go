// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hugepages"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// The figures of docs/bench/scheduler.md come from here:
//
//	go test -run '^$' -bench . -benchtime 1x -cpu 1 ./subcluster/rm
//
// Each benchmark does a fixed amount of work per iteration and reports it as
// decisions a second.

// cluster makes a machine with equal nodes in racks of 40.
func cluster(b *testing.B, nodes int, mb, cores int64, change func(*Config)) *world {
	w := newWorld(b, func(c *Config) {
		c.MaxAllocation = creel.Resource{MemoryMB: 1 << 20, VCores: 1024}
		if change != nil {
			change(c)
		}
	})
	for i := range nodes {
		w.node(fmt.Sprintf("n%d", i), mb, cores, fmt.Sprintf("/r%d", i/40))
	}
	return w
}

func twoQueues(c *Config) {
	c.Queues.Root.Children = []queues.Queue{
		{
			Name:         "a",
			Capacity:     queues.PercentOf(50),
			MaxCapacity:  queues.PercentOf(100),
			UserFactor:   10,
			MaxAMPercent: 1,
			MaxApps:      1 << 20,
		},
		{
			Name:         "b",
			Capacity:     queues.PercentOf(50),
			MaxCapacity:  queues.PercentOf(100),
			UserFactor:   10,
			MaxAMPercent: 1,
			MaxApps:      1 << 20,
		},
	}
}

// meter measures the processor time of the process, garbage collection
// included, so that a busy machine does not change the figures.
type meter struct {
	total, since time.Duration
	best         float64 // the least cost of a unit of work seen, in ns
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (m *meter) start() { m.since = processorTime() }

// stop ends a stretch that did n units of work.
func (m *meter) stop(n int) {
	d := processorTime() - m.since
	m.total += d
	if c := float64(d.Nanoseconds()) / float64(n); m.best == 0 || c < m.best {
		m.best = c
	}
}

// rate reports work per second of processor time, over all stretches and in the
// best of them: on a machine that others use too, their work pushes ours out of
// the caches, and the best stretch is the one least disturbed.
func (m *meter) rate(b *testing.B, n int, what string) {
	b.ReportMetric(float64(n)/m.total.Seconds(), what+"/cpu-s")
	b.ReportMetric(1e9/m.best, "best-"+what+"/cpu-s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkEqualAsks: 10,000 equal asks of 2 queues, on clusters of three sizes.
func BenchmarkEqualAsks(b *testing.B) {
	for _, calc := range []queues.Calculator{queues.MemoryOnly, queues.Dominant} {
		for _, nodes := range []int{500, 2000, 5000} {
			b.Run(fmt.Sprintf("%s/nodes=%d", []string{"memory", "dominant"}[calc], nodes), func(b *testing.B) {
				w := cluster(b, nodes, 128<<10, 128, func(c *Config) { twoQueues(c); c.Queues.Calculator = calc })
				x, y := w.unmanaged("u", "root.a"), w.unmanaged("v", "root.b")
				granted := 0
				var cpu meter
				for b.Loop() {
					for _, id := range []creel.AttemptID{x, y} {
						cpu.start()
						out := w.asks(id, ask(1, "*", 1024, 1, 5000))
						granted += len(out.Granted)
						cpu.stop(len(out.Granted))
						ids := make([]creel.ContainerID, 0, 5000)
						for _, g := range out.Granted {
							ids = append(ids, g.ID)
						}
						w.release(id, ids...)
						for _, n := range w.m.nodes.list {
							w.m.nodes.commands.Drop(n.Serial())
						}
					}
				}
				if granted != b.N*10000 {
					b.Fatal(granted)
				}
				cpu.rate(b, granted, "alloc")
			})
		}
	}
}

// belowNineTenths reports whether less than nine tenths of the memory are in use.
func belowNineTenths(m *Machine) bool {
	used, total := m.sched.Tree().Root().Used(), m.sched.Explain().Totals().Total
	return used.Memory < total.Memory*9/10
}

// deep makes a tree of three levels with as many leaves as wanted.
func deep(leaves int) func(*Config) {
	return func(c *Config) {
		c.Queues.Calculator = queues.Dominant
		c.Queues.MaxApplications = 1 << 20
		top, mid := 10, max(leaves/100, 1)
		root := &c.Queues.Root
		root.Children = nil
		n := 0
		for i := range top {
			p := queues.Queue{
				Name:        fmt.Sprintf("t%d", i),
				Capacity:    queues.PercentOf(100 / float64(top)),
				MaxCapacity: queues.PercentOf(100),
			}
			for j := range mid {
				q := queues.Queue{
					Name:        fmt.Sprintf("m%d_%d", i, j),
					Capacity:    queues.PercentOf(100 / float64(mid)),
					MaxCapacity: queues.PercentOf(100),
				}
				for k := range 10 {
					q.Children = append(
						q.Children,
						queues.Queue{
							Name:         fmt.Sprintf("q%d_%d_%d", i, j, k),
							Capacity:     queues.PercentOf(10),
							MaxCapacity:  queues.PercentOf(100),
							UserFactor:   1000,
							MaxAMPercent: 1,
							MaxApps:      1 << 20,
						},
					)
					n++
				}
				p.Children = append(p.Children, q)
			}
			root.Children = append(root.Children, p)
		}
	}
}

// BenchmarkChurn: many queues and applications on many nodes that are nearly full, mixed asks with locality. Each
// step releases some containers and asks for others. An allocation and a release count together as one pair. The
// garbage collector is as in the daemon, with its ballast; garbage of the set-up is collected before the first pair.
// With pages=2M the heap lies in huge pages, as with creel rm --huge-pages.
func BenchmarkChurn(b *testing.B) {
	for _, c := range []struct {
		nodes, queues, apps int
		pages               string
	}{{20000, 1000, 1000, "4K"}, {50000, 10000, 1000, "4K"}, {20000, 1000, 1000, "2M"}, {50000, 10000, 1000, "2M"}} {
		b.Run(
			fmt.Sprintf("nodes=%d/queues=%d/apps=%d/pages=%s", c.nodes, c.queues, c.apps, c.pages),
			func(b *testing.B) {
				w := cluster(b, c.nodes, 64<<10, 64, deep(c.queues))
				rnd := rand.New(rand.NewPCG(1, 2))
				leaves := []string{}
				for _, q := range w.m.sched.Tree().Queues() {
					if q.IsLeaf() {
						leaves = append(leaves, string(q.Path()))
					}
				}
				type am struct {
					id     creel.AttemptID
					have   []creel.ContainerID // the first gone of which are given back; moved up now and then, not at each call
					gone   int
					answer *Answer
					old    [4][]Ask        // places asked for at each priority, to be cancelled as real AMs do
					req    AllocateRequest // made in place each time, so that no garbage of the benchmark's is counted
				}
				ams := make([]*am, c.apps)
				for i := range ams {
					ams[i] = &am{id: w.unmanaged(fmt.Sprintf("u%d", i%100), leaves[i*len(leaves)/c.apps])}
				}
				names, racks := make([]string, c.nodes), make([]string, c.nodes/40+1)
				for i := range names {
					names[i], racks[i/40] = fmt.Sprintf("n%d", i), fmt.Sprintf("/r%d", i/40)
				}
				sizes := []creel.Resource{
					{MemoryMB: 1024, VCores: 1},
					{MemoryMB: 2048, VCores: 1},
					{MemoryMB: 4096, VCores: 2},
					{MemoryMB: 8192, VCores: 4},
				}
				want := func(m *am, n int32) {
					p := int32(rnd.IntN(4))
					s := sizes[p]
					asks := append(m.req.Asks[:0], Ask{Priority: p, ResourceName: "*", Resource: s, Count: n})
					for _, a := range m.old[p] {
						a.Count = 0
						asks = append(asks, a)
					}
					m.old[p] = m.old[p][:0]
					if rnd.IntN(2) == 0 {
						for range 3 {
							h := rnd.IntN(c.nodes)
							m.old[p] = append(
								m.old[p],
								Ask{Priority: p, ResourceName: names[h], Resource: s, Count: n},
								Ask{Priority: p, ResourceName: racks[h/40], Resource: s, Count: n},
							)
						}
					}
					m.req.Asks = append(asks, m.old[p]...)
				}
				// Fill to nine tenths.
				for i := 0; belowNineTenths(w.m); i++ {
					m := ams[i%len(ams)]
					want(m, 20)
					for _, g := range w.allocate(m.id, m.req).Granted {
						m.have = append(m.have, g.ID)
					}
				}
				ballast := make([]byte, 256<<20)
				runtime.GC()
				if c.pages == "2M" {
					if err := hugepages.Collapse(); err != nil {
						b.Skip(err)
					}
				}
				done := 0
				var cpu meter
				for b.Loop() {
					for range 20 {
						// Every AM calls once, in a random order. Its request is prepared beforehand, so that only
						// the machine's work is measured.
						rnd.Shuffle(len(ams), func(i, j int) { ams[i], ams[j] = ams[j], ams[i] })
						for _, m := range ams {
							k := min(10, len(m.have)-m.gone)
							m.req.ResponseID = w.ids[m.id]
							m.req.Release = append(m.req.Release[:0], m.have[m.gone:m.gone+k]...)
							if m.gone += k; m.gone > len(m.have)/2 {
								m.have, m.gone = append(m.have[:0], m.have[m.gone:]...), 0
							}
							want(m, 10)
						}
						before := w.m.count.granted
						cpu.start()
						for _, m := range ams {
							out, err := w.m.Allocate(w.now, m.id, &m.req)
							if err != nil {
								b.Fatal(err)
							}
							m.answer = out
						}
						cpu.stop(int(w.m.count.granted - before))
						done += int(w.m.count.granted - before)
						w.pump()
						w.got = w.got[:0]
						for _, m := range ams {
							w.ids[m.id] = m.answer.ResponseID
							for _, g := range m.answer.Granted {
								m.have = append(m.have, g.ID)
							}
						}
					}
					for _, n := range w.m.nodes.list {
						w.m.nodes.commands.Drop(n.Serial())
					}
				}
				runtime.KeepAlive(ballast)
				if err := w.m.Audit(); err != nil {
					b.Fatal(err)
				}
				cpu.rate(b, done, "pair")
			},
		)
	}
}

// BenchmarkNodeEvents: heartbeats of nodes with free resources while 100 applications are at their user limit (the
// set-up of Hadoop's user limit throughput test).
func BenchmarkNodeEvents(b *testing.B) {
	w := cluster(b, 2000, 16<<10, 16, func(c *Config) {
		c.Queues.Root.Children = []queues.Queue{
			{
				Name:           "default",
				Capacity:       queues.PercentOf(100),
				MaxCapacity:    queues.PercentOf(100),
				MinUserPercent: 100,
				UserFactor:     0.001,
				MaxAMPercent:   1,
			},
		}
	})
	for i := range 100 {
		id := w.unmanaged(fmt.Sprintf("u%d", i), "default")
		w.asks(id, ask(1, "*", 1024, 1, 1000))
	}
	if w.m.sched.Waiting() != 100 || w.m.Cluster().Used.MemoryMB == 0 {
		b.Fatal("the applications are not at their user limit")
	}
	reports := make([]NodeReport, len(w.m.nodes.list))
	for i, n := range w.m.nodes.list {
		reports[i] = NodeReport{ID: n.ID()}
	}
	n := 0
	var cpu meter
	for b.Loop() {
		cpu.start()
		for range 2_000_000 / len(reports) {
			w.now = w.now.Add(time.Millisecond)
			for i := range reports {
				reports[i].ResponseID = w.m.NodeHeartbeat(w.now, &reports[i]).ResponseID
				n++
			}
		}
		cpu.stop(2_000_000)
	}
	cpu.rate(b, n, "event")
}

// BenchmarkMemory: 50,000 nodes and 1,500,000 running containers.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		w := cluster(b, 50000, 64<<10, 64, twoQueues)
		for i := range 300 {
			id := w.unmanaged(fmt.Sprintf("u%d", i), []string{"root.a", "root.b"}[i%2])
			if out := w.asks(id, ask(1, "*", 2048, 1, 5000)); len(out.Granted) != 5000 {
				b.Fatal(len(out.Granted))
			}
			w.asks(id)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
		if w.m.count.containers != 1_500_000 {
			b.Fatal(w.m.count.containers)
		}
	}
}
