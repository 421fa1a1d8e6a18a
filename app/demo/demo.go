// SPDX-License-Identifier: Apache-2.0

// Package demo replays a part of a recorded day on a federation in this process. It submits over REST like users,
// simulates the AMs, optionally stops daemons meanwhile, and audits every ResourceManager. It ends with a Summary
// that states whether each application finished exactly once.
package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/federation"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/app/daemon/tracing"
	"github.com/creelrm/creel/internal/workload"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/nm/queue"
	nmrpc "github.com/creelrm/creel/subcluster/nm/rpc"
	nmserver "github.com/creelrm/creel/subcluster/nm/server"
)

// Config of a demo.
type Config struct {
	Day     Day
	Faults  bool // kill and restart a subcluster, a router and the rebalancer during the day
	Compare bool // first replay the day without a rebalancer, and report both results
	Keep    bool // continue after the summary until the context ends
	// Opportunistic is the fraction of tasks that ask for opportunistic containers, from 0 to 1.
	Opportunistic float64
	Defines       []string     // -D of the daemons
	Out           io.Writer    // progress and the verdict
	Terminal      bool         // Out is a terminal: progress is a bar
	Log           *slog.Logger // nil: a file that is kept after a bad verdict
	Repeat        string       // the command that repeats this run

	broken func() error // called at each look, by tests
}

// Run replays the day and calls done once with the figures and whether the verdict is good, before a Keep phase. It
// returns the first error that prevents a verdict; a bad verdict is no error, and leaves its evidence.
func Run(ctx context.Context, c Config, done func(s *Summary, good bool) error) error {
	if !c.Compare {
		return c.run(ctx, 1, nil, done)
	}
	if c.Day.Steady == 0 {
		c.Day.Steady = steadyLasts
	}
	var without *Summary
	alone := c
	alone.Keep = false
	fmt.Fprintln(c.Out, "without a rebalancer:")
	err := alone.run(ctx, 0, nil, func(s *Summary, good bool) error {
		if without = s; !good {
			return done(s, good)
		}
		return nil
	})
	if err != nil || !without.good() {
		return err
	}
	fmt.Fprintln(c.Out, "\nwith it:")
	return c.run(ctx, 1, without, done)
}

// run replays the day once; without has the figures of the same day without a rebalancer, if that was replayed.
func (c *Config) run(
	ctx context.Context, rebalancers int, without *Summary, done func(*Summary, bool) error,
) error {
	jobs, durations, err := c.Day.Plan()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "creel-demo-")
	if err != nil {
		return err
	}
	keep := false
	defer func() {
		if !keep {
			os.RemoveAll(dir)
		}
	}()
	log := c.Log
	if log == nil {
		file, err := openLog(dir)
		if err != nil {
			return err
		}
		defer file.close()
		log = slog.New(slog.NewJSONHandler(file, nil))
	}
	s, err := federation.Settings(dir, "", append([]string{
		"yarn.resourcemanager.max-completed-applications=1000000",
		"yarn.resourcemanager.am.max-attempts=4",
		"creel.escrow.interval=250ms",
		"creel.escrow.recovery=5s",
	}, append(c.allocation(), c.Defines...)...))
	if err != nil {
		return err
	}
	flush, err := tracing.SetUp(ctx, s, "demo")
	if err != nil {
		return err
	}
	defer flush()
	store, closeStore, err := role.OpenStore(ctx, s)
	if err != nil {
		return err
	}
	defer closeStore()

	run := newReplay(jobs, durations)
	run.opportunistic = c.Opportunistic
	run.documents = store
	playing := &atomic.Pointer[replay]{} // simulates the AMs that start now
	playing.Store(run)
	began := time.Now()
	conf := c.federation(rebalancers, playing)
	conf.Dir, conf.Store, conf.Settings, conf.Log = dir, store, s, log
	fed, err := federation.New(ctx, conf)
	if err != nil {
		return err
	}
	defer fed.Close()
	defer run.close()
	if err := skew(ctx, store, c.Day.Subclusters); err != nil {
		return err
	}
	if err := bound(ctx, store, c.Day); err != nil {
		return err
	}
	c.welcome(fed, jobs, time.Since(began))
	said := &lineRecorder{Writer: c.Out}
	sum, err := run.play(ctx, fed, c, said)
	if err != nil {
		return err
	}
	if c.Day.Steady > 0 {
		steady := newReplay(c.Day.steady(), durations)
		steady.opportunistic = c.Opportunistic
		steady.documents, steady.before = store, int64(len(run.accepted))
		defer steady.close()
		playing.Store(steady)
		c.announceSteady(steady)
		if sum.Steady, err = steady.playSteady(ctx, fed, c, said); err != nil {
			return err
		}
	}
	sum.Trace, sum.Seed, sum.Speed, sum.Without = c.Day.Trace, c.Day.Seed, c.Day.Speed, without
	good := sum.Print(c.Out)
	if !good {
		keep = true
		if err := keepEvidence(c, dir, sum, said.lines); err != nil {
			return err
		}
	}
	if err := done(sum, good); err != nil {
		return err
	}
	if c.Keep {
		fmt.Fprintln(c.Out, "\nstill running; Ctrl-C ends it")
		<-ctx.Done()
	}
	return nil
}

