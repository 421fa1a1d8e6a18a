// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// member is a real ResourceManager machine with one node and one application
// that wants containers, and its keeper over a real store.
type member struct {
	loads  codec.Loads
	id     creel.SubclusterID
	mu     sync.Mutex
	m      *rm.Machine
	app    creel.AttemptID
	reply  int32
	label  string // of the nodes that it asks for
	keeper *Keeper
	stop   context.CancelFunc
	cut    bool         // it does not reach the store
	slept  atomic.Int64 // ns for which its machine was suspended, by the wall clock alone
}

type federation struct {
	t       *testing.T
	store   *statestore.Memory
	members []*member
	wg      sync.WaitGroup
}

func (x *member) turn(_ context.Context, f func(m *rm.Machine, now time.Time)) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	f(x.m, time.Now())
	return nil
}

// cuttable is the store as a member reaches it.
type cuttable struct {
	*statestore.Memory
	x *member
}

func (c cuttable) refused() error {
	c.x.mu.Lock()
	defer c.x.mu.Unlock()
	if c.x.cut {
		return statestore.Unavailable("cut off", time.Second)
	}
	return nil
}

func (c cuttable) Documents(ctx context.Context, class string) (statestore.DocumentSet, error) {
	if err := c.refused(); err != nil {
		return statestore.DocumentSet{}, err
	}
	return c.Memory.Documents(ctx, class)
}

func (c cuttable) DocumentsSince(
	ctx context.Context, class string, before statestore.DocumentSet,
) (statestore.DocumentSet, error) {
	if err := c.refused(); err != nil {
		return statestore.DocumentSet{}, err
	}
	return c.Memory.DocumentsSince(ctx, class, before)
}

func newFederation(t *testing.T, n int, maximumMB int64, terms escrow.Terms) *federation {
	f := &federation{t: t, store: statestore.NewMemory(statestore.NewState("memory", nil), time.Now)}
	f.bound(0, maximumMB)
	for i := range n {
		id := creel.SubclusterID(fmt.Sprint("sc-", i+1))
		err := f.store.Register(t.Context(), subcluster.Member{
			ID: id, Epoch: 1, Lease: time.Minute, Version: "creel test",
			Addresses: subcluster.Addresses{Client: "127.0.0.1:1", Scheduler: "127.0.0.1:2", Web: "127.0.0.1:3"},
		})
		if err != nil {
			t.Fatal(err)
		}
		cfg := rm.Defaults()
		cfg.Volatile, cfg.ClusterTimestamp = true, int64(i+1)
		cfg.Labels, cfg.Queues.Root.Labels = rm.LabelsByCall, []string{"*"}
		for i := range cfg.Queues.Root.Children { // all of the nodes of label gpu, where there are some
			q, all := &cfg.Queues.Root.Children[i], queues.PercentOf(100)
			q.Labels, q.Shares = []string{"gpu"}, []queues.LabelShare{{Label: "gpu", Capacity: all, MaxCapacity: all}}
		}
		m, err := rm.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		x := &member{id: id, m: m}
		_, err = m.RegisterNode(time.Now(), &rm.RegisterNode{
			ID: creel.NodeID{Host: string(id), Port: 1}, Resource: creel.NewResource(65536, 64),
		})
		if err != nil {
			t.Fatal(err)
		}
		x.app = creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: int64(i + 1), ID: 1}, Attempt: 1}
		err = m.Submit(
			time.Now(),
			&rm.Submission{ID: x.app.Application, User: "alice", Queue: "default", Unmanaged: true},
		)
		if err != nil {
			t.Fatal(err)
		}
		m.Actions(nil)
		if _, err := m.RegisterAM(time.Now(), &rm.RegisterAM{Attempt: x.app, Host: "am"}); err != nil {
			t.Fatal(err)
		}
		x.keeper = &Keeper{
			ID: id, Epoch: 1, Store: cuttable{f.store, x}, Turn: x.turn, Every: 100 * time.Millisecond, Terms: terms,
			Log: slog.New(slog.DiscardHandler),
		}
		x.keeper.Clock.Read = func() time.Time {
			if slept := time.Duration(x.slept.Load()); slept > 0 {
				return time.Now().Round(0).Add(slept)
			}
			return time.Now()
		}
		ctx, cancel := context.WithCancel(t.Context())
		x.stop = cancel
		f.wg.Go(func() {
			if err := x.keeper.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		f.members = append(f.members, x)
	}
	return f
}

