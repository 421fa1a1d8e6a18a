// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"pgregory.net/rapid"
)

func atMost(n int) queues.Maximum { return queues.Maximum{Set: true, Most: n} }

// limited returns a world with two leaves and a node with a long queue. limit sets the maxima of root and the leaves.
func limited(t *testing.T, limit func(root, a, b *queues.Queue)) (w *world, node creel.NodeID) {
	w = newWorld(t, func(c *Config) {
		opportune(c)
		c.Queues.Root.Children = []queues.Queue{
			{Name: "a", Capacity: queues.PercentOf(50)}, {Name: "b", Capacity: queues.PercentOf(50)},
		}
		limit(&c.Queues.Root, &c.Queues.Root.Children[0], &c.Queues.Root.Children[1])
	})
	node = w.node("n1", 65536, 64, "")
	w.queue(node, 0, 1000)
	return w, node
}

func (w *world) opportunisticIn(queue string) int32 {
	v, _ := w.m.Queue(queue)
	return v.OpportunisticContainers
}

// A queue gets no more opportunistic containers than its maximum. The next ask gets one when one has ended.
func TestQueueMaximumHoldsOpportunisticContainers(t *testing.T) {
	w, _ := limited(t, func(_, a, _ *queues.Queue) { a.Opportunistic.All = atMost(3) })
	first, second, free := w.unmanaged("u", "a"), w.unmanaged("v", "a"), w.unmanaged("u", "b")
	got := w.asks(first, opportuneAsk(1, 2)).Granted
	if n := len(w.asks(second, opportuneAsk(1, 5)).Granted); len(got) != 2 || n != 1 {
		t.Errorf("granted %d and %d, want 2 and 1", len(got), n)
	}
	if n := len(w.asks(free, opportuneAsk(1, 5)).Granted); n != 5 {
		t.Errorf("another queue got %d, want 5", n)
	}
	const want = "It asks for 4 opportunistic containers, but queue root.a has its maximum of 3."
	if y, _ := w.m.Why(second.Application); y.Text != want {
		t.Errorf("why: %s", y.Text)
	}
	v := OpportunisticOf(w.m, second.Application)
	if v.Held == nil || v.Held.String() != "queue root.a has its maximum of 3" {
		t.Errorf("held by %v", v.Held)
	}
	w.release(first, got[0].ID)
	if n := len(w.allocate(second, AllocateRequest{}).Granted); n != 1 || w.opportunisticIn("a") != 3 {
		t.Errorf("after an end %d granted, %d in the queue", n, w.opportunisticIn("a"))
	}
	w.audit()
}

// The maximum of each user counts the user's applications in the queue and below it.
func TestUserMaximumHoldsOpportunisticContainers(t *testing.T) {
	w, _ := limited(t, func(root, _, b *queues.Queue) {
		root.Opportunistic.EachUser, b.Opportunistic.EachUser = atMost(4), atMost(0)
	})
	first, second, other := w.unmanaged("u", "a"), w.unmanaged("u", "a"), w.unmanaged("v", "a")
	none := w.unmanaged("v", "b")
	for _, k := range []struct {
		id   creel.AttemptID
		want int
	}{{first, 3}, {second, 1}, {other, 3}, {none, 0}} {
		if n := len(w.asks(k.id, opportuneAsk(1, 3)).Granted); n != k.want {
			t.Errorf("%s got %d, want %d", k.id, n, k.want)
		}
	}
	const want = "user u has the maximum of 4 in queue root"
	if v := OpportunisticOf(w.m, second.Application); v.Held == nil || v.Held.String() != want {
		t.Errorf("held by %v", v.Held)
	}
	w.audit()
}

