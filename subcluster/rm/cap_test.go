// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

func capOf(mb int64, version int64, until time.Time) QueueCap {
	return QueueCap{
		Queue: "root.default", Cap: creel.NewResource(mb, 100), Until: until, Version: version,
		Maximum: creel.NewResource(20480, 100), Short: creel.NewResource(2048, 2), Reason: "others hold the rest",
	}
}

func TestQueueGrowsToItsCap(t *testing.T) {
	w := newWorld(t, nil)
	w.node("n1", 16384, 16, "")
	a := w.unmanaged("alice", "default")
	w.m.SetQueueCap(w.now, capOf(3072, 1, w.now.Add(time.Minute)))
	if got := len(w.asks(a, ask(1, "*", 1024, 1, 10)).Granted); got != 3 {
		t.Fatalf("%d containers of 1 GiB under a cap of 3 GiB", got)
	}
	w.audit()
	why, _ := w.m.Why(a.Application)
	for _, part := range []string{"root.default", "3072", "of <memory:20480", "others hold the rest"} {
		if !strings.Contains(why.Text, part) {
			t.Errorf("why says %q, without %q", why.Text, part)
		}
	}
	if h := w.allocate(a, AllocateRequest{}).Headroom; h.MemoryMB != 0 {
		t.Errorf("headroom is %s at the cap", h)
	}
	w.m.SetQueueCap(w.now, capOf(5120, 2, w.now.Add(time.Minute)))
	w.m.SetQueueCap(w.now, capOf(9000, 1, w.now.Add(time.Minute))) // late: an older version
	w.pump()
	if got := len(w.allocate(a, AllocateRequest{}).Granted); got != 2 {
		t.Fatalf("%d containers more when the cap rose by 2 GiB", got)
	}
	w.m.SetQueueCap(w.now, capOf(1024, 3, w.now.Add(time.Minute))) // running containers stay
	w.audit()
	if uses, needs, _ := w.m.QueueUse("root.default", ""); uses.MemoryMB != 5120 || needs.MemoryMB != 10240 {
		t.Fatalf("uses %s, needs %s", uses, needs)
	}
	w.m.ClearQueueCap(w.now, "root.default", "")
	w.pump()
	if got := len(w.allocate(a, AllocateRequest{}).Granted); got != 5 {
		t.Fatalf("%d containers when the cap is lifted", got)
	}
	w.audit()
}

func TestACapEndsWithItsLease(t *testing.T) {
	w := newWorld(t, nil)
	w.node("n1", 16384, 16, "")
	a := w.unmanaged("alice", "default")
	w.m.SetQueueCap(w.now, capOf(4096, 1, w.now.Add(10*time.Second)))
	if got := len(w.asks(a, ask(1, "*", 1024, 1, 2)).Granted); got != 2 {
		t.Fatal(got)
	}
	w.now = w.now.Add(10 * time.Second)
	if got := len(w.asks(a, ask(1, "*", 1024, 1, 2)).Granted); got != 0 {
		t.Fatalf("%d containers after the lease", got)
	}
	if why, _ := w.m.Why(a.Application); !strings.Contains(why.Text, "was not renewed") {
		t.Errorf("why says %q", why.Text)
	}
	w.m.SetQueueCap(w.now, capOf(4096, 2, w.now.Add(10*time.Second)))
	w.pump()
	if got := len(w.allocate(a, AllocateRequest{}).Granted); got != 2 {
		t.Fatalf("%d containers when the lease is renewed", got)
	}
	w.audit()
}

// Applications that wait for their AM count as the queue's need. The AM share is a share of the cap, so with a cap
// that did not count them they would wait for ever.
func TestApplicationsInLineAreNeeded(t *testing.T) {
	w := newWorld(t, nil)
	w.node("n1", 16384, 16, "")
	w.m.SetQueueCap(w.now, capOf(1024, 1, w.now.Add(time.Minute)))
	for range 5 {
		w.submit("alice", "default", nil)
	}
	w.pump()
	uses, needs, _ := w.m.QueueUse("root.default", "")
	if uses.MemoryMB != 1024 || needs.MemoryMB != 5*1024 {
		t.Fatalf("one AM of five under the cap: uses %s, needs %s", uses, needs)
	}
	w.m.SetQueueCap(w.now, capOf(needs.MemoryMB, 2, w.now.Add(time.Minute)))
	w.pump()
	if got, _, _ := w.m.QueueUse("root.default", ""); got.MemoryMB <= uses.MemoryMB {
		t.Errorf("with all it needs it uses %s", got)
	}
	w.audit()
}

