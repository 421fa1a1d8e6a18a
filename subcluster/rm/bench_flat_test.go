// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"testing"

	"github.com/creelrm/creel"
)

// BenchmarkFlat shows that the cost of a decision does not depend on idle objects: applications without asks,
// applications whose asks fit on no node, queues without applications, and full nodes. Each step releases ten
// containers and asks for ten.
func BenchmarkFlat(b *testing.B) {
	type idle struct{ apps, waiting, queues, nodes int }
	for _, c := range []struct {
		name string
		idle
	}{
		{"nothing", idle{}},
		{"apps=1000", idle{apps: 1000}}, {"apps=10000", idle{apps: 10000}},
		{"waiting=100", idle{waiting: 100}}, {"waiting=1000", idle{waiting: 1000}},
		{"queues=1000", idle{queues: 1000}}, {"queues=10000", idle{queues: 10000}},
		{"full-nodes=1000", idle{nodes: 1000}}, {"full-nodes=20000", idle{nodes: 20000}},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b, func(k *Config) {
				deep(1000 + c.queues)(k)
				k.MaxAllocation = creel.Resource{MemoryMB: 1 << 20, VCores: 1024}
			})
			var leaves []string
			for _, q := range w.m.sched.Tree().Queues() {
				if q.IsLeaf() {
					leaves = append(leaves, string(q.Path()))
				}
			}
			for i := range c.nodes {
				w.node(fmt.Sprintf("full%d", i), 8<<10, 8, fmt.Sprintf("/f%d", i/40))
			}
			if c.nodes > 0 {
				f := w.unmanaged("f", leaves[0])
				if n := len(w.asks(f, ask(1, "*", 1024, 1, int32(8*c.nodes))).Granted); n != 8*c.nodes {
					b.Fatal(n)
				}
			}
			for i := range 1000 {
				w.node(fmt.Sprintf("n%d", i), 64<<10, 64, fmt.Sprintf("/r%d", i/40))
			}
			for i := range c.apps {
				w.unmanaged(fmt.Sprintf("idle%d", i%50), leaves[1+i%(len(leaves)-1)])
			}
			for i := range c.waiting {
				id := w.unmanaged("waits", leaves[1+i%(len(leaves)-1)])
				w.asks(id, ask(1, "*", 512<<10, 512, 1))
			}
			me := w.unmanaged("me", leaves[len(leaves)-1])
			have := []creel.ContainerID{}
			for _, g := range w.asks(me, ask(1, "*", 1024, 1, 10)).Granted {
				have = append(have, g.ID)
			}
			var cpu meter
			pairs := 0
			for b.Loop() {
				cpu.start()
				for range 2000 {
					out := w.allocate(me, AllocateRequest{Release: have, Asks: []Ask{ask(1, "*", 1024, 1, 10)}})
					have = have[:0]
					for _, g := range out.Granted {
						have = append(have, g.ID)
					}
					pairs += len(have)
				}
				cpu.stop(20000)
				for _, n := range w.m.nodes.list {
					w.m.nodes.commands.Drop(n.Serial())
				}
			}
			if pairs != b.N*20000 {
				b.Fatal(pairs)
			}
			cpu.rate(b, pairs, "pair")
		})
	}
}
