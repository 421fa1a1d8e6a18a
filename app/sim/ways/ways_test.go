// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/workload"
)

// small is a day that all ways play in a second.
func small(seed uint64) (Cluster, *Day) {
	c := Hadoop(20, 8)
	return c, Synthetic(seed, c.Nodes*c.Slots, 0.85, 5*time.Minute)
}

func play(t *testing.T, name string, seed uint64) *Result {
	t.Helper()
	c, d := small(seed)
	r, err := Play(name, c, d, seed)
	if err != nil || r.Broken != "" {
		t.Fatal(name, err, r.Broken)
	}
	return r
}

// Each way runs each task once, in the slots of the nodes, and ends all jobs.
func TestEachWayEndsAllJobs(t *testing.T) {
	for _, name := range Names() {
		r := play(t, name, 1)
		_, d := small(1)
		want := len(d.Jobs)
		if name == "alone" {
			want = len(d.Only(Long).Jobs)
		}
		got := 0
		for _, c := range r.Classes {
			got += len(c.Times)
		}
		if r.Unfinished != 0 || got != want || r.Utilisation() > 1 || r.Tasks == 0 {
			t.Errorf("%s: %d of %d jobs ended, %d unfinished, utilisation %v",
				name, got, want, r.Unfinished, r.Utilisation())
		}
	}
}

func TestSameSeedYieldsSameResult(t *testing.T) {
	for _, name := range Names() {
		if a, b := play(t, name, 2), play(t, name, 2); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: two runs of one seed differ", name)
		}
	}
}

// No job ends before its longest tasks could.
func TestNoJobIsFasterThanItsTasks(t *testing.T) {
	c, d := small(1)
	var least time.Duration
	for _, j := range d.Only(Five).Jobs {
		if longest := slices.Max(j.Stages[0]); least == 0 || longest < least {
			least = longest
		}
	}
	for _, name := range Names()[:len(Names())-1] {
		r, err := Play(name, c, d, 1)
		if err != nil || r.Quantile(Five, 0) < least {
			t.Errorf("%s: a job ended after %v, its longest task runs for %v, %v",
				name, r.Quantile(Five, 0), least, err)
		}
	}
}