// A cap that rises step by step starts, at each step, the applications whose AMs fit.
func TestEachRiseOfACapStartsApplications(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Queues.Root.MaxAMPercent = 1
		all := queues.PercentOf(100)
		c.Queues.Root.Children = []queues.Queue{
			{Name: "default", Capacity: queues.PercentOf(5), MaxCapacity: all, UserFactor: 100},
			{Name: "other", Capacity: queues.PercentOf(95), MaxCapacity: all},
		}
	})
	w.node("n1", 16384, 16, "")
	w.m.SetQueueCap(w.now, capOf(1024, 1, w.now.Add(time.Minute)))
	for range 5 {
		w.submit("alice", "default", nil)
	}
	for mb := int64(1024); mb <= 5*1024; mb += 256 { // most steps are too small for another AM
		w.m.SetQueueCap(w.now, capOf(mb, mb, w.now.Add(time.Minute)))
		w.pump()
		if uses, _, _ := w.m.QueueUse("root.default", ""); uses.MemoryMB != mb/1024*1024 {
			t.Fatalf("under a cap of %d MB the AMs of five applications use %s", mb, uses)
		}
	}
	w.audit()
}

// Two users of a queue with a federation-wide user limit: one has the common part, the other a part of her own.
// Neither gets more, and each is shown the limit.
func TestUsersGrowToTheirCapsAndNoFurther(t *testing.T) {
	for name, scheduler := range map[string]queues.Scheduler{
		"capacity": queues.CapacityScheduler, "fair": queues.FairScheduler,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Queues.Scheduler = scheduler })
			w.node("n1", 32768, 32, "")
			a, b := w.unmanaged("alice", "default"), w.unmanaged("bob", "default")
			caps := func(each, alice int64) {
				w.m.SetUserCaps(w.now, UserCaps{
					Queue: "root.default", Limit: creel.NewResource(20480, 20),
					Each: UserCap{Cap: creel.NewResource(each, 20), Until: w.now.Add(time.Minute)},
					Users: map[string]UserCap{"alice": {
						Cap: creel.NewResource(alice, 20), Until: w.now.Add(time.Minute),
						Short: creel.NewResource(1024, 0), Reason: "others hold the rest",
					}},
				})
				w.pump()
			}
			caps(2048, 4096)
			if got := len(w.asks(a, ask(1, "*", 1024, 1, 10)).Granted); got != 4 {
				t.Fatalf("%d containers of 1 GiB for alice, who may use 4 GiB", got)
			}
			if got := len(w.asks(b, ask(1, "*", 1024, 1, 10)).Granted); got != 2 {
				t.Fatalf("%d containers of 1 GiB for bob, who may use 2 GiB as everybody", got)
			}
			w.audit()
			why, _ := w.m.Why(a.Application)
			want := "User alice may use <memory:4096, vCores:20> here of <memory:20480, vCores:20> in the federation " +
				"in queue root.default"
			if !strings.HasPrefix(why.Text, want) || !strings.Contains(why.Text, "others hold the rest") {
				t.Errorf("why says %q", why.Text)
			}
			for _, x := range []creel.AttemptID{a, b} {
				if h := w.allocate(x, AllocateRequest{}).Headroom; h.MemoryMB != 0 {
					t.Errorf("headroom is %s at the cap", h)
				}
			}
			caps(3072, 6144)
			if got := len(w.allocate(a, AllocateRequest{}).Granted); got != 2 {
				t.Fatalf("%d containers more for alice when her cap rose by 2 GiB", got)
			}
			if got := len(w.allocate(b, AllocateRequest{}).Granted); got != 1 {
				t.Fatalf("%d containers more for bob when everybody's part rose by 1 GiB", got)
			}
			uses := w.m.UserUses("root.default", "")
			slices.SortFunc(uses, func(x, y UserUse) int { return strings.Compare(x.User, y.User) })
			if len(uses) != 2 || uses[0].Uses.MemoryMB != 6144 || uses[0].Needs.MemoryMB != 10240 ||
				uses[1].Uses.MemoryMB != 3072 {
				t.Errorf("users use %+v", uses)
			}
			w.now = w.now.Add(time.Minute)
			w.asks(b, ask(1, "*", 1024, 1, 11))
			if why, _ := w.m.Why(b.Application); !strings.Contains(why.Text, "was not renewed") {
				t.Errorf("after the lease why says %q", why.Text)
			}
			w.m.ClearUserCaps(w.now, "root.default", "")
			w.pump()
			if got := len(w.allocate(b, AllocateRequest{}).Granted); got != 11 {
				t.Fatalf("%d containers for bob when the limit is lifted", got)
			}
			w.audit()
		})
	}
}

