// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/workload"
	"github.com/creelrm/creel/internal/workload/traces"
	"github.com/creelrm/creel/statestore"
	"github.com/spf13/cobra"
)

// demoFlags are the demo's, as the product page lists them.
type demoFlags struct {
	trace       string
	hours       string
	speed       float64
	subclusters int
	nodes       int
	store       string
	faults      bool
	keep        bool
	seed        uint64
	summary     string
	verbose     bool
	defines     []string
}

// summary is what --summary writes; `creel sim` writes the same keys.
type summary struct {
	Applications struct {
		Submitted int `json:"submitted"`
		Finished  int `json:"finished"`
		Failed    int `json:"failed"`
		Lost      int `json:"lost"`
		Doubled   int `json:"doubled"`
	} `json:"applications"`
	Containers struct {
		Granted   int64   `json:"granted"`
		PerSecond float64 `json:"per_second"`
	} `json:"containers"`
	GrantMS  quantiles `json:"grant_ms"`
	SubmitMS struct {
		P50 float64 `json:"p50"`
		P99 float64 `json:"p99"`
	} `json:"submit_ms"`
	EntitlementError struct {
		Mean float64 `json:"mean"`
		P99  float64 `json:"p99"`
	} `json:"entitlement_error"`
	Invariants struct {
		Checked int64 `json:"checked"`
		Broken  int64 `json:"broken"`
	} `json:"invariants"`
	Subclusters []subclusterSummary `json:"subclusters"`
	WallS       float64             `json:"wall_s"`
	Trace       string              `json:"trace"`
	Seed        uint64              `json:"seed"`
	Speed       float64             `json:"speed"`
}

type quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

