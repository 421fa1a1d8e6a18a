// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/demo"
	"github.com/creelrm/creel/app/sim"
	"github.com/creelrm/creel/app/sim/compare"
	"github.com/creelrm/creel/app/sim/opportune"
	"github.com/creelrm/creel/app/sim/overcommit"
	"github.com/creelrm/creel/app/sim/ways"
	"github.com/creelrm/creel/internal/workload"
	"github.com/creelrm/creel/internal/workload/traces"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/invariants"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// simFlags are the flags of the simulator.
type simFlags struct {
	trace       string
	hours       string
	speed       float64
	subclusters int
	nodes       int
	cores       int64
	faults      bool
	split       string
	seed        uint64
	seeds       int
	parallel    int
	audit       int
	repeat      bool
	uneven      bool
	keeps       float64
	waiting     float64 // fraction of opportunistic containers
	distributed bool
	queueRules  string
	overcommit  string // modes, one run each
	memory      int64  // of each node, MiB a core
	ways        string // to place containers, one run each
	load        float64
	rebalancer  bool
	loadWeights bool
	tree        string
	fault       string
	search      time.Duration
	runs        int // number of runs of a search, in place of its time
	corpus      string
	log         string
	summary     string
	shown       *progress // nil: none
}

func simCommand() *cobra.Command {
	var f simFlags
	var with compareFlags
	c := &cobra.Command{
		Use:     "sim",
		Short:   "the whole federation in virtual time, on the same code, from one seed",
		GroupID: "try",
		Args:    noArguments,
		Long: `Runs subclusters with simulated nodes, proxies, routers and a state store under
an event heap in virtual time: the code of the daemons, without a clock, a
socket or a thread. The same flags give the same events; the hash of their log
is printed. An auditor looks at each event. Exit code 0 means that each
application reached its end exactly once and nothing broke; a failing seed is
printed as the command that repeats it.

With --opportunistic, nodes have queues of 10 containers. A guaranteed container
that needs room ends opportunistic ones, and their AMs ask again. The report says
how many were granted, started at once, waited, and were killed or promoted. AMs
promote containers only with --faults, which draws the length of queues too. With
--distributed, AM-RM proxies place them on the least loaded nodes themselves.
--queue-rules adds rules that Hadoop does not have: nodes estimate the wait in their
queues and get containers by it (wait), or they end waiting containers only if a
shorter queue has a place (move), or proxies send asks to other subclusters when all
queues of the home's least loaded nodes have LENGTH containers (long=LENGTH).

With --overcommit, nodes measure what containers use, which is drawn from the
seed, and lend what is allocated and not used. Several modes play the same day
once each, and are printed side by side.

With --ways, one member's jobs are played by several ways to give containers to
tasks, each over --seeds seeds, and printed side by side: push and ours are
creel's ResourceManager and nodes, without and with opportunistic containers for
tasks below 60 s; heartbeat, mercury, yaq-c and batch are models of Hadoop,
Mercury, Yaq and Sparrow. --load makes a day of tasks of 1 s, 5 s and 60 to 180 s.

With --policy, --conf or --view the federation is yours: its members, queues and
policies. With --against, --against-conf or --against-define the same day is
played twice from the same seed, and waits, use against entitlement, utilisation
and work lost to preemption are compared for each queue and member.`,
		Example: `  creel sim                                  # the whole recorded day, without faults
  creel sim --faults --seed 7 --hours 9-10   # an hour with faults drawn from a seed
  creel sim --faults --seeds 100 --hours 9-9.25 --nodes 20
  creel sim --opportunistic 0.3 --hours 9-10 --nodes 20 --cores 4
  creel sim --overcommit none,peak --hours 9-10 --nodes 4 --cores 4
  creel sim --ways heartbeat,yaq-c,ours --load 0.85 --hours 0-0.5 --nodes 40
  creel sim --view live --against new.json --hours 9-10 --html report.html
  creel sim --hours 9-10 --nodes 20 --against-define yarn.resourcemanager.scheduler.monitor.enable=true`,
		RunE: func(c *cobra.Command, _ []string) error {
			f.shown = newProgress(c.ErrOrStderr(), progressEvery)
			if with.given() {
				if err := with.check(&f, c.Flags()); err != nil {
					return err
				}
				return runCompare(c.Context(), &f, &with, c.InOrStdin(), c.OutOrStdout())
			}
			return runSim(&f, c.OutOrStdout())
		},
	}
	f.define(c.Flags())
	with.define(c)
	return c
}

