// SPDX-License-Identifier: Apache-2.0

// Package runtimes estimates how long the containers of a queue still run, from the run times of those that ended.
package runtimes

import "math"

// Histogram counts the run times of a leaf's containers, by half powers of two. It counts containers that ended by
// themselves, and old ones count less and less. Its size is 200 bytes for any number of containers. It is not restored
// after a restart. The zero value is ready.
type Histogram struct {
	ended [buckets]uint32
	all   uint32
}

const (
	buckets = 48
	first   = 250  // ms: start of bucket 0; each next one starts at √2 times that, the last at 34 days
	memory  = 8192 // number of ends after which all earlier ones count half
	doubt   = 1    // added to both counts: a few ends are not conclusive
)

// place returns the bucket of a time, and the position within it as a fraction.
func place(ms int64) (int, float64) {
	x := 2 * math.Log2(float64(max(ms, first))/first)
	i := min(int(x), buckets-1)
	return i, min(x-float64(i), 1)
}

// Add counts a container that ended after ms milliseconds.
func (h *Histogram) Add(ms int64) {
	i, _ := place(ms)
	h.ended[i]++
	if h.all++; h.all < memory {
		return
	}
	h.all = 0
	for i := range h.ended {
		h.ended[i] /= 2
		h.all += h.ended[i]
	}
}

// Ended returns the counts by bucket.
func (h *Histogram) Ended() []uint32 { return h.ended[:] }

// beyond returns the number of containers that ran longer than a time.
func (h *Histogram) beyond(ms int64) float64 {
	i, part := place(ms)
	sum := float64(h.ended[i]) * (1 - part)
	for _, n := range h.ended[i+1:] {
		sum += float64(n)
	}
	return sum
}

// Stays returns the chance that a container of an age runs on for a wait, both in ms.
func (h *Histogram) Stays(age, wait int64) float64 {
	return (h.beyond(age+wait) + doubt) / (h.beyond(age) + doubt)
}
