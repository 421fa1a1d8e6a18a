// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// checkUsersWait checks the waiting users of root.default, and the amount that each one's limit still allows.
func (w *world) checkUsersWait(want map[string]int64) {
	w.t.Helper()
	_, users := w.m.UsersWait("root.default", "")
	is := map[string]int64{}
	for _, u := range users {
		is[u.User] = u.Pending.Min(u.Most.Sub(u.Used)).Max(creel.Resource{}).MemoryMB
	}
	for user, mb := range want {
		if got, ok := is[user]; !ok || got != mb {
			w.t.Errorf("of what %s waits for %d MB may be granted, want %d (listed: %v)", user, got, mb, ok)
		}
	}
	if len(is) != len(want) {
		w.t.Errorf("listed are %v, want %v", is, want)
	}
}

// factorOne is a queue with half of the cluster and all of it at most, of which a user may have as much
// as is guaranteed.
func factorOne(c *Config) {
	half, all := queues.PercentOf(50), queues.PercentOf(100)
	c.Queues.Root.Children = []queues.Queue{
		{Name: "default", Capacity: half, MaxCapacity: all, UserFactor: 1},
		{Name: "other", Capacity: half, MaxCapacity: all},
	}
}

// A user is listed whose demand exceeds the most that the factor ever allows one user, also while limits still grow
// with the queue's use; two users below it are not.
func TestUsersAboveTheirLimitAreReported(t *testing.T) {
	w := newWorld(t, factorOne)
	w.node("n1", 16384, 16, "")
	a, b := w.unmanaged("alice", "default"), w.unmanaged("bob", "default")
	w.asks(a, ask(1, "*", 1024, 1, 6))
	w.asks(b, ask(1, "*", 1024, 1, 2))
	w.checkUsersWait(map[string]int64{})
	if got := len(w.asks(a, ask(1, "*", 1024, 1, 20)).Granted); got != 3 { // one above 8 GiB, as Hadoop
		t.Fatalf("%d containers more for alice", got)
	}
	w.checkUsersWait(map[string]int64{"alice": 0})
	w.asks(b, ask(1, "*", 1024, 1, 1)) // within the limit
	w.checkUsersWait(map[string]int64{"alice": 0})
	each, _ := w.m.UsersWait("root.default", "")
	if want := creel.NewResource(9216, 9); !each.Equal(want) {
		t.Errorf("each user may come to %s, want %s", each, want)
	}
	w.node("n2", 16384, 16, "") // the guarantee doubles: 7 GiB more
	w.pump()
	w.allocate(a, AllocateRequest{})
	w.checkUsersWait(map[string]int64{"alice": 0})
	if uses, _, _ := w.m.QueueUse("root.default", ""); uses.MemoryMB != 17408+3072 {
		t.Errorf("the queue uses %s", uses)
	}
	w.audit()
}

// While a plan is in force, the planned capacity replaces the guarantee in limits, and may rise to the queue's
// maximum: asks that wait for it count as demand.
func TestPlanMayRaiseUserLimit(t *testing.T) {
	w := newWorld(t, factorOne)
	w.node("n1", 16384, 16, "")
	a := w.unmanaged("alice", "default")
	w.asks(a, ask(1, "*", 1024, 1, 20))
	w.checkUsersWait(map[string]int64{"alice": 0})
	err := w.m.SetCapacities(w.now, Capacities{
		Queues: []Capacity{{Queue: "root.default", Share: 0.5}, {Queue: "root.other", Share: 0.5}},
		Until:  w.now.Add(time.Minute), Version: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.pump()
	w.checkUsersWait(map[string]int64{"alice": 7168}) // of 11 GiB that wait: 16 are all that the queue may have
}

// A user with a cap in the federation is listed with it, and so is every user above the common cap. Asks above the
// cap are held back until it rises.
func TestUsersAboveFederationShareAreReported(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		factorOne(c)
		c.Queues.Root.Children[0].UserFactor = 100
	})
	w.node("n1", 16384, 16, "")
	a, b, c := w.unmanaged("alice", "default"), w.unmanaged("bob", "default"), w.unmanaged("carol", "default")
	caps := func(each, alice int64) {
		until := w.now.Add(time.Minute)
		w.m.SetUserCaps(w.now, UserCaps{
			Queue: "root.default", Limit: creel.NewResource(8192, 100),
			Each:  UserCap{Cap: creel.NewResource(each, 100), Until: until},
			Users: map[string]UserCap{"alice": {Cap: creel.NewResource(alice, 100), Until: until}},
		})
		w.pump()
		w.allocate(a, AllocateRequest{})
	}
	caps(2048, 3072)
	w.asks(a, ask(1, "*", 1024, 1, 10))
	w.asks(b, ask(1, "*", 1024, 1, 2))
	w.checkUsersWait(map[string]int64{"alice": 0})
	w.asks(c, ask(1, "*", 1024, 1, 4))
	w.checkUsersWait(map[string]int64{"alice": 0, "carol": 0})
	w.asks(b, ask(1, "*", 4096, 1, 1)) // more than everybody's part
	w.checkUsersWait(map[string]int64{"alice": 0, "bob": 0, "carol": 0})
	_, users := w.m.UsersWait("root.default", "")
	if u := users[0]; u.Used.MemoryMB != 3072 || u.Pending.MemoryMB != 7168 || u.Most.MemoryMB != 3072 {
		t.Errorf("alice: %+v", u)
	}
	caps(2048, 5120)
	w.checkUsersWait(map[string]int64{"alice": 0, "bob": 0, "carol": 0})
	if _, users = w.m.UsersWait("root.default", ""); users[0].Used.MemoryMB != 5120 {
		t.Errorf("alice uses %s when her part rose", users[0].Used)
	}
	caps(8192, 8192)
	w.checkUsersWait(map[string]int64{"alice": 0})
	w.audit()
}
