// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/member"
)

// confOf is a ResourceManager whose configuration calls can change.
type confOf struct {
	mu      sync.Mutex
	conf    map[string]string
	changes int
	denies  bool
}

// is returns its configuration, and the number of changes so far.
func (c *confOf) is() (map[string]string, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.conf), c.changes
}

func (c *confOf) deny(denies bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denies = denies
}

func (c *confOf) Read(context.Context) (map[string]string, error) {
	conf, _ := c.is()
	return conf, nil
}

func (c *confOf) Change(_ context.Context, to map[string]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.denies {
		return errors.New("not as this user")
	}
	c.changes++
	for name, value := range to {
		if c.conf[name] = value; value == "" {
			delete(c.conf, name)
		}
	}
	return nil
}

// Capacities of Hadoop's ResourceManager follow each plan that differs enough, with at most one change in ten
// seconds. The configured ones come back when the lease is over, when the agent ends, and, after an agent that was
// killed, with the next.
func TestCapacitiesOfAHadoopMemberFollowThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const a, b = "yarn.scheduler.capacity.root.a.capacity", "yarn.scheduler.capacity.root.b.capacity"
		configured := map[string]string{"yarn.scheduler.capacity.root.queues": "a,b", a: "70", b: "30"}
		rm := &confOf{conf: maps.Clone(configured)}
		store := memory.New(memory.NewState("memory", nil), time.Now)
		put := func(class, name string, v any) {
			set, err := store.Documents(t.Context(), class)
			if err != nil {
				t.Fatal(err)
			}
			was, _ := set.Find(name)
			data, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.PutDocument(t.Context(), statestore.DocumentWrite{
				Class: class, Name: name, Data: data, Expect: was.Version,
			}); err != nil {
				t.Fatal(err)
			}
		}
		plan := func(share float64, lease time.Duration) {
			p := &subcluster.Plan{Capacities: true, LeaseMS: lease.Milliseconds(), Members: []subcluster.MemberSize{
				{Member: "sc-1", Share: 1},
			}, Queues: []subcluster.QueuePlan{{Queue: "root.a"}, {Queue: "root.b"}}}
			p.Queues[0].SetCapacity("sc-1", share)
			p.Queues[1].SetCapacity("sc-1", 1-share)
			put(rebalancer.PlanClass, rebalancer.PlanName, p)
		}
		put(rebalancer.TreeClass, rebalancer.TreeName, json.RawMessage(`{"queues":[{"queue":"root.b","guarantee":{"memory":6144}}]}`))
		log := &strings.Builder{}
		begin := func() (*member.Follower, func()) {
			k := &member.Follower{
				ID: "sc-1", Store: store, Settings: &rounds{}, Capacities: rm, Every: time.Second,
				Log: slog.New(slog.NewTextHandler(log, nil)),
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); _ = k.Run(ctx) }()
			return k, func() { cancel(); <-done }
		}
		pass := func(d time.Duration) { time.Sleep(d + 100*time.Millisecond); synctest.Wait() }

		k, end := begin()
		plan(0.2, time.Minute)
		pass(11 * time.Second)
		if conf, n := rm.is(); conf[a] != "20" || conf[b] != "80" || n != 1 || k.Configured()[subcluster.QueueOn{Queue: "root.a"}] != 0.7 {
			t.Fatalf("a plan has %v after %d changes, configured is %v", conf, n, k.Configured())
		}
		plan(0.21, time.Minute)
		pass(20 * time.Second)
		if _, n := rm.is(); n != 1 {
			t.Error("a change within the dead band is made")
		}
		for i := range 20 { // a plan a second
			plan(0.25+float64(i)*0.02, 10*time.Second)
			pass(time.Second)
		}
		if _, n := rm.is(); n < 2 || n > 4 {
			t.Errorf("twenty plans in twenty seconds make %d changes", n-1)
		}
		rm.deny(true)
		pass(15 * time.Second)
		if k.Configured() == nil {
			t.Error("nothing follows a plan, as it is said, where putting back was refused")
		}
		rm.deny(false)
		pass(2 * time.Second)
		if conf, _ := rm.is(); !maps.Equal(conf, configured) || k.Configured() != nil {
			t.Errorf("after the lease it has %v", conf)
		}
		plan(0.2, time.Minute)
		pass(11 * time.Second)
		killed, _ := rm.is()
		if end(); !maps.Equal(rm.conf, configured) {
			t.Errorf("after the agent it has %v", rm.conf)
		}
		rm.conf = killed
		pass(time.Minute)
		_, end = begin()
		pass(2 * time.Second)
		if conf, _ := rm.is(); !maps.Equal(conf, configured) {
			t.Errorf("an agent that was started without a plan in force leaves %v", conf)
		}
		end()
		if !strings.Contains(log.String(), "configured capacities of queues restored") {
			t.Errorf("nothing is said:\n%s", log)
		}
	})
}