// queueLength is the length of each node's queue of opportunistic containers.
const queueLength = 10

// allocation returns the settings of opportunistic containers.
func (c *Config) allocation() []string {
	if c.Opportunistic <= 0 {
		return nil
	}
	return []string{"yarn.resourcemanager.opportunistic-container-allocation.enabled=true"}
}

// federation returns the size and the intervals of the demo's federation.
func (c *Config) federation(rebalancers int, playing *atomic.Pointer[replay]) federation.Config {
	return federation.Config{
		ChangeNodes: func(_ int, n *nmrpc.Config) {
			if c.Opportunistic > 0 {
				n.Queue = queue.Config{Length: queueLength}
			}
		},
		Subclusters:   c.Day.Subclusters,
		Nodes:         c.Day.Nodes,
		Routers:       2,
		Rebalancers:   rebalancers,
		PlanEvery:     time.Second,
		NodeSize:      nodeSize,
		NodeHeartbeat: 500 * time.Millisecond,
		Eager:         20 * time.Millisecond,
		OnStart: func(s nmserver.Started, exit func(int32, string)) func() {
			return playing.Load().onStart(s, exit)
		},
		Lease: 3 * time.Second,
	}
}

// announceSteady prints the load of the steady part.
func (c *Config) announceSteady(steady *replay) {
	fmt.Fprintf(c.Out, "\nsteady part: for %v queues want 1.5 times the capacity, "+
		"with tasks of 2 to 5 s: %d applications, %d tasks\n\n",
		c.Day.Steady, len(steady.jobs), tasksOf(steady.jobs))
}

// welcome prints the started daemons and the load to come.
func (c *Config) welcome(fed *federation.Federation, jobs []workload.Job, took time.Duration) {
	fmt.Fprintf(c.Out, "%d subclusters of %d simulated nodes, %d routers, up in %v\n",
		c.Day.Subclusters, c.Day.Nodes, len(fed.Routers), took.Round(time.Millisecond))
	fmt.Fprintf(c.Out, "dashboard http://%s/\n", fed.Routers[0].Address("web"))
	tasks := tasksOf(jobs)
	fmt.Fprintf(c.Out, "%s hours %s at %.0f times its speed: %d applications, %d tasks\n\n",
		c.Day.Trace, c.Day.Hours, c.Day.Speed, len(jobs), tasks)
}

func tasksOf(jobs []workload.Job) (n int) {
	for _, j := range jobs {
		n += j.Tasks()
	}
	return n
}

// bound writes the federation's queue tree: the guarantees in the members' files, summed over the federation, and a
// maximum for the research queue. The maximum is below the queue's share of any two members.
func bound(ctx context.Context, store statestore.Documents, day Day) error {
	part := func(percent int64) string {
		of := nodeSize.Scale(int64(day.Subclusters*day.Nodes)*percent, 100)
		return fmt.Sprintf(`{"memory":%d,"vcores":%d}`, of.MemoryMB, of.VCores)
	}
	set, err := store.Documents(ctx, rebalancer.TreeClass)
	if err != nil {
		return err
	}
	is, _ := set.Find(rebalancer.TreeName)
	_, err = store.PutDocument(ctx, statestore.DocumentWrite{
		Class:  rebalancer.TreeClass,
		Name:   rebalancer.TreeName,
		Expect: is.Version,
		Data: fmt.Appendf(nil, `{"queues":[{"queue":"root.prod","guarantee":%s},{"queue":"root.default","guarantee":%s},`+
			`{"queue":"root.research","guarantee":%s,"maximum":%s}]}`, part(50), part(20), part(30), part(researchPercent)),
		Author:  "creel demo",
		Comment: "guarantees and a maximum for the whole federation",
		Keep:    statestore.KeptVersions,
	})
	return err
}

// researchPercent is the maximum of the research queue, in percent of the federation.
const researchPercent = 45

var nodeSize = creel.NewResource(8192, 8)

// skew sends the research queue's applications mostly to the first subclusters, so that use and guarantee diverge
// over the federation.
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
