// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/storetest"
	"github.com/creelrm/creel/subcluster"
)

// failing makes the next transaction fail, carried out or not.
func (s *fakeServer) failing(done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := false
	s.fault = func() (bool, error) {
		if failed {
			return false, nil
		}
		failed = true
		return done, zk.ErrConnectionClosed
	}
}

func TestLostAnswers(t *testing.T) {
	for _, done := range []bool{false, true} {
		server, s, _ := both(t)
		ctx := t.Context()
		server.failing(done)
		home, number, err := s.Claim(ctx, storetest.App(1), "sc-1", nil)
		want := int64(1)
		if done {
			want = 2 // a claim that the store repeated never gets the number of a first one
		}
		if err != nil || home != "sc-1" || number != want {
			t.Errorf("carried out %v: the claim is answered %s, %d, %v", done, home, number, err)
		}
		server.failing(done)
		made, err := s.PutDocument(ctx, statestore.DocumentWrite{Class: "plan", Name: "a", Data: []byte("1")})
		if err != nil || string(made.Data) != "1" {
			t.Errorf("carried out %v: the document is %+v, %v", done, made, err)
		}
		server.failing(done)
		if _, err := s.Move(ctx, storetest.App(1), "sc-1", "sc-2", 0, nil); !errors.Is(err, creel.ErrUnavailable) {
			t.Errorf("carried out %v: a move with a lost answer was repeated: %v", done, err)
		}
	}
}

// A change by another process between the reads and the writes of a transaction is never overwritten.
func TestConflictsAreDecidedAgain(t *testing.T) {
	server, s, _ := both(t)
	other := open(t, server)
	ctx := t.Context()
	a, err := s.Acquire(ctx, "leader", "a", time.Hour)
	must(t, err)
	interfered := false
	server.fault = func() (bool, error) {
		if interfered {
			return false, nil
		}
		interfered = true
		server.mu.Unlock()
		defer server.mu.Lock()
		must(t, other.Release(ctx, a))
		_, err := other.Acquire(ctx, "leader", "b", time.Hour)
		must(t, err)
		return false, nil
	}
	if _, _, err := s.Claim(statestore.Under(ctx, a), storetest.App(1), "sc-1", nil); !errors.Is(err, creel.ErrStale) {
		t.Errorf("a write under a lease that was lost meanwhile: %v", err)
	}
	homeIs(t, s, storetest.App(1), "")
	interfered = false
	server.fault = func() (bool, error) {
		if interfered {
			return false, nil
		}
		interfered = true
		server.mu.Unlock()
		defer server.mu.Lock()
		_, _, err := other.Claim(ctx, storetest.App(2), "sc-2", nil)
		must(t, err)
		return false, nil
	}
	if home, number, err := s.Claim(ctx, storetest.App(2), "sc-1", nil); err != nil || home != "sc-2" || number != 2 {
		t.Errorf("a claim beside another one is answered %s, %d, %v", home, number, err)
	}
	server.fault = func() (bool, error) { return false, zk.ErrBadVersion }
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := s.Renew(ctx, a, time.Hour); !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("a change that always conflicts: %v", err)
	}
}

func TestRecordTooLargeForZooKeeper(t *testing.T) {
	_, s, _ := both(t)
	ctx := t.Context()
	random := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	write := statestore.DocumentWrite{Class: "plan", Name: "a", Data: random}
	if _, err := s.PutDocument(ctx, write); !errors.Is(err, creel.ErrInvalidRequest) ||
		!strings.Contains(err.Error(), "too large for ZooKeeper") {
		t.Errorf("a document of 1 MiB that cannot be compressed: %v", err)
	}
	write.Data = bytes.Repeat([]byte(`{"queue":"root.a"}`), 200_000)
	if _, err := s.PutDocument(ctx, write); err != nil {
		t.Errorf("a document of 3.6 MB that can be compressed: %v", err)
	}
	if d, err := s.DocumentOf(ctx, "plan", "a", nil); err != nil || !bytes.Equal(d.Data, write.Data) {
		t.Errorf("it is read as %d bytes, %v", len(d.Data), err)
	}
}

func TestNewStoreWaitsForTheReports(t *testing.T) {
	server := newFake()
	s := open(t, server, true)
	ctx := t.Context()
	claim := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, _, err := s.Claim(ctx, storetest.App(1), "sc-2", nil)
		return err
	}
	if err := claim(ctx); !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("a claim before the reports: %v", err)
	}
	soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := s.Home(soon, storetest.App(1)); !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("a home before the reports: %v", err)
	}
	must(t, s.Remember(ctx, []subcluster.Member{{ID: "sc-1", Epoch: 3}}))
	must(t, s.AcceptMissing(ctx, "sc-9"))
	members, missing, err := s.Remembered(ctx)
	if err != nil || len(members) != 1 || members[0].Epoch != 3 || len(missing) != 1 || missing[0] != "sc-9" {
		t.Errorf("remembered are %v and %v, %v", members, missing, err)
	}
	homes := []statestore.ApplicationHome{{ID: storetest.App(1), Home: "sc-1"}}
	_, err = s.Reopen(ctx, func(context.Context) ([]statestore.ApplicationHome, error) { return homes, nil })
	must(t, err)
	if _, _, err := s.Claim(ctx, storetest.App(1), "sc-2", nil); err != nil {
		t.Fatal(err)
	}
	homeIs(t, s, storetest.App(1), "sc-1")
	if members, missing, err := s.Remembered(ctx); err != nil || len(members)+len(missing) != 0 {
		t.Errorf("after the rebuild %v and %v are remembered, %v", members, missing, err)
	}
	if err := s.AcceptMissing(ctx, "sc-9"); !errors.Is(err, creel.ErrConflict) {
		t.Errorf("a report after the rebuild: %v", err)
	}
	restore := server.copied()
	restore()
	if lost, err := s.Lost(ctx); err != nil || !lost {
		t.Errorf("a restored copy of a store that was rebuilt is lost: %v, %v", lost, err)
	}
	server.mu.Lock() // everything is deleted
	server.nodes = newFake().nodes
	server.mu.Unlock()
	if err := claim(ctx); !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("a claim in a store that came back empty: %v", err)
	}
	if lost, err := s.Lost(ctx); err != nil || !lost {
		t.Errorf("a store that came back empty is lost: %v, %v", lost, err)
	}
}

func TestLeftoversAreSwept(t *testing.T) {
	server, s, _ := both(t)
	ctx := t.Context()
	for n := range 2 {
		_, _, err := s.Claim(ctx, storetest.App(n), "sc-1", nil)
		must(t, err)
		must(t, s.DropUAMRecord(ctx, storetest.Attempt(n, 1)))
	}
	token, err := s.IssueToken(ctx, statestore.Token{Owner: "ann"}, time.Minute, time.Minute)
	must(t, err)
	gone := storetest.App(0).String()
	_, err = server.Multi(ctx, &zk.DeleteRequest{Path: root + "/applications/" + gone, Version: -1})
	must(t, err)
	server.advance(2 * time.Hour)
	_, err = s.Sweep(ctx, 10)
	must(t, err)
	kept := storetest.App(1).String()
	for path, want := range map[string]bool{
		"apps/" + gone: false, "uams/" + gone: false, "apps/" + kept: true, "uams/" + kept: true,
		fmt.Sprintf("tokens/%010d", token.Number): false,
	} {
		if is := server.has(t, root+"/creel/"+path); is != want {
			t.Errorf("%s is there: %v", path, is)
		}
	}
}
