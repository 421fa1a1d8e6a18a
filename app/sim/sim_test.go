// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/workload"
	"github.com/creelrm/creel/internal/workload/traces"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// demoQueues are the queues of creel demo.
func demoQueues() queues.Spec {
	q := rm.Defaults().Queues
	q.Calculator = queues.Dominant
	leaf := func(name string, percent float64) queues.Queue {
		return queues.Queue{
			Name:         name,
			Capacity:     queues.PercentOf(percent),
			MaxCapacity:  queues.PercentOf(100),
			UserFactor:   10,
			MaxAMPercent: 0.5,
		}
	}
	q.Root.Children = []queues.Queue{leaf("default", 20), leaf("prod", 50), leaf("research", 30)}
	return q
}

// day is a part of FB-2009 on a cluster of the given size.
func day(t testing.TB, seed uint64, from, to time.Duration, nodes int) Config {
	t.Helper()
	read := func(name string) *bytes.Buffer {
		r, err := traces.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		b := &bytes.Buffer{}
		if _, err := b.ReadFrom(r); err != nil {
			t.Fatal(err)
		}
		return b
	}
	recorded, err := workload.ReadSWIM(read(traces.FB2009))
	if err != nil {
		t.Fatal(err)
	}
	durations, err := workload.ReadAttempts(read(traces.Yahoo))
	if err != nil {
		t.Fatal(err)
	}
	plan := workload.Plan{
		From:      from,
		To:        to,
		Speed:     1,
		Machines:  3 * nodes,
		BlockSize: 64 << 20,
		MaxTasks:  4000,
		Users:     12,
		Seed:      seed,
		Floor:     5 * time.Millisecond,
		Queues: []workload.Share{
			{Queue: "root.research", Weight: 55},
			{Queue: "root.prod", Weight: 25},
			{Queue: "root.default", Weight: 20},
		},
	}
	jobs, err := plan.Jobs(recorded)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Seed: seed, Jobs: jobs, Durations: durations, Nodes: nodes, Queues: demoQueues(), AuditEvery: 5000}
}

func run(t testing.TB, c Config) *Result {
	t.Helper()
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return w.Run()
}

// The size of the runs. `go test` runs few and small ones; mutations runs those
// of `./test sim`.
var (
	seeds   = flag.Int("seeds", defaultSeeds, "how many seeds TestSeedsWithFaults runs")
	nodes   = flag.Int("nodes", 10, "nodes of each subcluster")
	first   = flag.Uint64("first", 0, "first seed of TestSeedsWithFaults")
	logTo   = flag.String("log", "", "write each seed's event log to `FILE`.SEED")
	minutes = flag.Int("minutes", 5, "minutes of the recorded day from nine o'clock on")
)

func faulty(t testing.TB, seed uint64) Config {
	slice := time.Duration(*minutes) * time.Minute
	c := day(t, seed, 9*time.Hour, 9*time.Hour+slice, *nodes)
	c.NodeSize = creel.NewResource(4096, 4)
	c.NodeHeartbeat, c.MemberHeartbeat, c.Lease, c.Poll = 10*time.Second, 5*time.Second, 15*time.Second, 5*time.Second
	c.Faults, c.Split, c.Places = DefaultFaults(seed, slice), DrawSplit(seed), DrawPlaces(seed)
	return c
}

// logged writes the run's event log to the file of -log.
func logged(t testing.TB, c *Config) {
	t.Helper()
	if *logTo == "" {
		return
	}
	f, err := os.Create(fmt.Sprintf("%s.%d", *logTo, c.Seed))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	c.Log = f
}

func TestAQuietMorning(t *testing.T) {
	c := day(t, 1, 9*time.Hour, 9*time.Hour+5*time.Minute, 10)
	c.Split, c.Places = ByHeadroom, 0.3
	r := run(t, c)
	if !r.Good() || r.Finished != r.Submitted {
		t.Fatalf("%d of %d finished: %v", r.Finished, r.Submitted, r.Broken)
	}
	if n := r.Faults["containers where they were wished for"]; n < 20 || len(r.Faults) != 1 {
		t.Errorf("%d containers were where they were wished for; %v", n, r.Faults)
	}
	tasks := int64(0)
	for _, s := range r.Subclusters {
		tasks += s.Containers
		if s.Applications == 0 || s.Containers == 0 {
			t.Errorf("%s had nothing to do", s.ID)
		}
	}
	if r.Granted < 100 || tasks < r.Granted+int64(r.Submitted) {
		t.Errorf("%d containers granted to masters, %d in all, for %d applications", r.Granted, tasks, r.Submitted)
	}
	if p := Quantile(r.Submits, 0.99); p <= 0 || p > time.Second {
		t.Errorf("submissions took %v", p)
	}
}

