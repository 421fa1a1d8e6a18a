// SPDX-License-Identifier: Apache-2.0

// Package waitstats is a histogram of the time from ask to grant of containers. ResourceManagers and proxies use the
// same bounds.
package waitstats

import "time"

// Bounds are the upper bounds of the buckets. They range from a grant in the same call to one that a full queue delayed
// for hours.
var Bounds = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	500 * time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
	5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
}

// Histogram counts waits. It has one owner.
type Histogram struct {
	Counts [len(Bounds) + 1]uint64 // by bucket; the last is above all bounds
	Sum    time.Duration
}

// Add counts one wait. A negative wait, after a clock was set back, counts as 0.
func (h *Histogram) Add(d time.Duration) {
	if d <= 0 { // granted in the requesting call, like most containers
		h.Counts[0]++
		return
	}
	i := 0
	for i < len(Bounds) && d > Bounds[i] {
		i++
	}
	h.Counts[i]++
	h.Sum += d
}

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Sum += o.Sum
}

// Quantile returns the wait that the part q (0 to 1) of all waits does not exceed. It is computed like Prometheus'
// histogram_quantile: within a bucket evenly from its lower bound to its upper one. A wait above all bounds is reported
// as the last bound. ok is false if nothing was counted.
func (h *Histogram) Quantile(q float64) (d time.Duration, ok bool) {
	var all uint64
	for _, n := range h.Counts {
		all += n
	}
	if all == 0 {
		return 0, false
	}
	rank, below, lower := q*float64(all), 0.0, time.Duration(0)
	for i, upper := range Bounds {
		n := float64(h.Counts[i])
		if n > 0 && below+n >= rank {
			return lower + time.Duration(float64(upper-lower)*max(rank-below, 0)/n), true
		}
		below, lower = below+n, upper
	}
	return lower, true
}

// Buckets returns the counts in Prometheus' form. They are cumulative, by upper bound in seconds; count is the number
// of all waits.
func (h *Histogram) Buckets() (count uint64, sum float64, by map[float64]uint64) {
	by = make(map[float64]uint64, len(Bounds))
	for i, n := range h.Counts {
		count += n
		if i < len(Bounds) {
			by[Bounds[i].Seconds()] = count
		}
	}
	return count, h.Sum.Seconds(), by
}

// Since returns the time, in the unit of now, from which an ask's waits count. The ask was raised at now from waiting
// containers to more. The result is the mean of the request times of all its containers. So the sum of the waits is
// right even if an AM raises its ask repeatedly.
func Since(since, now int64, waiting, more int64) int64 {
	if waiting <= 0 {
		return now
	}
	if more <= waiting {
		return since
	}
	return since + int64(float64(now-since)*float64(more-waiting)/float64(more))
}
