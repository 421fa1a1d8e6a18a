// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/internal/app/daemon/role"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
)

// lost is what an application has lost to preemption.
type lost struct {
	notices map[creel.ContainerID]bool
	taken   int // containers, since the last wave
	untold  int // of all that were taken, those that its AM was not told of before
}

func (l *lost) answer(r *yarnpb.AllocateResponseProto) {
	var ids []creel.ContainerID
	for _, c := range slices.Concat(
		r.GetPreempt().GetContract().GetContainer(), r.GetPreempt().GetStrictContract().GetContainer(),
	) {
		ids = append(ids, yarnpb.ToContainerID(c.GetId()))
	}
	l.told(ids)
	for _, c := range r.GetCompletedContainerStatuses() {
		l.ended(yarnpb.ToContainerID(c.GetContainerId()), c.GetExitStatus())
	}
}

func (l *lost) told(ids []creel.ContainerID) {
	if l.notices == nil {
		l.notices = map[creel.ContainerID]bool{}
	}
	for _, id := range ids {
		l.notices[id] = true
	}
}

func (l *lost) ended(id creel.ContainerID, status int32) {
	if status != creel.ExitPreempted {
		return
	}
	l.taken++
	if !l.notices[id] {
		l.untold++
	}
}

// wave is what applications lost in one round, in containers by name.
type wave map[string]int

// take gives what was lost since the last wave.
func (w wave) take(name string, l *lost) bool {
	n := l.taken
	w[name] += n
	l.taken = 0
	return n > 0
}

// The time between two rounds, and from the notice to the kill: a round that kills is
// the second after the one that chose, so that waves are three rounds apart.
const (
	every  = 600 * time.Millisecond
	notice = 900 * time.Millisecond
	quiet  = 6 * every // with no kill for so long, there will be none
)

// wavesMost bounds how many waves are looked at.
const wavesMost = 5

// waves lets nodes and AMs of the real ResourceManager send heartbeats until nothing
// has been taken for longer than two waves are apart. It reports false where this
// process was held up for so long that it cannot tell one wave from the next.
func (s *realSide) waves(t *testing.T) (out []wave, ok bool) {
	t.Helper()
	looked := time.Now()
	for last := looked; len(out) <= wavesMost && time.Since(last) < quiet; {
		s.tracker.heartbeat(t, t.Context())
		now := wave{}
		for _, m := range s.ams {
			s.allocate(t, m)
			now.take(m.name, &m.lost)
		}
		if now.any() {
			if len(out) == 0 || time.Since(last) > notice/2 {
				out = append(out, wave{})
			}
			for name, n := range now {
				out[len(out)-1][name] += n
			}
			last = time.Now()
		}
		if time.Since(looked) > notice/2 {
			t.Logf("held up for %v", time.Since(looked))
			return out, false
		}
		looked = time.Now()
		time.Sleep(20 * time.Millisecond)
	}
	return out[:min(len(out), wavesMost)], true
}

func (w wave) any() bool {
	for _, n := range w {
		if n > 0 {
			return true
		}
	}
	return false
}

func (w wave) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if w[name] > 0 {
			fmt.Fprintf(&b, " %s:%d", name, w[name])
		}
	}
	return strings.TrimSpace(b.String())
}

// waves lets virtual time pass, in the same way.
func (s *ourSide) waves(t *testing.T) (out []wave, ok bool) {
	t.Helper()
	for last := s.now; len(out) <= wavesMost && s.now.Sub(last) < quiet; {
		s.now = s.now.Add(every / 10)
		s.m.Tick(s.now)
		s.m.Actions(nil)
		s.settle(t)
		now := wave{}
		for _, m := range s.ams {
			now.take(m.name, &m.lost)
		}
		if now.any() {
			out, last = append(out, now), s.now
		}
	}
	return out[:min(len(out), wavesMost)], true
}

// preempting is one comparison: queues and keys, what fills the cluster, and then who
// comes.
type preempting struct {
	name string
	tree
	keys string // lines of a queue file, as startRM has them
	// slack is by how many containers a wave may differ for one application, and in
	// sum for all of them; zero but where the comment says why.
	slack, sum int
	// total: only what all waves come to is compared, where the comment says why.
	total bool
}