// define adds the flags. The lines of a corpus use the same flags.
func (f *simFlags) define(fl *pflag.FlagSet) {
	fl.StringVar(&f.trace, "trace", traces.FB2009, "recorded day: a built-in `NAME` or a file with SWIM's columns; or a made one: "+
		strings.Join(workload.Shapes(), ", "))
	fl.StringVar(&f.hours, "hours", "0-24", "part of the day, `FROM-TO`")
	fl.Float64Var(&f.speed, "speed", 1, "compression of submissions and of tasks' durations")
	fl.IntVar(&f.subclusters, "subclusters", 3, "subclusters")
	fl.IntVar(&f.nodes, "nodes", 200, "simulated nodes of each subcluster")
	fl.Int64Var(&f.cores, "cores", 8, "cores of each node, with --memory for each")
	fl.BoolVar(
		&f.faults,
		"faults",
		false,
		"lose, delay and double messages, cut off and restart subclusters, restart proxies and routers",
	)
	fl.StringVar(
		&f.split,
		"split",
		"",
		"how asks are split: home-first or by-headroom; drawn from the seed with --faults, else home-first",
	)
	fl.Uint64Var(&f.seed, "seed", 1, "seed of everything that is drawn")
	fl.IntVar(&f.seeds, "seeds", 1, "run so many seeds, from --seed on")
	fl.IntVar(&f.parallel, "parallel", 1, "run so many seeds at a time")
	fl.IntVar(
		&f.audit,
		"audit-every",
		0,
		"events between two full audits; 0 is 1,000,000 without faults, with faults 20 for each node and at least 20,000",
	)
	fl.BoolVar(&f.repeat, "repeat", false, "run each seed twice and compare the hashes")
	fl.StringVar(&f.log, "log", "", "write the event log as text to `FILE`")
	fl.StringVar(&f.summary, "summary", "", "write the figures as JSON to `FILE`")
	fl.BoolVar(&f.uneven, "uneven", false, "the second subcluster has a half of the nodes, the third a third")
	fl.Float64Var(&f.keeps, "keeps", 0,
		"of the applications, from 0 to 1, keep their containers over attempts of their AMs, which die now and then")
	fl.Float64Var(&f.waiting, "opportunistic", 0,
		"ask for this fraction of the containers, from 0 to 1, as opportunistic ones, which wait in queues of nodes")
	fl.BoolVar(&f.distributed, "distributed", false,
		"with --opportunistic: AM-RM proxies place these containers, by distributed scheduling")
	fl.StringVar(&f.queueRules, "queue-rules", "",
		"with --opportunistic: `RULES` of queues beside Hadoop's, a list of "+strings.Join(opportune.RuleNames(), ", "))
	fl.StringVar(&f.overcommit, "overcommit", "",
		"nodes lend what containers do not use; one run for each of these `MODES`: "+strings.Join(overcommit.Modes(), ", "))
	fl.StringVar(&f.ways, "ways", "",
		"play one member by each of these `WAYS` to give containers to tasks: "+strings.Join(ways.Names(), ", "))
	fl.Float64Var(&f.load, "load", 0,
		"with --ways: a made day of tasks of 1 s, 5 s and 60 to 180 s, whose work is this part of the cores; 0 is --trace")
	fl.Int64Var(&f.memory, "memory", 1024, "memory of each node, `MiB` for each core")
	fl.BoolVar(&f.rebalancer, "rebalancer", false, "publish plans every 10 s and when much changes, which routers and proxies follow")
	fl.BoolVar(&f.loadWeights, "load-weights", false,
		"in place of plans, publish weights by waiting applications every 10 s, as Hadoop's global policy generator makes them")
	fl.StringVar(&f.tree, "tree", "",
		"the federation's queue tree, a `FILE` as of creel queue apply: its maxima and user limits hold at every event")
	fl.StringVar(&f.fault, "fault", "",
		"these `KINDS` of faults alone: "+strings.Join(sim.FaultNames(), ", ")+" (a store that goes back by minutes and is rebuilt; "+
			"messages late by minutes; a store that goes back by seconds; killed and cut off; "+
			"slow one way; dead for an hour; submissions repeated after the end; routers that stand still within a "+
			"submission; emptied)")
	fl.StringVar(&f.corpus, "corpus", "", "run each line of `FILE`: flags of this command, and behind # their finding")
	fl.DurationVar(&f.search, "search", 0,
		"with --faults: run drawn seeds on drawn days and sizes for this `TIME`, from --seed on if it is set")
	fl.IntVar(&f.runs, "runs", 0, "with --faults: the same for this `NUMBER` of runs")
}

