// SPDX-License-Identifier: Apache-2.0

package nm

import (
	"math"
	"time"

	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/nm/overallocate"
	"github.com/creelrm/creel/subcluster/nm/queue"
)

// usage is the measured use of its containers' processes.
type usage struct {
	use, peak overallocate.Amount // of the last look; peak is the predicted one, if the node predicts
	monitor   *overallocate.Monitor
	predictor *overallocate.Predictor // nil: the node does not predict
	samples   []overallocate.Sample   // reused
}

// lendsOut reports whether the node may start opportunistic containers on resources that others were allocated.
func (n *Node) lendsOut() bool { return n.queue != nil && n.cfg.Overallocation.Enabled() }

// measured takes a look at the node's use. It lends the unused part of allocations, or ends the youngest opportunistic
// containers if the use is too high.
func (n *Node) measured(now time.Time, uses []Use) {
	if n.usage == nil {
		n.usage = &usage{monitor: overallocate.NewMonitor(n.cfg.Overallocation)}
		if n.cfg.Overallocation.Predicts {
			n.usage.predictor = &overallocate.Predictor{Estimate: n.cfg.Overallocation.Estimate}
		}
	}
	u := n.usage
	u.use, u.samples = overallocate.Amount{}, u.samples[:0]
	for _, x := range uses {
		c := n.containers[x.ID]
		if c == nil || !c.hasProcess() {
			continue
		}
		u.use = u.use.Add(x.Use)
		u.samples = append(u.samples, overallocate.Sample{ID: c.ID, Size: overallocate.Of(c.Resource), Use: x.Use})
		if c.place != nil {
			c.place.Use = x.Use
		}
	}
	if !n.lendsOut() {
		return
	}
	if u.peak = u.use; u.predictor != nil {
		u.peak = u.predictor.Look(u.samples)
	}
	v := u.monitor.Look(
		overallocate.Of(n.cfg.Total), u.use, u.peak, overallocate.Of(n.queue.Running()),
	)
	n.queue.Lend(v.Lend)
	if v.Reclaim == (overallocate.Amount{}) {
		return
	}
	for _, d := range append([]queue.Decision(nil), n.queue.Reclaim(v.Reclaim)...) {
		n.decided(now, d.Verb, n.containers[d.Item.ID], textUse)
	}
}

// report writes the measured use into a heartbeat.
func (u *usage) report(b *statusBlock) {
	b.mem = int32(min(u.use.MemoryMB, math.MaxInt32))
	b.cpu = cores(u.use)
}

// peakProto is the predicted peak in a heartbeat.
func (u *usage) peakProto() *pb.ResourceUtilizationProto {
	mem := int32(min(u.peak.MemoryMB, math.MaxInt32))
	return &pb.ResourceUtilizationProto{Pmem: &mem, Vmem: &mem, Cpu: new(cores(u.peak))}
}

func cores(a overallocate.Amount) float32 { return float32(a.MilliCores) / 1000 }
