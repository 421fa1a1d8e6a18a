// SPDX-License-Identifier: Apache-2.0

package member_test

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
	"github.com/creelrm/creel/policies/rebalancer/server"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/member"
	"github.com/creelrm/creel/subcluster/member/membertest"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// crowd is two real ResourceManager machines of 20 GiB each with preemption on. root.a has all of both, and an
// application of root.b asks its home and its secondary for the same ten containers, as a proxy does for asks for any
// place. All nodes have the label, "" for none.
func crowd(t *testing.T, label string) *membertest.Federation {
	f := &membertest.Federation{T: t, Store: memory.New(memory.NewState("memory", nil), time.Now)}
	for i := range 2 {
		id := creel.SubclusterID(fmt.Sprint("sc-", i+1))
		if err := f.Store.Register(t.Context(), subcluster.Member{
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
		x := &membertest.Member{ID: id, Machine: m, Label: label}
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
			x.App = creel.AttemptID{
				Application: creel.ApplicationID{ClusterTimestamp: int64(i + 1), ID: int32(n + 1)}, Attempt: 1,
			}
			x.Reply = 0
			if err := m.Submit(
				time.Now(), &rm.Submission{ID: x.App.Application, User: "alice", Queue: queue, Unmanaged: true},
			); err != nil {
				t.Fatal(err)
			}
			m.Actions(nil)
			if _, err := m.RegisterAM(time.Now(), &rm.RegisterAM{Attempt: x.App, Host: "am"}); err != nil {
				t.Fatal(err)
			}
			x.Want(t, []int32{20, 10}[n])
		}
		f.Members = append(f.Members, x)
	}
	return f
}

// live lets the members' time pass and counts the containers preempted with notice for root.b.
func live(f *membertest.Federation, d time.Duration, noticed []int) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		for i, x := range f.Members {
			x.Mu.Lock()
			x.Machine.Tick(time.Now())
			for _, a := range x.Machine.Actions(nil) {
				if p, ok := a.(rm.Preempted); ok && p.What == rm.Noticed && p.ForQueue == "root.b" {
					noticed[i]++
				}
			}
			x.Mu.Unlock()
			x.Allocate(f.T, rm.AllocateRequest{})
			x.Report(f.T, f.Store)
		}
	}
}

// rebalanced runs a leader, and the followers of each member, until stop.
func rebalanced(f *membertest.Federation, capacities bool) (stop func()) {
	ctx, cancel := context.WithCancel(f.T.Context())
	run := func(do func(context.Context) error) {
		f.Running.Go(func() {
			if err := do(ctx); err != nil {
				f.T.Error(err)
			}
		})
	}
	run((&server.Leader{
		Name: "a", Store: f.Store, Every: 2 * time.Second, Lease: 3 * time.Second, Terms: membertest.Quick,
		Capacities: capacities, Log: slog.New(slog.DiscardHandler),
	}).Run)
	for _, x := range f.Members {
		run((&member.Follower{
			ID: x.ID, Store: membertest.Cuttable{Store: f.Store, Member: x}, Turn: x.Turn, Every: time.Second, Log: slog.New(slog.DiscardHandler),
		}).Run)
	}
	return func() { cancel(); f.Running.Wait() }
}

func tree(f *membertest.Federation, text string) {
	if _, err := f.Store.PutDocument(f.T.Context(), statestore.DocumentWrite{
		Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Data: []byte(text),
	}); err != nil {
		f.T.Fatal(err)
	}
}

// Without a budget the home and the secondary each take back everything root.b asks for. With one, they take no more
// than that together: 20 GiB are root.b's of 40, and its budget is 6 in a minute; then 6 more.
func TestHomeAndSecondaryPreemptOncePerCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := crowd(t, "")
		stop := rebalanced(f, false)
		noticed := []int{0, 0}
		live(f, 10*time.Second, noticed)
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
		tree(f, document)
		noticed := []int{0, 0}
		for _, x := range f.Members {
			x.Report(t, f.Store)
		}
		stop := rebalanced(f, false)
		time.Sleep(2500 * time.Millisecond) // the first plan, and its readers
		live(f, 50*time.Second, noticed)
		if sum := noticed[0] + noticed[1]; sum != 6 {
			t.Fatalf("%v are taken of a budget of 6", noticed)
		}
		f.Members[0].Mu.Lock()
		why, _ := f.Members[0].Machine.Why(f.Members[0].App.Application)
		f.Members[0].Mu.Unlock()
		on := " preemption budget here for queue root.b is "
		if label != "" {
			on = " preemption budget here on nodes of label gpu for queue root.b is "
		}
		if !strings.Contains(why.Text, on) {
			t.Errorf("why says %q", why.Text)
		}
		live(f, 60*time.Second, noticed)
		if sum := noticed[0] + noticed[1]; sum != 12 {
			t.Fatalf("%v are taken in two intervals with a budget of 6", noticed)
		}
		// Cut off from the store: when the plan's lease is over the local keys apply, and root.b gets everything it
		// asked for.
		for _, x := range f.Members {
			x.CutOff(true)
		}
		live(f, 20*time.Second, noticed)
		if sum := noticed[0] + noticed[1]; sum != 20 {
			t.Fatalf("%v are taken where the store is away: the local keys give 20", noticed)
		}
		stop()
	})
}

// usesOf returns a queue's use in each member, in GiB.
func usesOf(f *membertest.Federation, path creel.QueuePath) (each []int64) {
	for _, x := range f.Members {
		x.Mu.Lock()
		u, _, _ := x.Machine.QueueUse(path, "")
		x.Mu.Unlock()
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
			tree(f, c.document)
			f.Members[0].Want(t, 20)
			f.Members[1].Want(t, 0)
			for _, x := range f.Members {
				x.Report(t, f.Store)
			}
			stop := rebalanced(f, c.capacities)
			noticed := []int{0, 0}
			live(f, 2*time.Minute, noticed)
			if b := usesOf(f, "root.b"); b[0] < c.least || b[0] > c.most || b[1] != 0 || noticed[1] != 0 {
				t.Errorf("%s: root.b uses %v GiB, not %d to %d; %v were taken", c.name, b, c.least, c.most, noticed)
			}
			if c.least == 10 {
				stop()
				return
			}
			x := f.Members[0]
			x.Mu.Lock()
			q, _ := x.Machine.Queue("root.b")
			x.Mu.Unlock()
			x.CutOff(true)
			load := load(f, x.ID).Find("root.b")
			if q.Planned == nil || load.Planned == nil || load.Planned.MemoryMB < 18*1024 ||
				load.Capacity.MemoryMB != 10*1024 {
				t.Errorf("in force is %+v, and told %+v", q.Planned, load)
			}
			// Cut off from the store: when the plan's lease is over the configured capacities apply.
			live(f, 10*time.Second, noticed)
			x.Mu.Lock()
			q, _ = x.Machine.Queue("root.b")
			x.Mu.Unlock()
			if q.Planned != nil {
				t.Errorf("without a plan %+v is in force", q.Planned)
			}
			stop()
		})
	}
}

// load returns a member's last reported load.
func load(f *membertest.Federation, id creel.SubclusterID) *subcluster.Load {
	records, err := f.Store.Records(f.T.Context())
	if err != nil {
		f.T.Fatal(err)
	}
	m, _ := subcluster.Build(nil, records, records.Now).Member(id)
	return &m.Load
}