// simSummary is the demo's summary with the virtual time in addition to the real time.
type simSummary struct {
	compare.Run
	demo.Summary
	VirtualS float64          `json:"virtual_s"`
	Events   int64            `json:"events"`
	Hash     string           `json:"hash"`
	Faults   map[string]int64 `json:"faults,omitempty"`
}

// config returns the run of one seed, on the given members. Without any it uses members made from the flags.
func (f *simFlags) config(seed uint64, members ...sim.Member) (sim.Config, error) {
	d := demo.Day{
		Trace:       f.trace,
		Hours:       f.hours,
		Speed:       f.speed,
		Subclusters: f.subclusters,
		Nodes:       f.nodes,
		Seed:        seed,
	}
	for _, m := range members {
		d.Machines += m.Nodes
	}
	jobs, durations, err := d.Plan()
	if err != nil {
		return sim.Config{}, err
	}
	queues, err := confQueues(simConf{})
	if err != nil {
		return sim.Config{}, err
	}
	weights := map[string]float64{}
	for i := range f.subclusters {
		weights[fmt.Sprintf("sc-%d", i+1)] = 1 / float64(int64(1)<<min(i, 40))
	}
	skewed, err := json.Marshal(map[string]any{"home": map[string]any{"policy": "weighted", "weights": weights}})
	if err != nil {
		return sim.Config{}, err
	}
	rules, _ := opportune.ParseRules(f.queueRules) // valid has checked them
	c := sim.Config{
		Seed:        seed,
		Jobs:        jobs,
		Durations:   durations,
		Subclusters: f.subclusters,
		Nodes:       f.nodes,
		NodeSize:    creel.NewResource(f.memory*f.cores, f.cores),
		Queues:      queues,
		Members:     members,
		Uneven:      f.uneven,
		Keeps:       f.keeps,

		Opportunistic: f.waiting,
		Distributed:   f.distributed,
		QueueRules:    rules,
		Overcommit:    f.overcommit,

		Rebalancer:  f.rebalancer,
		LoadWeights: f.loadWeights,
		Policies:    []sim.Policy{{Queue: "root.research", Document: string(skewed)}},
		AuditEvery:  f.audit,
	}
	switch f.split {
	case "home-first":
		c.Split = sim.HomeFirst
	case "by-headroom":
		c.Split = sim.ByHeadroom
	case "":
		if f.faults {
			c.Split = sim.DrawSplit(seed)
		}
	}
	if f.tree != "" {
		document, _, err := readTree(f.tree, strings.NewReader(""))
		if err != nil {
			return sim.Config{}, err
		}
		if c.Tree, err = rebalancer.ParseTree(document, 0); err != nil {
			return sim.Config{}, err
		}
	}
	if f.overcommit != "" {
		c.NodeHeartbeat = time.Second // YARN's: each is an occasion to lend
	}
	if f.fault != "" {
		if c.Faults, err = sim.NamedFaults(strings.Split(f.fault, ",")); err != nil {
			return sim.Config{}, usage(fmt.Errorf("--fault: %w", err))
		}
	}
	if f.faults {
		// Heartbeats detect faults in time; without faults they would only cost time.
		c.NodeHeartbeat, c.MemberHeartbeat = 10*time.Second, 5*time.Second
		c.Lease, c.Poll = 15*time.Second, 5*time.Second
		c.Places = sim.DrawPlaces(seed)
		c.Faults = sim.DefaultFaults(seed, jobs[len(jobs)-1].Submit+time.Minute)
		if f.audit == 0 {
			c.AuditEvery = max(20_000, 20*f.subclusters*f.nodes) // the time of an audit grows with the nodes
		}
	}
	return c, nil
}

