// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/explain"
	"pgregory.net/rapid"
)

// shares makes a FairScheduler cluster of one node, full of one application's
// containers that can be taken away one by one, and a queue per demand.
type shares struct {
	w      *world
	filler creel.AttemptID
	full   []creel.ContainerID
	apps   map[string]creel.AttemptID
}

func newShares(t testing.TB, total creel.Resource, grain creel.Resource, root queues.Queue) *shares {
	w := newWorld(t, func(c *Config) {
		c.MinAllocation, c.Increment = creel.Resource{}, creel.Resource{MemoryMB: 1, VCores: 1}
		c.MaxAllocation = total
		c.Queues.Scheduler, c.Queues.Calculator, c.Queues.ReservationsOff = queues.FairScheduler, queues.Dominant, true
		root.Name, root.Submit, root.Admin = "root", queues.ACL{All: true}, queues.ACL{All: true}
		root.Children = append([]queues.Queue{{Name: "filler", Capacity: queues.WeightOf(1)}}, root.Children...)
		c.Queues.Root = root
	})
	w.node("n", total.MemoryMB, total.VCores, "")
	s := &shares{w: w, filler: w.unmanaged("f", "root.filler"), apps: map[string]creel.AttemptID{}}
	for _, g := range w.asks(s.filler, ask(1, "*", grain.MemoryMB, grain.VCores, 1<<20)).Granted {
		s.full = append(s.full, g.ID)
	}
	w.asks(s.filler, ask(1, "*", grain.MemoryMB, grain.VCores, 0))
	return s
}

func (s *shares) wants(queue string, mb, cores int64) {
	s.apps[queue] = s.w.unmanaged("u", queue)
	if out := s.w.asks(s.apps[queue], ask(1, "*", mb, cores, 1<<20)); len(out.Granted) > 0 {
		s.w.t.Fatalf("%s found room in a full cluster", queue)
	}
}

// open frees all resources, in steps of so many filler containers.
func (s *shares) open(step int) {
	for len(s.full) > 0 {
		k := min(step, len(s.full))
		s.w.release(s.filler, s.full[:k]...)
		s.full = s.full[k:]
	}
	s.w.audit()
}

func (s *shares) tasks(queue string) int {
	v, _ := s.w.m.App(s.apps[queue].Application)
	return int(v.Containers)
}

// TestDRFPaperExample is the worked example of section 4.1 of Ghodsi et al.: 9 CPUs and 18 GB; tasks of A need 1 CPU
// and 4 GB, those of B 3 CPUs and 1 GB. Shares go 2/9 for A, 1/3 for B, 4/9 for A, 2/3 for B, 2/3 for A; A runs three
// tasks and B two. (Equal shares at the start: this scheduler serves A first.)
func TestDRFPaperExample(t *testing.T) {
	s := newShares(t, creel.Resource{MemoryMB: 18, VCores: 9}, creel.Resource{MemoryMB: 18, VCores: 9},
		queues.Queue{Policy: queues.DRF, Children: []queues.Queue{{Name: "A"}, {Name: "B"}}})
	s.wants("root.A", 4, 1)
	s.wants("root.B", 1, 3)
	s.open(1)
	var order []string
	for _, c := range s.w.m.nodes.list[0].live {
		v, _ := s.w.m.App(c.owner().app.id)
		order = append(order, v.Queue.Leaf())
	}
	if got := strings.Join(order, " "); got != "A B A B A" {
		t.Errorf("served %s", got)
	}
	if a, b := s.tasks("root.A"), s.tasks("root.B"); a != 3 || b != 2 {
		t.Errorf("A runs %d tasks and B %d, not 3 and 2", a, b)
	}
	if used := s.w.m.sched.Tree().Root().Used(); used.Memory != 14 || used.VCores != 9 {
		t.Errorf("used %v", used)
	}
}

