// SPDX-License-Identifier: Apache-2.0

package zkstate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"pgregory.net/rapid"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/state/statetest"
)

func must(t interface{ Fatal(...any) }, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func connected(t *testing.T, s *fakeServer) *fakeClient {
	t.Helper()
	c, err := s.connect(t.Context(), Servers{})
	must(t, err)
	return c.(*fakeClient)
}

// failFrom makes one call in so many fail as by a lost connection, carried out or not.
func (s *fakeServer) failing(draw func() (fails, done bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = nil
	if draw != nil {
		s.fault = func(string) (bool, error) {
			if fails, done := draw(); fails {
				return done, zk.ErrConnectionClosed
			}
			return false, nil
		}
	}
}

// Whichever calls lose their connection, before or after the server carried them out, each transaction is applied once.
func TestLostAnswersApplyTransactionsOnce(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		s := newFake()
		d := deployment(s, short)
		want := map[string]string{}
		for holder := range 2 {
			left := rapid.IntRange(0, 4).Draw(t, "failures")
			s.failing(func() (bool, bool) {
				if left == 0 {
					return false, false
				}
				left--
				return true, left%2 == 0
			})
			h := d.Start(t)
			for i := range 3 {
				left = rapid.IntRange(0, 2).Draw(t, "failures of a write")
				key, value := fmt.Sprint(holder, i), strings.Repeat("v", rapid.SampledFrom([]int{1, 9000}).Draw(t, "size"))
				must(t, h.Save(statetest.Put(key, value)))
				want[key] = value
			}
			s.failing(nil)
			must(t, h.End())
		}
		if got := d.Content(t); !maps.Equal(got, want) {
			t.Fatalf("%d entries, want %d", len(got), len(want))
		}
	})
}

// A Hadoop ResourceManager fences by the same ACL.
func TestAnotherACLFencesTheHolder(t *testing.T) {
	s := newFake()
	l, err := Open(t.Context(), config(s, "creel"))
	must(t, err)
	hadoop := connected(t, s)
	must(t, hadoop.setACL(t.Context(), "/rmstore/ZKRMStateRoot", rootACL(zk.WorldACL(zk.PermAll), "rm", "1")))
	if err := l.Confirm(t.Context()); !errors.Is(err, state.ErrFenced) {
		t.Errorf("confirmed with %v", err)
	}
	must(t, l.Close())
}

func TestForeignStatesAreNotFenced(t *testing.T) {
	s := newFake()
	c := connected(t, s)
	must(t, makePath(t.Context(), c, "/rmstore/ZKRMStateRoot", zk.WorldACL(zk.PermAll)))
	must(t, c.multi(t.Context(), create("/rmstore/ZKRMStateRoot/RMVersionNode", versionMessage(1, 5), zk.WorldACL(zk.PermAll))))
	if _, err := Open(t.Context(), config(s, "creel")); !errors.Is(err, errUnusable) {
		t.Errorf("Hadoop's state was opened with %v", err)
	}
	must(t, c.multi(t.Context(), create("/rmstore/ZKRMStateRoot/RMAppRoot", nil, zk.WorldACL(zk.PermAll))))

	s = newFake()
	l, err := Open(t.Context(), config(s, "one"))
	must(t, err)
	other := config(s, "other")
	other.Name = "c2"
	if _, err := Open(t.Context(), other); err == nil || !strings.Contains(err.Error(), `the state of "c1", not of "c2"`) {
		t.Errorf("another ResourceManager's state was opened with %v", err)
	}
	must(t, l.Confirm(t.Context()))
	must(t, l.Close())
}

// A holder that ended within a group has left nodes after the last visible one.
func TestUnfinishedGroupIsNotRead(t *testing.T) {
	s := newFake()
	d := deployment(s, short)
	h := d.Start(t)
	must(t, h.Save(statetest.Put("a", "1")))
	s.mu.Lock()
	writes := 0
	s.fault = func(call string) (bool, error) {
		if writes++; call == "multi" && writes > 2 {
			return false, context.Canceled
		}
		return false, nil
	}
	s.mu.Unlock()
	if err := h.Save(statetest.Put("b", strings.Repeat("b", 20_000))); err == nil {
		t.Error("a group was acknowledged that is not complete")
	}
	_ = h.Ended()
	s.failing(nil)
	for _, want := range []map[string]string{{"a": "1"}, {"a": "1", "c": "1"}} {
		if got := d.Content(t); !maps.Equal(got, want) {
			t.Fatalf("the next holder reads %v", got)
		}
		h := d.Start(t)
		must(t, h.Save(statetest.Put("c", "1")))
		must(t, h.End())
	}
}

// Nodes that another program deletes are a loss, which ends the holder.
func TestDeletedStateEndsTheHolder(t *testing.T) {
	s := newFake()
	h := deployment(s, limits{}).Start(t)
	must(t, h.Save(statetest.Put("a", "1")))
	s.mu.Lock()
	delete(s.nodes, "/rmstore/ZKRMStateRoot/CreelState")
	s.mu.Unlock()
	if err := h.Save(statetest.Put("b", "1")); !errors.Is(err, state.ErrLost) {
		t.Errorf("a transaction was answered with %v", err)
	}
	if err := h.Ended(); !errors.Is(err, state.ErrLost) {
		t.Errorf("Run returned %v", err)
	}
}

