// SPDX-License-Identifier: Apache-2.0

package overallocate

// Config is a node's configuration. The zero value lends nothing.
type Config struct {
	// Alloc is the use up to which opportunistic containers get resources that others have allocated.
	Alloc Shares
	// Preempt is the use above which opportunistic containers end.
	Preempt Shares
	// Looks is the number of consecutive looks with too high a CPU use that have no effect yet.
	Looks int
	// Predicts makes the node lend below the predicted peak of its use, not below its use.
	Predicts bool
	Estimate Estimate // of the peak, if the node predicts
}

// MostAlloc is the largest threshold of allocation, as in YARN-1011.
const MostAlloc = 0.95

// Enabled reports whether the node may lend. A container needs both types, so that a type without a threshold
// prevents it. A threshold of preemption at or below that of allocation would end containers that have just started.
func (c Config) Enabled() bool {
	return c.Alloc.Memory > 0 && c.Alloc.CPU > 0 &&
		c.Preempt.Memory > c.Alloc.Memory && c.Preempt.CPU > c.Alloc.CPU
}

// Bounded returns the configuration with thresholds of allocation of at most MostAlloc.
func (c Config) Bounded() Config {
	c.Alloc.Memory, c.Alloc.CPU = min(c.Alloc.Memory, MostAlloc), min(c.Alloc.CPU, MostAlloc)
	return c
}

// Verdict is the result of a look. At most one of its amounts is above zero.
type Verdict struct {
	Lend    Amount // opportunistic containers of this size may start beyond the node's free resources
	Reclaim Amount // this much of the use must end
}

// Monitor judges the use of one node.
type Monitor struct {
	cfg Config
	hot int // consecutive looks with too high a CPU use
}

// NewMonitor returns the monitor of a node that was not looked at.
func NewMonitor(cfg Config) *Monitor { return &Monitor{cfg: cfg.Bounded()} }

// Look judges a use of the node. peak is the use that is to be expected; without a prediction it is the use.
// allocated is the sum of the containers that run: without too large a sum, lending is not the cause of a high use,
// and an end of opportunistic containers would not cure it.
func (m *Monitor) Look(total, use, peak, allocated Amount) Verdict {
	if !m.cfg.Enabled() {
		return Verdict{}
	}
	over := use.Sub(m.cfg.Preempt.Of(total))
	if over.MilliCores > 0 {
		m.hot++
	} else {
		m.hot = 0
	}
	if m.hot <= m.cfg.Looks {
		over.MilliCores = 0
	} else {
		m.hot = 0
	}
	if over = over.Positive(); over != (Amount{}) {
		return Verdict{Reclaim: over.Min(allocated.Sub(total)).Positive()}
	}
	if room := m.cfg.Alloc.Of(total).Sub(peak.Max(use)); room.MemoryMB > 0 && room.MilliCores > 0 {
		return Verdict{Lend: room}
	}
	return Verdict{}
}

// Choose returns the indices of the containers whose ends reclaim an amount, in order. uses are those of the
// candidates, the youngest first. A container that uses nothing of the scarce types stays.
func Choose(reclaim Amount, uses []Amount) (chosen []int) {
	for i, use := range uses {
		if reclaim.MemoryMB <= 0 && reclaim.MilliCores <= 0 {
			break
		}
		if reclaim.MemoryMB > 0 && use.MemoryMB > 0 || reclaim.MilliCores > 0 && use.MilliCores > 0 {
			chosen = append(chosen, i)
			reclaim = reclaim.Sub(use)
		}
	}
	return chosen
}