// TestDRFWeights: twice the weight, twice the dominant share.
func TestDRFWeights(t *testing.T) {
	s := newShares(
		t,
		creel.Resource{MemoryMB: 90, VCores: 90},
		creel.Resource{MemoryMB: 90, VCores: 90},
		queues.Queue{
			Policy: queues.DRF,
			Children: []queues.Queue{
				{Name: "A", Capacity: queues.WeightOf(2)},
				{Name: "B", Capacity: queues.WeightOf(1)},
			},
		},
	)
	s.wants("root.A", 1, 1)
	s.wants("root.B", 1, 1)
	s.open(1)
	if a, b := s.tasks("root.A"), s.tasks("root.B"); a != 60 || b != 30 {
		t.Errorf("A runs %d and B %d, not 60 and 30", a, b)
	}
}

// TestHierarchicalDRFDoesNotStarve: B1 wants only CPU, B2 only memory, both
// below B; A wants only CPU. Plain recursion sums B's use: B2 takes all the
// memory, B's dominant share is 1, and A gets every CPU while B1 starves.
// Hierarchical DRF rescales B's children to the least of them and leaves B2 out
// when memory is gone, so that A and B1 share the CPUs.
func TestHierarchicalDRFDoesNotStarve(t *testing.T) {
	run := func(p queues.Policy) (a, b1, b2 int) {
		s := newShares(
			t,
			creel.Resource{MemoryMB: 100, VCores: 100},
			creel.Resource{MemoryMB: 1, VCores: 1},
			queues.Queue{
				Policy: p,
				Children: []queues.Queue{
					{Name: "A"},
					{Name: "B", Policy: p, Children: []queues.Queue{{Name: "B1"}, {Name: "B2"}}},
				},
			},
		)
		s.wants("root.A", 0, 1)
		s.wants("root.B.B1", 0, 1)
		s.wants("root.B.B2", 1, 0)
		s.open(1)
		return s.tasks("root.A"), s.tasks("root.B.B1"), s.tasks("root.B.B2")
	}
	a, b1, b2 := run(queues.DRF)
	if b1 > 10 || b2 != 100 || a+b1 != 100 {
		t.Errorf("plain recursion: A %d, B1 %d, B2 %d; the case does not show starvation", a, b1, b2)
	}
	a, b1, b2 = run(queues.HDRF)
	if b1 < 45 || b1 > 55 || b2 != 100 || a+b1 != 100 {
		t.Errorf("hierarchical: A %d, B1 %d, B2 %d; A and B1 should share the CPUs", a, b1, b2)
	}
}

type demand struct{ mb, cores int64 }

// dominant is its larger need; there is as much of either type.
func (d demand) dominant() int64 { return max(d.mb, d.cores) }

// tasksOf is how many tasks of a demand an amount of each resource runs.
func tasksOf(mb, cores int64, d demand) int64 {
	n := int64(1 << 40)
	if d.mb > 0 {
		n = min(n, mb/d.mb)
	}
	if d.cores > 0 {
		n = min(n, cores/d.cores)
	}
	return n
}

func divide(t testing.TB, total int64, ds []demand) []int64 {
	root := queues.Queue{Policy: queues.DRF}
	for i := range ds {
		root.Children = append(root.Children, queues.Queue{Name: fmt.Sprintf("q%d", i)})
	}
	s := newShares(
		t,
		creel.Resource{MemoryMB: total, VCores: total},
		creel.Resource{MemoryMB: total, VCores: total},
		root,
	)
	for i, d := range ds {
		s.wants(fmt.Sprintf("root.q%d", i), d.mb, d.cores)
	}
	s.open(1)
	out := make([]int64, len(ds))
	for i := range ds {
		out[i] = int64(s.tasks(fmt.Sprintf("root.q%d", i)))
	}
	return out
}

