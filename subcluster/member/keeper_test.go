// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster/member"
	"github.com/creelrm/creel/subcluster/member/membertest"
	"github.com/creelrm/creel/subcluster/rm"
)

func TestAMaximumHoldsForAllMembersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := membertest.New(t, 3, 12*1024, membertest.Quick)
		defer f.Close()
		f.Pass(time.Second, 12)
		f.Members[0].Want(t, 40)
		f.Pass(2*time.Second, 12)
		if each, _ := f.Uses(); each[0] != 12 {
			t.Fatalf("the only one that wants uses %v of 12 GiB", each)
		}
		// Others want some too: resources are freed as containers complete, down to an even split.
		f.Members[1].Want(t, 40)
		f.Members[2].Want(t, 40)
		f.Pass(time.Second, 12)
		for i := range 11 {
			id := creel.NewContainerID(f.Members[0].App, 0, int64(i+1))
			f.Members[0].Allocate(t, rm.AllocateRequest{Release: []creel.ContainerID{id}})
			f.Pass(time.Second, 12)
		}
		f.Pass(2*time.Second, 12)
		if each, sum := f.Uses(); each[0] != 4 || each[1] != 4 || each[2] != 4 {
			t.Fatalf("members that all want more use %v GiB, %d in all", each, sum)
		}
	})
}

func TestCutOffMemberKeepsCapUntilLeaseExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := membertest.New(t, 2, 8*1024, membertest.Quick)
		defer f.Close()
		a, b := f.Members[0], f.Members[1]
		f.Pass(time.Second, 8)
		a.Want(t, 2)
		f.Pass(time.Second, 8)
		a.CutOff(true)
		b.Want(t, 40)
		a.Want(t, 1)
		f.Pass(2*time.Second, 8)
		if each, _ := f.Uses(); each[0] != 3 {
			t.Fatalf("within its lease the member that is cut off uses %v GiB", each)
		}
		f.Pass(2*time.Second, 8)
		a.Want(t, 1)
		f.Pass(time.Second, 8)
		if each, _ := f.Uses(); each[0] != 3 || each[1] != 4 {
			t.Fatalf("after its lease members use %v GiB: it must get no more, and the other not its part yet", each)
		}
		// Its containers end within the linger; then its part is free.
		for i := range 3 {
			a.Allocate(t, rm.AllocateRequest{Release: []creel.ContainerID{creel.NewContainerID(a.App, 0, int64(i+1))}})
		}
		f.Pass(12*time.Second, 8)
		if each, _ := f.Uses(); each[1] != 8 {
			t.Fatalf("after the linger the other uses %v GiB", each)
		}
		a.CutOff(false)
		f.Pass(2*time.Second, 8)
	})
}

// A machine sleeps while it holds a cap, and its monotonic clock sleeps too. On waking the lease is over for every
// other member, and so it is for this one, though it does not reach the store.
func TestSleepDoesNotExtendCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := membertest.New(t, 2, 8*1024, membertest.Quick)
		defer f.Close()
		a := f.Members[0]
		f.Pass(time.Second, 8)
		a.Want(t, 2)
		f.Pass(time.Second, 8)
		a.CutOff(true)
		a.Slept.Store(int64(time.Minute))
		f.Pass(200*time.Millisecond, 8) // a round of the keeper
		before, _ := f.Uses()
		a.Want(t, 1)
		f.Pass(200*time.Millisecond, 8)
		if each, _ := f.Uses(); each[0] != before[0] || each[0] == 0 {
			t.Fatalf("after its sleep the member uses %v GiB, before %v", each, before)
		}
	})
}

func TestEmptiedStoreGrantsNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := membertest.New(t, 2, 8*1024, membertest.Quick)
		defer f.Close()
		full, err := f.Store.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		f.Pass(time.Second, 8)
		f.Members[0].Want(t, 6)
		f.Pass(2*time.Second, 8)
		f.Members[1].Want(t, 40)
		if err := f.Store.Restore(full); err != nil { // without any escrow record
			t.Fatal(err)
		}
		f.Pass(3*time.Second, 8)
		if each, _ := f.Uses(); each[0] != 6 || each[1] != 2 {
			t.Fatalf("members use %v GiB", each)
		}
	})
}

func TestALoweredMaximumIsReachedAsContainersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := membertest.New(t, 2, 8*1024, membertest.Quick)
		defer f.Close()
		f.Pass(time.Second, 8)
		f.Members[0].Want(t, 40)
		f.Pass(2*time.Second, 8)
		set, err := f.Store.Documents(t.Context(), rebalancer.TreeClass)
		if err != nil {
			t.Fatal(err)
		}
		f.Bound(set.Documents[0].Version, 4*1024)
		f.Members[1].Want(t, 40)
		f.Pass(time.Second, 8)
		for i := range 8 {
			id := creel.NewContainerID(f.Members[0].App, 0, int64(i+1))
			f.Members[0].Allocate(t, rm.AllocateRequest{Release: []creel.ContainerID{id}})
			f.Pass(time.Second, max(4, 7-int64(i)))
		}
		f.Pass(2*time.Second, 4)
		if each, sum := f.Uses(); sum != 4 {
			t.Fatalf("members use %v GiB of 4", each)
		}
	})
}

// An emptied store has lost the queue tree, the members, and their parts: the maximum applies all the same, and the
// tree is written back.
func TestEmptiedStoreLiftsNoMaximum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := membertest.New(t, 3, 8*1024, membertest.Quick)
		defer f.Close()
		nothing, err := memory.NewState("memory", nil).Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		f.Pass(time.Second, 8)
		f.Members[0].Want(t, 6)
		f.Pass(2*time.Second, 8)
		f.Members[1].Want(t, 40)
		f.Members[2].Want(t, 40)
		f.Pass(time.Second, 8)
		before, _ := f.Uses()
		f.Members[2].CutOff(true) // it cannot report its part in the new store
		if err := f.Store.Restore(nothing); err != nil {
			t.Fatal(err)
		}
		f.Pass(3*time.Second, 8)
		f.Members[2].CutOff(false)
		f.Pass(5*time.Second, 8)
		after, sum := f.Uses()
		if before[0] != 6 || sum != 8 {
			t.Fatalf("members use %v GiB, before %v", after, before)
		}
		set, err := f.Store.Documents(t.Context(), rebalancer.TreeClass)
		if err != nil {
			t.Fatal(err)
		}
		d, ok := set.Find(rebalancer.TreeName)
		if !ok || !strings.Contains(string(d.Data), `"memory":8192`) {
			t.Fatalf("the tree in the new store: %s", d.Data)
		}
		// Removing the maximum there does remove it.
		f.Remove(d.Version)
		f.Pass(2*time.Second, 200)
		if _, sum := f.Uses(); sum <= 8 {
			t.Fatalf("without a maximum members use %d GiB", sum)
		}
	})
}

// remove deletes the federation's queue tree.
// A ResourceManager that restarts with applications grants nothing more under a maximum until its nodes may have
// reported all running containers.
func TestNoGrowthUntilRestartedMembersNodesReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := membertest.New(t, 1, 12*1024, membertest.Quick)
		defer f.Close()
		x := f.Members[0]
		x.Stop()
		f.Running.Wait()
		again := &member.Keeper{
			ID: x.ID, Epoch: 1, Store: f.Store, Turn: x.Turn, Every: 100 * time.Millisecond, Terms: membertest.Quick,
			Recover: 20 * time.Second, Log: slog.New(slog.DiscardHandler),
		}
		ctx, cancel := context.WithCancel(t.Context())
		x.Stop = cancel
		f.Running.Go(func() {
			if err := again.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		f.Pass(2*time.Second, 0)
		x.Want(t, 40)
		f.Pass(17*time.Second, 0)
		f.Pass(3*time.Second, 12)
		if each, _ := f.Uses(); each[0] != 12 {
			t.Errorf("it uses %v of 12 GiB after that", each)
		}
	})
}