// If nodes are scarce, grants wait at ResourceManagers while AMs call, and an ask repeated then would be granted
// twice.
func TestACrowdedMorningGrantsNothingTooMuch(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	c := day(t, 1, 9*time.Hour, 9*time.Hour+10*time.Minute, 10)
	c.NodeSize, c.NodeHeartbeat, c.Split = creel.NewResource(4096, 4), 10*time.Second, ByHeadroom
	if r := run(t, c); !r.Good() || Quantile(r.Waits, 0.9) < 5*time.Second {
		t.Fatalf("%d of %d finished, grants took %v: %v",
			r.Finished, r.Submitted, Quantile(r.Waits, 0.9), r.Broken)
	}
}

// Home first: an application is where it has to be, and its grants are as soon
// there as with every ask shared over all members.
func TestHomeFirstNeedsFewRecords(t *testing.T) {
	runs := map[string]*Result{}
	for _, split := range []string{HomeFirst, ByHeadroom} {
		c := day(t, 1, 9*time.Hour, 9*time.Hour+20*time.Minute, 20)
		c.Split, c.Subclusters = split, 10
		runs[split] = run(t, c)
		if r := runs[split]; !r.Good() {
			t.Fatalf("%s: %d of %d finished: %v", split, r.Finished, r.Submitted, r.Broken)
		}
	}
	home, all := runs[HomeFirst], runs[ByHeadroom]
	t.Logf("records an application %.2f and %.2f; ask to grant %v and %v on average, p50 %v and %v, p99 %v and %v",
		home.Records(), all.Records(), mean(home.Waits), mean(all.Waits),
		Quantile(home.Waits, 0.5), Quantile(all.Waits, 0.5), Quantile(home.Waits, 0.99), Quantile(all.Waits, 0.99))
	if home.Records() > 1.3 || home.Records() > all.Records()/2 {
		t.Errorf("%.2f records an application, %.2f with every ask shared", home.Records(), all.Records())
	}
	if p, q := mean(home.Waits), mean(all.Waits); p > q {
		t.Errorf("grants took %v, %v with every ask shared", p, q)
	}
	if p, q := Quantile(home.Waits, 0.99), Quantile(all.Waits, 0.99); p > q+10*time.Millisecond {
		t.Errorf("one grant in a hundred took %v, %v with every ask shared", p, q)
	}
}

func mean(of []time.Duration) (m time.Duration) {
	for _, d := range of {
		m += d / time.Duration(len(of))
	}
	return m
}

// Many seeds, each with everything that can go wrong. `creel sim --seeds` runs
// more of them.
func TestSeedsWithFaults(t *testing.T) {
	faults := map[string]int64{}
	for seed := range uint64(*seeds) {
		seed += *first
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := faulty(t, seed)
			logged(t, &c)
			r := run(t, c)
			if !r.Good() {
				t.Fatalf(
					"%d of %d ended, %d lost, %d doubled: %s",
					r.Finished+r.Failed,
					r.Submitted,
					r.Lost,
					r.Doubled,
					strings.Join(r.Broken, "\n"),
				)
			}
			for kind, n := range r.Faults {
				faults[kind] += n
			}
		})
	}
	if *seeds < defaultSeeds {
		return // a few seeds need not draw every kind
	}
	for _, kind := range []string{"subclusters restarted", "proxies restarted", "routers restarted", "partitions", "routers killed within a submission"} {
		if faults[kind] == 0 {
			t.Errorf("no seed had %s", kind)
		}
	}
}

func TestSameSeedYieldsSameBytes(t *testing.T) {
	log := func(seed uint64) (string, *Result) {
		var b bytes.Buffer
		c := faulty(t, seed)
		c.Log = &b
		r := run(t, c)
		return b.String(), r
	}
	first, a := log(3)
	second, b := log(3)
	if first != second || a.Hash != b.Hash || a.Events != b.Events {
		t.Errorf("one seed, two logs: %s", difference(first, second))
	}
	if _, c := log(4); c.Hash == a.Hash {
		t.Error("another seed gives the same hash")
	}
}

func difference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d: %q and %q", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