// TestDRFProperties holds the four properties of the paper on small instances,
// to within the one task that whole tasks cost.
func TestDRFProperties(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		const total = 240
		n := rapid.IntRange(2, 4).Draw(rt, "users")
		ds := make([]demand, n)
		for i := range ds {
			ds[i] = demand{int64(rapid.IntRange(1, 6).Draw(rt, "mb")), int64(rapid.IntRange(1, 6).Draw(rt, "cores"))}
		}
		got := divide(t, total, ds)
		// Whole tasks: when the first cannot be served any more, each other is ahead
		// of it by less than one task of its own, and may get a few that still fit.
		var usedMB, usedCores, tasks int64
		for i, d := range ds {
			usedMB, usedCores = usedMB+got[i]*d.mb, usedCores+got[i]*d.cores
			tasks += d.dominant()
		}
		for i, d := range ds {
			if int64(n)*got[i]*d.dominant()+tasks <= total {
				rt.Fatalf(
					"sharing incentive: %v runs %d tasks, %d with a part of its own",
					d,
					got[i],
					tasksOf(total/int64(n), total/int64(n), d),
				)
			}
			for j, e := range ds {
				more := 1 + (d.dominant()-1)/min(e.mb, e.cores)
				if other := tasksOf(
					got[j]*e.mb,
					got[j]*e.cores,
					d,
				); other*d.dominant() > got[i]*d.dominant()+more*e.dominant()+d.dominant() {
					rt.Fatalf("envy: %v runs %d tasks, and would run %d with what %v has", d, got[i], other, e)
				}
			}
		}
		for i, d := range ds {
			if usedMB+d.mb <= total && usedCores+d.cores <= total {
				rt.Fatalf("not Pareto efficient: one more task of %d fits", i)
			}
		}
		// A lie: the first user claims larger needs.
		lie := append([]demand(nil), ds...)
		lie[0].mb += int64(rapid.IntRange(0, 4).Draw(rt, "moreMB"))
		lie[0].cores += int64(rapid.IntRange(0, 4).Draw(rt, "moreCores"))
		lied := divide(t, total, lie)
		useful := tasksOf(lied[0]*lie[0].mb, lied[0]*lie[0].cores, ds[0])
		// The liar too may get a few more that fit where the first does not, and they are as large as claimed.
		more := int64(1)
		for _, e := range ds[1:] {
			more = max(more, 1+(e.dominant()-1)/min(lie[0].mb, lie[0].cores))
		}
		if useful*ds[0].dominant() > got[0]*ds[0].dominant()+tasks+more*lie[0].dominant() {
			rt.Fatalf(
				"a lie pays: %d useful tasks instead of %d, %v for %v among %v",
				useful,
				got[0],
				lie[0],
				ds[0],
				ds,
			)
		}
	})
}

// TestMinimumUserLimitAsDocumented is the example of CapacityScheduler's
// documentation for minimum-user-limit-percent 25: two users have 50% each,
// three 33%, four and more 25%.
func TestMinimumUserLimitAsDocumented(t *testing.T) {
	for _, c := range []struct{ users, percent int64 }{{1, 100}, {2, 50}, {3, 34}, {4, 25}, {6, 25}} {
		w := newWorld(t, func(c *Config) {
			c.Queues.Root.Children[0].MinUserPercent = 25
			c.Queues.Root.Children[0].MaxAMPercent = 1
			c.MaxAllocation = creel.Resource{MemoryMB: 1 << 20, VCores: 100}
		})
		w.node("n", 100*1024, 100, "")
		for i := range c.users {
			id := w.unmanaged(fmt.Sprintf("u%d", i), "default")
			w.asks(id, ask(1, "*", 100*1024, 1, 1)) // more than is left: it waits, and its user is active
			w.asks(id, ask(2, "*", 100*1024, 1, 1))
		}
		q, _ := w.m.Queue("default")
		// The first user's application filled the cluster, so limits are of use
		// plus one smallest container.
		for _, u := range q.Users {
			if got := u.Limit.MemoryMB / 1024; got < c.percent || got > c.percent+1 {
				t.Errorf("%d users: limit %d of 100, documented %d", c.users, got, c.percent)
			}
		}
	}
}