// nodes counts the nodes of the log, and their bytes.
func (s *fakeServer) log() (nodes, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, n := range s.nodes {
		if strings.HasPrefix(p, "/rmstore/ZKRMStateRoot/CreelState/") {
			nodes++
			bytes += len(n.data)
		}
	}
	return nodes, bytes
}

// The log has about as many bytes as its live entries, and few nodes, whatever was written before.
func TestLogStaysShort(t *testing.T) {
	s := newFake()
	max := limits{nodeBytes: 512 << 10, slackBytes: 10_000, manyNodes: 50, smallNode: 64 << 10, repeatBytes: 8 << 10, repeatGroups: 200}
	d := deployment(s, max)
	h := d.Start(t)
	want := map[string]string{}
	save := func(key, value string) {
		must(t, h.Save(statetest.Put(key, value)))
		want[key] = value
	}
	for i := range 300 {
		save(fmt.Sprint("once ", i), "x")
	}
	if nodes, _ := s.log(); nodes > max.manyNodes+1 {
		t.Errorf("300 small entries have %d nodes", nodes)
	}
	for range 300 {
		save("again", strings.Repeat("x", 1000))
	}
	if nodes, bytes := s.log(); bytes > 30_000 || nodes > max.manyNodes+1 {
		t.Errorf("the log has %d bytes in %d nodes", bytes, nodes)
	}
	must(t, h.End())
	if got := d.Content(t); !maps.Equal(got, want) {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
}

// A standby reads each node once; only if nodes were removed that it lacks, it reads all.
func TestFollowerReadsNodesOnce(t *testing.T) {
	s := newFake()
	d := deployment(s, limits{nodeBytes: 512 << 10, manyNodes: 20, smallNode: 64 << 10, repeatBytes: 1 << 10, repeatGroups: 200,
		slackBytes: 1 << 20})
	h := d.Start(t)
	follower := d.StartFollower(t).(*Follower)
	must(t, follower.Follow(t.Context()))
	save := func(n int) {
		for i := range n {
			must(t, h.Save(statetest.Put(fmt.Sprint(i), "x")))
		}
	}
	gets := 0
	s.mu.Lock()
	s.fault = func(call string) (bool, error) {
		if call == "get" {
			gets++
		}
		return false, nil
	}
	s.mu.Unlock()
	save(10)
	must(t, follower.Follow(t.Context()))
	must(t, follower.Follow(t.Context()))
	if gets != 12 || follower.reads != 1 {
		t.Errorf("10 nodes and 2 looks are %d reads, and %d from the beginning", gets, follower.reads)
	}
	save(100)
	must(t, follower.Follow(t.Context()))
	if follower.reads != 2 {
		t.Errorf("it read all nodes %d times, although nodes that it lacks were removed", follower.reads)
	}
	must(t, follower.Close())
	must(t, h.End())
}

// A standby is not misled by a state that was deleted and made again.
func TestFollowerReadsAStateMadeAgain(t *testing.T) {
	s := newFake()
	d := deployment(s, limits{})
	h := d.Start(t)
	must(t, h.Save(statetest.Put("a", "old")))
	f := d.StartFollower(t)
	must(t, f.Follow(t.Context()))
	must(t, h.End())
	s.mu.Lock()
	for p := range s.nodes {
		if strings.HasPrefix(p, "/rmstore") {
			delete(s.nodes, p)
		}
	}
	s.mu.Unlock()
	h = d.Start(t)
	must(t, h.Save(statetest.Put("b", "new")))
	must(t, f.Follow(t.Context()))
	l, err := f.Lead(t.Context())
	must(t, err)
	got := map[string]string{}
	must(t, l.Each(func(key string, value []byte) error {
		got[key] = string(value)
		return nil
	}))
	if want := map[string]string{"b": "new"}; !maps.Equal(got, want) {
		t.Errorf("it leads with %v", got)
	}
	must(t, l.Close())
	must(t, f.Close())
	_ = h.End() // it is fenced
}

func TestStateInUseHasARunningHolder(t *testing.T) {
	s := newFake()
	c := config(s, "holder")
	c.Check = 20 * time.Millisecond
	inUse := func(want string) {
		t.Helper()
		if got, err := InUse(t.Context(), c); err != nil || got != want {
			t.Errorf("the state is in use by %q (%v), want %q", got, err, want)
		}
	}
	inUse("")
	ctx, stop := context.WithCancel(t.Context())
	l, err := Open(ctx, c)
	must(t, err)
	ended := make(chan error)
	go func() { ended <- l.Run(ctx) }()
	// A holder that the machine gives no time to must not fail the test.
	for {
		if got, err := InUse(t.Context(), c); err != nil || got == "holder" {
			must(t, err)
			break
		}
	}
	stop()
	must(t, <-ended)
	inUse("")
}

// An idle holder that was fenced ends by itself.
func TestIdleHolderNoticesItsFence(t *testing.T) {
	s := newFake()
	c := config(s, "first")
	c.Check = time.Millisecond
	l, err := Open(t.Context(), c)
	must(t, err)
	ended := make(chan error)
	go func() { ended <- l.Run(t.Context()) }()
	second, err := Open(t.Context(), config(s, "second"))
	must(t, err)
	if err := <-ended; !errors.Is(err, state.ErrFenced) {
		t.Errorf("it ended with %v", err)
	}
	// Once the second has opened the state, the first names it.
	if err := l.verdict(zk.ErrNoAuth); !strings.Contains(err.Error(), "second opened it") {
		t.Errorf("the fence is explained as %v", err)
	}
	must(t, second.Close())
}
