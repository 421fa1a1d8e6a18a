// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel/app/daemon/logs"
	"github.com/creelrm/creel/app/demo"
	"github.com/creelrm/creel/internal/workload/traces"
)

// demoFlags are the demo's flags, as listed on the product page.
type demoFlags struct {
	conf    demo.Config
	store   string
	summary string
	verbose bool
}

func demoCommand() *cobra.Command {
	var f demoFlags
	c := &cobra.Command{
		Use:     "demo",
		Short:   "the whole federation on this machine, a real day of work, a verdict at the end",
		GroupID: "try",
		Args:    noArguments,
		Long: `Starts three subclusters with simulated nodes, two routers and a proxy for each
subcluster on loopback, submits a part of a recorded day over REST as a user
would, and ends with a table and a verdict. Exit code 0 means that each
application reached its final state exactly once and no invariant was broken.
A bad verdict leaves its evidence in a directory and says where.

With --compare the day is played without a rebalancer first, then with it. After
each comes a steady part: for half a minute the queues' total demand is 1.5 times
the capacity. The table compares how much less than their guarantee queues received.`,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), c.OutOrStdout()) },
	}
	fl := c.Flags()
	day := &f.conf.Day
	fl.StringVar(&day.Trace, "trace", traces.FB2009, "recorded day: a built-in `NAME` or a file with SWIM's columns")
	fl.StringVar(&day.Hours, "hours", "9-17", "part of the day, `FROM-TO`")
	fl.Float64Var(&day.Speed, "speed", 0, "compression of time; 0 makes it last about two minutes")
	fl.IntVar(&day.Subclusters, "subclusters", 3, "subclusters")
	fl.IntVar(&day.Nodes, "nodes", 200, "simulated nodes of each subcluster")
	fl.Uint64Var(&day.Seed, "seed", 1, "seed of everything that is drawn")
	fl.StringVar(&f.store, "store", "memory", "state store `URL`")
	fl.BoolVar(&f.conf.Faults, "faults", false, "kill and restore a subcluster, a router and the rebalancer on the way")
	fl.BoolVar(&f.conf.Compare, "compare", false,
		"play the day and a steady part without a rebalancer first, then with it, and tell the figures side by side")
	fl.Float64Var(&f.conf.Opportunistic, "opportunistic", 0,
		"`FRACTION` of tasks, 0 to 1, that ask for opportunistic containers, which wait in queues of nodes")
	fl.BoolVar(&f.conf.Keep, "keep", false, "stay up at the end")
	fl.StringVar(&f.summary, "summary", "", "write the figures as JSON to `FILE`")
	fl.BoolVar(&f.verbose, "verbose", false, "show the daemons' logs")
	fl.StringArrayVarP(&f.conf.Defines, "define", "D", nil, "set `KEY=VALUE`; may be repeated")
	return c
}

func (f *demoFlags) run(ctx context.Context, out io.Writer) error {
	if part := f.conf.Opportunistic; !(part >= 0 && part <= 1) {
		return usage(fmt.Errorf("--opportunistic %v is not between 0 and 1", part))
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	f.conf.Out, f.conf.Terminal = out, terminal(out)
	f.conf.Repeat = strings.Join(append([]string{"creel"}, os.Args[1:]...), " ")
	if f.verbose {
		if err := logs.SetUp(logs.Config{}); err != nil {
			return err
		}
		f.conf.Log = slog.Default()
	}
	f.conf.Defines = append(f.conf.Defines, "creel.store.url="+f.store)
	good := false
	err := demo.Run(ctx, f.conf, func(s *demo.Summary, verdict bool) error {
		good = verdict
		if f.summary == "" {
			return nil
		}
		return demo.WriteFile(f.summary, s)
	})
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return &exitError{exitGeneral, errors.New("stopped before the end of its day: no verdict")}
	}
	if err == nil && !good {
		return &exitError{exitGeneral, errors.New("the verdict is bad: see the lines above")}
	}
	return err
}