// The auditor is tested too: one that cannot fail guards nothing.
func TestTheAuditorSees(t *testing.T) {
	app := creel.ApplicationID{ClusterTimestamp: origin.UnixMilli(), ID: 1}
	container := creel.NewContainerID(creel.AttemptID{Application: app, Attempt: 1}, epochStep, 2)
	for name, harm := range map[string]func(w *World){
		"granted twice": func(w *World) {
			w.audit.apps[app] = &appRecord{}
			w.audit.grantTold(nil, container)
			w.audit.grantTold(nil, container)
		},
		"started twice": func(w *World) {
			w.audit.apps[app] = &appRecord{}
			w.audit.processStarted(container)
			w.audit.processStarted(container)
		},
		"ended twice": func(w *World) {
			w.audit.apps[app] = &appRecord{}
			w.audit.processEnded(container)
			w.audit.processEnded(container)
		},
		"runs in sc-1 and":  func(w *World) { harmHome(w, app) },
		"have not ended":    func(w *World) { w.audit.final() },
		"given out twice":   func(w *World) { s := &submission{w: w, app: app}; w.audit.named(s); w.audit.named(s) },
		"its UAM":           func(w *World) { harmUAM(w, app) },
		"nothing has moved": func(w *World) { w.audit.stuck() },
		"played to its end 2": func(w *World) {
			w.audit.apps[app] = &appRecord{}
			m := &am{attempt: container.Attempt}
			w.audit.played(m)
			w.audit.played(m)
		},
	} {
		w, err := New(day(t, 1, 9*time.Hour, 9*time.Hour+time.Minute, 2))
		if err != nil {
			t.Fatal(err)
		}
		harm(w)
		if !slices.ContainsFunc(w.audit.breaches, func(b string) bool { return strings.Contains(b, name) }) {
			t.Errorf("%s: the auditor says %q", name, w.audit.breaches)
		}
	}
}

func harmHome(w *World, app creel.ApplicationID) {
	w.audit.apps[app] = &appRecord{}
	for _, c := range w.clusters[:2] {
		w.audit.launched(c, rm.LaunchAM{Attempt: creel.AttemptID{Application: app, Attempt: 1}})
	}
}

func harmUAM(w *World, app creel.ApplicationID) {
	launchUAM(w, app)
	ended := w.now
	w.now = w.now.Add(w.cfg.Expiry + 2*time.Minute)
	w.audit.noUAMs(app, ended)
}

// launchUAM submits the UAM of an application that runs nowhere.
func launchUAM(w *World, app creel.ApplicationID) {
	w.clusters[0].submit("ann", &pb.ApplicationSubmissionContextProto{
		ApplicationId:   pb.FromApplicationID(app),
		Queue:           new("prod"),
		UnmanagedAm:     new(true),
		AmContainerSpec: &pb.ContainerLaunchContextProto{},
	}, 0, func(bool, error) {})
}

func TestQuantile(t *testing.T) {
	v := []int{1, 2, 3, 4}
	if Quantile(v, 0) != 1 || Quantile(v, 0.5) != 3 || Quantile(v, 1) != 4 || Quantile([]int(nil), 0.5) != 0 {
		t.Error(Quantile(v, 0), Quantile(v, 0.5), Quantile(v, 1))
	}
}

// A heap returns events by time, and events of the same time in insertion order.
func TestHeapReturnsEventsInOrder(t *testing.T) {
	var h heap
	var want []event
	for i := range uint64(2000) {
		e := event{at: int64(i * 7919 % 97), seq: i}
		h.push(e)
		want = append(want, e)
	}
	slices.SortFunc(want, func(a, b event) int {
		if a.before(&b) {
			return -1
		}
		return 1
	})
	for i, e := range want {
		if got := h.pop(); got.at != e.at || got.seq != e.seq {
			t.Fatalf("event %d is %d/%d, want %d/%d", i, got.at, got.seq, e.at, e.seq)
		}
	}
}

// BenchmarkDay is the whole recorded day over 3 x 200 nodes, on one core.
func BenchmarkDay(b *testing.B) {
	c := day(b, 1, 0, 0, 200)
	c.AuditEvery = 1 << 40
	for b.Loop() {
		r := run(b, c)
		if !r.Good() {
			b.Fatal(r.Broken)
		}
		b.ReportMetric(float64(r.Events)/b.Elapsed().Seconds(), "events/s")
		b.ReportMetric(float64(r.Granted), "containers")
	}
}

// Applications keep their containers over attempts, and their AMs die: no container is lost, and each completion is
// reported.
func TestSeedsThatKeepContainers(t *testing.T) {
	for _, seed := range []uint64{1, 6} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := faulty(t, seed)
			c.Keeps = 0.6
			if r := run(t, c); !r.Good() || r.Faults["containers that the next attempt has kept"] == 0 {
				t.Fatalf("%d of %d ended: %s", r.Finished+r.Failed, r.Submitted, strings.Join(r.Broken, "\n"))
			}
		})
	}
}