// tree is a queue tree with what runs and what comes.
type tree struct {
	queues string
	full   []job
	then   []job
}

// played is a side whose waves of victims can be seen.
type played interface {
	side
	waves(t *testing.T) ([]wave, bool)
	untold() int
	fill(t *testing.T, j job)
}

func (s *realSide) untold() (n int) {
	for _, m := range s.ams {
		n += m.lost.untold
	}
	return n
}

func (s *ourSide) untold() (n int) {
	for _, m := range s.ams {
		n += m.lost.untold
	}
	return n
}

// fill waits until a job has all that it asks for.
func (s *realSide) fill(t *testing.T, j job) {
	t.Helper()
	s.rm.Await(t, "the containers of "+j.name, func() bool {
		s.tracker.heartbeat(t, t.Context())
		s.allocate(t, s.find(j.name))
		return s.got(j.name) == int(j.count)
	})
}

func (s *ourSide) fill(t *testing.T, j job) {
	t.Helper()
	s.settle(t)
	if s.got(j.name) != int(j.count) {
		t.Fatalf("%s has %d of %d containers", j.name, s.got(j.name), j.count)
	}
}

// finish ends all applications and waits until nothing of them is left.
func (s *realSide) finish(t *testing.T) {
	t.Helper()
	for _, m := range s.ams {
		s.rm.Await(t, "the end of "+m.name, func() bool {
			r, err := m.am.FinishApplicationMaster(t.Context(), &yarnpb.FinishApplicationMasterRequestProto{
				FinalApplicationStatus: yarnpb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
			})
			if err != nil {
				t.Fatal(err)
			}
			return r.GetIsUnregistered()
		})
	}
	s.ams = nil
	s.rm.Await(t, "an empty cluster", func() bool {
		var doc struct{ ClusterMetrics struct{ AllocatedMB int64 } }
		get(t, s.rm, "/ws/v1/cluster/metrics", &doc)
		return doc.ClusterMetrics.AllocatedMB == 0
	})
}

// outcome is what one side did.
type outcome struct {
	waves  []wave
	untold int // containers that were taken without a notice
}

// play fills the cluster, lets the others come and watches who loses what.
func (c *tree) play(t *testing.T, s played) (out outcome, ok bool) {
	t.Helper()
	for _, j := range c.full {
		s.submit(t, j)
		s.ask(t, j)
		s.fill(t, j)
	}
	for _, j := range c.then {
		s.submit(t, j)
	}
	for _, j := range c.then {
		s.ask(t, j)
	}
	out.waves, ok = s.waves(t)
	out.untold = s.untold()
	return out, ok
}

// preemptive builds ours of a real ResourceManager's configuration directory, with
// what it says of preemption.
func preemptive(t *testing.T, confDir string) *ourSide {
	t.Helper()
	s, err := settings.Load(settings.Sources{ConfDir: confDir})
	if err != nil {
		t.Fatal(err)
	}
	config, err := role.QueueConfig(s, false)
	if err != nil {
		t.Fatal(err)
	}
	config.Queues.Preemption.Interval = every // FairScheduler's is not a setting of ours
	c := rm.Defaults()
	c.ClusterTimestamp, c.Volatile = 1, true
	c.MinAllocation = creel.NewResource(128, 1)
	c.MaxAllocation = creel.NewResource(8192, 32)
	c.Queues, c.Placement = config.Queues, config.Placement
	m, err := rm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range twentyNodes {
		if _, err := m.RegisterNode(
			start, &rm.RegisterNode{ID: n.id, HTTPPort: 1, Resource: n.size, Version: "3.4.2"},
		); err != nil {
			t.Fatal(err)
		}
	}
	return &ourSide{m: m, now: start}
}

// beside plays a case on both sides.
func (c *tree) beside(t *testing.T, real *realSide) (theirs, mine outcome) {
	t.Helper()
	mine, _ = c.play(t, preemptive(t, real.rm.ConfDir))
	for range 4 {
		var ok bool
		theirs, ok = c.play(t, real)
		real.finish(t)
		if ok {
			if mine.untold > 0 || theirs.untold > 0 {
				t.Errorf("taken without a notice: %d by Hadoop, %d by us", theirs.untold, mine.untold)
			}
			return theirs, mine
		}
	}
	t.Skip("this machine is too busy to tell one wave from the next") // we were held up, not they
	return theirs, mine
}

