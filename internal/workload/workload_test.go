// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/workload"
	"github.com/creelrm/creel/internal/workload/traces"
	"pgregory.net/rapid"
)

func day(t testing.TB, name string) []workload.TraceRecord {
	t.Helper()
	f, err := traces.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	recs, err := workload.ReadSWIM(f)
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

func durations(t testing.TB) *workload.Durations {
	t.Helper()
	f, err := traces.Open(traces.Yahoo)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := workload.ReadAttempts(f)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func plan() workload.Plan {
	return workload.Plan{Speed: 60, Machines: 600, BlockSize: 64 << 20, Users: 8, Seed: 1,
		Queues: []workload.Share{{Queue: "root.a", Weight: 3}, {Queue: "root.b", Weight: 1}}}
}

// The figures are those counted from the published files by other means.
func TestRecordedDaysMatchPublishedNumbers(t *testing.T) {
	for _, c := range []struct {
		name         string
		jobs, maps   int
		onlyMaps     int
		first, last  time.Duration
		oneMap, most int
	}{
		{traces.FB2009x0, 5894, 406005, 4448, 49 * time.Second, 86404 * time.Second, 5062, 112523},
		{traces.FB2009, 6638, 506098, 4833, 23 * time.Second, 86402 * time.Second, 5396, 25008},
	} {
		recs := day(t, c.name)
		p := plan()
		p.Speed = 1
		jobs, err := p.Jobs(recs)
		if err != nil {
			t.Fatal(err)
		}
		maps, onlyMaps, oneMap, most := 0, 0, 0, 0
		for _, j := range jobs {
			maps += j.Maps
			most = max(most, j.Maps)
			if j.Reduces == 0 {
				onlyMaps++
			}
			if j.Maps == 1 {
				oneMap++
			}
		}
		if len(jobs) != c.jobs || maps != c.maps || onlyMaps != c.onlyMaps || oneMap != c.oneMap || most != c.most ||
			jobs[0].Submit != c.first || jobs[len(jobs)-1].Submit != c.last {
			t.Errorf(
				"%s: %d jobs, %d maps (most %d), %d map-only, %d with one map, %v to %v",
				c.name,
				len(jobs),
				maps,
				most,
				onlyMaps,
				oneMap,
				jobs[0].Submit,
				jobs[len(jobs)-1].Submit,
			)
		}
	}
	d := durations(t)
	if got := d.Maps[len(d.Maps)/2]; got < 15*time.Second || got > 19*time.Second {
		t.Errorf("median map %v, published 17 s", got)
	}
	if got := d.Reduces[len(d.Reduces)-1]; got != 541*time.Second && got.Round(time.Second) != 541*time.Second {
		t.Errorf("longest reduce %v, published 541 s", got)
	}
}

func TestSameSeedYieldsSameDay(t *testing.T) {
	recs, d := day(t, traces.FB2009), durations(t)
	a, _ := plan().Jobs(recs)
	b, _ := plan().Jobs(recs)
	if !reflect.DeepEqual(a, b) {
		t.Fatal("the same seed gave other jobs")
	}
	other := plan()
	other.Seed = 2
	c, _ := other.Jobs(recs)
	if reflect.DeepEqual(a, c) {
		t.Fatal("another seed gave the same jobs")
	}
	// A task's duration does not depend on earlier draws.
	first := a[5].Duration(d, workload.Map, 3)
	a[9].Duration(d, workload.Reduce, 7)
	if a[5].Duration(d, workload.Map, 3) != first {
		t.Fatal("a duration changed between two looks")
	}
	inA := 0
	for _, j := range a {
		if j.Queue == "root.a" {
			inA++
		}
	}
	if share := float64(inA) / float64(len(a)); share < 0.72 || share > 0.78 {
		t.Errorf("queue a has weight 3 of 4 and got %.2f of the jobs", share)
	}
}

func TestBadTracesAreRefusedWithTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"job0\t1\t1\t2": "line 1 has 4 columns",
		"job0\t5\t5\t1\t1\t1\njob1\tx\t0\t1\t1\t1":         "line 2, column 2",
		"job0\t5\t5\t1\t1\t1\njob1\t4\t0\t1\t1\t1":         "line 2: submission at 4 s is before",
		"job0\t5\t5\t-1\t1\t1":                             "column 4",
		"job0\t99999999999\t5\t1\t1\t1":                    "later than a century",
		"job0\t1\t1\t1\t1\t1" + strings.Repeat("x", 1<<16): "too long",
	} {
		if _, err := workload.ReadSWIM(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	if _, err := workload.ReadAttempts(
		strings.NewReader("a,b\n1,2\n"),
	); err == nil ||
		!strings.Contains(err.Error(), "type") {
		t.Errorf("attempts without their columns: %v", err)
	}
}

// A slow, simple ResourceManager grants asks at random, and sometimes loses and fails containers. Whatever it does,
// the AM finishes with each task done exactly once, and never holds more than it asked for.
func TestAMFinishesEachTaskOnce(t *testing.T) {
	d := durations(t)
	propertytest.Check(t, func(t *rapid.T) {
		job := workload.Job{Index: rapid.IntRange(0, 50).Draw(t, "job"), Maps: rapid.IntRange(1, 30).Draw(t, "maps"),
			Reduces: rapid.IntRange(0, 10).Draw(t, "reduces"), Speed: 1, Seed: 7}
		conf := workload.DefaultAMConfig()
		conf.FailOneIn = rapid.SampledFrom([]int{0, 3, 10}).Draw(t, "failOneIn")
		conf.MaxAttempts = 1 << 30
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		m := workload.NewAM(job, conf, d)
		asks := map[int32]int32{}
		running := map[creel.ContainerID]workload.Start{}
		done := map[[2]int]int{}
		var next int64
		learn := func(s workload.Steps) bool {
			for _, a := range s.Asks {
				asks[a.Priority] = a.Count
			}
			for _, st := range s.Starts {
				running[st.Grant.Container] = st
			}
			for _, c := range s.Releases {
				delete(running, c)
			}
			return s.Finish
		}
		over := learn(m.Registered())
		for step := 0; !over; step++ {
			if step > 5000 {
				t.Fatalf("no end: asks %v, running %d", asks, len(running))
			}
			if rnd.IntN(40) == 0 { // the ResourceManager restarted and forgot the asks
				clear(asks)
				over = learn(m.Registered())
				continue
			}
			var grants []workload.Grant
			var ended []workload.Completion
			for _, p := range []int32{5, 10, 20} {
				for asks[p] > 0 && rnd.IntN(3) > 0 {
					asks[p]--
					next++
					grants = append(grants, workload.Grant{Container: creel.ContainerID{ID: next}, Priority: p})
				}
			}
			for id := int64(1); id <= next; id++ {
				c := creel.ContainerID{ID: id}
				st, ok := running[c]
				if !ok || rnd.IntN(3) == 0 {
					continue
				}
				exit := st.Exit
				if rnd.IntN(20) == 0 {
					exit = creel.ExitAborted
				}
				if exit == 0 {
					done[[2]int{int(st.Kind), st.Task}]++
				}
				delete(running, c)
				ended = append(ended, workload.Completion{Container: c, Exit: exit})
			}
			over = learn(m.Allocated(grants, ended))
		}
		if len(done) != job.Tasks() || len(running) != 0 {
			t.Fatalf("%d of %d tasks done, %d containers left", len(done), job.Tasks(), len(running))
		}
		for k, n := range done {
			if n != 1 {
				t.Fatalf("task %v done %d times", k, n)
			}
		}
		for p, n := range asks {
			if n != 0 {
				t.Fatalf("finished with %d still asked at priority %d", n, p)
			}
		}
	})
}

func TestATaskThatAlwaysFailsFailsTheJob(t *testing.T) {
	conf := workload.DefaultAMConfig()
	conf.FailOneIn = 1
	m := workload.NewAM(workload.Job{Maps: 1, Speed: 1}, conf, durations(t))
	s := m.Registered()
	for i := int64(1); i <= 4; i++ {
		if len(s.Asks) != 1 || s.Asks[0].Count != 1 {
			t.Fatalf("attempt %d asked %v", i, s.Asks)
		}
		want := workload.MapPriority
		if i > 1 {
			want = workload.FailedMapPriority
		}
		if s.Asks[0].Priority != want {
			t.Fatalf("attempt %d asked at priority %d", i, s.Asks[0].Priority)
		}
		c := creel.ContainerID{ID: i}
		m.Allocated([]workload.Grant{{Container: c, Priority: want}}, nil)
		s = m.Allocated(nil, []workload.Completion{{Container: c, Exit: 1}})
	}
	if !s.Finish || !s.Failed {
		t.Fatalf("after four failures: %+v", s)
	}
}

func FuzzReadSWIM(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add("job0\t49\t49\t740773\t2339561\t627471\n")
	f.Add("job0\t1\t1\t9223372036854775807\t9223372036854775807\t9223372036854775807\n")
	f.Fuzz(func(t *testing.T, s string) {
		recs, err := workload.ReadSWIM(strings.NewReader(s))
		if err != nil {
			return
		}
		p := plan()
		p.MaxTasks = 1000
		jobs, err := p.Jobs(recs)
		if err != nil || len(jobs) != len(recs) {
			t.Fatalf("%d records became %d jobs, %v", len(recs), len(jobs), err)
		}
		for _, j := range jobs {
			if j.Maps < 1 || j.Reduces < 0 || j.Maps > 1000 || j.Reduces > 1000 || j.Submit < 0 {
				t.Fatalf("job %+v", j)
			}
		}
	})
}

// An artificial day has jobs from its beginning to its end, in order, and the same jobs for the same seed; the shapes
// differ in their extreme property.
func TestMadeDaysHaveTheirShape(t *testing.T) {
	p := workload.Plan{
		To: 15 * time.Minute, Speed: 1, Machines: 30, BlockSize: 64 << 20, MaxTasks: 4000, Users: 12, Seed: 7,
		Queues: []workload.Share{{Queue: "root.a", Weight: 1}},
	}
	made := map[string][]workload.Job{}
	largest, longest := map[string]int{}, map[string]time.Duration{}
	for _, shape := range workload.Shapes() {
		jobs, err := p.Made(shape)
		again, _ := p.Made(shape)
		if err != nil || len(jobs) < 15 || !reflect.DeepEqual(jobs, again) {
			t.Fatalf("%s: %d jobs, %v", shape, len(jobs), err)
		}
		made[shape] = jobs
		for i, j := range jobs {
			if i > 0 && j.Submit < jobs[i-1].Submit || j.Submit > p.To || j.Maps < 1 {
				t.Errorf("%s: job %d at %v with %d maps", shape, i, j.Submit, j.Maps)
			}
			largest[shape], longest[shape] = max(largest[shape], j.Tasks()), max(longest[shape], j.Floor)
		}
		if last := jobs[len(jobs)-1].Submit; last < p.To-3*time.Minute-time.Second {
			t.Errorf("%s ends at %v", shape, last)
		}
	}
	if largest["tiny"] != 1 || largest["giant"] < 6*p.Machines || largest["tail"] < 20 || len(made["tiny"]) < 400 {
		t.Errorf("the largest jobs %v, %d tiny ones", largest, len(made["tiny"]))
	}
	if longest["services"] < 8*time.Minute || longest["tail"] >= time.Second {
		t.Errorf("the longest floors %v", longest)
	}
	if gap := made["bursts"][12].Submit - made["bursts"][11].Submit; gap < 118*time.Second {
		t.Errorf("a burst %v after another", gap)
	}
	if _, err := p.Made("yesterday"); err == nil {
		t.Error("a day that nobody made")
	}
}
