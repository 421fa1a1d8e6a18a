// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Results are cached for their time, or until they are dropped.
func TestGroupsAreRememberedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		g := New(func(user string) []string { asked++; return []string{user + strconv.Itoa(asked)} }, time.Minute)
		is := func(want string) {
			t.Helper()
			if got := g.Of("u"); !slices.Equal(got, []string{want}) {
				t.Errorf("%v, not %s", got, want)
			}
		}
		is("u1")
		time.Sleep(59 * time.Second)
		is("u1")
		time.Sleep(time.Second)
		is("u2")
		g.Forget()
		is("u3")
	})
}

// directory is a mapping that can fail and stall.
type directory struct {
	groups []string
	err    error
	takes  time.Duration
	asked  atomic.Int32
}

func (d *directory) find(context.Context, string) ([]string, error) {
	groups, err := d.groups, d.err
	d.asked.Add(1)
	time.Sleep(d.takes)
	return groups, err
}

// While lookups fail, the last groups are used for ten times their time, and then none.
func TestFailedLookupsKeepLastGroupsForBoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &directory{groups: []string{"staff"}}
		g := Open(Config{Mapping: d.find, Keep: time.Minute, KeepNone: 30 * time.Second})
		g.Of("u")
		d.err = errors.New("the directory is away")
		time.Sleep(2 * time.Minute)
		if got := g.Of("u"); !slices.Equal(got, []string{"staff"}) || !g.Failing() || g.Lookups(Failed) != 1 {
			t.Errorf("%v, failing %v, %d failures", got, g.Failing(), g.Lookups(Failed))
		}
		g.Of("u")
		if n := d.asked.Load(); n != 2 {
			t.Errorf("%d lookups: the second failure followed the first at once", n)
		}
		time.Sleep(8 * time.Minute)
		if got := g.Of("u"); got != nil {
			t.Errorf("%v after ten times the time", got)
		}
		if got := g.Of("other"); got != nil {
			t.Errorf("a user that was never found has %v", got)
		}
		d.err = nil
		time.Sleep(retryAfter)
		if got := g.Of("u"); !slices.Equal(got, []string{"staff"}) || g.Failing() {
			t.Errorf("%v after the directory returned, failing %v", got, g.Failing())
		}
	})
}

// A failed lookup after Forget leaves no groups: an administrator may have taken them away.
func TestForgottenGroupsAreNotUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &directory{groups: []string{"staff"}}
		g := Open(Config{Mapping: d.find, Keep: time.Minute})
		g.Of("u")
		d.takes = 3 * time.Second
		go func() { time.Sleep(2 * time.Minute); g.Of("u") }() // begins before Forget, ends after it
		time.Sleep(2*time.Minute + time.Second)
		g.Forget()
		time.Sleep(inUse)
		if got := g.Known("u"); got != nil {
			t.Errorf("%v after Forget", got)
		}
		time.Sleep(3 * time.Second)
		if got := g.Known("u"); got != nil {
			t.Errorf("%v of a lookup from before Forget", got)
		}
		d.takes, d.err = 0, errors.New("the directory is away")
		if got := g.Of("u"); got != nil {
			t.Errorf("%v of a failed lookup after Forget", got)
		}
	})
}

// Callers at the same time share a lookup, wait for it a bounded time, and Known does not wait.
func TestCallersShareALookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &directory{groups: []string{"staff"}, takes: time.Hour}
		g := Open(Config{Mapping: d.find, Keep: time.Minute})
		began := time.Now()
		var waiting atomic.Int32
		for range 20 {
			go func() {
				if got := g.Of("u"); got != nil {
					t.Errorf("%v before the lookup ended", got)
				}
				waiting.Add(1)
			}()
		}
		synctest.Wait()
		if g.Known("u") != nil || time.Since(began) != 0 {
			t.Error("Known waited")
		}
		time.Sleep(longestWait)
		synctest.Wait()
		if waiting.Load() != 20 || d.asked.Load() != 1 {
			t.Errorf("%d of 20 callers returned, after %d lookups", waiting.Load(), d.asked.Load())
		}
		time.Sleep(time.Hour)
		if got := g.Known("u"); !slices.Equal(got, []string{"staff"}) {
			t.Errorf("%v after the lookup ended", got)
		}
	})
}

// "No groups" is cached for its own time.
func TestNoGroupsAreCachedShorter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &directory{}
		g := Open(Config{Mapping: d.find, Keep: time.Hour, KeepNone: 30 * time.Second})
		g.Of("u")
		time.Sleep(29 * time.Second)
		g.Of("u")
		time.Sleep(time.Second)
		g.Of("u")
		if n := d.asked.Load(); n != 2 || g.Lookups(None) != 2 {
			t.Errorf("%d lookups, %d without groups", n, g.Lookups(None))
		}
	})
}
