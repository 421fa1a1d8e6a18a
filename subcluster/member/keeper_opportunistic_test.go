// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/member/membertest"
	"github.com/creelrm/creel/subcluster/rm"
)

// waiting is a federation whose nodes have long queues, and a maximum of opportunistic containers.
type waiting struct {
	*membertest.Federation
	t    *testing.T
	most int64
}

func newWaiting(t *testing.T, n int, most int64, field string) *waiting {
	w := &waiting{membertest.New(t, n, 1<<20, membertest.Quick), t, most}
	for _, x := range w.Members {
		x.Mu.Lock()
		x.Machine.NodeHeartbeat(time.Now(), &rm.NodeReport{
			ID: creel.NodeID{Host: string(x.ID), Port: 1}, Utilization: &rm.NodeUse{QueueCapacity: 1000},
		})
		x.Mu.Unlock()
	}
	set, err := w.Store.Documents(t.Context(), rebalancer.TreeClass)
	if err != nil {
		t.Fatal(err)
	}
	d, _ := set.Find(rebalancer.TreeName)
	w.put(d.Version, fmt.Sprintf(`{"queues":[{"queue":"root.default",%q:%d}]}`, field, most))
	return w
}

func (w *waiting) put(expect int64, tree string) {
	w.t.Helper()
	_, err := w.Store.PutDocument(w.t.Context(), statestore.DocumentWrite{
		Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Expect: expect, Data: []byte(tree),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *waiting) ask(i int, n int32) {
	w.t.Helper()
	w.Members[i].Allocate(w.t, rm.AllocateRequest{Asks: []rm.Ask{{
		Priority: 2, ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: n,
		ExecutionType: creel.Opportunistic,
	}}})
}

// pass lets time pass with a call of each application each 50 ms, and returns the containers of each member at its end.
func (w *waiting) pass(d time.Duration) (each []int64) {
	w.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		sum := int64(0)
		each = each[:0]
		for _, x := range w.Members {
			x.Allocate(w.t, rm.AllocateRequest{})
			x.Mu.Lock()
			n, _ := rm.OpportunisticUse(x.Machine, "root.default")
			x.Mu.Unlock()
			each, sum = append(each, n), sum+n
		}
		if sum > w.most {
			w.t.Fatalf("members have %v opportunistic containers, more than %d together", each, w.most)
		}
	}
	return each
}

// The fields of the federation's queue tree.
const ofQueue, ofUser = "maximum_opportunistic", "user_limit_opportunistic"

// A queue's opportunistic containers stay within one maximum over all members, and so do those of a user. A member that
// wants them alone gets all. If others want some too, it falls to an even split as its containers end.
func TestOpportunisticMaximumHoldsForAllMembers(t *testing.T) {
	for _, field := range []string{ofQueue, ofUser} {
		t.Run(field, func(t *testing.T) { maximumHoldsForAllMembers(t, field) })
	}
}

func maximumHoldsForAllMembers(t *testing.T, field string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t, 3, 12, field)
		defer w.Close()
		w.pass(time.Second)
		w.ask(0, 40)
		if each := w.pass(3 * time.Second); each[0] != 12 {
			t.Fatalf("the only one that asks has %v of 12", each)
		}
		w.ask(1, 40)
		w.ask(2, 40)
		w.pass(time.Second)
		for i := range 11 {
			id := creel.NewContainerID(w.Members[0].App, 0, int64(i+1))
			w.Members[0].Allocate(t, rm.AllocateRequest{Release: []creel.ContainerID{id}})
			w.pass(time.Second)
		}
		if each := w.pass(2 * time.Second); each[0] != 4 || each[1] != 4 || each[2] != 4 {
			t.Errorf("members that all ask have %v", each)
		}
	})
}

// A member that is cut off uses its part until its lease is over, and gets no further container then. Without the
// maximum it gets all again.
func TestOpportunisticCapEndsWithItsLease(t *testing.T) {
	for _, field := range []string{ofQueue, ofUser} {
		t.Run(field, func(t *testing.T) { capEndsWithItsLease(t, field) })
	}
}

func capEndsWithItsLease(t *testing.T, field string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t, 2, 12, field)
		defer w.Close()
		w.pass(time.Second)
		w.ask(0, 8)
		if each := w.pass(time.Second); each[0] != 8 {
			t.Fatalf("the only member that asks has %v of 12", each)
		}
		w.Members[0].CutOff(true)
		for i := range 6 {
			id := creel.NewContainerID(w.Members[0].App, 0, int64(i+1))
			w.Members[0].Allocate(t, rm.AllocateRequest{Release: []creel.ContainerID{id}})
		}
		w.ask(0, 1)
		if each := w.pass(time.Second); each[0] != 3 {
			t.Fatalf("before the end of its lease the member that is cut off has %v of a part of 8", each)
		}
		w.pass(3 * time.Second)
		w.ask(0, 1)
		if each := w.pass(time.Second); each[0] != 3 {
			t.Fatalf("after its lease the member that is cut off has %v", each)
		}
		w.Members[0].CutOff(false)
		w.most = 100
		set, err := w.Store.Documents(t.Context(), rebalancer.TreeClass)
		if err != nil {
			t.Fatal(err)
		}
		d, _ := set.Find(rebalancer.TreeName)
		w.put(d.Version, `{"queues":[]}`)
		w.ask(0, 40)
		if each := w.pass(2 * time.Second); each[0] != 43 {
			t.Errorf("without a maximum it has %v", each)
		}
	})
}
