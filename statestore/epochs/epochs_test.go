// SPDX-License-Identifier: Apache-2.0

package epochs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/statestore/memory"
)

// No two members have the same first epoch, whatever is configured, and no chosen one is within a thousand starts of
// another's, or the member's own previous one.
func TestMembersHaveEpochsOfTheirOwn(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		claimed := map[creel.SubclusterID]int64{}
		for range 40 {
			id := creel.SubclusterID(fmt.Sprintf("sc-%d", rapid.IntRange(1, 9).Draw(t, "member")))
			want := rapid.SampledFrom([]int64{Any, Any, Any, 0, 1, 1000, 2000, 100_000, 100_500, 101_000}).Draw(t, "want")
			before, had := claimed[id]
			epoch, err := Choose(claimed, id, want)
			same := false
			for other, is := range claimed {
				same = same || other != id && is == want
			}
			if same != errors.Is(err, creel.ErrConflict) {
				t.Fatalf("%s wants %d of %v: %v", id, want, claimed, err)
			}
			if err != nil {
				continue
			}
			if want != Any && epoch != want || want == Any && had && epoch == before {
				t.Fatalf("%s had %d, wants %d of %v, and has %d", id, before, want, claimed, epoch)
			}
			for other, is := range claimed {
				if d := epoch - is; other != id && (d == 0 || want == Any && d < Between && -d < Between) {
					t.Fatalf("%s has %d beside %v", id, epoch, claimed)
				}
			}
			claimed[id] = epoch
		}
	})
}

// Members that start at the same time claim different epochs; one that starts again names its own, and one that is
// removed frees it.
func TestMembersThatClaimAtOnce(t *testing.T) {
	ctx, store := t.Context(), memory.New(memory.NewState("test", nil), time.Now)
	const members = 20
	var all sync.WaitGroup
	got := make([]int64, members)
	for i := range members {
		all.Go(func() {
			epoch, err := Claim(ctx, store, creel.SubclusterID(fmt.Sprintf("sc-%d", i)), Any)
			if err != nil {
				t.Error(err)
			}
			got[i] = epoch
		})
	}
	all.Wait()
	seen := map[int64]bool{}
	for i, epoch := range got {
		if epoch == 0 || seen[epoch] {
			t.Fatalf("sc-%d has epoch %d of %v", i, epoch, got)
		}
		seen[epoch] = true
	}
	if again, err := Claim(ctx, store, "sc-3", got[3]); err != nil || again != got[3] {
		t.Errorf("sc-3 starts again with %d, %v; it had %d", again, err, got[3])
	}
	if _, err := Claim(ctx, store, "sc-99", got[3]); !errors.Is(err, creel.ErrConflict) {
		t.Errorf("another takes the epoch of sc-3: %v", err)
	}
	if err := Forget(ctx, store, "sc-3"); err != nil {
		t.Fatal(err)
	}
	if is, err := Claim(ctx, store, "sc-99", got[3]); err != nil || is != got[3] {
		t.Errorf("sc-3 is removed, and its epoch is not free: %d, %v", is, err)
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	if _, err := Claim(stopped, store, "sc-98", Any); err == nil {
		t.Error("claimed of a store that was not asked")
	}
}