// A NodeManager that places containers gets no more nodes than the limit leaves containers. One beyond the limit is
// refused.
func TestMaximumHoldsPlacedContainers(t *testing.T) {
	w, n := limited(t, func(_, a, _ *queues.Queue) { a.Opportunistic.All = atMost(1) })
	p := newRemote(w, w.unmanaged("u", "a"))
	if nodes := p.terms().Nodes; len(nodes) != 1 {
		t.Fatalf("the terms have the nodes %v", nodes)
	}
	k, over := p.on(n), p.on(n)
	w.allocate(p.am, AllocateRequest{Placed: []PlacedContainer{k, over}})
	out := w.allocate(p.am, AllocateRequest{})
	if len(out.Completed) != 1 || out.Completed[0].ID != over.ID ||
		!strings.Contains(out.Completed[0].Diagnostics, "queue root.a has its maximum of 1 opportunistic containers") {
		t.Errorf("completed %+v", out.Completed)
	}
	if list := LeastLoaded(w.m, p.am); len(list) != 0 {
		t.Errorf("a full queue gets the nodes %v", list)
	}
	const want = "It asks for 3 opportunistic containers, but queue root.a has its maximum of 1."
	w.allocate(p.am, AllocateRequest{Unplaced: 3})
	if y, _ := w.m.Why(p.am.Application); y.Text != want || OpportunisticDemand(w.m, "root") != 3 {
		t.Errorf("why: %s, with a demand of %d", y.Text, OpportunisticDemand(w.m, "root"))
	}
	if w.allocate(p.am, AllocateRequest{}); OpportunisticDemand(w.m, "root") != 0 {
		t.Errorf("a demand of %d, and nothing is left to place", OpportunisticDemand(w.m, "root"))
	}
	w.allocate(p.am, AllocateRequest{Release: []creel.ContainerID{k.ID}})
	if list := LeastLoaded(w.m, p.am); len(list) != 1 {
		t.Errorf("after the end: %v", list)
	}
	w.audit()
}

// Whatever is asked, placed, ended, moved and reloaded, a call grants nothing beyond a maximum.
func TestMaximaHoldInDrawnRuns(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		spec := func() queues.Spec {
			s := queues.Default()
			s.Root.Children = []queues.Queue{
				{Name: "a", Capacity: queues.PercentOf(50)}, {Name: "b", Capacity: queues.PercentOf(50)},
			}
			for _, q := range []*queues.Queue{&s.Root, &s.Root.Children[0], &s.Root.Children[1]} {
				if rapid.Bool().Draw(rt, "limits") {
					q.Opportunistic.All = atMost(rapid.IntRange(0, 8).Draw(rt, "most"))
					q.Opportunistic.EachUser = atMost(rapid.IntRange(0, 5).Draw(rt, "most of a user"))
				}
			}
			return s
		}
		w := newWorld(t, func(c *Config) { opportune(c); c.Queues = spec() })
		n := w.node("n1", 1<<20, 1<<10, "")
		w.queue(n, 0, 1000)
		ams := map[creel.AttemptID]string{}
		for _, at := range []string{"u a", "u b", "v a", "v b", "u a"} {
			user, queue, _ := strings.Cut(at, " ")
			ams[w.unmanaged(user, queue)] = user
		}
		ids := slices.SortedFunc(maps.Keys(ams), func(a, b creel.AttemptID) int {
			return a.Application.Compare(b.Application)
		})
		var live []creel.ContainerID
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			id := rapid.SampledFrom(ids).Draw(rt, "attempt")
			switch rapid.SampledFrom([]string{"ask", "ask", "place", "end", "move", "reload"}).Draw(rt, "step") {
			case "ask":
				room, _ := w.m.opportunistic.room(w.m.apps.byID[id.Application])
				out := w.asks(id, opportuneAsk(1, rapid.Int32Range(0, 6).Draw(rt, "count")))
				if len(out.Granted) > room {
					rt.Fatalf("%d granted, room for %d", len(out.Granted), room)
				}
				for _, g := range out.Granted {
					live = append(live, g.ID)
				}
			case "place":
				room, _ := w.m.opportunistic.room(w.m.apps.byID[id.Application])
				before, _ := w.m.Opportunistic()
				p := newRemote(w, id)
				var list []PlacedContainer
				for range rapid.IntRange(1, 4).Draw(rt, "placed") {
					list = append(list, p.on(n))
				}
				w.allocate(id, AllocateRequest{Placed: list})
				if after, _ := w.m.Opportunistic(); after.Placed-before.Placed != int64(min(len(list), room)) {
					rt.Fatalf("%d of %d taken, room for %d", after.Placed-before.Placed, len(list), room)
				}
			case "end":
				for _, c := range live {
					if c.Attempt == id {
						w.release(id, c)
					}
				}
				live = slices.DeleteFunc(live, func(c creel.ContainerID) bool { return c.Attempt == id })
			case "move":
				_ = w.m.Move(w.now, id.Application, rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "to"))
			case "reload":
				if err := w.m.ReloadQueues(w.now, spec()); err != nil {
					rt.Fatal(err)
				}
			}
			w.audit()
		}
	})
}
