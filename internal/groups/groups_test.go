// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"slices"
	"strconv"
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
