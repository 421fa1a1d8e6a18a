// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/logs"
	"github.com/creelrm/creel/app/load"
)

// loadFlags are the flags of every kind of load.
type loadFlags struct {
	options load.Options
	queue   string
	profile string
	shown   *progress
}

func (f *loadFlags) register(c *cobra.Command, inFlight, connections int) {
	o := c.Flags()
	p := &f.options.Plan
	o.DurationVar(&p.Duration, "duration", 10*time.Second, "make requests for so long, the warm-up included")
	o.DurationVar(&p.Warmup, "warmup", 0, "do not record the first requests")
	o.Int64Var(&p.Count, "count", 0, "at most `N` requests")
	o.IntVar(&p.InFlight, "in-flight", inFlight, "at most `N` requests on their way; more wait, and their wait counts")
	o.IntVar(&p.Connections, "connections", connections, "share `N` sockets")
	o.DurationVar(&p.Grace, "grace", 10*time.Second, "wait for answers so long at the end")
	o.StringVar(&f.options.User, "user", "load", "call as `NAME`")
	o.BoolVar(&f.options.Anywhere, "force", false, "take addresses that are not loopback ones")
	o.StringVar(
		&f.profile,
		"cpu-profile",
		"",
		"write where the load itself spends its time to `FILE`, for go tool pprof",
	)
	o.IntSliceVar(&f.options.PIDs, "pid", nil, "report the processor time and memory of process `PID` too")
}

// start sets the options that are known when the command runs.
func (f *loadFlags) start(c *cobra.Command) {
	f.options.Logger = slog.Default()
	f.shown = newProgress(c.ErrOrStderr(), progressEvery)
	f.options.Plan.Progress = func(recorded int64, after time.Duration) {
		end := ""
		if d := f.options.Plan.Duration; d > 0 {
			end = " of " + d.String()
		}
		f.shown.show(fmt.Sprintf("%v%s, %d requests recorded", after.Round(time.Second), end, recorded))
	}
}

func (f *loadFlags) rate(c *cobra.Command, what string) {
	c.Flags().
		Float64Var(&f.options.Plan.Rate, "rate", 0, what+" a second; 0: each after the last response, which measures the highest rate but no latency")
}

func (f *loadFlags) inQueue(c *cobra.Command) {
	c.Flags().StringVar(&f.queue, "queue", "default", "submit to queue `NAME`")
}

func loadCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "load",
		Short:   "open-loop load over the wire, against any YARN",
		GroupID: "try",
		Args:    noArguments,
		Long: `creel load sends load over the wire to any YARN, creel's or Hadoop's, and prints
the results as JSON. Requests are due at their time regardless of earlier ones,
and latency counts from then. Only loopback addresses are accepted unless forced.
cpu_s and cores of "generator" are the cost of the load generator itself.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(loadNodes(), loadAlloc(), loadSubmit(), loadReport(), loadREST(), loadDay())
	return c
}

// runLoad runs a load until it ends or is interrupted, and prints the result.
func runLoad(c *cobra.Command, f *loadFlags, run func(ctx context.Context) (*load.Result, error)) error {
	if err := logs.SetUp(logs.Config{}); err != nil {
		return err
	}
	debug.SetGCPercent(400) // few live objects, many allocations: trade memory for the server's CPU time
	if f.profile != "" {
		out, err := os.Create(f.profile)
		if err != nil {
			return usage(fmt.Errorf("--cpu-profile: %w", err))
		}
		defer out.Close()
		if err := pprof.StartCPUProfile(out); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	r, err := run(ctx)
	f.shown.clear()
	if r != nil {
		out, e := json.MarshalIndent(r, "", "  ")
		if e != nil {
			return e
		}
		fmt.Fprintln(c.OutOrStdout(), string(out))
	}
	var option *load.OptionError
	switch {
	case errors.As(err, &option):
		return usage(err)
	case err != nil:
		return err
	}
	if r.Answered == 0 {
		return &exitError{exitUnreachable, fmt.Errorf("no request was answered: %s", r.Worst())}
	}
	if r.Failed > 0 {
		return &exitError{
			exitPartial, fmt.Errorf("%d of %d requests failed: %s", r.Failed, r.Failed+r.Answered, r.Worst()),
		}
	}
	return nil
}

func loadNodes() *cobra.Command {
	var f loadFlags
	o := load.NodesOptions{}
	var memory, cores int64
	c := &cobra.Command{
		Use:   "nodes",
		Short: "nodes that register and send heartbeats",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			f.start(c)
			o.Options, o.Total = f.options, creel.NewResource(memory, cores)
			return runLoad(c, &f, func(ctx context.Context) (*load.Result, error) { return load.Nodes(ctx, o) })
		},
	}
	f.register(c, 1024, 8)
	c.Flags().StringVar(&o.Tracker, "tracker", "127.0.0.1:8031", "`ADDRESS` of the ResourceManager's resource tracker")
	c.Flags().IntVar(&o.Nodes, "nodes", 1000, "play `N` nodes")
	c.Flags().IntVar(&o.First, "first", 0, "number of the first node")
	c.Flags().
		DurationVar(&o.Period, "period", time.Second, "between a node's heartbeats; 0: each when the last is answered")
	c.Flags().Int64Var(&memory, "memory-mb", 8192, "of each node")
	c.Flags().Int64Var(&cores, "vcores", 8, "of each node")
	return c
}

func loadAlloc() *cobra.Command {
	var f loadFlags
	o := load.AllocOptions{}
	var containers float64
	var memory, cores int64
	c := &cobra.Command{
		Use:   "alloc",
		Short: "AMs that ask in waves, on nodes that send heartbeats",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			f.start(c)
			o.Options, o.Queue, o.Size = f.options, f.queue, creel.NewResource(memory, cores)
			if o.Wave > 0 {
				o.Plan.Rate = containers / float64(o.Wave)
			}
			return runLoad(c, &f, func(ctx context.Context) (*load.Result, error) { return load.Alloc(ctx, o) })
		},
	}
	f.register(c, 10_000, 8)
	f.inQueue(c)
	c.Flags().
		Float64Var(&containers, "rate", 0, "ask for `N` containers a second in all; 0: AMs call as fast as they are answered")
	c.Flags().StringVar(&o.Client, "client", "127.0.0.1:8032", "`ADDRESS` for clients")
	c.Flags().
		StringVar(&o.Scheduler, "scheduler", "127.0.0.1:8030", "`ADDRESS` of the ResourceManager's scheduler or of a proxy")
	c.Flags().StringVar(&o.Tracker, "tracker", "127.0.0.1:8031", "`ADDRESS` of the ResourceManager's resource tracker")
	c.Flags().IntVar(&o.Nodes, "nodes", 1000, "play `N` nodes")
	c.Flags().IntVar(&o.First, "first", 0, "number of the first node")
	c.Flags().DurationVar(&o.NodePeriod, "node-period", time.Second, "between a node's heartbeats")
	c.Flags().IntVar(&o.AMs, "masters", 100, "play `N` AMs")
	c.Flags().IntVar(&o.Wave, "wave", 10, "ask for `N` containers in a call")
	c.Flags().DurationVar(&o.Hold, "hold", 0, "keep a container so long")
	c.Flags().IntVar(&o.Held, "held", 0, "acquire `N` containers first and keep them")
	c.Flags().BoolVar(&o.Run, "run", false, "make nodes report the containers granted on them as running")
	c.Flags().Int64Var(&memory, "memory-mb", 128, "of each container")
	c.Flags().Int64Var(&cores, "vcores", 1, "of each container")
	return c
}

func loadSubmit() *cobra.Command {
	var f loadFlags
	o := load.SubmitOptions{}
	c := &cobra.Command{
		Use:   "submit",
		Short: "submissions",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			f.start(c)
			o.Options, o.Queue = f.options, f.queue
			return runLoad(c, &f, func(ctx context.Context) (*load.Result, error) { return load.Submit(ctx, o) })
		},
	}
	f.register(c, 256, 8)
	f.rate(c, "`N` submissions")
	f.inQueue(c)
	c.Flags().
		StringVar(&o.Client, "client", "127.0.0.1:8032", "`ADDRESS` for clients of a ResourceManager or a router")
	c.Flags().BoolVar(&o.Unmanaged, "unmanaged", false, "submit applications of which nothing is launched on the nodes")
	c.Flags().BoolVar(&o.Cycle, "cycle", false, "read a report and kill the application too, in the same request")
	return c
}

func loadReport() *cobra.Command {
	var f loadFlags
	o := load.ReportOptions{}
	c := &cobra.Command{
		Use:   "report",
		Short: "reading calls of clients",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			f.start(c)
			o.Options, o.Queue = f.options, f.queue
			return runLoad(c, &f, func(ctx context.Context) (*load.Result, error) { return load.Report(ctx, o) })
		},
	}
	f.register(c, 256, 8)
	f.rate(c, "`N` calls")
	f.inQueue(c)
	c.Flags().
		StringVar(&o.Client, "client", "127.0.0.1:8032", "`ADDRESS` for clients of a ResourceManager or a router")
	c.Flags().StringVar(&o.Call, "call", "report", "which `CALL`: "+strings.Join(load.Reads, ", "))
	c.Flags().
		IntVar(&o.Applications, "applications", 1, "submit `N` applications first and kill them afterwards; reports are of these")
	return c
}

func loadREST() *cobra.Command {
	var f loadFlags
	o := load.RESTOptions{}
	c := &cobra.Command{
		Use:   "rest URL",
		Short: "HTTP requests, one at a time on each connection",
		Args:  exactly(1, "a URL"),
		RunE: func(c *cobra.Command, args []string) error {
			f.start(c)
			o.Options, o.URL = f.options, args[0]
			return runLoad(c, &f, func(ctx context.Context) (*load.Result, error) { return load.REST(ctx, o) })
		},
	}
	f.register(c, 0, 32)
	_ = c.Flags().MarkHidden("in-flight") // it equals the number of connections
	f.rate(c, "`N` requests")
	c.Flags().StringVar(&o.Method, "method", "GET", "`METHOD` of the requests")
	c.Flags().StringVar(&o.Body, "body", "", "`JSON` to send with each")
	c.Flags().StringVar(&o.Accept, "accept", "application/json", "media `TYPE` to ask for")
	return c
}
