// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/rm"
)

// limitUsers writes the limit of each user of root.default in the federation, in place of the queue's maximum.
func (f *federation) limitUsers(mb int64) {
	f.t.Helper()
	set, err := f.store.Documents(f.t.Context(), rebalancer.TreeClass)
	if err != nil {
		f.t.Fatal(err)
	}
	_, err = f.store.PutDocument(f.t.Context(), statestore.DocumentWrite{
		Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Expect: set.Documents[0].Version,
		Data: fmt.Appendf(nil, `{"queues":[{"queue":"root.default","user_limit":{"memory":%d}}]}`, mb),
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (x *member) release(t *testing.T, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		x.allocate(t, rm.AllocateRequest{Release: []creel.ContainerID{creel.NewContainerID(x.app, 0, int64(i))}})
	}
}

// hot returns the users of root.default with records of their own.
func (f *federation) hot() (names []string) {
	f.t.Helper()
	set, err := f.store.Documents(f.t.Context(), rebalancer.UsersClass)
	if err != nil || len(set.Documents) != 1 {
		f.t.Fatal(len(set.Documents), err)
	}
	var r escrow.UsersRecord
	if err := json.Unmarshal(set.Documents[0].Data, &r); err != nil {
		f.t.Fatal(err)
	}
	for _, h := range r.Hot {
		names = append(names, h.User)
	}
	return names
}

// Alice's applications run in all members. Without a record she gets every user's part in each. She gets a record
// when she wants more in one member, which then has the part unused elsewhere; and equal parts in each when she wants
// more everywhere.
func TestAUserLimitHoldsForAllMembersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 3, 12*1024, quick)
		defer f.close()
		f.limitUsers(12 * 1024)
		f.pass(2*time.Second, 12)
		f.members[0].want(t, 3)
		f.pass(2*time.Second, 12)
		if each, _ := f.uses(); each[0] != 3 || len(f.hot()) != 0 {
			t.Fatalf("alice wants 3 GiB of her part of 4 and uses %v; users with a record: %v", each, f.hot())
		}
		f.members[0].want(t, 40)
		f.pass(3*time.Second, 12)
		if each, _ := f.uses(); each[0] != 12 || len(f.hot()) != 1 {
			t.Fatalf("alice wants more in one member and uses %v GiB of 12; users with a record: %v", each, f.hot())
		}
		f.members[1].want(t, 40)
		f.members[2].want(t, 40)
		f.pass(time.Second, 12)
		why, _ := f.members[1].m.Why(f.members[1].app.Application)
		if !strings.HasPrefix(why.Text, "User alice may use") || !strings.Contains(why.Text, "of <memory:12288> in the federation") {
			t.Errorf("why says %q", why.Text)
		}
		for i := range 11 {
			f.members[0].release(t, i+1, i+1)
			f.pass(time.Second, 12)
		}
		f.pass(2*time.Second, 12)
		if each, sum := f.uses(); each[0] != 4 || each[1] != 4 || each[2] != 4 {
			t.Fatalf("alice wants more in all members and uses %v GiB, %d in all", each, sum)
		}
	})
}

// When a user runs and waits for nothing any more, the user's record is deleted, and the part of Each applies again.
func TestIdleUserHasNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2, 8*1024, quick)
		defer f.close()
		f.limitUsers(8 * 1024)
		f.pass(2*time.Second, 8)
		f.members[0].want(t, 8)
		f.pass(3*time.Second, 8)
		if each, _ := f.uses(); each[0] != 8 {
			t.Fatalf("alice uses %v GiB", each)
		}
		f.members[0].release(t, 1, 8)
		f.pass(3*time.Second, 8)
		if hot := f.hot(); len(hot) != 0 {
			t.Fatalf("users with a record: %v", hot)
		}
		f.members[1].want(t, 4)
		f.pass(time.Second, 8)
		if each, _ := f.uses(); each[1] != 4 || len(f.hot()) != 0 {
			t.Fatalf("alice uses %v GiB; users with a record: %v", each, f.hot())
		}
	})
}

// The store comes back without the users' document, or a member is cut off: no user gets the limit twice.
func TestUserLimitHoldsAfterStoreLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2, 8*1024, quick)
		defer f.close()
		f.limitUsers(8 * 1024)
		full, err := f.store.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		f.pass(2*time.Second, 8)
		f.members[0].want(t, 8)
		f.pass(3*time.Second, 8)
		if err := f.store.Restore(full); err != nil { // without any escrow record
			t.Fatal(err)
		}
		f.members[1].want(t, 4)
		f.pass(5*time.Second, 8)
		if each, _ := f.uses(); each[0] != 8 || each[1] != 0 {
			t.Fatalf("alice uses %v GiB of 8", each)
		}
		a := f.members[0]
		a.mu.Lock()
		a.cut = true
		a.mu.Unlock()
		a.release(t, 1, 6)
		f.pass(5*time.Second, 8)
		if each, _ := f.uses(); each[0] != 2 || each[1] != 0 {
			t.Fatalf("alice uses %v GiB; what a member holds that is cut off counts", each)
		}
		a.release(t, 7, 8) // within the linger
		f.pass(14*time.Second, 8)
		if each, _ := f.uses(); each[1] != 4 {
			t.Fatalf("alice uses %v GiB after the linger", each)
		}
	})
}
