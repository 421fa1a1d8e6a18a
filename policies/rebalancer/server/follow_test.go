// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// crowd is two real ResourceManager machines of 20 GiB each with preemption on. root.a has all of both, and an
// application of root.b asks its home and its secondary for the same ten containers, as a proxy does for asks for any
// place. All nodes have the label, "" for none.
func crowd(t *testing.T, label string) *federation {
	f := &federation{t: t, store: statestore.NewMemory(statestore.NewState("memory", nil), time.Now)}
	for i := range 2 {
		id := creel.SubclusterID(fmt.Sprint("sc-", i+1))
		if err := f.store.Register(t.Context(), subcluster.Member{
			ID: id, Epoch: 1, Lease: time.Minute, Version: "creel test",
			Addresses: subcluster.Addresses{Client: "127.0.0.1:1", Scheduler: "127.0.0.1:2", Web: "127.0.0.1:3"},
		}); err != nil {
			t.Fatal(err)
		}
		cfg := rm.Defaults()
		cfg.Volatile, cfg.ClusterTimestamp = true, int64(i+1)
		cfg.NodeExpiry, cfg.AMExpiry, cfg.ContainerExpiry = 0, 0, 0
		cfg.Queues.Preemption = queues.Preemption{
			On: true, Interval: time.Second, Wait: 2 * time.Second, PerRound: 1, IgnoredOver: 0.1, Termination: 1,
		}
		cfg.Labels, cfg.Queues.Root.Labels, cfg.Queues.Root.Children = rm.LabelsByCall, []string{"*"}, nil
		for _, name := range []string{"a", "b"} {
			q := queues.Queue{Name: name, Capacity: queues.WeightOf(1), UserFactor: -1, MaxAMPercent: 1}
			if label != "" {
				q.Labels, q.Shares = []string{label}, []queues.LabelShare{{Label: label, Capacity: queues.WeightOf(1)}}
			}
			cfg.Queues.Root.Children = append(cfg.Queues.Root.Children, q)
		}
		m, err := rm.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		x := &member{id: id, m: m, label: label}
		if label != "" {
			if err := m.AddLabels(time.Now(), []rm.Label{{Name: label, Exclusive: true}}); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 20 {
			node := creel.NodeID{Host: fmt.Sprint(id, n), Port: 1}
			if _, err = m.RegisterNode(
				time.Now(), &rm.RegisterNode{ID: node, Resource: creel.NewResource(1024, 1)},
			); err != nil {
				t.Fatal(err)
			}
			if label == "" {
				continue
			}
			if err := m.ReplaceLabels(time.Now(), []rm.NodeLabels{{Node: node, Labels: []string{label}}}, false); err != nil {
				t.Fatal(err)
			}
		}
		for n, queue := range []string{"root.a", "root.b"} {
			x.app = creel.AttemptID{
				Application: creel.ApplicationID{ClusterTimestamp: int64(i + 1), ID: int32(n + 1)}, Attempt: 1,
			}
			x.reply = 0
			if err := m.Submit(
				time.Now(), &rm.Submission{ID: x.app.Application, User: "alice", Queue: queue, Unmanaged: true},
			); err != nil {
				t.Fatal(err)
			}
			m.Actions(nil)
			if _, err := m.RegisterAM(time.Now(), &rm.RegisterAM{Attempt: x.app, Host: "am"}); err != nil {
				t.Fatal(err)
			}
			x.want(t, []int32{20, 10}[n])
		}
		f.members = append(f.members, x)
	}
	return f
}

// live lets the members' time pass and counts the containers preempted with notice for root.b.
func (f *federation) live(d time.Duration, noticed []int) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		for i, x := range f.members {
			x.mu.Lock()
			x.m.Tick(time.Now())
			for _, a := range x.m.Actions(nil) {
				if p, ok := a.(rm.Preempted); ok && p.What == rm.Noticed && p.ForQueue == "root.b" {
					noticed[i]++
				}
			}
			x.mu.Unlock()
			x.allocate(f.t, rm.AllocateRequest{})
			x.report(f.t, f.store)
		}
	}
}