// simRun is the result of one seed.
type simRun struct {
	seed   uint64
	result *sim.Result
	wall   time.Duration
	err    error
}

func (f *simFlags) run(seed uint64, log io.Writer) simRun {
	c, err := f.config(seed)
	if err != nil {
		return simRun{seed: seed, err: err}
	}
	return f.play(c, log)
}

func (f *simFlags) play(c sim.Config, log io.Writer) (out simRun) {
	out.seed, c.Log = c.Seed, log
	if f.shown != nil && f.seeds <= 1 {
		defer f.shown.clear()
		c.Progress = func(p sim.Progress) {
			f.shown.show(fmt.Sprintf("seed %d: %d of %d applications ended after %v of virtual time, %d events",
				c.Seed, p.Ended, p.Jobs, p.Virtual.Round(time.Minute), p.Events))
		}
	}
	began := time.Now()
	w, err := sim.New(c)
	if err != nil {
		out.err = err
		return out
	}
	out.result = w.Run()
	out.wall = time.Since(began)
	return out
}

func (f *simFlags) valid() error {
	switch {
	case f.seeds < 1 || f.parallel < 1:
		return usage(errors.New("--seeds and --parallel must be at least 1"))
	case f.rebalancer && f.loadWeights, f.fault != "" && f.faults:
		return usage(errors.New("give --rebalancer or --load-weights, and --faults or --fault"))
	case f.speed <= 0:
		return usage(errors.New("--speed must be above 0"))
	case f.keeps < 0 || f.keeps > 1:
		return usage(errors.New("--keeps is a part of the applications, from 0 to 1"))
	case !(f.waiting >= 0 && f.waiting <= 1):
		return usage(errors.New("--opportunistic is a fraction of the containers, from 0 to 1"))
	case f.distributed && f.waiting == 0:
		return usage(errors.New("--distributed needs --opportunistic"))
	case f.queueRules != "" && f.waiting == 0:
		return usage(errors.New("--queue-rules needs --opportunistic"))
	case f.overcommit != "" && f.waiting > 0:
		return usage(errors.New("give --overcommit or --opportunistic: AMs cannot tell both kinds of containers apart"))
	case f.overcommit != "" && !knownModes(f.overcommit):
		return usage(fmt.Errorf("--overcommit is a list of %s", strings.Join(overcommit.Modes(), ", ")))
	case f.memory < 1 || f.memory > 1<<20:
		return usage(errors.New("--memory must be 1 to 1,048,576"))
	case f.cores < 1 || f.cores > 1024:
		return usage(errors.New("--cores must be 1 to 1,024"))
	case !slices.Contains([]string{"", "home-first", "by-headroom"}, f.split):
		return usage(errors.New("--split is home-first or by-headroom"))
	case (f.corpus != "" || f.searches()) && (f.seeds > 1 || f.log != "" || f.summary != "" || f.repeat):
		return usage(errors.New("--corpus, --search and --runs go with --seed, --parallel and --faults alone"))
	case f.search < 0 || f.runs < 0 || f.search > 0 && f.runs > 0:
		return usage(errors.New("a search has either a time above 0 (--search) or a number of runs above 0 (--runs)"))
	case f.searches() && !f.faults:
		return usage(errors.New("--search and --runs need --faults"))
	case f.seeds > 1 && (f.log != "" || f.summary != ""):
		return usage(errors.New("--log and --summary are of one seed; leave out --seeds"))
	}
	if _, err := opportune.ParseRules(f.queueRules); err != nil {
		return usage(err)
	}
	return f.validWays()
}

// command returns the command line that repeats one seed.
func (f *simFlags) command(seed uint64) string { return "creel sim " + f.options(seed) }

