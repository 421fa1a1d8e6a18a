// SPDX-License-Identifier: Apache-2.0

package overallocate

import (
	"math"

	"github.com/creelrm/creel"
)

// The predictor is the larger of two estimates (Bashir et al., "Take it to the limit", EuroSys 2021). N-sigma is the
// mean of the node's use plus some standard deviations, as a fraction of its containers' size. The other is the
// sum over the containers of a percentile of each one's use.
const (
	sigmas     = 5.0
	percentile = 0.99
	window     = 64 // looks of the node in N-sigma
	buckets    = 32 // of a container's histogram
	warm       = 5  // looks from which a container's histogram counts; before, its size does
	most       = 1 << 12
)

// Estimate is a method of prediction.
type Estimate uint8

// Methods of prediction.
const (
	Larger Estimate = iota // of N-sigma and the sum of percentiles
	NSigma
)

// Sample is the use of one container at a look.
type Sample struct {
	ID        creel.ContainerID
	Size, Use Amount
}

// Predictor estimates the peak use of a node from its looks so far. Its memory is bounded by the window and by the
// number of containers. The zero value has seen no look.
type Predictor struct {
	Estimate   Estimate
	ring       [window]ratios
	next, seen int
	tasks      map[creel.ContainerID]*task
	look       int64
}

// ratios are use over size by type.
type ratios struct{ memory, cpu float64 }

// task is the history of one container.
type task struct {
	look        int64 // the last one with it
	looks       int32
	memory, cpu histogram
}

// histogram counts looks by use over size, in equal steps up to 1.
type histogram struct {
	counts [buckets]uint16
	sum    int32
}

func (h *histogram) add(r float64) {
	h.counts[min(int(r*buckets), buckets-1)]++
	if h.sum++; h.sum < most {
		return
	}
	h.sum = 0 // earlier looks count half
	for i := range h.counts {
		h.counts[i] /= 2
		h.sum += int32(h.counts[i])
	}
}

// percentile returns the upper bound of the step with the percentile.
func (h *histogram) percentile() float64 {
	need := int32(math.Ceil(percentile * float64(h.sum)))
	for i, c := range h.counts {
		if need -= int32(c); need <= 0 {
			return float64(i+1) / buckets
		}
	}
	return 1
}

// ratio is use over size within 0 and 1. A container above its size counts as 1 here; its use counts in full elsewhere.
func ratio(use, size int64) float64 {
	if size <= 0 || use <= 0 {
		return 0
	}
	return min(float64(use)/float64(size), 1)
}

// Look records a look at all containers that run, and returns the predicted peak: at least the present use.
func (p *Predictor) Look(samples []Sample) Amount {
	p.look++
	if p.tasks == nil {
		p.tasks = map[creel.ContainerID]*task{}
	}
	var size, use, each Amount
	for i := range samples {
		s := &samples[i]
		size, use = size.Add(s.Size), use.Add(s.Use)
		each = each.Add(p.container(s))
	}
	for id, t := range p.tasks {
		if t.look != p.look {
			delete(p.tasks, id)
		}
	}
	if size == (Amount{}) {
		return Amount{}
	}
	p.ring[p.next] = ratios{ratio(use.MemoryMB, size.MemoryMB), ratio(use.MilliCores, size.MilliCores)}
	p.next = (p.next + 1) % window
	p.seen = min(p.seen+1, window)
	peak := p.sigma(size).Max(use)
	if p.Estimate == Larger {
		peak = peak.Max(each)
	}
	return peak
}

// container records a look at one container, and returns the percentile of its use.
func (p *Predictor) container(s *Sample) Amount {
	t := p.tasks[s.ID]
	if t == nil {
		t = &task{}
		p.tasks[s.ID] = t
	}
	t.look = p.look
	t.looks++
	t.memory.add(ratio(s.Use.MemoryMB, s.Size.MemoryMB))
	t.cpu.add(ratio(s.Use.MilliCores, s.Size.MilliCores))
	if t.looks < warm {
		return s.Size
	}
	return Shares{t.memory.percentile(), t.cpu.percentile()}.Of(s.Size)
}

// sigma is the estimate by N-sigma for containers of a size.
func (p *Predictor) sigma(size Amount) Amount {
	peak := func(of func(ratios) float64) float64 {
		sum, squares := 0.0, 0.0
		for _, r := range p.ring[:p.seen] {
			sum += of(r)
			squares += of(r) * of(r)
		}
		mean := sum / float64(p.seen)
		return min(mean+sigmas*math.Sqrt(max(squares/float64(p.seen)-mean*mean, 0)), 1)
	}
	return Shares{
		peak(func(r ratios) float64 { return r.memory }), peak(func(r ratios) float64 { return r.cpu }),
	}.Of(size)
}