// An idle cluster runs a job in the time of its task and of the messages and heartbeats of the way.
func TestOneTaskOnAnIdleCluster(t *testing.T) {
	c := Hadoop(4, 2)
	d := &Day{Span: time.Minute, Jobs: []Job{{Submit: time.Second, Stages: [][]time.Duration{{time.Second}}}}}
	for name, within := range map[string][2]time.Duration{
		// It is granted at a node's heartbeat and received at the AM's second one.
		"heartbeat":    {3 * time.Second, 3*time.Second + 3*c.Message},
		"yaq-c":        {3 * time.Second, 3*time.Second + 3*c.Message},
		"mercury":      {time.Second, time.Second + 3*c.Message},
		"yaq-c-prompt": {time.Second, time.Second + 3*c.Message},
		"batch":        {time.Second, time.Second + 3*c.Message},
		"push":         {time.Second, time.Second + 3*c.Message},
		"ours-random":  {time.Second, time.Second + 3*c.Message},
		"ours":         {time.Second, time.Second + 3*c.Message},
	} {
		r, err := Play(name, c, d, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Quantile(Second, 0.5); got < within[0] || got > within[1] {
			t.Errorf("%s: the job took %v, want %v", name, got, within)
		}
	}
}

// The figures of docs/bench/opportunistic.md in small: they hold at each of these seeds.
func TestWaysKeepTheirOrder(t *testing.T) {
	names := []string{"heartbeat", "push", "mercury", "yaq-c", "batch", "ours", "alone"}
	c, _ := small(1)
	table, err := Compare(names, c, func(seed uint64) *Day { _, d := small(seed); return d }, []uint64{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, seed := range table.Seeds {
		of := func(name string) *Result { return seed[slices.Index(names, name)] }
		for _, name := range names[1 : len(names)-1] {
			if a, b := of(name).Quantile(Second, 0.5), of("heartbeat").Quantile(Second, 0.5); a >= b {
				t.Errorf("seed %d: jobs of 1 s take %v with %s, %v with heartbeats", of(name).Seed, a, name, b)
			}
		}
		for _, class := range []Class{Second, Five} { // the goal is 20 %
			if a, b := of("ours").Quantile(class, 0.5), of("yaq-c").Quantile(class, 0.5); float64(a) > 0.8*float64(b) {
				t.Errorf("seed %d: jobs of %v take %v with ours, %v with yaq-c", of("ours").Seed, class, a, b)
			}
		}
		if a, b := of("ours").Quantile(Long, 0.5), of("yaq-c").Quantile(Long, 0.5); a > b {
			t.Errorf("seed %d: long jobs take %v with ours, %v with yaq-c", of("ours").Seed, a, b)
		}
		ours, _ := of("ours").Wait(0.5)
		alone, _ := of("alone").Wait(0.5)
		if float64(ours) > 1.02*float64(alone) {
			t.Errorf("seed %d: guaranteed containers wait for %v, %v without opportunistic ones",
				of("ours").Seed, ours, alone)
		}
	}
	if rows := table.Summary(); len(rows) != 1+len(names) {
		t.Errorf("the summary has %d rows", len(rows))
	}
	if rows := table.Completions(); len(rows) != 1+3*6+1 { // alone has long jobs only
		t.Errorf("the completions have %d rows", len(rows))
	}
}

func TestSyntheticDayHasItsLoad(t *testing.T) {
	d := Synthetic(7, 1000, 0.8, 4*time.Hour)
	if got := d.Load(1000); got < 0.75 || got > 0.85 {
		t.Errorf("load %v", got)
	}
	if !slices.IsSortedFunc(d.Jobs, func(a, b Job) int { return int(a.Submit - b.Submit) }) {
		t.Error("jobs are not in the order of their submissions")
	}
	for _, c := range []Class{Second, Five, Long} {
		if len(d.Only(c).Jobs) == 0 {
			t.Errorf("no job of %v", c)
		}
	}
}

func TestRecordedReducesFollowMaps(t *testing.T) {
	jobs := []workload.Job{
		{Maps: 3, Reduces: 2, Floor: time.Second, Vary: time.Second},
		{Submit: time.Hour, Maps: 1, Vary: 1},
	}
	d := Recorded(jobs, nil, time.Minute)
	if len(d.Jobs) != 1 || len(d.Jobs[0].Stages) != 2 || len(d.Jobs[0].Stages[1]) != 2 {
		t.Fatalf("%+v", d)
	}
	for _, name := range []string{"heartbeat", "batch", "ours"} {
		r, err := Play(name, Hadoop(2, 2), d, 1)
		if err != nil || r.Unfinished != 0 || r.Tasks != 5 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestUnknownWayIsRefused(t *testing.T) {
	if _, err := Play("none", Hadoop(1, 1), &Day{Span: time.Minute}, 1); err == nil {
		t.Error("no error")
	}
}

// Mercury's published gain over heartbeats, 35 % more tasks, needs short tasks only, and more of them than the cluster
// can run: a heartbeat of a node and one of an AM then pass between two tasks of a slot.
func TestMercuryGainsOnShortTasks(t *testing.T) {
	c := Hadoop(10, 8)
	for _, seed := range []uint64{1, 2} {
		d := Synthetic(seed, c.Nodes*c.Slots, 5, 5*time.Minute).Only(Five) // a quarter of that load
		tasks := map[string]float64{}
		for _, name := range []string{"heartbeat", "mercury", "ours"} {
			r, err := Play(name, c, d, seed)
			if err != nil || r.Broken != "" {
				t.Fatal(name, err, r.Broken)
			}
			tasks[name] = r.PerHour()
		}
		mercury, ours := tasks["mercury"]/tasks["heartbeat"], tasks["ours"]/tasks["heartbeat"]
		t.Logf("seed %d, load %.2f: mercury %.2f, ours %.2f times the tasks of heartbeat",
			seed, d.Load(c.Nodes*c.Slots), mercury, ours)
		if mercury < 1.25 || ours < 1.25 {
			t.Errorf("seed %d: mercury runs %.2f times the tasks of heartbeat, ours %.2f", seed, mercury, ours)
		}
	}
}
