// SPDX-License-Identifier: Apache-2.0

package nm

import (
	"math"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/nm/overallocate"
)

// Shape is the use of one simulated container over time. It is drawn from a seed and the container's id, so that every
// run of the seed draws the same. It is no recording, and has no data of a trace. Its averages are within the ranges
// that were published of two:
//
//   - Google's clusterdata (github.com/google/cluster-data, licence CC-BY 4.0): machines use 20 to 40 % of their CPU
//     and about half of their memory (Reiss et al., "Towards understanding heterogeneous clouds at scale", 2012);
//   - Alibaba's cluster-trace-v2017 and v2018 (github.com/alibaba/clusterdata, free for study and research): machines
//     use up to 50 % of their CPU and more than half of their memory (Cheng et al., "Characterizing co-located
//     datacenter workloads", 2018), and a container's memory is almost constant (Jiang et al., 2020).
//
// So a container uses 30 % of its vcores on average, with short bursts, and 62 % of its memory.
type Shape struct {
	seed        uint64
	memory, cpu float64 // of its size, on average
	flat        bool    // no change over time
}

// NewShape draws a container's use, unless its script sets it.
func NewShape(seed uint64, id creel.ContainerID, s Script) Shape {
	app := id.Attempt.Application
	x := Shape{seed: seed<<40 ^ uint64(app.ClusterTimestamp) ^ uint64(app.ID)<<20 ^ uint64(id.ID)}
	if s.Use > 0 {
		x.flat = true
		x.memory, x.cpu = float64(s.Use)/100, float64(s.Use)/100
		return x
	}
	low := x.draw(1)
	x.cpu, x.memory = 0.05+0.75*low*low, 0.35+0.55*x.draw(2)
	return x
}

// draw returns a number in [0, 1) for a purpose (SplitMix64).
func (x Shape) draw(purpose uint64) float64 {
	z := x.seed + purpose*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

// Constants of shapes: memory grows to its average in this time; CPU use changes once a slot, and is that of the whole
// size in some slots.
const (
	growth    = 30 * time.Second
	slot      = 5 * time.Second
	burstRate = 0.03
)

// At returns the use of a container of a size at an age.
func (x Shape) At(size creel.Resource, age time.Duration) overallocate.Amount {
	s := overallocate.Shares{Memory: x.memory, CPU: x.cpu}
	if !x.flat {
		s.Memory *= 0.5 + 0.5*min(float64(max(age, 0))/float64(growth), 1)
		number := uint64(max(age, 0) / slot)
		s.CPU *= 0.6 + 0.8*x.draw(3+2*number)
		if x.draw(4+2*number) < burstRate {
			s.CPU = 1
		}
		s.CPU = math.Min(s.CPU, 1)
	}
	return s.Of(overallocate.Of(size))
}
