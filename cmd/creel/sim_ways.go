// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/creelrm/creel/app/demo"
	"github.com/creelrm/creel/app/sim/ways"
)

// validWays returns the error in flags that compare ways to place containers.
func (f *simFlags) validWays() error {
	if f.ways == "" {
		if f.load != 0 {
			return usage(errors.New("--load needs --ways"))
		}
		return nil
	}
	for name := range strings.SplitSeq(f.ways, ",") {
		if !slices.Contains(ways.Names(), name) {
			return usage(fmt.Errorf("--ways is a list of %s", strings.Join(ways.Names(), ", ")))
		}
	}
	alone := f.faults || f.fault != "" || f.waiting > 0 || f.overcommit != "" || f.keeps > 0 || f.rebalancer ||
		f.loadWeights || f.tree != "" || f.uneven || f.split != "" || f.corpus != "" || f.searches() || f.log != "" ||
		f.summary != "" || f.repeat || f.queueRules != ""
	switch {
	case alone:
		return usage(errors.New("--ways goes with --load or --trace, --hours, --speed, --nodes, --cores, --seed and " +
			"--seeds alone"))
	case !(f.load >= 0 && f.load <= 2):
		return usage(errors.New("--load is a part of the cores, from 0 to 2"))
	case f.nodes < 1 || f.nodes > 10_000:
		return usage(errors.New("--ways needs 1 to 10,000 nodes"))
	}
	return nil
}

// runWays plays the same days by each way and prints their figures side by side.
func (f *simFlags) runWays(out io.Writer) error {
	from, to, err := f.span()
	if err != nil {
		return err
	}
	span := time.Duration((to - from) * float64(time.Hour) / f.speed)
	c := ways.Hadoop(f.nodes, int(f.cores))
	var failed error
	day := func(seed uint64) *ways.Day {
		d := ways.Synthetic(seed, c.Nodes*c.Slots, f.load, span)
		if f.load == 0 {
			plan := demo.Day{Trace: f.trace, Hours: f.hours, Speed: f.speed, Subclusters: 1, Nodes: f.nodes, Seed: seed}
			jobs, durations, err := plan.Plan()
			failed = errors.Join(failed, err)
			d = ways.Recorded(jobs, durations, span)
		}
		return d
	}
	first := day(f.seed)
	if failed != nil {
		return failed
	}
	fmt.Fprintf(out, "seed %d: %s\n", f.seed, ways.Conditions(c, first))
	var seeds []uint64
	for i := range f.seeds {
		seeds = append(seeds, f.seed+uint64(i))
	}
	table, err := ways.Compare(strings.Split(f.ways, ","), c, day, seeds)
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	for _, rows := range [][][]string{table.Summary(), table.Completions()} {
		fmt.Fprintln(out)
		t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
		for _, row := range rows {
			fmt.Fprintln(t, strings.Join(row, "\t"))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// span returns the hours of the day, from and to.
func (f *simFlags) span() (from, to float64, err error) {
	a, b, ok := strings.Cut(f.hours, "-")
	from, err1 := strconv.ParseFloat(a, 64)
	to, err2 := strconv.ParseFloat(b, 64)
	if !ok || err1 != nil || err2 != nil || !(from >= 0 && to > from && to <= 24*7) {
		return 0, 0, usage(fmt.Errorf("--hours %q: expected FROM-TO, such as 9-17", f.hours))
	}
	return from, to, nil
}
