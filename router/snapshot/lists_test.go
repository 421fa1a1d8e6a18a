// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/snapshot"
	"github.com/creelrm/creel/subcluster/remote"
)

// asked answers with the number of calls so far.
type asked struct {
	calls, merges atomic.Int64
	takes         atomic.Int64 // time of a call
	err           atomic.Pointer[error]
	same          []int // if set, the answer to each call
}

func (a *asked) ask(ctx context.Context, _ string) []router.Part[[]int] {
	n := a.calls.Add(1)
	select {
	case <-time.After(time.Duration(a.takes.Load())):
	case <-ctx.Done():
	}
	p := router.Part[[]int]{Member: "sc-a", Value: []int{int(n)}}
	if a.same != nil {
		p.Value = a.same
	}
	if err := a.err.Load(); err != nil {
		p.Value, p.Err = nil, *err
	}
	return []router.Part[[]int]{p}
}

func (a *asked) merge(parts []snapshot.Part[int]) (all []int) {
	a.merges.Add(1)
	for _, p := range parts {
		all = append(all, p.Items...)
	}
	return all
}

func (a *asked) lists(changed func() int64) *snapshot.Lists[string, int, []int] {
	return snapshot.New(snapshot.Config[string, int, []int]{Ask: a.ask, Merge: a.merge, Changed: changed})
}

func get(t *testing.T, l *snapshot.Lists[string, int, []int], key string) ([]int, []snapshot.Part[int]) {
	t.Helper()
	whole, parts, err := l.Get(t.Context(), key, false)
	if err != nil {
		t.Error(err)
	}
	return whole, parts
}

// Viewers of a key share one call for a second, and those of another key have a list of their own.
func TestViewersOfAKeyShareCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a asked
		l := a.lists(nil)
		for second := range 3 {
			var viewers sync.WaitGroup
			for range 50 {
				viewers.Go(func() { get(t, l, "ann") })
			}
			viewers.Wait()
			if n := int(a.calls.Load()); n != second+1 {
				t.Errorf("in second %d: %d calls", second, n)
			}
			time.Sleep(time.Second)
		}
		if !l.Watched() {
			t.Error("the list has no viewers")
		}
		get(t, l, "bob")
		if n := a.calls.Load(); n != 4 {
			t.Errorf("bob's list is not his own: %d calls", n)
		}
	})
}

// A viewer waits for a slow member only if there is no list, and a slow member is left alone for ten times as long.
func TestSlowMembersDelayOnlyFirstViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a asked
		a.takes.Store(int64(5 * time.Second))
		l := a.lists(nil)
		took := func() time.Duration {
			began := time.Now()
			get(t, l, "ann")
			return time.Since(began)
		}
		if d := took(); d != 5*time.Second {
			t.Errorf("the first viewer waits %v", d)
		}
		time.Sleep(49 * time.Second)
		if d := took(); d != 0 || a.calls.Load() != 1 {
			t.Errorf("the next one waits %v, after %d calls", d, a.calls.Load())
		}
		time.Sleep(2 * time.Second)
		if d := took(); d != 300*time.Millisecond {
			t.Errorf("a viewer during a refresh waits %v", d)
		}
		time.Sleep(10 * time.Second)
	})
}

// A list has changes of this router from before the request, and a current list those of others, too.
func TestListsFollowChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a asked
		var changes atomic.Int64
		l := a.lists(changes.Load)
		get(t, l, "ann")
		changes.Add(1)
		if whole, _ := get(t, l, "ann"); !slices.Equal(whole, []int{2}) {
			t.Errorf("after a change: %v", whole)
		}
		if whole, _ := get(t, l, "ann"); !slices.Equal(whole, []int{2}) {
			t.Errorf("without another change: %v", whole)
		}
		if whole, _, err := l.Get(t.Context(), "ann", true); err != nil || !slices.Equal(whole, []int{3}) {
			t.Errorf("the current list: %v, %v", whole, err)
		}
	})
}

// The part of a member that does not answer stays, with the time when it was sent. A rejection by all members is an
// error.
func TestPartOfSilentMemberStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a asked
		l := a.lists(nil)
		get(t, l, "ann")
		sent := time.Now()
		silent := errors.New("silent")
		a.err.Store(&silent)
		time.Sleep(2 * time.Second)
		whole, parts := get(t, l, "ann")
		if !slices.Equal(whole, []int{1}) || !parts[0].At.Equal(sent) || !errors.Is(parts[0].Err, silent) {
			t.Errorf("%v of %+v", whole, parts)
		}
		if !snapshot.Sent(parts) || snapshot.Age(parts, time.Now()) != 0 {
			t.Errorf("age %v", snapshot.Age(parts, time.Now()))
		}
		var refused error = &remote.StatusError{Code: 403}
		a.err.Store(&refused)
		time.Sleep(2 * time.Second)
		if _, _, err := l.Get(t.Context(), "ann", false); !errors.Is(err, creel.ErrNotPermitted) {
			t.Errorf("after a rejection: %v", err)
		}
	})
}

// A list is merged again only after a part has changed.
func TestUnchangedPartsAreNotMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := asked{same: []int{1, 2}}
		l := a.lists(nil)
		for range 5 {
			get(t, l, "ann")
			time.Sleep(2 * time.Second)
		}
		if calls, merges := a.calls.Load(), a.merges.Load(); calls != 5 || merges != 1 {
			t.Errorf("%d calls, %d merges", calls, merges)
		}
		a.same = []int{1, 2}
		if get(t, l, "ann"); a.merges.Load() != 2 {
			t.Errorf("%d merges after a change", a.merges.Load())
		}
	})
}

// Lists are bounded in number, and dropped without viewers.
func TestListsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a asked
		l := a.lists(nil)
		has := func(i int) bool {
			_, _, ok := l.Last(fmt.Sprint(i))
			return ok
		}
		for i := range 40 {
			get(t, l, fmt.Sprint(i))
			time.Sleep(time.Millisecond)
		}
		for i := range 40 {
			if has(i) != (i >= 8) {
				t.Errorf("list %d is held: %v", i, has(i))
			}
		}
		time.Sleep(61 * time.Second)
		if l.Watched() {
			t.Error("the lists have viewers")
		}
		if get(t, l, "new"); has(39) {
			t.Error("a list without viewers is held")
		}
	})
}

// Renew refreshes a list without a viewer, and leaves a fresh one alone.
func TestRenewWithoutViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a asked
		l := a.lists(nil)
		l.Renew(t.Context(), "")
		l.Renew(t.Context(), "")
		if whole, _, ok := l.Last(""); !ok || !slices.Equal(whole, []int{1}) || l.Watched() {
			t.Errorf("%v, %v, watched: %v", whole, ok, l.Watched())
		}
	})
}
