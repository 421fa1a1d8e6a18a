// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/member"
	"github.com/creelrm/creel/subcluster/remote"
)

// rounds is a ResourceManager that in each round of three seconds takes back 4 GiB, or the limit of one round, for
// root.b, which is always short.
type rounds struct {
	sync.Mutex
	most   *int64 // nil: its own
	fixed  bool
	denies bool
	taken  int64
	broken bool
}

func (r *rounds) Read(context.Context) (remote.PreemptionNow, error) {
	r.Lock()
	defer r.Unlock()
	if r.broken {
		return remote.PreemptionNow{}, context.DeadlineExceeded
	}
	return remote.PreemptionNow{
		Queues: []subcluster.QueueLoad{{
			Queue: "root.b", Capacity: creel.NewResource(20480, 20), Used: creel.NewResource(1024, 1),
			Pending: creel.NewResource(1024, 1),
		}},
		Taken: creel.NewResource(r.taken, r.taken/1024), Change: !r.fixed, Bound: r.most != nil,
	}, nil
}

func (r *rounds) Bind(_ context.Context, most creel.Resource) error {
	r.Lock()
	defer r.Unlock()
	if r.denies {
		return errors.New("not as this user")
	}
	r.most = &most.MemoryMB
	return nil
}

func (r *rounds) Restore(context.Context) error {
	r.Lock()
	defer r.Unlock()
	r.most = nil
	return nil
}

// live lets rounds pass.
func (r *rounds) live(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(3 * time.Second)
		synctest.Wait()
		r.Lock()
		take := int64(4096)
		if r.most != nil {
			take = min(take, *r.most)
		}
		r.taken += take
		r.Unlock()
	}
}

// paceOf runs the budgets of such a ResourceManager, whose share of root.b's is 6 GiB in each minute, and a plan
// every two seconds with a lease of six.
func paceOf(t *testing.T, r *rounds) (k *member.Follower, log *strings.Builder, plans, stop func()) {
	store := memory.New(memory.NewState("memory", nil), time.Now)
	put := func(class, name, data string) {
		set, err := store.Documents(t.Context(), class)
		if err != nil {
			t.Fatal(err)
		}
		was, _ := set.Find(name)
		if _, err := store.PutDocument(t.Context(), statestore.DocumentWrite{
			Class: class, Name: name, Data: []byte(data), Expect: was.Version,
		}); err != nil {
			t.Fatal(err)
		}
	}
	put(rebalancer.TreeClass, rebalancer.TreeName, `{"queues":[{"queue":"root.b","preemption":{"memory":6144}}]}`)
	log = &strings.Builder{}
	k = &member.Follower{ID: "sc-1", Store: store, Settings: r, Every: time.Second, Log: slog.New(slog.NewTextHandler(log, nil))}
	ctx, cancel := context.WithCancel(t.Context())
	done, planning := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if err := k.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	go func() {
		for {
			begins := time.Now().Truncate(time.Minute)
			data, err := json.Marshal(&subcluster.Plan{LeaseMS: 6000, Preemption: []subcluster.PreemptionBudget{{
				Queue: "root.b", Begins: begins, Ends: begins.Add(time.Minute), Most: creel.NewResource(6144, 100),
				Members: []subcluster.PreemptionMember{{Member: "sc-1", Share: creel.NewResource(6144, 100)}},
			}}})
			if err != nil {
				t.Error(err)
			}
			put(rebalancer.PlanClass, rebalancer.PlanName, string(data))
			select {
			case <-planning:
				return
			case <-ctx.Done():
				return
			case <-time.After(2 * time.Second):
			}
		}
	}()
	return k, log, func() { close(planning) }, func() { cancel(); <-done }
}

// Where only the limit of a round can be set, no more than the share is taken in an interval. When the plan's lease
// is over, and when the agent ends, its own settings apply.
func TestAHadoopMemberIsHeldToItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rounds{}
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(59 * time.Second)))
		k, log, quiet, stop := paceOf(t, r)
		time.Sleep(500 * time.Millisecond)
		for minute := 1; minute <= 3; minute++ {
			time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + 3*time.Second)))
			r.live(45 * time.Second)
			if r.taken != int64(minute*6144) {
				t.Fatalf("%d MB are taken in %d intervals of 6144", r.taken, minute)
			}
		}
		if s := k.Spent(); len(s) != 1 || s[0].Taken.MemoryMB != 6144 || s[0].Unbound {
			t.Errorf("it tells %+v", s)
		}
		quiet()
		time.Sleep(8 * time.Second)
		if synctest.Wait(); r.most != nil {
			t.Errorf("without a plan a round may take %d", *r.most)
		}
		if r.live(9 * time.Second); r.taken != 3*6144+3*4096 {
			t.Errorf("without a plan %d MB are taken", r.taken-3*6144)
		}
		stop()
		for _, want := range []string{"preemption limited by a budget", "preemption no longer limited by a budget"} {
			if strings.Count(log.String(), want) != 1 {
				t.Errorf("%q is not said once:\n%s", want, log)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := &rounds{}
		time.Sleep(10 * time.Second)
		_, log, _, stop := paceOf(t, r)
		time.Sleep(3 * time.Second)
		if synctest.Wait(); r.most == nil || *r.most != 0 {
			t.Fatal("an agent that begins within an interval lets a round take something")
		}
		stop()
		if r.most != nil {
			t.Errorf("the agent has ended, and a round may take %d\n%s", *r.most, log)
		}
	})
}

// A ResourceManager whose settings come from a file counts the amount that it takes, and so does one that does not
// let the agent change them.
func TestHadoopsOwnPreemptionIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rounds{denies: true}
		time.Sleep(time.Until(time.Now().Truncate(time.Minute)))
		k, log, _, stop := paceOf(t, r)
		time.Sleep(1500 * time.Millisecond)
		r.live(6 * time.Second)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if s := k.Spent(); len(s) != 1 || s[0].Taken.MemoryMB != 2*4096 || !s[0].Unbound {
			t.Errorf("it tells %+v", s)
		}
		if stop(); strings.Count(log.String(), "not as this user") != 1 {
			t.Error(log)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := &rounds{fixed: true}
		time.Sleep(time.Until(time.Now().Truncate(time.Minute)))
		k, log, _, stop := paceOf(t, r)
		time.Sleep(1500 * time.Millisecond)
		r.live(9 * time.Second)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if s := k.Spent(); len(s) != 1 || s[0].Taken.MemoryMB != 3*4096 || !s[0].Unbound || r.most != nil {
			t.Errorf("it tells %+v", s)
		}
		r.Lock()
		r.broken = true
		r.Unlock()
		time.Sleep(3 * time.Second)
		stop()
		if strings.Count(log.String(), "do not limit this ResourceManager") != 1 ||
			!strings.Contains(log.String(), "the preempted amount cannot be read") {
			t.Error(log)
		}
	})
}
