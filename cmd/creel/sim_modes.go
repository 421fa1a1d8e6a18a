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
	head := []string{
		"MODE", "CORES-RUN", "CORES-USED", "MEMORY-USED", "LOOKS", "ABOVE", "LENT", "PROMOTED", "FOR-USE", "FOR-ROOM",
		"CORES-LOST", "WAIT-P50", "WAIT-P99",
	}
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(head, "\t"))
	for mode := range strings.SplitSeq(f.overcommit, ",") {
		one := *f
		one.overcommit = mode
		r := one.run(f.seed, nil)
		if r.err != nil {
			return usage(r.err)
		}
		fmt.Fprintln(t, strings.Join(append([]string{mode}, overcommitRow(r.result)...), "\t"))
		good = one.tell(out, r, false) && good
	}
	if err := t.Flush(); err != nil {
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

// overcommitRow is the line of a run without its mode.
func overcommitRow(r *sim.Result) []string {
	o := r.Overcommit
	n := &o.Nodes
	count := func(v int64) string { return fmt.Sprint(v) }
	wait := func(q float64) string { return sim.Quantile(r.Waits, q).Round(100 * time.Millisecond).String() }
	return []string{
		part(n.Run.MilliCores, n.Size.MilliCores), part(n.Use.MilliCores, n.Size.MilliCores),
		part(n.Use.MemoryMB, n.Size.MemoryMB), count(n.Count), count(n.Above), count(o.Lent), count(o.Promoted),
		count(o.ForUse), count(o.ForRoom), part(int64(o.CoresLost), int64(o.Cores)), wait(0.5), wait(0.99),
	}
}

// printOvercommit prints the gain and the cost of lending, if nodes measured their use.
func printOvercommit(out io.Writer, o *overcommit.Result) {
	if o == nil {
		return
	}
	n := &o.Nodes
	fmt.Fprintf(out, "overcommit    %s of cores run, %s used, %s of memory used; above the node at %d of %d looks; "+
		"%d lent, %d of them promoted, %d killed for use, %d for room, %s of the run time of cores lost\n",
		part(n.Run.MilliCores, n.Size.MilliCores), part(n.Use.MilliCores, n.Size.MilliCores),
		part(n.Use.MemoryMB, n.Size.MemoryMB), n.Above, n.Count, o.Lent, o.Promoted, o.ForUse, o.ForRoom,
		part(int64(o.CoresLost), int64(o.Cores)))
}