// rebalanced runs a leader, and the followers of each member, until stop.
func (f *federation) rebalanced(capacities bool) (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	run := func(do func(context.Context) error) {
		f.wg.Go(func() {
			if err := do(ctx); err != nil {
				f.t.Error(err)
			}
		})
	}
	run((&Leader{
		Name: "a", Store: f.store, Every: 2 * time.Second, Lease: 3 * time.Second, Terms: quick,
		Capacities: capacities, Log: slog.New(slog.DiscardHandler),
	}).Run)
	for _, x := range f.members {
		run((&Follower{
			ID: x.id, Store: cuttable{f.store, x}, Turn: x.turn, Every: time.Second, Log: slog.New(slog.DiscardHandler),
		}).Run)
	}
	return func() { cancel(); f.wg.Wait() }
}

func (f *federation) tree(text string) {
	if _, err := f.store.PutDocument(f.t.Context(), statestore.DocumentWrite{
		Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Data: []byte(text),
	}); err != nil {
		f.t.Fatal(err)
	}
}

// Without a budget the home and the secondary each take back everything root.b asks for. With one, they take no more
// than that together: 20 GiB are root.b's of 40, and its budget is 6 in a minute; then 6 more.
func TestHomeAndSecondaryPreemptOncePerCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := crowd(t, "")
		stop := f.rebalanced(false)
		noticed := []int{0, 0}
		f.live(10*time.Second, noticed)
		stop()
		if noticed[0] != 10 || noticed[1] != 10 {
			t.Fatalf("without a budget %v are taken, not 10 in each", noticed)
		}
	})
	for label, document := range map[string]string{
		"":    `{"queues":[{"queue":"root.b","preemption":{"memory":6144}}]}`,
		"gpu": `{"queues":[{"queue":"root.b","labels":{"gpu":{"preemption":{"memory":6144}}}}]}`,
	} {
		t.Run(label, func(t *testing.T) { keepsToTheBudget(t, label, document) })
	}
}

// keepsToTheBudget makes a queue with a budget on nodes of a label wait in two members.
func keepsToTheBudget(t *testing.T, label, document string) {
	synctest.Test(t, func(t *testing.T) {
		f := crowd(t, label)
		// They begin before an interval does, in which they could have taken something.
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute - 3*time.Second)))
		f.tree(document)
		noticed := []int{0, 0}
		for _, x := range f.members {
			x.report(t, f.store)
		}
		stop := f.rebalanced(false)
		time.Sleep(2500 * time.Millisecond) // the first plan, and its readers
		f.live(50*time.Second, noticed)
		if sum := noticed[0] + noticed[1]; sum != 6 {
			t.Fatalf("%v are taken of a budget of 6", noticed)
		}
		f.members[0].mu.Lock()
		why, _ := f.members[0].m.Why(f.members[0].app.Application)
		f.members[0].mu.Unlock()
		on := " preemption budget here for queue root.b is "
		if label != "" {
			on = " preemption budget here on nodes of label gpu for queue root.b is "
		}
		if !strings.Contains(why.Text, on) {
			t.Errorf("why says %q", why.Text)
		}
		f.live(60*time.Second, noticed)
		if sum := noticed[0] + noticed[1]; sum != 12 {
			t.Fatalf("%v are taken in two intervals with a budget of 6", noticed)
		}
		// Cut off from the store: when the plan's lease is over the local keys apply, and root.b gets everything it
		// asked for.
		for _, x := range f.members {
			x.mu.Lock()
			x.cut = true
			x.mu.Unlock()
		}
		f.live(20*time.Second, noticed)
		if sum := noticed[0] + noticed[1]; sum != 20 {
			t.Fatalf("%v are taken where the store is away: the local keys give 20", noticed)
		}
		stop()
	})
}