// compareWave holds one wave against the other's.
func compareWave(t *testing.T, what string, theirs, mine wave, slack, sum int) {
	t.Helper()
	t.Logf("%s: Hadoop takes %-24s we %s", what, theirs, mine)
	all, worst := 0, 0
	for name := range maps.Keys(theirs.with(mine)) {
		d := theirs[name] - mine[name]
		all, worst = all+d, max(worst, d, -d)
	}
	if worst > slack || max(all, -all) > sum {
		t.Errorf("%s: Hadoop takes %q, we %q", what, theirs, mine)
	}
}

// with adds two waves.
func (w wave) with(o wave) wave {
	out := wave{}
	for _, x := range []wave{w, o} {
		for name, n := range x {
			out[name] += n
		}
	}
	return out
}

// compare holds the waves against each other, and what they come to.
func (c *preempting) compare(t *testing.T, theirs, mine outcome) {
	t.Helper()
	at := func(of []wave, i int) wave {
		if i < len(of) {
			return of[i]
		}
		return wave{}
	}
	var h, o wave
	for i := range max(len(theirs.waves), len(mine.waves)) {
		if !c.total {
			compareWave(t, fmt.Sprintf("wave %d", i+1), at(theirs.waves, i), at(mine.waves, i), c.slack, c.sum)
		}
		h, o = h.with(at(theirs.waves, i)), o.with(at(mine.waves, i))
	}
	compareWave(t, "all waves", h, o, max(c.slack, c.sum), c.sum)
}

const monitorPrefix = "yarn.resourcemanager.monitor.capacity.preemption."

// keys are lines of preemption's keys, on top of those that all cases share.
func keys(lines ...string) string {
	var b strings.Builder
	b.WriteString("\nmaximum-am-resource-percent = 1\nper-node-heartbeat.maximum-offswitch-assignments = 100" +
		"\nnode-locality-delay = 0")
	for _, l := range append([]string{
		fmt.Sprintf("monitoring_interval = %d", every.Milliseconds()),
		fmt.Sprintf("max_wait_before_kill = %d", notice.Milliseconds()),
	}, lines...) {
		b.WriteString("\n" + monitorPrefix + l)
	}
	return b.String()
}

// shares gives a tree's queues their capacities: all trees have the same queues, so
// that one ResourceManager can take one after the other. It may get x, a parent, but
// not lose it.
func shares(a, b, c, x int) string {
	out := fmt.Sprintf("\nroot.a.capacity = %d\nroot.b.capacity = %d\nroot.c.capacity = %d", a, b, c)
	queues := []string{"a", "b", "c"}
	if x > 0 {
		queues = append(queues, "x", "x.x1", "x.x2")
		out += fmt.Sprintf("\nroot.queues = a,b,c,x\nroot.x.capacity = %d\nroot.x.queues = x1,x2"+
			"\nroot.x.x1.capacity = 50\nroot.x.x2.capacity = 50", x)
	} else {
		out += "\nroot.queues = a,b,c"
	}
	for _, q := range queues {
		out += fmt.Sprintf("\nroot.%s.maximum-capacity = 100\nroot.%s.user-limit-factor = 10", q, q)
	}
	return out
}

// big is a container of which four fill a node.
var big = creel.NewResource(4096, 1)

// two are two queues of half the cluster, 40 containers each. The first has all of
// it, in two applications; the second wants it.
var two = tree{
	queues: shares(50, 50, 0, 0),
	full:   []job{{"a1", "u1", "root.a", 0, big, 50}, {"a2", "u1", "root.a", 0, big, 30}},
	then:   []job{{"b1", "u1", "root.b", 0, big, 80}},
}

// three: two queues are above their guarantees by different amounts, the third comes.
var three = tree{
	queues: shares(40, 20, 40, 0),
	full:   []job{{"a", "u1", "root.a", 0, big, 48}, {"b", "u1", "root.b", 0, big, 32}},
	then:   []job{{"c", "u1", "root.c", 0, big, 80}},
}