type subclusterSummary struct {
	ID           creel.SubclusterID `json:"id"`
	Applications int                `json:"applications"`
	Containers   int64              `json:"containers"`
	Nodes        int                `json:"nodes"`
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
application reached its final state exactly once and no invariant was broken.`,
		RunE: func(c *cobra.Command, _ []string) error { return runDemo(c.Context(), &f, c.OutOrStdout()) },
	}
	fl := c.Flags()
	fl.StringVar(&f.trace, "trace", traces.FB2009, "recorded day: a built-in `NAME` or a file with SWIM's columns")
	fl.StringVar(&f.hours, "hours", "9-17", "part of the day, `FROM-TO`")
	fl.Float64Var(&f.speed, "speed", 0, "compression of time; 0 makes it last about two minutes")
	fl.IntVar(&f.subclusters, "subclusters", 3, "subclusters")
	fl.IntVar(&f.nodes, "nodes", 200, "simulated nodes of each subcluster")
	fl.StringVar(&f.store, "store", "memory", "state store `URL`")
	fl.BoolVar(&f.faults, "faults", false, "kill and restore a subcluster and a router on the way")
	fl.BoolVar(&f.keep, "keep", false, "stay up at the end")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of everything that is drawn")
	fl.StringVar(&f.summary, "summary", "", "write the figures as JSON to `FILE`")
	fl.BoolVar(&f.verbose, "verbose", false, "show the daemons' logs")
	fl.StringArrayVarP(&f.defines, "define", "D", nil, "set `KEY=VALUE`; may be repeated")
	return c
}

// demoSeconds is how long the submissions of a demo last by default.
const demoSeconds = 100

// plan reads the flags into the jobs to submit.
func (f *demoFlags) plan() ([]workload.Job, *workload.Durations, error) {
	from, to, ok := strings.Cut(f.hours, "-")
	a, err1 := strconv.ParseFloat(from, 64)
	b, err2 := strconv.ParseFloat(to, 64)
	if !ok || err1 != nil || err2 != nil || a < 0 || b <= a {
		return nil, nil, usage(fmt.Errorf("--hours %q: expected FROM-TO, such as 9-17", f.hours))
	}
	if f.subclusters < 1 || f.subclusters > 100 || f.nodes < 1 || f.nodes > 20_000 {
		return nil, nil, usage(fmt.Errorf("give 1 to 100 subclusters of 1 to 20,000 nodes"))
	}
	if f.speed == 0 {
		f.speed = (b - a) * 3600 / demoSeconds
	}
	day, err := readTrace(f.trace, workload.ReadSWIM)
	if err != nil {
		return nil, nil, usage(err)
	}
	durations, err := readTrace(traces.Yahoo, workload.ReadAttempts)
	if err != nil {
		return nil, nil, err
	}
	p := workload.Plan{
		From:      time.Duration(a * float64(time.Hour)),
		To:        time.Duration(b * float64(time.Hour)),
		Speed:     f.speed,
		Machines:  f.subclusters * f.nodes,
		BlockSize: 64 << 20,
		MaxTasks:  4000,
		Users:     12,
		Seed:      f.seed,
		Floor:     5 * time.Millisecond,
		// Skewed against the guarantees (prod 50, research 30, default 20) on purpose.
		Queues: []workload.Share{
			{Queue: "root.research", Weight: 55},
			{Queue: "root.prod", Weight: 25},
			{Queue: "root.default", Weight: 20},
		},
	}
	jobs, err := p.Jobs(day)
	if err != nil {
		return nil, nil, usage(err)
	}
	if len(jobs) == 0 {
		return nil, nil, usage(fmt.Errorf("no job of %s was submitted between %s", f.trace, f.hours))
	}
	return jobs, durations, nil
}

func readTrace[T any](name string, read func(io.Reader) (T, error)) (T, error) {
	var none T
	r, err := traces.Open(name)
	if err != nil {
		return none, err
	}
	defer r.Close()
	return read(r)
}

func runDemo(ctx context.Context, f *demoFlags, out io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	jobs, durations, err := f.plan()
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	if f.verbose {
		setUpLogs()
		log = slog.Default()
	}
	dir, err := os.MkdirTemp("", "creel-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := embeddedSettings(
		dir,
		"",
		append(
			[]string{
				"yarn.resourcemanager.max-completed-applications=1000000",
				"yarn.resourcemanager.am.max-attempts=4",
			},
			f.defines...),
	)
	if err != nil {
		return err
	}
	store, closeStore, err := openStore(ctx, f.store, s)
	if err != nil {
		return err
	}
	defer closeStore()

	run := newReplay(jobs, durations, f.subclusters)
	began := time.Now()
	fed, err := newFederation(
		ctx,
		federationConfig{
			subclusters: f.subclusters,
			nodes:       f.nodes,
			routers:     2,
			nodeSize:    creel.NewResource(8192, 8),
			nodeBeat:    500 * time.Millisecond,
			eager:       20 * time.Millisecond,
			onStart:     run.onStart,
			dir:         dir,
			store:       store,
			settings:    s,
			lease:       3 * time.Second,
			log:         log,
		},
	)
	if err != nil {
		return err
	}
	defer fed.Close()
	defer run.wait(ctx)
	if err := skew(ctx, store, f.subclusters); err != nil {
		return err
	}
	fmt.Fprintf(
		out,
		"%d subclusters of %d simulated nodes, %d routers, up in %v\n",
		f.subclusters,
		f.nodes,
		len(fed.routers),
		time.Since(began).Round(time.Millisecond),
	)
	fmt.Fprintf(out, "dashboard http://%s/\n", fed.routers[0].parts.entry.Addresses["web"])
	tasks := 0
	for _, j := range jobs {
		tasks += j.Tasks()
	}
	fmt.Fprintf(
		out,
		"%s hours %s at %.0f times its speed: %d applications, %d tasks\n\n",
		f.trace,
		f.hours,
		f.speed,
		len(jobs),
		tasks,
	)

	sum, err := run.play(ctx, fed, f.faults, out)
	if err != nil {
		return err
	}
	sum.Trace, sum.Seed, sum.Speed = f.trace, f.seed, f.speed
	verdict := sum.print(out)
	if f.summary != "" {
		b, err := json.MarshalIndent(sum, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.summary, append(b, '\n'), 0o644); err != nil {
			return fmt.Errorf("summary: %w", err)
		}
	}
	if f.keep {
		fmt.Fprintln(out, "\nstaying up; Ctrl-C ends it")
		<-ctx.Done()
	}
	if !verdict {
		return &coded{exitGeneral, errors.New("the verdict is bad: see the lines above")}
	}
	return nil
}

// skew sends the research queue's applications mostly to the first
// subclusters, so that use and guarantee fall apart over the federation.
func skew(ctx context.Context, store statestore.Policies, subclusters int) error {
	weights := map[string]float64{}
	for i := range subclusters {
		weights[fmt.Sprintf("sc-%d", i+1)] = 1 / float64(int(1)<<i)
	}
	doc, err := json.Marshal(map[string]any{"home": map[string]any{"policy": "weighted", "weights": weights}})
	if err != nil {
		return err
	}
	history, err := store.PolicyHistory(ctx, "root.research", 0, 1)
	if err != nil {
		return err
	}
	w := statestore.PolicyWrite{
		Queue:    "root.research",
		Document: doc,
		Author:   "creel demo",
		Comment:  "skewed on purpose",
	}
	if len(history) > 0 {
		w.Expect = history[0].Version
	}
	_, err = store.PutPolicy(ctx, w)
	return err
}

// print writes the table and the verdict, and tells whether it is good.
func (s *summary) print(w io.Writer) bool {
	fmt.Fprintf(w, "\n%-12s %13s %13s %7s\n", "subcluster", "applications", "containers", "nodes")
	for _, sub := range s.Subclusters {
		fmt.Fprintf(w, "%-12s %13d %13d %7d\n", sub.ID, sub.Applications, sub.Containers, sub.Nodes)
	}
	a := &s.Applications
	fmt.Fprintf(
		w,
		"\napplications  %d submitted, %d finished, %d failed, %d lost, %d doubled\n",
		a.Submitted,
		a.Finished,
		a.Failed,
		a.Lost,
		a.Doubled,
	)
	fmt.Fprintf(w, "containers    %d granted, %.0f a second\n", s.Containers.Granted, s.Containers.PerSecond)
	fmt.Fprintf(w, "ask to grant  p50 %.1f ms, p99 %.1f ms, max %.0f ms\n", s.GrantMS.P50, s.GrantMS.P99, s.GrantMS.Max)
	fmt.Fprintf(w, "submission    p50 %.1f ms, p99 %.1f ms\n", s.SubmitMS.P50, s.SubmitMS.P99)
	fmt.Fprintf(
		w,
		"entitlement   queues were short of their federation-wide guarantee by %.1f%% on average, %.1f%% at p99\n",
		100*s.EntitlementError.Mean,
		100*s.EntitlementError.P99,
	)
	fmt.Fprintf(w, "invariants    %d checked, %d broken\n", s.Invariants.Checked, s.Invariants.Broken)
	fmt.Fprintf(w, "wall          %.1f s\n\n", s.WallS)
	good := a.Submitted > 0 && a.Finished+a.Failed == a.Submitted && a.Lost == 0 && a.Doubled == 0 &&
		s.Invariants.Broken == 0
	if good {
		fmt.Fprintln(w, "verdict: good. Each application reached its end exactly once; no invariant was broken.")
	} else {
		fmt.Fprintln(w, "verdict: BAD.")
	}
	return good
}
