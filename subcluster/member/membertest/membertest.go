// SPDX-License-Identifier: Apache-2.0

// Package membertest makes a small federation for tests: real ResourceManager machines and their keepers over a state
// store in memory.
package membertest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/member"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Member is a real ResourceManager machine with one node and one application that wants containers, and its keeper.
// Other goroutines use Machine too: lock Mu.
type Member struct {
	ID      creel.SubclusterID
	Mu      sync.Mutex
	Machine *rm.Machine
	App     creel.AttemptID
	Reply   int32  // the last response id of App
	Label   string // of the nodes that App asks for
	Keeper  *member.Keeper
	Stop    context.CancelFunc // of the keeper
	Slept   atomic.Int64       // ns for which its machine was suspended, by the wall clock alone

	loads codec.Loads
	cut   bool // it does not reach the store
}

// Federation is a number of members and their store.
type Federation struct {
	T       *testing.T
	Store   *memory.Store
	Members []*Member
	Running sync.WaitGroup // keepers, and further parts of a test
}

// Turn calls f with the machine, which nothing else uses meanwhile.
func (x *Member) Turn(_ context.Context, f func(m *rm.Machine, now time.Time)) error {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	f(x.Machine, time.Now())
	return nil
}

// Cuttable is the store as a member reaches it.
type Cuttable struct {
	*memory.Store
	Member *Member
}

func (c Cuttable) refused() error {
	c.Member.Mu.Lock()
	defer c.Member.Mu.Unlock()
	if c.Member.cut {
		return statestore.Unavailable("cut off", time.Second)
	}
	return nil
}

func (c Cuttable) Documents(ctx context.Context, class string) (statestore.DocumentSet, error) {
	if err := c.refused(); err != nil {
		return statestore.DocumentSet{}, err
	}
	return c.Store.Documents(ctx, class)
}

func (c Cuttable) DocumentsSince(
	ctx context.Context, class string, before statestore.DocumentSet,
) (statestore.DocumentSet, error) {
	if err := c.refused(); err != nil {
		return statestore.DocumentSet{}, err
	}
	return c.Store.DocumentsSince(ctx, class, before)
}

// Quick are terms of seconds.
var Quick = escrow.Terms{Lease: 3 * time.Second, Linger: 10 * time.Second, Margin: 100 * time.Millisecond}