// An ask that waits for both its queue's and its user's cap delays no other ask. Checking it over and over was an
// endless loop.
func TestAskBlockedByTwoCapsEndsRound(t *testing.T) {
	w := newWorld(t, nil)
	w.node("n1", 16384, 16, "")
	a, b := w.unmanaged("alice", "default"), w.unmanaged("bob", "default")
	w.m.SetQueueCap(w.now, capOf(5632, 1, w.now.Add(time.Minute)))
	limit := func(each int64) {
		w.m.SetUserCaps(w.now, UserCaps{
			Queue: "root.default", Limit: creel.NewResource(8192, 100),
			Each: UserCap{Cap: creel.NewResource(each, 100), Until: w.now.Add(time.Minute)},
		})
	}
	limit(4608)
	if got := len(w.asks(a, ask(1, "*", 1024, 1, 3)).Granted); got != 3 {
		t.Fatalf("%d containers of 1 GiB under a user's cap of 4.5 GiB", got)
	}
	if got := len(w.asks(b, ask(1, "*", 1024, 1, 1)).Granted); got != 1 {
		t.Fatalf("%d containers of 1 GiB beside them", got)
	}
	// 1.5 GiB are left of both, of which a container of 1 GiB could have some.
	if got := len(w.asks(a, ask(2, "*", 2048, 1, 2)).Granted); got != 0 {
		t.Fatalf("%d containers of 2 GiB that neither cap admits", got)
	}
	w.node("n2", 16384, 16, "") // room: all that waits is tried
	w.pump()
	w.audit()
	if got := len(w.asks(b, ask(1, "*", 1024, 1, 1)).Granted); got != 1 {
		t.Fatalf("%d containers of 1 GiB that both caps admit", got)
	}
	w.m.SetQueueCap(w.now, capOf(9000, 2, w.now.Add(time.Minute)))
	limit(5120)
	w.pump()
	if got := len(w.allocate(a, AllocateRequest{}).Granted); got != 1 {
		t.Fatalf("%d containers more when both parts rose", got)
	}
	w.audit()
}

// A cap on nodes of a label binds only there, whatever asks use these nodes, including borrowing asks without a
// label. The why document shows it, and held-back asks get more when the cap rises.
func TestLabelCapBinds(t *testing.T) {
	for _, exclusive := range []bool{true, false} {
		w := newWorld(t, func(c *Config) {
			c.Labels = LabelsByCall
			all := queues.PercentOf(100)
			share := []queues.LabelShare{{Label: "gpu", Capacity: all, MaxCapacity: all}}
			c.Queues.Root.Children = []queues.Queue{{Name: "default", Capacity: all, MaxCapacity: all,
				UserFactor: 100, Labels: []string{"gpu"}, Shares: share}}
			c.Queues.Root.Labels = []string{"*"}
		})
		if err := w.m.AddLabels(w.now, []Label{{Name: "gpu", Exclusive: exclusive}}); err != nil {
			t.Fatal(err)
		}
		w.pump()
		cap := func(mb, version int64) {
			c := capOf(mb, version, w.now.Add(time.Minute))
			c.Label = "gpu"
			w.m.SetQueueCap(w.now, c)
			w.pump()
		}
		cap(3072, 1) // no node has the label yet
		n := w.node("n1", 16384, 16, "")
		if err := w.m.ReplaceLabels(w.now, []NodeLabels{{n, []string{"gpu"}}}, false); err != nil {
			t.Fatal(err)
		}
		w.pump()
		a := w.unmanaged("alice", "default")
		labelled := ask(1, "*", 1024, 1, 10)
		if exclusive {
			labelled.Label = LabelExpression{"gpu", true}
		}
		if got := len(w.asks(a, labelled).Granted); got != 3 {
			t.Fatalf("exclusive %v: %d containers of 1 GiB under a cap of 3 GiB", exclusive, got)
		}
		uses, needs, has := w.m.QueueUse("root.default", "gpu")
		if want := int64(10240); uses.MemoryMB != 3072 || exclusive && needs.MemoryMB != want || !has {
			t.Errorf("exclusive %v: it uses %s there and needs %s", exclusive, uses, needs)
		}
		if why, _ := w.m.Why(a.Application); exclusive && !(strings.Contains(why.Text, "On the nodes of label gpu") &&
			strings.Contains(why.Text, "of <memory:20480")) {
			t.Errorf("why says %q", why.Text)
		}
		cap(5120, 2)
		if got := len(w.allocate(a, AllocateRequest{}).Granted); got != 2 {
			t.Fatalf("exclusive %v: %d containers more when the cap rose by 2 GiB", exclusive, got)
		}
		w.audit()
		w.m.ClearQueueCap(w.now, "root.default", "gpu")
		w.pump()
		if got := len(w.allocate(a, AllocateRequest{}).Granted); got != 5 {
			t.Fatalf("exclusive %v: %d containers when the cap is lifted", exclusive, got)
		}
		w.audit()
	}
}