// TestQueueOrderAsDocumented: the queue furthest below its guarantee is served first, whatever its size.
func TestQueueOrderAsDocumented(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		leaf := func(name string, p float64) queues.Queue {
			return queues.Queue{
				Name:         name,
				Capacity:     queues.PercentOf(p),
				MaxCapacity:  queues.PercentOf(100),
				UserFactor:   10,
				MaxAMPercent: 1,
			}
		}
		c.Queues.Root.Children = []queues.Queue{leaf("small", 20), leaf("large", 80), leaf("filler", 0)}
		c.Queues.Root.Children[2].MaxApps = 1
	})
	w.node("n", 10*1024, 10, "")
	f := w.unmanaged("f", "root.filler")
	full := w.asks(f, ask(1, "*", 1024, 1, 10)).Granted
	small, large := w.unmanaged("s", "root.small"), w.unmanaged("l", "root.large")
	w.asks(small, ask(1, "*", 1024, 1, 10))
	w.asks(large, ask(1, "*", 1024, 1, 10))
	for _, g := range full {
		w.release(f, g.ID)
	}
	a, _ := w.m.Queue("root.small")
	b, _ := w.m.Queue("root.large")
	if a.Containers != 2 || b.Containers != 8 {
		t.Errorf("small has %d and large %d of 10, not 2 and 8", a.Containers, b.Containers)
	}
}

// TestSketchPutsEverythingBack: any what-if leaves the same bytes behind.
func TestSketchPutsEverythingBack(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		r := newRun(rt, t)
		for range rapid.IntRange(5, 30).Draw(rt, "steps") {
			r.step()
		}
		m := r.w.m
		before := string(m.AppendState(nil))
		s := m.Sketch()
		for range rapid.IntRange(1, 8).Draw(rt, "changes") {
			switch rapid.IntRange(0, 3).Draw(rt, "change") {
			case 0:
				for _, n := range m.nodes.list {
					if i := slices.IndexFunc(n.live, func(c *container) bool { return c != nil }); i >= 0 {
						_ = s.Remove(n.live[i].id())
						break
					}
				}
			case 1:
				if len(r.nodes) > 0 {
					_ = s.Resize(rapid.SampledFrom(r.nodes).Draw(rt, "node"), creel.Resource{MemoryMB: 4096, VCores: 4})
				}
			case 2:
				_ = s.SetMaximum(rapid.SampledFrom(leaves).Draw(rt, "queue"), creel.Resource{MemoryMB: 1024, VCores: 1})
			case 3:
				if id, ok := r.pick(); ok && len(r.nodes) > 0 {
					_ = s.Place(
						id.Application,
						rapid.SampledFrom(r.nodes).Draw(rt, "node"),
						creel.Resource{MemoryMB: 1024, VCores: 1},
					)
					_, _, _ = s.Fits(id.Application, creel.Resource{MemoryMB: 1024, VCores: 1})
				}
			}
		}
		s.Undo()
		if after := string(m.AppendState(nil)); after != before {
			rt.Fatalf("left behind:\n%s\n---\n%s", before, after)
		}
		r.after0()
	})
}

func (r *run) after0() {
	if err := r.w.m.Audit(); err != nil {
		r.t.Fatal(err)
	}
}

// TestSketchOfPreemption: taking a container away in thought makes room for
// another application, and putting it back closes it.
func TestSketchOfPreemption(t *testing.T) {
	w := newWorld(t, nil)
	w.node("n", 4096, 4, "")
	a := w.unmanaged("alice", "default")
	full := w.asks(a, ask(1, "*", 4096, 1, 1)).Granted
	b := w.unmanaged("bob", "default")
	s := w.m.Sketch()
	need := creel.Resource{MemoryMB: 2048, VCores: 1}
	if _, limit, err := s.Fits(b.Application, need); err != nil || limit != explain.LimitRoom {
		t.Fatal(limit, err)
	}
	if err := s.Remove(full[0].ID); err != nil {
		t.Fatal(err)
	}
	if n, limit, err := s.Fits(b.Application, need); err != nil || limit != explain.LimitNone || n.Host != "n" {
		t.Fatal(n, limit, err)
	}
	s.Undo()
	if _, limit, _ := s.Fits(b.Application, need); limit != explain.LimitRoom {
		t.Fatal(limit)
	}
	w.audit()
}