func (f *simFlags) options(seed uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "--seed %d --hours %s", seed, f.hours)
	if f.trace != traces.FB2009 {
		fmt.Fprintf(&b, " --trace %s", f.trace)
	}
	fmt.Fprintf(&b, " --speed %v --subclusters %d --nodes %d --cores %d", f.speed, f.subclusters, f.nodes, f.cores)
	if f.audit != 0 {
		fmt.Fprintf(&b, " --audit-every %d", f.audit)
	}
	if f.uneven {
		b.WriteString(" --uneven")
	}
	if f.keeps > 0 {
		fmt.Fprintf(&b, " --keeps %v", f.keeps)
	}
	if f.waiting > 0 {
		fmt.Fprintf(&b, " --opportunistic %v", f.waiting)
	}
	if f.distributed {
		b.WriteString(" --distributed")
	}
	if f.queueRules != "" {
		b.WriteString(" --queue-rules " + f.queueRules)
	}
	if f.overcommit != "" {
		b.WriteString(" --overcommit " + f.overcommit)
	}
	if f.memory != 0 && f.memory != 1024 {
		fmt.Fprintf(&b, " --memory %d", f.memory)
	}
	if f.rebalancer {
		b.WriteString(" --rebalancer")
	}
	if f.loadWeights {
		b.WriteString(" --load-weights")
	}
	if f.tree != "" {
		b.WriteString(" --tree " + f.tree)
	}
	if f.fault != "" {
		b.WriteString(" --fault " + f.fault)
	}
	if f.faults {
		b.WriteString(" --faults")
	}
	if f.split != "" {
		b.WriteString(" --split " + f.split)
	}
	return b.String()
}

// searches reports whether the command draws its runs.
func (f *simFlags) searches() bool { return f.search != 0 || f.runs != 0 }

// manyNodes is the number of nodes above which a run has too many live objects to collect garbage seldom.
const manyNodes = 1000

func runSim(f *simFlags, out io.Writer) error {
	if err := f.valid(); err != nil {
		return err
	}
	if debug.SetGCPercent(400); f.subclusters*f.nodes > manyNodes { // trade memory for time, while there is enough
		debug.SetGCPercent(200)
	}
	if f.ways != "" {
		return f.runWays(out)
	}
	if f.corpus != "" {
		return f.runCorpus(out)
	}
	if f.searches() {
		return f.runSearch(out)
	}
	if f.seeds > 1 {
		return f.runSeeds(out)
	}
	if strings.Contains(f.overcommit, ",") {
		return f.runModes(out)
	}
	var log io.Writer
	if f.log != "" {
		file, err := os.Create(f.log)
		if err != nil {
			return fmt.Errorf("log: %w", err)
		}
		defer file.Close()
		buffered := bufio.NewWriterSize(file, 1<<20)
		defer buffered.Flush()
		log = buffered
	}
	r := f.run(f.seed, log)
	if r.err != nil {
		return r.err
	}
	s := f.summarise(r)
	s.Print(out)
	good := f.tell(out, r, true)
	if good && f.repeat {
		good = f.same(out, r)
	}
	if f.summary != "" {
		if err := demo.WriteFile(f.summary, s); err != nil {
			return err
		}
	}
	if !good {
		return &exitError{exitGeneral, errors.New("the verdict is bad: see the lines above")}
	}
	return nil
}

// same repeats a seed and compares the results.
func (f *simFlags) same(out io.Writer, first simRun) bool {
	second := f.run(first.seed, nil)
	if second.err == nil && second.result.Hash == first.result.Hash && second.result.Events == first.result.Events {
		fmt.Fprintf(out, "repeated      seed %d: the same hash again\n", first.seed)
		return true
	}
	fmt.Fprintf(
		out,
		"repeated      seed %d: ANOTHER hash, so something is decided by chance\nrepeat with:  %s --repeat\n",
		first.seed,
		f.command(first.seed),
	)
	return false
}

// tell prints the broken invariants of a run, its hash, and the command that repeats it.
func (f *simFlags) tell(out io.Writer, r simRun, always bool) bool {
	if always {
		fmt.Fprintf(
			out,
			"virtual       %v in %.1f s, %d events, %.0f a second\n",
			r.result.Virtual.Round(time.Second),
			r.wall.Seconds(),
			r.result.Events,
			float64(r.result.Events)/r.wall.Seconds(),
		)
		fmt.Fprintf(out, "records       %.2f of an application in all ResourceManagers together\n", r.result.Records())
		fmt.Fprintf(out, "hash          %016x\n", r.result.Hash)
		fmt.Fprintln(out, faultsText(r.result.Faults))
		if n := r.result.Unreceived; len(n) > 0 {
			fmt.Fprintf(out, "lost grants   %s\n", sim.Counts(n))
		}
		printOpportunistic(out, &r.result.Opportunistic)
		printOvercommit(out, f.overcommit, r.result)
		printInvariants(out, r.result)
	}
	if r.result.Good() {
		return true
	}
	for _, b := range r.result.Broken {
		fmt.Fprintln(out, "broken:", b)
	}
	fmt.Fprintf(out, "repeat with:  %s\n", f.command(r.seed))
	return false
}