// New makes n members of 64 GiB with a federation-wide maximum of root.default.
func New(t *testing.T, n int, maximumMB int64, terms escrow.Terms) *Federation {
	f := &Federation{T: t, Store: memory.New(memory.NewState("memory", nil), time.Now)}
	f.Bound(0, maximumMB)
	for i := range n {
		id := creel.SubclusterID(fmt.Sprint("sc-", i+1))
		err := f.Store.Register(t.Context(), subcluster.Member{
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
		waits := opportunistic.Defaults()
		cfg.Opportunistic = &waits
		m, err := rm.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		x := &Member{ID: id, Machine: m}
		_, err = m.RegisterNode(time.Now(), &rm.RegisterNode{
			ID: creel.NodeID{Host: string(id), Port: 1}, Resource: creel.NewResource(65536, 64),
		})
		if err != nil {
			t.Fatal(err)
		}
		x.App = creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: int64(i + 1), ID: 1}, Attempt: 1}
		err = m.Submit(
			time.Now(),
			&rm.Submission{ID: x.App.Application, User: "alice", Queue: "default", Unmanaged: true},
		)
		if err != nil {
			t.Fatal(err)
		}
		m.Actions(nil)
		if _, err := m.RegisterAM(time.Now(), &rm.RegisterAM{Attempt: x.App, Host: "am"}); err != nil {
			t.Fatal(err)
		}
		x.Keeper = &member.Keeper{
			ID: id, Epoch: 1, Store: Cuttable{f.Store, x}, Turn: x.Turn, Every: 100 * time.Millisecond, Terms: terms,
			Log: slog.New(slog.DiscardHandler),
		}
		x.Keeper.Clock.Read = func() time.Time {
			if slept := time.Duration(x.Slept.Load()); slept > 0 {
				return time.Now().Round(0).Add(slept)
			}
			return time.Now()
		}
		ctx, cancel := context.WithCancel(t.Context())
		x.Stop = cancel
		f.Running.Go(func() {
			if err := x.Keeper.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		f.Members = append(f.Members, x)
	}
	return f
}

// Bound writes the federation's maximum of root.default.
func (f *Federation) Bound(expect, mb int64) int64 {
	f.T.Helper()
	d, err := f.Store.PutDocument(f.T.Context(), statestore.DocumentWrite{
		Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Expect: expect,
		Data: fmt.Appendf(nil, `{"queues":[{"queue":"root.default","maximum":{"memory":%d}}]}`, mb),
	})
	if err != nil {
		f.T.Fatal(err)
	}
	return d.Version
}

// Want sets how many containers of 1 GiB a member's application asks for.
func (x *Member) Want(t *testing.T, n int32) {
	t.Helper()
	x.Allocate(t, rm.AllocateRequest{Asks: []rm.Ask{{
		Priority: 1, ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: n,
		Label: rm.LabelExpression{Text: x.Label, Given: x.Label != ""},
	}}})
}

// Allocate makes one call of the member's application.
func (x *Member) Allocate(t *testing.T, r rm.AllocateRequest) *rm.Answer {
	t.Helper()
	x.Mu.Lock()
	defer x.Mu.Unlock()
	r.ResponseID = x.Reply
	a, err := x.Machine.Allocate(time.Now(), x.App, &r)
	if err != nil {
		t.Fatal(err)
	}
	x.Reply = a.ResponseID
	return a
}

// Uses returns the use of root.default in each member and in all, in GiB.
func (f *Federation) Uses() (each []int64, sum int64) {
	for _, x := range f.Members {
		x.Mu.Lock()
		u, _, _ := x.Machine.QueueUse("root.default", "")
		x.Mu.Unlock()
		each = append(each, u.MemoryMB/1024)
		sum += u.MemoryMB / 1024
	}
	return each, sum
}

// Pass lets time pass and compares the sum with the maximum all the while.
func (f *Federation) Pass(d time.Duration, maximum int64) {
	f.T.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if each, sum := f.Uses(); sum > maximum {
			f.T.Fatalf("members use %v GiB, more than %d together", each, maximum)
		}
	}
}

// Close stops the keepers.
func (f *Federation) Close() {
	for _, x := range f.Members {
		x.Stop()
	}
	f.Running.Wait()
}

// Report makes a member report its load.
func (x *Member) Report(t *testing.T, store *memory.Store) {
	t.Helper()
	x.Mu.Lock()
	load := x.loads.Next(x.Machine, time.Now())
	x.Mu.Unlock()
	text, err := load.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Heartbeat(t.Context(), subcluster.Heartbeat{ID: x.ID, Epoch: 1, Load: text}); err != nil {
		t.Fatal(err)
	}
}

// Tree returns the stored document of queues.
func (f *Federation) Tree() statestore.Document {
	f.T.Helper()
	set, err := f.Store.Documents(f.T.Context(), rebalancer.TreeClass)
	if err != nil {
		f.T.Fatal(err)
	}
	d, _ := set.Find(rebalancer.TreeName)
	return d
}

// CutOff cuts the member off from the store, or ends that.
func (x *Member) CutOff(cut bool) {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	x.cut = cut
}

// Remove removes the document of queues.
func (f *Federation) Remove(version int64) {
	f.T.Helper()
	if _, err := f.Store.PutDocument(f.T.Context(), statestore.DocumentWrite{
		Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Expect: version,
	}); err != nil {
		f.T.Fatal(err)
	}
}
