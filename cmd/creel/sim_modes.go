// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/creelrm/creel/app/sim"
	"github.com/creelrm/creel/app/sim/overcommit"
)

// runModes plays the same day once for each mode of overcommitment, and prints their gain and their cost.
func (f *simFlags) runModes(out io.Writer) error {
	if f.log != "" || f.summary != "" || f.repeat {
		return usage(errors.New("--log, --summary and --repeat are of one run: give --overcommit one mode"))
	}
	good := true
	t := newModesTable(out)
	for mode := range strings.SplitSeq(f.overcommit, ",") {
		one := *f
		one.overcommit = mode
		r := one.run(f.seed, nil)
		if r.err != nil {
			return usage(r.err)
		}
		t.add(mode, r.result)
		good = one.tell(out, r, false) && good
	}
	if err := t.to.Flush(); err != nil {
		return err
	}
	if !good {
		return &exitError{exitGeneral, errors.New("the verdict is bad: see the lines above")}
	}
	return nil
}

// knownModes reports whether a list has modes of overcommitment only.
func knownModes(list string) bool {
	for mode := range strings.SplitSeq(list, ",") {
		if !slices.Contains(overcommit.Modes(), mode) {
			return false
		}
	}
	return true
}

// part is a fraction as a percentage.
func part(a, b int64) string { return fmt.Sprintf("%.1f%%", 100*float64(a)/float64(max(b, 1))) }

// modesTable has a row for each mode: its gain and its cost.
type modesTable struct{ to *tabwriter.Writer }

func newModesTable(out io.Writer) modesTable {
	head := []string{
		"MODE", "CORES-RUN", "CORES-USED", "MEMORY-USED", "LOOKS", "ABOVE", "LENT", "PROMOTED", "FOR-USE", "FOR-ROOM",
		"CORES-LOST", "WAIT-P50", "WAIT-P99",
	}
	t := modesTable{tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)}
	fmt.Fprintln(t.to, strings.Join(head, "\t"))
	return t
}

func (t modesTable) add(mode string, r *sim.Result) {
	o := r.Overcommit
	n := &o.Nodes
	count := func(v int64) string { return fmt.Sprint(v) }
	wait := func(q float64) string { return sim.Quantile(r.Waits, q).Round(100 * time.Millisecond).String() }
	fmt.Fprintln(t.to, strings.Join([]string{
		mode, part(n.Run.MilliCores, n.Size.MilliCores), part(n.Use.MilliCores, n.Size.MilliCores),
		part(n.Use.MemoryMB, n.Size.MemoryMB), count(n.Count), count(n.Above), count(o.Lent), count(o.Promoted),
		count(o.ForUse), count(o.ForRoom), part(int64(o.CoresLost), int64(o.Cores)), wait(0.5), wait(0.99),
	}, "\t"))
}

// printOvercommit prints the table of one mode, if nodes measured their use.
func printOvercommit(out io.Writer, mode string, r *sim.Result) {
	if r.Overcommit == nil {
		return
	}
	t := newModesTable(out)
	t.add(mode, r)
	_ = t.to.Flush() // out fails for the lines below, too
}
