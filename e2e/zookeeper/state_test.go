// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/state/statetest"
	"github.com/creelrm/creel/subcluster/rm/zkstate"
)

// Each write of a property goes to a disk, so there are few.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

var parents atomic.Int64

// deployment is an empty state. Paths have as many parents as an operator may choose.
func deployment(address string, check time.Duration) statetest.Deployment {
	parent, holders := fmt.Sprintf("/tests/state-%d", parents.Add(1)), 0
	config := func() zkstate.Config {
		holders++
		return zkstate.Config{
			Servers: zkstate.Servers{Addresses: []string{address}, Timeout: 4 * time.Second},
			Parent:  parent, Name: "c1", Holder: fmt.Sprint("holder ", holders), Check: check,
		}
	}
	return statetest.Deployment{
		Open: func() (state.Log, error) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			return zkstate.Open(ctx, config())
		},
		Follow: func() (state.Follower, error) { return zkstate.NewFollower(config()) },
	}
}

func TestServerKeepsTheContract(t *testing.T) {
	_, address := hadoop.StartZooKeeper(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent()) // the server's
	statetest.Run(t, func(*testing.T) statetest.Deployment { return deployment(address, time.Hour) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The server is killed, restarted and paused, and connections end, while a holder writes. Each transaction is applied
// once, and no process that pauses shorter than a fence loses anything.
func TestFaultsOfTheServerLoseNothing(t *testing.T) {
	server, address := hadoop.StartZooKeeper(t)
	path := redistest.NewProxy(t, address)
	d := deployment(path.Addr, 100*time.Millisecond)
	h := d.Start(t)
	want := map[string]string{}
	save := func(name string, during func()) {
		t.Helper()
		answers := make(chan error, 100)
		for i := range cap(answers) {
			var tx state.Tx
			key := fmt.Sprint(name, i)
			tx.Put(key, []byte(name))
			want[key] = name
			h.Commit(&tx, func(err error) { answers <- err })
			if i == 50 {
				during()
			}
		}
		for range cap(answers) {
			must(t, <-answers)
		}
	}
	save("killed", func() { server.KillAlone(); server.Restart(t) })
	save("paused", func() {
		server.Signal(syscall.SIGSTOP)
		time.Sleep(6 * time.Second) // longer than a session
		server.Signal(syscall.SIGCONT)
	})
	save("cut off", func() { path.Cut(); path.Heal() })
	save("silent", func() {
		path.Silence()
		time.Sleep(6 * time.Second) // the session expires
		path.Cut()
		path.Heal()
	})
	must(t, h.Confirm(t.Context()))
	must(t, h.End())
	if got := d.Content(t); !maps.Equal(got, want) {
		t.Errorf("the next holder reads %d entries, want %d", len(got), len(want))
	}
}

// A holder that is cut off is fenced meanwhile. No change of it becomes durable.
func TestHolderThatWasCutOffIsFenced(t *testing.T) {
	_, address := hadoop.StartZooKeeper(t)
	path := redistest.NewProxy(t, address)
	direct := deployment(address, time.Hour)
	parent := fmt.Sprintf("/tests/state-%d", parents.Load())
	l, err := zkstate.Open(t.Context(), zkstate.Config{
		Servers: zkstate.Servers{Addresses: []string{path.Addr}, Timeout: 4 * time.Second},
		Parent:  parent, Name: "c1", Holder: "the one cut off",
	})
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- l.Run(context.Background()) }()
	path.Silence()
	answer := make(chan error, 1)
	var tx state.Tx
	tx.Put("late", nil)
	l.Commit(&tx, func(err error) { answer <- err })
	second := direct.Start(t)
	must(t, second.Save(statetest.Put("a", "second")))
	path.Heal()
	if err := <-answer; !errors.Is(err, state.ErrFenced) {
		t.Errorf("the change of the first holder was answered with %v", err)
	}
	if err := <-ended; !errors.Is(err, state.ErrFenced) {
		t.Errorf("the first holder ended with %v", err)
	}
	must(t, second.End())
	if got := direct.Content(t); len(got) != 1 || got["a"] != "second" {
		t.Errorf("the state is %v", got)
	}
}

// An elector that is cut off loses the lock when its session ends, and another one has it.
func TestElectorThatIsCutOffLosesTheLock(t *testing.T) {
	_, address := hadoop.StartZooKeeper(t)
	path := redistest.NewProxy(t, address)
	elector := func(id, address string) *zkstate.Elector {
		e, err := zkstate.OpenElector(zkstate.ElectorConfig{
			Servers: zkstate.Servers{Addresses: []string{address}, Timeout: 4 * time.Second},
			Base:    "/yarn-leader-election", Cluster: "c1", ID: id,
		})
		must(t, err)
		return e
	}
	one, two := elector("rm1", path.Addr), elector("rm2", address)
	claim := func(e *zkstate.Elector) zkstate.Claim {
		for { // until it is connected
			c, err := e.Claim(t.Context())
			if err == nil {
				return c
			}
			if t.Context().Err() != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if c := claim(one); !c.Won {
		t.Fatalf("the free lock is answered with %+v", c)
	}
	if c := claim(two); c.Won || c.Holder != "rm1" {
		t.Errorf("the lock of rm1 is answered with %+v", c)
	}
	path.Silence()
	began := time.Now()
	for !claim(two).Won {
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("the lock was free %v after the cut, with a session of 4 s", time.Since(began).Round(100*time.Millisecond))
	path.Cut()
	path.Heal()
	for {
		c, err := one.Claim(t.Context())
		if err == nil && c.Won {
			t.Fatal("two have the lock")
		}
		if c.Holder == "rm2" {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	must(t, two.Release(t.Context()))
	for !claim(one).Won {
		time.Sleep(50 * time.Millisecond)
	}
	must(t, one.Close())
	must(t, two.Close())
}
