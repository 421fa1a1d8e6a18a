// SPDX-License-Identifier: Apache-2.0

package opportunistic

import "math"

// Limit returns the queue limit of every node. The other figure is -1: no limit.
func (l *Nodes) Limit() (length, waitMS int32) {
	if l.cfg.Comparator == QueueWaitTime {
		return -1, l.limit
	}
	return l.limit, -1
}

// bounds returns the bounds of the limit.
func (l *Nodes) bounds() Range {
	if l.cfg.Comparator == QueueWaitTime {
		return l.cfg.Waits
	}
	return l.cfg.Lengths
}

func (r Range) clamp(x int64) int32 { return int32(min(max(x, int64(r.Min)), int64(r.Max))) }

// newLimit computes the limit from the sorted nodes, in whole numbers as Hadoop does.
func (l *Nodes) newLimit() int32 {
	n := int64(len(l.order))
	if n == 0 {
		return l.bounds().clamp(0)
	}
	sum, squares := int64(0), int64(0)
	for _, x := range l.order {
		sum += int64(x.load(l.cfg.Comparator))
	}
	mean := sum / n
	for _, x := range l.order {
		d := int64(x.load(l.cfg.Comparator)) - mean
		squares += d * d
	}
	deviation := math.Round(math.Sqrt(float64(squares / n)))
	return l.bounds().clamp(int64(float64(mean) + l.cfg.Sigma*deviation))
}