// deep: a queue comes that is short of what its sibling, and the queue beside their
// parent, have too much of.
var deep = tree{
	queues: shares(50, 0, 0, 50),
	full:   []job{{"x1", "u1", "root.x.x1", 0, big, 30}, {"a", "u1", "root.a", 0, big, 50}},
	then:   []job{{"x2", "u1", "root.x.x2", 0, big, 80}},
}

// within: one leaf, all of the cluster; an application of a higher priority comes.
var within = tree{
	queues: shares(100, 0, 0, 0) + "\nroot.a.minimum-user-limit-percent = 100",
	full:   []job{{"low", "u1", "root.a", 1, big, 50}, {"lower", "u1", "root.a", 0, big, 30}},
	then:   []job{{"high", "u1", "root.a", 5, big, 20}},
}

// users: one leaf, all of the cluster; a second user comes, who may have half of it.
var users = tree{
	queues: shares(100, 0, 0, 0) + "\nroot.a.minimum-user-limit-percent = 50",
	full:   []job{{"first", "u1", "root.a", 0, big, 80}},
	then:   []job{{"second", "u2", "root.a", 0, big, 80}},
}

const intra = "intra-queue-preemption."

var victimCases = []preempting{
	{"a tenth a round", two, keys("total_preemption_per_round = 0.1", "natural_termination_factor = 1"), 0, 0, false},
	{"a quarter a round", two, keys("total_preemption_per_round = 0.25", "natural_termination_factor = 1"), 0, 0, false},
	{"half ends by itself", two, keys("total_preemption_per_round = 1", "natural_termination_factor = 0.5"), 0, 0, false},
	{"a wide dead zone", two, keys("total_preemption_per_round = 0.25", "natural_termination_factor = 1",
		"max_ignored_over_capacity = 0.6"), 0, 0, false},
	{"no dead zone", two, keys("total_preemption_per_round = 0.4", "natural_termination_factor = 0.7",
		"max_ignored_over_capacity = 0"), 0, 0, false},
	{"two have too much", three, keys("total_preemption_per_round = 0.2", "natural_termination_factor = 1"), 0, 0, false},
	{"one of them keeps it", three, keys("total_preemption_per_round = 0.2", "natural_termination_factor = 1") +
		"\nroot.b.disable_preemption = true", 0, 0, false},
	{"observed only", two, keys("total_preemption_per_round = 0.2", "observe_only = true"), 0, 0, false},
	{"by priority", within, keys("total_preemption_per_round = 1", "natural_termination_factor = 1",
		intra+"enabled = true", intra+"preemption-order-policy = priority_first",
		intra+"max-allowable-limit = 0.5"), 0, 0, false},
	{"by priority, a tenth at once", within, keys("total_preemption_per_round = 1", "natural_termination_factor = 1",
		intra+"enabled = true", intra+"preemption-order-policy = priority_first",
		intra+"max-allowable-limit = 0.1"), 0, 0, false},
	// Hadoop's user limit is that of what runs and one container more, so the first
	// user keeps one; ours is that of what runs.
	{"by user limit", users, keys("total_preemption_per_round = 1", "natural_termination_factor = 1",
		intra+"enabled = true", intra+"max-allowable-limit = 0.2"), 1, 1, false},
	{"not within this leaf", users, keys("total_preemption_per_round = 1", "natural_termination_factor = 1",
		intra+"enabled = true", intra+"max-allowable-limit = 0.2") +
		"\nroot.a.intra-queue-preemption.disable_preemption = true", 0, 0, false},
	// What a round allows is shared evenly by us among all that have too much; Hadoop
	// does so level by level, and cuts what the last of its list loses.
	{"a parent's child", deep, keys("total_preemption_per_round = 0.2", "natural_termination_factor = 1"), 2, 0, false},
}

// TestVictimsOfCapacitySchedulerAreThoseOfARealResourceManager gives both the same
// queues, applications and demands, and compares wave by wave which application loses
// how many containers. One ResourceManager takes all cases one after the other.
func TestVictimsOfCapacitySchedulerAreThoseOfARealResourceManager(t *testing.T) {
	compareVictims(t, victimCases, "")
}

// cores is two, of containers of so many vcores each: 80 of 8 vcores are all that the
// cluster has.
func cores(n int64) tree {
	size := creel.NewResource(4096, n)
	return tree{
		queues: two.queues,
		full:   []job{{"a", "u1", "root.a", 0, size, 80}},
		then:   []job{{"b", "u1", "root.b", 0, size, 80}},
	}
}