// printOpportunistic prints what became of opportunistic containers, if there were any.
func printOpportunistic(out io.Writer, o *opportune.Result) {
	if o.Granted == 0 {
		return
	}
	round := func(q float64) time.Duration { return sim.Quantile(o.Waits, q).Round(10 * time.Millisecond) }
	fmt.Fprintf(out, "opportunistic %d granted, %d of them placed by proxies, %d started at once, "+
		"%d waited (p50 %v, p99 %v), %d killed for room, %d dropped from queues, %d promoted\n",
		o.Granted, o.Placed, o.AtOnce, len(o.Waits), round(0.5), round(0.99), o.ForRoom, o.Shed, o.Promoted)
}

// printInvariants prints the number of checks and failures of each invariant of the federation.
func printInvariants(out io.Writer, r *sim.Result) {
	line := func(when string, t *invariants.Tally) {
		for _, i := range slices.Sorted(maps.Keys(t.Checked)) {
			fmt.Fprintf(out, "%-14s%-20s %d checked, %d broken\n", when, i, t.Checked[i], t.Broken[i])
		}
	}
	line("every event", &r.Invariants)
	line("every 10 s", &r.Reported)
	if r.Fullest > 0 {
		fmt.Fprintf(out, "fullest       %.1f%% of a federation-wide maximum in use at most\n", 100*r.Fullest)
	}
}

func faultsText(faults map[string]int64) string {
	var kinds []string
	for k, n := range faults {
		kinds = append(kinds, fmt.Sprintf("%d %s", n, k))
	}
	slices.Sort(kinds)
	if len(kinds) == 0 {
		return "faults        none"
	}
	return "faults        " + strings.Join(kinds, ", ")
}

func (f *simFlags) summarise(r simRun) *simSummary {
	s := &simSummary{
		Run:      compare.Of(f.trace, r.result),
		VirtualS: r.result.Virtual.Seconds(),
		Events:   r.result.Events,
		Hash:     fmt.Sprintf("%016x", r.result.Hash),
		Faults:   r.result.Faults,
	}
	a := &s.Applications
	a.Submitted, a.Finished, a.Failed = r.result.Submitted, r.result.Finished, r.result.Failed
	a.Lost, a.Doubled = r.result.Lost, r.result.Doubled
	s.Containers.Granted = r.result.Granted
	s.Containers.PerSecond = float64(r.result.Granted) / r.result.Virtual.Seconds()
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	s.GrantMS = demo.Quantiles{
		P50: ms(sim.Quantile(r.result.Waits, 0.5)),
		P99: ms(sim.Quantile(r.result.Waits, 0.99)),
		Max: ms(sim.Quantile(r.result.Waits, 1)),
	}
	s.SubmitMS.P50, s.SubmitMS.P99 = ms(sim.Quantile(r.result.Submits, 0.5)), ms(sim.Quantile(r.result.Submits, 0.99))
	if n := len(r.result.Short); n > 0 {
		sum := 0.0
		for _, e := range r.result.Short {
			sum += e
		}
		s.EntitlementError.Mean, s.EntitlementError.P99 = sum/float64(n), sim.Quantile(r.result.Short, 0.99)
	}
	s.Invariants.Checked, s.Invariants.Broken = r.result.Checked, int64(len(r.result.Broken))
	for _, c := range r.result.Subclusters {
		s.Subclusters = append(s.Subclusters, demo.SubclusterSummary{
			ID: c.ID, Applications: c.Applications, Containers: c.Containers, Nodes: c.Nodes,
		})
	}
	s.WallS, s.Trace, s.Seed, s.Speed = r.wall.Seconds(), f.trace, r.seed, f.speed
	return s
}