// bound writes the federation's maximum of root.default.
func (f *federation) bound(expect, mb int64) int64 {
	f.t.Helper()
	d, err := f.store.PutDocument(f.t.Context(), statestore.DocumentWrite{
		Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Expect: expect,
		Data: fmt.Appendf(nil, `{"queues":[{"queue":"root.default","maximum":{"memory":%d}}]}`, mb),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return d.Version
}

// want sets how many containers of 1 GiB a member's application asks for.
func (x *member) want(t *testing.T, n int32) {
	t.Helper()
	x.allocate(t, rm.AllocateRequest{Asks: []rm.Ask{{
		Priority: 1, ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: n,
		Label: rm.LabelExpression{Text: x.label, Given: x.label != ""},
	}}})
}

func (x *member) allocate(t *testing.T, r rm.AllocateRequest) *rm.Answer {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	r.ResponseID = x.reply
	a, err := x.m.Allocate(time.Now(), x.app, &r)
	if err != nil {
		t.Fatal(err)
	}
	x.reply = a.ResponseID
	return a
}

// uses of all members, in GiB.
func (f *federation) uses() (each []int64, sum int64) {
	for _, x := range f.members {
		x.mu.Lock()
		u, _, _ := x.m.QueueUse("root.default", "")
		x.mu.Unlock()
		each = append(each, u.MemoryMB/1024)
		sum += u.MemoryMB / 1024
	}
	return each, sum
}

// pass lets time pass and compares the sum with the maximum all the while.
func (f *federation) pass(d time.Duration, maximum int64) {
	f.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if each, sum := f.uses(); sum > maximum {
			f.t.Fatalf("members use %v GiB, more than %d together", each, maximum)
		}
	}
}

func (f *federation) close() {
	for _, x := range f.members {
		x.stop()
	}
	f.wg.Wait()
}

var quick = escrow.Terms{Lease: 3 * time.Second, Linger: 10 * time.Second, Margin: 100 * time.Millisecond}

func TestAMaximumHoldsForAllMembersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 3, 12*1024, quick)
		defer f.close()
		f.pass(time.Second, 12)
		f.members[0].want(t, 40)
		f.pass(2*time.Second, 12)
		if each, _ := f.uses(); each[0] != 12 {
			t.Fatalf("the only one that wants uses %v of 12 GiB", each)
		}
		// Others want some too: resources are freed as containers complete, down to an even split.
		f.members[1].want(t, 40)
		f.members[2].want(t, 40)
		f.pass(time.Second, 12)
		for i := range 11 {
			id := creel.NewContainerID(f.members[0].app, 0, int64(i+1))
			f.members[0].allocate(t, rm.AllocateRequest{Release: []creel.ContainerID{id}})
			f.pass(time.Second, 12)
		}
		f.pass(2*time.Second, 12)
		if each, sum := f.uses(); each[0] != 4 || each[1] != 4 || each[2] != 4 {
			t.Fatalf("members that all want more use %v GiB, %d in all", each, sum)
		}
	})
}

func TestCutOffMemberKeepsCapUntilLeaseExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2, 8*1024, quick)
		defer f.close()
		a, b := f.members[0], f.members[1]
		f.pass(time.Second, 8)
		a.want(t, 2)
		f.pass(time.Second, 8)
		a.mu.Lock()
		a.cut = true
		a.mu.Unlock()
		b.want(t, 40)
		a.want(t, 1)
		f.pass(2*time.Second, 8)
		if each, _ := f.uses(); each[0] != 3 {
			t.Fatalf("within its lease the member that is cut off uses %v GiB", each)
		}
		f.pass(2*time.Second, 8)
		a.want(t, 1)
		f.pass(time.Second, 8)
		if each, _ := f.uses(); each[0] != 3 || each[1] != 4 {
			t.Fatalf("after its lease members use %v GiB: it must get no more, and the other not its part yet", each)
		}
		// Its containers end within the linger; then its part is free.
		for i := range 3 {
			a.allocate(t, rm.AllocateRequest{Release: []creel.ContainerID{creel.NewContainerID(a.app, 0, int64(i+1))}})
		}
		f.pass(12*time.Second, 8)
		if each, _ := f.uses(); each[1] != 8 {
			t.Fatalf("after the linger the other uses %v GiB", each)
		}
		a.mu.Lock()
		a.cut = false
		a.mu.Unlock()
		f.pass(2*time.Second, 8)
	})
}

// A machine sleeps while it holds a cap, and its monotonic clock sleeps too. On waking the lease is over for every
// other member, and so it is for this one, though it does not reach the store.
func TestSleepDoesNotExtendCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2, 8*1024, quick)
		defer f.close()
		a := f.members[0]
		f.pass(time.Second, 8)
		a.want(t, 2)
		f.pass(time.Second, 8)
		a.mu.Lock()
		a.cut = true
		a.mu.Unlock()
		a.slept.Store(int64(time.Minute))
		f.pass(200*time.Millisecond, 8) // a round of the keeper
		before, _ := f.uses()
		a.want(t, 1)
		f.pass(200*time.Millisecond, 8)
		if each, _ := f.uses(); each[0] != before[0] || each[0] == 0 {
			t.Fatalf("after its sleep the member uses %v GiB, before %v", each, before)
		}
	})
}

func TestEmptiedStoreGrantsNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2, 8*1024, quick)
		defer f.close()
		full, err := f.store.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		f.pass(time.Second, 8)
		f.members[0].want(t, 6)
		f.pass(2*time.Second, 8)
		f.members[1].want(t, 40)
		if err := f.store.Restore(full); err != nil { // without any escrow record
			t.Fatal(err)
		}
		f.pass(3*time.Second, 8)
		if each, _ := f.uses(); each[0] != 6 || each[1] != 2 {
			t.Fatalf("members use %v GiB", each)
		}
	})
}

func TestALoweredMaximumIsReachedAsContainersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2, 8*1024, quick)
		defer f.close()
		f.pass(time.Second, 8)
		f.members[0].want(t, 40)
		f.pass(2*time.Second, 8)
		set, err := f.store.Documents(t.Context(), rebalancer.TreeClass)
		if err != nil {
			t.Fatal(err)
		}
		f.bound(set.Documents[0].Version, 4*1024)
		f.members[1].want(t, 40)
		f.pass(time.Second, 8)
		for i := range 8 {
			id := creel.NewContainerID(f.members[0].app, 0, int64(i+1))
			f.members[0].allocate(t, rm.AllocateRequest{Release: []creel.ContainerID{id}})
			f.pass(time.Second, max(4, 7-int64(i)))
		}
		f.pass(2*time.Second, 4)
		if each, sum := f.uses(); sum != 4 {
			t.Fatalf("members use %v GiB of 4", each)
		}
	})
}

// An emptied store has lost the queue tree, the members, and their parts: the maximum applies all the same, and the
// tree is written back.
func TestEmptiedStoreLiftsNoMaximum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 3, 8*1024, quick)
		defer f.close()
		nothing, err := statestore.NewState("memory", nil).Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		f.pass(time.Second, 8)
		f.members[0].want(t, 6)
		f.pass(2*time.Second, 8)
		f.members[1].want(t, 40)
		f.members[2].want(t, 40)
		f.pass(time.Second, 8)
		before, _ := f.uses()
		f.members[2].cutOff(true) // it cannot report its part in the new store
		if err := f.store.Restore(nothing); err != nil {
			t.Fatal(err)
		}
		f.pass(3*time.Second, 8)
		f.members[2].cutOff(false)
		f.pass(5*time.Second, 8)
		after, sum := f.uses()
		if before[0] != 6 || sum != 8 {
			t.Fatalf("members use %v GiB, before %v", after, before)
		}
		set, err := f.store.Documents(t.Context(), rebalancer.TreeClass)
		if err != nil {
			t.Fatal(err)
		}
		d, ok := set.Find(rebalancer.TreeName)
		if !ok || !strings.Contains(string(d.Data), `"memory":8192`) {
			t.Fatalf("the tree in the new store: %s", d.Data)
		}
		// Removing the maximum there does remove it.
		f.remove(d.Version)
		f.pass(2*time.Second, 200)
		if _, sum := f.uses(); sum <= 8 {
			t.Fatalf("without a maximum members use %d GiB", sum)
		}
	})
}

func (x *member) cutOff(cut bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cut = cut
}

// remove deletes the federation's queue tree.
func (f *federation) remove(version int64) {
	f.t.Helper()
	if _, err := f.store.PutDocument(f.t.Context(), statestore.DocumentWrite{
		Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Expect: version,
	}); err != nil {
		f.t.Fatal(err)
	}
}

// A ResourceManager that restarts with applications grants nothing more under a maximum until its nodes may have
// reported all running containers.
func TestNoGrowthUntilRestartedMembersNodesReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 1, 12*1024, quick)
		defer f.close()
		x := f.members[0]
		x.stop()
		f.wg.Wait()
		again := &Keeper{
			ID: x.id, Epoch: 1, Store: f.store, Turn: x.turn, Every: 100 * time.Millisecond, Terms: quick,
			Recover: 20 * time.Second, Log: slog.New(slog.DiscardHandler),
		}
		ctx, cancel := context.WithCancel(t.Context())
		x.stop = cancel
		f.wg.Go(func() {
			if err := again.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		f.pass(2*time.Second, 0)
		x.want(t, 40)
		f.pass(17*time.Second, 0)
		f.pass(3*time.Second, 12)
		if each, _ := f.uses(); each[0] != 12 {
			t.Errorf("it uses %v of 12 GiB after that", each)
		}
	})
}