// TestVictimsByDominantShareAreThoseOfARealResourceManager: of one type there is too
// much, of the other as much as is guaranteed, less, or more.
func TestVictimsByDominantShareAreThoseOfARealResourceManager(t *testing.T) {
	all := []string{"total_preemption_per_round = 0.2", "natural_termination_factor = 1"}
	strict := append(slices.Clone(all), "conservative-drf = true", "cross-queue-preemption.conservative-drf = true")
	compareVictims(t, []preempting{
		// Of the last eight Hadoop leaves one where it is; why was not found.
		{"vcores as guaranteed", cores(4), keys(all...), 1, 1, false},
		{"less vcores", cores(2), keys(all...), 0, 0, false},
		{"more vcores", cores(5), keys(all...), 1, 1, false},
		{"all vcores", cores(8), keys(all...), 0, 0, false},
		{"conservative, vcores as guaranteed", cores(4), keys(strict...), 0, 0, false},
		{"conservative, less vcores", cores(2), keys(strict...), 0, 0, false},
		// Hadoop takes half of the vcores that there are too many of in its first round, and
		// half of what is left in each that follows; we take them in one.
		{"conservative, more vcores", cores(5), keys(strict...), 0, 0, true},
	}, "\nresource-calculator = org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"+
		"\nyarn.scheduler.maximum-allocation-vcores = 32")
}

// compareVictims gives one ResourceManager, started with these lines, and ours all
// cases, one after the other.
func compareVictims(t *testing.T, cases []preempting, lines string) {
	t.Helper()
	first := cases[0]
	real := startRM(t, first.queues+first.keys+lines+
		"\nyarn.resourcemanager.scheduler.monitor.enable = true\nyarn.scheduler.maximum-allocation-mb = 8192")
	admin := yarnrpc.NewResourceManagerAdministrationProtocolClient(
		newClient(t), real.Admin, hrpc.Login{User: hadoop.OSUser(t)},
	)
	s := &realSide{rm: real, client: newClient(t), tracker: register(t, real, twentyNodes)}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rewrite(t, real, c.queues+c.keys+lines)
			if _, err := admin.RefreshQueues(t.Context(), &yarnpb.RefreshQueuesRequestProto{}); err != nil {
				t.Fatal(err)
			}
			theirs, mine := c.beside(t, s)
			c.compare(t, theirs, mine)
		})
	}
}

// fairKeys are what all cases of FairScheduler share.
var fairKeys = []string{
	"yarn.resourcemanager.scheduler.class = org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler",
	"yarn.scheduler.fair.preemption = true",
	"yarn.scheduler.fair.preemption.cluster-utilization-threshold = 0.7",
	fmt.Sprintf("yarn.scheduler.fair.waitTimeBeforeKill = %d", notice.Milliseconds()),
	fmt.Sprintf("yarn.scheduler.fair.update-interval-ms = %d", every.Milliseconds()),
	"yarn.scheduler.fair.assignmultiple = true",
	"yarn.scheduler.fair.dynamic.max.assign = false",
	"yarn.scheduler.increment-allocation-mb = 128",
	"yarn.scheduler.maximum-allocation-mb = 8192",
	"yarn.resourcemanager.placement-constraints.handler = disabled",
}

// pools is an allocation file with one line for each queue.
func pools(queues ...string) string {
	return "<?xml version=\"1.0\"?>\n<allocations>" + strings.Join(queues, "\n") +
		"<queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault></allocations>"
}

// A pool with all of the cluster, and one that comes.
var (
	fairTwo = tree{
		full: []job{{"a1", "u1", "root.a", 0, big, 80}},
		then: []job{{"b1", "u1", "root.b", 0, big, 80}},
	}
	fairIdle = tree{ // half of the cluster is free
		full: []job{{"a1", "u1", "root.a", 0, big, 40}},
		then: []job{{"b1", "u1", "root.b", 0, big, 20}},
	}
	fairThree = tree{
		full: []job{{"a1", "u1", "root.a", 0, big, 50}, {"c1", "u1", "root.c", 0, big, 30}},
		then: []job{{"b1", "u1", "root.b", 0, big, 80}},
	}
)

