// SPDX-License-Identifier: Apache-2.0

package role

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel/statestore/memory"
)

// A round of moves that outlasts its lease renews it, and no other router begins one. A router that lost its lease
// stops.
func TestMoveLeaseIsRenewedWithinRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.NewState("memory", nil), time.Now)
		a, b := &mover{store: store, name: "a"}, &mover{store: store, name: "b"}
		ctx, done, ok := a.lead(t.Context())
		if !ok {
			t.Fatal("nobody holds it, and it is refused")
		}
		for range 10 {
			time.Sleep(moveLease / 2)
			if _, _, ok := b.lead(t.Context()); ok || ctx.Err() != nil {
				t.Fatalf("the other leads: %v; the round goes on: %v", ok, ctx.Err())
			}
		}
		done()
		ctx, done, ok = b.lead(t.Context())
		if !ok {
			t.Fatal("the lease is not given back")
		}
		lease, err := store.Acquire(t.Context(), "moves", "b", moveLease)
		if err == nil {
			err = store.Release(t.Context(), lease)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(moveLease)
		if ctx.Err() == nil {
			t.Error("the round goes on without its lease")
		}
		done()
	})
}
