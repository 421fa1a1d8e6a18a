// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"fmt"
	"slices"
)

// Table is the results of ways over the same seeds.
type Table struct {
	Ways  []string
	Seeds [][]*Result // by seed, then by way
}

// base is the way that the others are compared with.
const base = "heartbeat"

// at returns a figure of a way at each seed, sorted.
func (t *Table) at(way int, figure func(r, base *Result) float64) []float64 {
	var out []float64
	of := slices.Index(t.Ways, base)
	for _, seed := range t.Seeds {
		var b *Result
		if of >= 0 {
			b = seed[of]
		}
		out = append(out, figure(seed[way], b))
	}
	slices.Sort(out)
	return out
}

// ranged is the median of sorted figures, and their range if they differ.
func ranged(sorted []float64, format string) string {
	text := func(v float64) string { return fmt.Sprintf(format, v) }
	middle := text(sorted[len(sorted)/2])
	first, last := text(sorted[0]), text(sorted[len(sorted)-1])
	if first == last {
		return middle
	}
	return middle + " (" + first + " to " + last + ")"
}

// Summary has a row for each way: its tasks, its utilisation, the waits of its long tasks, and the lost containers.
// The figures are the medians over the seeds, with their ranges.
func (t *Table) Summary() [][]string {
	rows := [][]string{{
		"WAY", "TASKS/H", "OF-HEARTBEAT", "UTILISATION", "LONG-WAIT-MEAN", "LONG-WAIT-P99", "KILLED", "TIME-LOST",
		"DROPPED", "UNFINISHED",
	}}
	for i, name := range t.Ways {
		row := func(figure func(r *Result) float64, format string) string {
			return ranged(t.at(i, func(r, _ *Result) float64 { return figure(r) }), format)
		}
		rows = append(rows, []string{
			name,
			row((*Result).PerHour, "%.0f"),
			t.ratio(i, (*Result).PerHour),
			row(func(r *Result) float64 { return 100 * r.Utilisation() }, "%.1f%%"),
			row(func(r *Result) float64 { mean, _ := r.Wait(0); return mean.Seconds() }, "%.3fs"),
			row(func(r *Result) float64 { _, p99 := r.Wait(0.99); return p99.Seconds() }, "%.3fs"),
			row(func(r *Result) float64 { return float64(r.Killed) }, "%.0f"),
			row(func(r *Result) float64 { return 100 * r.KilledTime.Seconds() / max(r.Used.Seconds(), 1) }, "%.2f%%"),
			row(func(r *Result) float64 { return float64(r.Dropped) }, "%.0f"),
			row(func(r *Result) float64 { return float64(r.Unfinished) }, "%.0f"),
		})
	}
	return rows
}

// ratio compares a figure with that of the base; "" without the base.
func (t *Table) ratio(way int, figure func(*Result) float64) string {
	if !slices.Contains(t.Ways, base) {
		return ""
	}
	all := t.at(way, func(r, b *Result) float64 { return figure(r) / max(figure(b), 1e-9) })
	return ranged(all, "%.2f")
}

// Completions has a row for each way and class of jobs: the times from their submissions to the ends of their last
// tasks.
func (t *Table) Completions() [][]string {
	rows := [][]string{{"WAY", "TASKS", "JOBS", "P50", "OF-HEARTBEAT", "P99"}}
	for c := range classes {
		for i, name := range t.Ways {
			jobs := t.at(i, func(r, _ *Result) float64 { return float64(len(r.Classes[c].Times)) })
			if jobs[len(jobs)-1] == 0 {
				continue
			}
			seconds := func(q float64) func(r *Result) float64 {
				return func(r *Result) float64 { return r.Quantile(c, q).Seconds() }
			}
			row := func(q float64) string {
				return ranged(t.at(i, func(r, _ *Result) float64 { return seconds(q)(r) }), "%.1fs")
			}
			rows = append(rows, []string{
				name, c.String(), ranged(jobs, "%.0f"), row(0.5), t.ratio(i, seconds(0.5)), row(0.99),
			})
		}
	}
	return rows
}

// Compare plays the day of each seed by each way. day makes it from a seed.
func Compare(names []string, c Cluster, day func(seed uint64) *Day, seeds []uint64) (*Table, error) {
	t := &Table{Ways: names}
	for _, seed := range seeds {
		var row []*Result
		d := day(seed)
		for _, name := range names {
			r, err := Play(name, c, d, seed)
			if err == nil && r.Broken != "" {
				err = fmt.Errorf("%s at seed %d: %s", name, seed, r.Broken)
			}
			if err != nil {
				return nil, err
			}
			row = append(row, r)
		}
		t.Seeds = append(t.Seeds, row)
	}
	return t, nil
}

// Conditions is a line about the days of a table.
func Conditions(c Cluster, d *Day) string {
	return fmt.Sprintf("%d jobs in %.3g h on %d nodes of %d slots, load %.2f; "+
		"heartbeats of nodes each %g s, of AMs each %g s",
		len(d.Jobs), d.Span.Hours(), c.Nodes, c.Slots, d.Load(c.Nodes*c.Slots),
		c.NodeHeartbeat.Seconds(), c.AMHeartbeat.Seconds())
}
