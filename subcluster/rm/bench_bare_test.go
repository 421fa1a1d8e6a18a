// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"math/bits"
	"testing"
)

// BenchmarkBareLoop is the measure of the machine that the other figures are
// read beside: best fit over 5,000 nodes in buckets by free memory, with no
// queues, no limits, no applications and nothing kept but counts.
func BenchmarkBareLoop(b *testing.B) {
	const nodes, steps = 5000, 128
	type bare struct {
		free       int
		prev, next int32
	}
	var all [nodes]bare
	var head [steps + 1]int32
	var used [(steps + 64) / 64]uint64
	unlink := func(i int32) {
		x := &all[i]
		if x.prev >= 0 {
			all[x.prev].next = x.next
		} else if head[x.free] = x.next; x.next < 0 {
			used[x.free/64] &^= 1 << (x.free % 64)
		}
		if x.next >= 0 {
			all[x.next].prev = x.prev
		}
	}
	link := func(i int32) {
		x := &all[i]
		x.prev, x.next = -1, head[x.free]
		if x.next >= 0 {
			all[x.next].prev = i
		}
		head[x.free] = i
		used[x.free/64] |= 1 << (x.free % 64)
	}
	for i := range head {
		head[i] = -1
	}
	for i := range all {
		all[i].free = steps
		link(int32(i))
	}
	const most = nodes * steps / 2
	given := make([]int32, 0, most)
	var cpu meter
	done := 0
	for b.Loop() {
		cpu.start()
		for len(given) < most {
			w := 0
			for used[w]&^1 == 0 && w == 0 || used[w] == 0 {
				w++
			}
			word := used[w]
			if w == 0 {
				word &^= 1
			}
			i := head[w*64+bits.TrailingZeros64(word)]
			unlink(i)
			all[i].free--
			link(i)
			given = append(given, i)
		}
		for _, i := range given {
			unlink(i)
			all[i].free++
			link(i)
		}
		cpu.stop(len(given))
		done += len(given)
		given = given[:0]
	}
	cpu.rate(b, done, "pair")
}
