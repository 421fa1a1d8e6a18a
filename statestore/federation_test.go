// SPDX-License-Identifier: Apache-2.0

package statestore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
)

// A federation is renamed while none of its processes runs, or with the operator's consent. Then processes of the old
// name do not start.
func TestFederationIsRenamedWithoutRunningDaemons(t *testing.T) {
	ctx, now := t.Context(), time.Unix(1_000_000, 0)
	store := memory.New(memory.NewState("test", nil), func() time.Time { return now })
	rename := func(from, to string, accept bool) error {
		return statestore.RenameFederation(ctx, store, statestore.Rename{From: from, To: to, Author: "ann", AcceptRunning: accept})
	}
	owner := func(want string) {
		t.Helper()
		if is, err := statestore.JoinFederation(ctx, store, ""); err != nil || is != want {
			t.Errorf("the store is of %q, %v, want %q", is, err, want)
		}
	}
	if err := rename("north", "south", false); !errors.Is(err, creel.ErrNotPermitted) {
		t.Errorf("a store without a name: %v", err)
	}
	if _, err := statestore.JoinFederation(ctx, store, "north"); err != nil {
		t.Fatal(err)
	}
	if err := rename("east", "south", false); !errors.Is(err, creel.ErrNotPermitted) || !strings.Contains(err.Error(), `"north"`) {
		t.Errorf("another federation's store: %v", err)
	}
	for _, name := range []string{"", "two words", "\n"} {
		if err := rename("north", name, false); !errors.Is(err, creel.ErrInvalidRequest) {
			t.Errorf("%q: %v", name, err)
		}
	}

	member := subcluster.Member{ID: "sc-1", Epoch: 1}
	if err := store.Register(ctx, member); err != nil {
		t.Fatal(err)
	}
	router := statestore.Daemon{Kind: "router", Name: "r1", Host: "h", PID: 1}
	if err := store.KeepDaemon(ctx, router, time.Minute); err != nil {
		t.Fatal(err)
	}
	err := rename("north", "south", false)
	if !errors.Is(err, creel.ErrConflict) || !strings.Contains(err.Error(), "router r1 on h") ||
		!strings.Contains(err.Error(), "sc-1") {
		t.Errorf("while daemons run: %v", err)
	}
	owner("north")
	now = now.Add(2 * time.Minute) // they are silent
	if err := rename("north", "south", false); err != nil {
		t.Error(err)
	}
	owner("south")
	if err := rename("north", "south", false); err != nil {
		t.Errorf("a repeat: %v", err)
	}
	if _, err := statestore.JoinFederation(ctx, store, "north"); !errors.Is(err, creel.ErrNotPermitted) {
		t.Errorf("a process of the old name: %v", err)
	}
	if err := store.Register(ctx, member); err != nil {
		t.Fatal(err)
	}
	if err := rename("south", "west", true); err != nil {
		t.Error(err)
	}
	owner("west")
}