// A ResourceManager that was started in the middle of an interval, with applications of the previous epoch, takes
// nothing until the next: the amount taken before is not known.
func TestBudgetIsNotRespentAfterRestart(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)
	plan := &subcluster.Plan{At: now, LeaseMS: 30000, Preemption: []subcluster.PreemptionBudget{{
		Queue: "root.b", Begins: now.Truncate(time.Minute), Ends: now.Truncate(time.Minute).Add(time.Minute),
		Members: []subcluster.PreemptionMember{{Member: "sc-1", Share: creel.NewResource(1024, 1)}},
	}}}
	for _, c := range []struct {
		recovers bool
		first    time.Time
		want     int64
	}{{true, now, 0}, {true, now.Add(-time.Hour), 1024}, {false, now, 1024}} {
		k := &Follower{ID: "sc-1", recovers: c.recovers, first: c.first}
		if got := k.budgets(plan, now, now)[0]; got.Share.MemoryMB != c.want || !got.Until.Equal(now.Add(30*time.Second)) {
			t.Errorf("recovers %t, first look %s: %+v", c.recovers, c.first, got)
		}
	}
}

// usesOf returns a queue's use in each member, in GiB.
func (f *federation) usesOf(path creel.QueuePath) (each []int64) {
	for _, x := range f.members {
		x.mu.Lock()
		u, _, _ := x.m.QueueUse(path, "")
		x.mu.Unlock()
		each = append(each, u.MemoryMB/1024)
	}
	return each
}

// root.b is guaranteed half of the federation, and all its asks wait in one of two members, where root.a has
// everything. By its configuration that member guarantees it half of itself, which is half of its guarantee. By the
// plan's capacities it gets its guarantee, less the tenth by which root.a may exceed its part before it loses any.
// root.a, which has its own half in the other member, loses nothing there.
func TestQueueReachesFederationGuaranteeInOneMember(t *testing.T) {
	for _, c := range []struct {
		name        string
		capacities  bool
		document    string
		least, most int64
	}{
		{"the plan's", true, `{"queues":[{"queue":"root.b","guarantee":"50%"}]}`, 18, 20},
		{"a setting says none", false, `{"queues":[{"queue":"root.b","guarantee":"50%"}]}`, 10, 11},
		{"a tree that says nothing of it", true, `{"queues":[{"queue":"root.b","maximum":"90%"}]}`, 10, 11},
		{
			"queues that do not follow", true,
			`{"queues":[{"queue":"root.a","guarantee":"50%"},{"queue":"root.b","optout":true}]}`, 10, 11,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := crowd(t, "")
			f.tree(c.document)
			f.members[0].want(t, 20)
			f.members[1].want(t, 0)
			for _, x := range f.members {
				x.report(t, f.store)
			}
			stop := f.rebalanced(c.capacities)
			noticed := []int{0, 0}
			f.live(2*time.Minute, noticed)
			if b := f.usesOf("root.b"); b[0] < c.least || b[0] > c.most || b[1] != 0 || noticed[1] != 0 {
				t.Errorf("%s: root.b uses %v GiB, not %d to %d; %v were taken", c.name, b, c.least, c.most, noticed)
			}
			if c.least == 10 {
				stop()
				return
			}
			x := f.members[0]
			x.mu.Lock()
			q, _ := x.m.Queue("root.b")
			x.cut = true
			x.mu.Unlock()
			load := f.load(x.id).Find("root.b")
			if q.Planned == nil || load.Planned == nil || load.Planned.MemoryMB < 18*1024 ||
				load.Capacity.MemoryMB != 10*1024 {
				t.Errorf("in force is %+v, and told %+v", q.Planned, load)
			}
			// Cut off from the store: when the plan's lease is over the configured capacities apply.
			f.live(10*time.Second, noticed)
			x.mu.Lock()
			q, _ = x.m.Queue("root.b")
			x.mu.Unlock()
			if q.Planned != nil {
				t.Errorf("without a plan %+v is in force", q.Planned)
			}
			stop()
		})
	}
}

// load returns a member's last reported load.
func (f *federation) load(id creel.SubclusterID) *subcluster.Load {
	records, err := f.store.Records(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	m, _ := subcluster.Build(nil, records, records.Now).Member(id)
	return &m.Load
}
