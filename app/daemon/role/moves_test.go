// SPDX-License-Identifier: Apache-2.0

package role

import (
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/moves"
	"github.com/creelrm/creel/statestore/memory"
)

// A router pauses for longer than its lease while another takes over. When it resumes it does not begin the moves it
// had chosen.
func TestARouterThatStoodStillBeginsNoMoves(t *testing.T) {
	ctx := t.Context()
	now := time.Now()
	store := memory.New(memory.NewState("test", nil), func() time.Time { return now })
	one, two := &mover{store: store, name: "one"}, &mover{store: store, name: "two"}
	under, done, ok := one.lead(ctx)
	if !ok {
		t.Fatal("nobody leads, and it does not")
	}
	defer done()
	begin := func(n int32) error {
		return moves.Begin(under, store, moves.Record{HomeMove: router.HomeMove{
			Application: creel.ApplicationID{ClusterTimestamp: 1, ID: n}, From: "sc-1", To: "sc-2", Why: "sc-1 is drained",
		}})
	}
	if err := begin(1); err != nil {
		t.Fatalf("while it leads: %v", err)
	}
	now = now.Add(moveLease + time.Second)
	_, bye, ok := two.lead(ctx)
	if !ok {
		t.Fatal("its lease is over, and the other does not lead")
	}
	defer bye()
	if err := begin(2); !errors.Is(err, creel.ErrStale) {
		t.Errorf("after the other began to lead: %v", err)
	}
}