// asking is fairTwo of which the second asks for so many.
func asking(count int32) tree {
	return tree{full: fairTwo.full, then: []job{{"b1", "u1", "root.b", 0, big, count}}}
}

// minimum is an allocation file in which b has a minimum share.
func minimum(share string) string {
	return pools(`<queue name="a"/>`, `<queue name="b"><minResources>`+share+`</minResources>`+
		`<minSharePreemptionTimeout>1</minSharePreemptionTimeout></queue>`)
}

// TestVictimsOfFairSchedulerAreThoseOfARealResourceManager compares what applications
// lose in all: FairScheduler's rounds are not at fixed times in Hadoop's.
func TestVictimsOfFairSchedulerAreThoseOfARealResourceManager(t *testing.T) {
	const short = "<fairSharePreemptionTimeout>1</fairSharePreemptionTimeout>"
	file := filepath.Join(t.TempDir(), "fair-scheduler.xml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(pools(`<queue name="a"/>`))
	real := startRM(t, strings.Join(append(fairKeys, "yarn.scheduler.fair.allocation.file = "+file), "\n"))
	admin := yarnrpc.NewResourceManagerAdministrationProtocolClient(
		newClient(t), real.Admin, hrpc.Login{User: hadoop.OSUser(t)},
	)
	s := &realSide{rm: real, client: newClient(t), tracker: register(t, real, twentyNodes)}
	for _, c := range []struct {
		name string
		tree
		pools string
		more  int // containers that Hadoop takes more than we, or less if below 0
	}{
		{"half of its fair share", fairTwo, pools(`<queue name="a"/>`, `<queue name="b">`+short+`</queue>`), 0},
		{"all of its fair share", fairTwo, pools(`<queue name="a"/>`, `<queue name="b">`+short+
			`<fairSharePreemptionThreshold>1</fairSharePreemptionThreshold></queue>`), 0},
		// What the minimum share of a queue lacks is divided among its applications as far
		// as they ask (FSLeafQueue.updateStarvedAppsMinshare, 3.4.2). For one that asks for
		// more than that, Hadoop subtracts it from what the application asks for, where it
		// should take it instead: of 80 asked for and 10 lacking 70 are taken, as far as
		// the other queue stays at its fair share; of 30 it is 20, of 20 it is right, and
		// below that two steps come to it. We take what lacks.
		{"its minimum share, asked 80", asking(80), minimum("40960 mb, 10 vcores"), 30},
		{"its minimum share, asked 30", asking(30), minimum("40960 mb, 10 vcores"), 10},
		{"its minimum share, asked 20", asking(20), minimum("40960 mb, 10 vcores"), 0},
		{"its minimum share, asked 8", asking(8), minimum("40960 mb, 10 vcores"), 0},
		{"its minimum share, of memory", asking(20), minimum("40960 mb, 0 vcores"), 0},
		{"no timeout", fairTwo, pools(`<queue name="a"/>`, `<queue name="b"/>`), 0},
		// Half of its fair share is 13 containers and a third: Hadoop rounds down
		// (FSAppAttempt.getStarvedResourceRequests), takes 13, and the queue stays below its
		// threshold for good; we take 14.
		{"one of two keeps what it has", fairThree, pools(`<queue name="a"/>`, `<queue name="b">`+short+`</queue>`,
			`<queue name="c"><allowPreemptionFrom>false</allowPreemptionFrom></queue>`), -1},
		{"there is room", fairIdle, pools(`<queue name="a"/>`, `<queue name="b">`+short+`</queue>`), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			write(c.pools)
			if _, err := admin.RefreshQueues(t.Context(), &yarnpb.RefreshQueuesRequestProto{}); err != nil {
				t.Fatal(err)
			}
			theirs, mine := c.beside(t, s)
			h, o := wave{}, wave{}
			for _, w := range theirs.waves {
				h = h.with(w)
			}
			for _, w := range mine.waves {
				o = o.with(w)
			}
			t.Logf("Hadoop takes %q, we %q", h, o)
			o["a1"] += c.more
			if h.String() != o.String() {
				t.Errorf("Hadoop takes %q, we with %d more %q", h, c.more, o)
			}
		})
	}
}
