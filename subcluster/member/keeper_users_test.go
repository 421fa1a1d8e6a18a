// SPDX-License-Identifier: Apache-2.0

package member_test

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
	"github.com/creelrm/creel/subcluster/member/membertest"
	"github.com/creelrm/creel/subcluster/rm"
)

// limitUsers writes the limit of each user of root.default in the federation, in place of the queue's maximum.
func limitUsers(f *membertest.Federation, mb int64) {
	f.T.Helper()
	set, err := f.Store.Documents(f.T.Context(), rebalancer.TreeClass)
	if err != nil {
		f.T.Fatal(err)
	}
	_, err = f.Store.PutDocument(f.T.Context(), statestore.DocumentWrite{
		Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Expect: set.Documents[0].Version,
		Data: fmt.Appendf(nil, `{"queues":[{"queue":"root.default","user_limit":{"memory":%d}}]}`, mb),
	})
	if err != nil {
		f.T.Fatal(err)
	}
}

func release(x *membertest.Member, t *testing.T, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		x.Allocate(t, rm.AllocateRequest{Release: []creel.ContainerID{creel.NewContainerID(x.App, 0, int64(i))}})
	}
}

// hot returns the users of root.default with records of their own.
func hot(f *membertest.Federation) (names []string) {
	f.T.Helper()
	set, err := f.Store.Documents(f.T.Context(), rebalancer.UsersClass)
	if err != nil || len(set.Documents) != 1 {
		f.T.Fatal(len(set.Documents), err)
	}
	var r escrow.UsersRecord
	if err := json.Unmarshal(set.Documents[0].Data, &r); err != nil {
		f.T.Fatal(err)
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
		f := membertest.New(t, 3, 12*1024, membertest.Quick)
		defer f.Close()
		limitUsers(f, 12*1024)
		f.Pass(2*time.Second, 12)
		f.Members[0].Want(t, 3)
		f.Pass(2*time.Second, 12)
		if each, _ := f.Uses(); each[0] != 3 || len(hot(f)) != 0 {
			t.Fatalf("alice wants 3 GiB of her part of 4 and uses %v; users with a record: %v", each, hot(f))
		}
		f.Members[0].Want(t, 40)
		f.Pass(3*time.Second, 12)
		if each, _ := f.Uses(); each[0] != 12 || len(hot(f)) != 1 {
			t.Fatalf("alice wants more in one member and uses %v GiB of 12; users with a record: %v", each, hot(f))
		}
		f.Members[1].Want(t, 40)
		f.Members[2].Want(t, 40)
		f.Pass(time.Second, 12)
		why, _ := f.Members[1].Machine.Why(f.Members[1].App.Application)
		if !strings.HasPrefix(why.Text, "User alice may use") || !strings.Contains(why.Text, "of <memory:12288> in the federation") {
			t.Errorf("why says %q", why.Text)
		}
		for i := range 11 {
			release(f.Members[0], t, i+1, i+1)
			f.Pass(time.Second, 12)
		}
		f.Pass(2*time.Second, 12)
		if each, sum := f.Uses(); each[0] != 4 || each[1] != 4 || each[2] != 4 {
			t.Fatalf("alice wants more in all members and uses %v GiB, %d in all", each, sum)
		}
	})
}

// When a user runs and waits for nothing any more, the user's record is deleted, and the part of Each applies again.
func TestIdleUserHasNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := membertest.New(t, 2, 8*1024, membertest.Quick)
		defer f.Close()
		limitUsers(f, 8*1024)
		f.Pass(2*time.Second, 8)
		f.Members[0].Want(t, 8)
		f.Pass(3*time.Second, 8)
		if each, _ := f.Uses(); each[0] != 8 {
			t.Fatalf("alice uses %v GiB", each)
		}
		release(f.Members[0], t, 1, 8)
		f.Pass(3*time.Second, 8)
		if hot := hot(f); len(hot) != 0 {
			t.Fatalf("users with a record: %v", hot)
		}
		f.Members[1].Want(t, 4)
		f.Pass(time.Second, 8)
		if each, _ := f.Uses(); each[1] != 4 || len(hot(f)) != 0 {
			t.Fatalf("alice uses %v GiB; users with a record: %v", each, hot(f))
		}
	})
}

// The store comes back without the users' document, or a member is cut off: no user gets the limit twice.
func TestUserLimitHoldsAfterStoreLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := membertest.New(t, 2, 8*1024, membertest.Quick)
		defer f.Close()
		limitUsers(f, 8*1024)
		full, err := f.Store.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		f.Pass(2*time.Second, 8)
		f.Members[0].Want(t, 8)
		f.Pass(3*time.Second, 8)
		if err := f.Store.Restore(full); err != nil { // without any escrow record
			t.Fatal(err)
		}
		f.Members[1].Want(t, 4)
		f.Pass(5*time.Second, 8)
		if each, _ := f.Uses(); each[0] != 8 || each[1] != 0 {
			t.Fatalf("alice uses %v GiB of 8", each)
		}
		a := f.Members[0]
		a.CutOff(true)
		release(a, t, 1, 6)
		f.Pass(5*time.Second, 8)
		if each, _ := f.Uses(); each[0] != 2 || each[1] != 0 {
			t.Fatalf("alice uses %v GiB; what a member holds that is cut off counts", each)
		}
		release(a, t, 7, 8) // within the linger
		f.Pass(14*time.Second, 8)
		if each, _ := f.Uses(); each[1] != 4 {
			t.Fatalf("alice uses %v GiB after the linger", each)
		}
	})
}
