// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel/app/sim"
	"github.com/creelrm/creel/internal/workload"
	"github.com/creelrm/creel/internal/workload/traces"
	"github.com/spf13/pflag"
)

// simJob is one run of many.
type simJob struct {
	flags *simFlags
	seed  uint64
	found string // failure recorded in the corpus line
}

// runSeeds runs --seeds seeds.
func (f *simFlags) runSeeds(out io.Writer) error {
	i := 0
	return f.runMany(out, func() (j simJob, more bool) {
		i++
		return simJob{flags: f, seed: f.seed + uint64(i-1)}, i <= f.seeds
	}, func(simJob, simRun) {})
}

// runCorpus runs each line of a file. Each line is a seed that once failed, so its fault cannot return unnoticed.
func (f *simFlags) runCorpus(out io.Writer) error {
	file, err := os.Open(f.corpus)
	if err != nil {
		return usage(fmt.Errorf("corpus: %w", err))
	}
	defer file.Close()
	var jobs []simJob
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		options, found, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(options)
		if len(words) == 0 {
			continue
		}
		of := &simFlags{}
		set := pflag.NewFlagSet("corpus", pflag.ContinueOnError)
		of.define(set)
		if err = set.Parse(words); err == nil {
			err = of.valid()
		}
		if err != nil {
			return usage(fmt.Errorf("%s:%d: %w", f.corpus, number, err))
		}
		jobs = append(jobs, simJob{of, of.seed, strings.TrimSpace(found)})
	}
	if err := lines.Err(); err != nil {
		return usage(fmt.Errorf("corpus: %w", err))
	}
	if len(jobs) == 0 {
		return usage(fmt.Errorf("%s has no line", f.corpus))
	}
	i := 0
	return f.runMany(out, func() (j simJob, more bool) {
		if i == len(jobs) {
			return j, false
		}
		i++
		return jobs[i-1], true
	}, func(j simJob, _ simRun) { fmt.Fprintln(out, "once found: ", j.found) })
}

// runSearch draws runs until the time or the number of runs is used up. A seed determines the day, the
// sizes and the faults of its run, so the printed command repeats it.
func (f *simFlags) runSearch(out io.Writer) error {
	first := f.seed
	if first == 1 { // the default: start at a random seed
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails
		first = uint64(binary.BigEndian.Uint32(b[:]))
	}
	bound := fmt.Sprintf("--search %v", f.search)
	if f.runs > 0 {
		bound = fmt.Sprintf("--runs %d", f.runs)
	}
	fmt.Fprintf(out, "search        from seed %d on; again: creel sim --faults %s --seed %d\n", first, bound, first)
	until, seed := time.Now().Add(f.search), first
	return f.runMany(out, func() (j simJob, more bool) {
		seed++
		more = seed <= first+uint64(f.runs)
		if f.runs == 0 {
			more = time.Now().Before(until)
		}
		return simJob{flags: drawn(seed - 1), seed: seed - 1}, more
	}, func(j simJob, r simRun) {
		fmt.Fprintf(out, "add to app/sim/testdata/corpus.txt:\n%s # %.100s\n",
			j.flags.options(j.seed), slices.Concat(r.result.Broken, []string{"applications were lost"})[0])
	})
}

// drawn returns the random flags for one seed of a search.
func drawn(seed uint64) *simFlags {
	f := &simFlags{}
	f.define(pflag.NewFlagSet("drawn", pflag.ContinueOnError)) // set the defaults
	rnd := mathrand.New(mathrand.NewPCG(seed, 0xdada))
	days := append([]string{traces.FB2009, traces.FB2009, traces.FB2009x0, traces.FB2009x0}, workload.Shapes()...)
	f.seed, f.trace, f.faults = seed, days[rnd.IntN(len(days))], true
	from := float64(rnd.IntN(94)) / 4
	if f.trace == traces.FB2009x0 && from >= 10.5 && from < 12 { // the trace has no jobs in these hours
		from -= 3
	}
	f.hours = fmt.Sprintf("%v-%v", from, from+0.25)
	f.subclusters, f.nodes = 2+rnd.IntN(4), 5+rnd.IntN(21)
	if rnd.IntN(3) > 0 {
		f.cores = 4
	}
	f.uneven = rnd.IntN(4) == 0
	f.keeps, f.waiting = sim.DrawKeeps(seed), sim.DrawOpportunistic(seed)
	f.distributed = sim.DrawDistributed(seed)
	return f
}

// shownRun shows how many runs have ended, or makes room for the lines about a failed one.
func (f *simFlags) shownRun(r simRun, runs int, began time.Time) {
	if !r.result.Good() {
		f.shown.clear()
		return
	}
	took := time.Since(began).Round(time.Second)
	f.shown.show(fmt.Sprintf("%d runs ended in %v, the last of seed %d", runs, took, r.seed))
}

// runMany runs the jobs that next returns, --parallel at a time, and reports failures.
func (f *simFlags) runMany(out io.Writer, next func() (simJob, bool), failed func(simJob, simRun)) error {
	type done struct {
		simJob
		simRun
	}
	began := time.Now()
	results := make(chan done)
	var turn sync.Mutex // guards next
	var wg sync.WaitGroup
	for range f.parallel {
		wg.Go(func() {
			for {
				turn.Lock()
				j, more := next()
				turn.Unlock()
				if !more {
					return
				}
				results <- done{j, j.flags.run(j.seed, nil)}
			}
		})
	}
	go func() {
		wg.Wait()
		close(results)
	}()
	var bad []uint64
	var broken error
	var runs, applications int
	var events, granted, checked int64
	var virtual time.Duration
	faults := map[string]int64{}
	for r := range results {
		if r.err != nil {
			broken = errors.Join(broken, fmt.Errorf("%s: %w", r.flags.command(r.simJob.seed), r.err))
			continue
		}
		runs++
		events, granted, checked = events+r.result.Events, granted+r.result.Granted, checked+r.result.Checked
		applications, virtual = applications+r.result.Submitted, virtual+r.result.Virtual
		for k, n := range r.result.Faults {
			faults[k] += n
		}
		f.shownRun(r.simRun, runs, began)
		good := r.flags.tell(out, r.simRun, false)
		if !good {
			failed(r.simJob, r.simRun)
		}
		if !good || f.repeat && !r.flags.same(out, r.simRun) {
			bad = append(bad, r.simJob.seed)
		}
	}
	f.shown.clear()
	if broken != nil {
		return broken
	}
	slices.Sort(bad)
	wall := time.Since(began)
	fmt.Fprintf(out, "%d seeds, %d applications, %d containers, %d events, %d checks in %.1f s\n",
		runs, applications, granted, events, checked, wall.Seconds())
	fmt.Fprintf(out, "virtual       %v: %.0f virtual days an hour\n",
		virtual.Round(time.Minute), virtual.Hours()/24/wall.Hours())
	fmt.Fprintln(out, faultsText(faults))
	if len(bad) > 0 {
		return &exitError{exitGeneral, fmt.Errorf("%d of %d seeds failed: %v", len(bad), runs, bad)}
	}
	fmt.Fprintln(out, "verdict: good. Each application reached its end exactly once; no invariant was broken.")
	return nil
}
