// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/creelrm/creel/app/demo"
	"github.com/creelrm/creel/app/sim/compare"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// compareFlags name the federation and the policies to simulate, and those of the second run.
type compareFlags struct {
	clientFlags
	policy, against string
	view            string
	conf            simConf
	other           simConf // of the second run
	bySize          string
	html            string
}

// simConf is the source of a run's queues.
type simConf struct {
	dir     string
	defines []string
}

func (s *simConf) given() bool { return s.dir != "" || len(s.defines) > 0 }

func (f *compareFlags) define(c *cobra.Command) {
	f.clientFlags.register(c)
	fl := c.Flags()
	fl.StringVar(&f.policy, "policy", "", "decide by the policies in `FILE`: a document of all queues, or {\"root.prod\": DOCUMENT}")
	fl.StringVar(&f.against, "against", "", "run a second time by the policies in `FILE`, and tell both side by side")
	fl.StringVar(&f.view, "view", "", "members, sizes, queues and policies of a router: `live`, or a file of creel policy view, which has no policies")
	fl.StringVar(&f.conf.dir, "conf", "", "queues and preemption of a Hadoop configuration `DIR`")
	fl.StringArrayVarP(&f.conf.defines, "define", "D", nil, "set `KEY=VALUE` for the queues, over the files; may be repeated")
	fl.StringVar(&f.other.dir, "against-conf", "", "the second run has the queues of this `DIR` [those of --conf]")
	fl.StringArrayVar(&f.other.defines, "against-define", nil, "for the second run set `KEY=VALUE` besides; may be repeated")
	fl.StringVar(&f.bySize, "by-size", "", "queues of jobs by their tasks, `QUEUE=TASKS,...,QUEUE`: the first that takes so many, the last takes all [the day's]")
	fl.StringVar(&f.html, "html", "", "write the result with charts as one page to `FILE`")
}

// two reports whether there is a second run.
func (f *compareFlags) two() bool { return f.against != "" || f.other.given() }

func (f *compareFlags) given() bool {
	return f.two() || f.own() || f.html != "" || f.printer.format != "table"
}

// own reports whether the user set policies, queues, or a comparison.
func (f *compareFlags) own() bool {
	return f.against != "" || f.policy != "" || f.view != "" || f.conf.given() || f.other.given() || f.bySize != ""
}

// check rejects conflicting flags.
func (f *compareFlags) check(sim *simFlags, set *pflag.FlagSet) error {
	if err := errors.Join(sim.valid(), f.printer.check()); err != nil {
		return err
	}
	for _, name := range []string{"seeds", "corpus", "search", "runs", "repeat", "log", "ways"} {
		if set.Changed(name) {
			return usage(fmt.Errorf("--%s does not go with policies or queues of one's own, --html and --output: "+
				"they tell of one seed, and keep no events", name))
		}
	}
	for _, name := range []string{"subclusters", "nodes", "cores", "uneven"} {
		if f.view != "" && set.Changed(name) {
			return usage(fmt.Errorf("--view already sets the members and their size: leave out --%s", name))
		}
	}
	return nil
}

// simDocument is the result in JSON.
type simDocument struct {
	Notes []string      `json:"notes"`
	Runs  []*simSummary `json:"runs"`
}

func (d *simDocument) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(d.Notes, text) {
		d.Notes = append(d.Notes, text)
	}
}

// runCompare simulates a day once or twice and prints the resources of queues and members.
func runCompare(ctx context.Context, f *simFlags, with *compareFlags, in io.Reader, out io.Writer) error {
	debug.SetGCPercent(400) // few live objects, many allocations: trade memory for time
	doc := &simDocument{}
	doc.note("%s, hours %s, seed %d", f.trace, f.hours, f.seed)
	configs, err := with.configs(ctx, f, &trial{in: in}, doc)
	if err != nil {
		return err
	}
	var page io.WriteCloser
	if with.html != "" { // fail before the run, not after it
		if page, err = os.Create(with.html); err != nil {
			return usage(fmt.Errorf("--html: %w", err))
		}
		defer page.Close()
	}
	good := true
	var runs []compare.Run
	for i, name := range with.names() {
		r := f.play(configs[i], nil)
		if r.err != nil {
			return usage(r.err)
		}
		s := f.summarise(r)
		s.Name = name
		doc.Runs = append(doc.Runs, s)
		runs = append(runs, s.Run)
		for _, q := range s.Queues {
			if q.Refused+q.Failed > 0 {
				doc.note("%s: of %s %d applications were refused, %d failed", name, q.Queue, q.Refused, q.Failed)
			}
		}
		for _, b := range r.result.Broken {
			doc.note("%s: broken: %s", name, b)
		}
		good = good && r.result.Good()
	}
	if f.summary != "" {
		if err := demo.WriteFile(f.summary, doc); err != nil {
			return err
		}
	}
	if page != nil {
		if err := errors.Join(compare.HTML(page, doc.Notes, runs), page.Close()); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	err = printOne(out, with.printer, doc, runs[0].Name, func(w io.Writer) error {
		return printRuns(w, doc.Notes, runs)
	})
	if err == nil && !good {
		err = &exitError{exitGeneral, errors.New("the verdict is bad: not each application reached its end exactly once")}
	}
	return err
}

// names returns names for the runs, from their differences.
func (f *compareFlags) names() []string {
	if !f.two() {
		return []string{cmp.Or(f.policy, "as it is")}
	}
	var one, two []string
	if f.against != "" {
		one, two = append(one, cmp.Or(f.policy, f.policies())), append(two, f.against)
	}
	if f.other.dir != "" {
		one, two = append(one, cmp.Or(f.conf.dir, "as it is")), append(two, f.other.dir)
	}
	if len(f.other.defines) > 0 {
		two = append(two, f.other.defines...)
	}
	a, b := strings.Join(one, ", "), strings.Join(two, ", ")
	if a == b {
		return []string{a + " (first)", b + " (second)"}
	}
	return []string{cmp.Or(a, "as it is"), b}
}

// policies describes the policies of a run without --policy.
func (f *compareFlags) policies() string {
	if f.view == "live" {
		return "in force"
	}
	return "balanced"
}
