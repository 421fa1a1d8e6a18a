// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// A part of a federation-wide maximum limits a queue with those below it until its lease ends, and the lower of it and
// the queue's own maximum counts.
func TestCapLimitsOpportunisticContainers(t *testing.T) {
	w, _ := limited(t, func(_, a, _ *queues.Queue) { a.Opportunistic.All = atMost(9) })
	first, other := w.unmanaged("u", "a"), w.unmanaged("v", "b")
	set := func(n int) {
		SetOpportunisticCap(w.m, w.now, OpportunisticCap{Queue: "root.a", Cap: n, Most: 20, Until: w.now.Add(time.Minute)})
	}
	set(2)
	if n := len(w.asks(first, opportuneAsk(1, 20)).Granted); n != 2 {
		t.Errorf("granted %d of a part of 2", n)
	}
	if n := len(w.asks(other, opportuneAsk(1, 20)).Granted); n != 20 {
		t.Errorf("another queue got %d", n)
	}
	const want = "It asks for 18 opportunistic containers, but " +
		"queue root.a has its part of 2 here of the federation's maximum of 20."
	if y, _ := w.m.Why(first.Application); y.Text != want {
		t.Errorf("why: %s", y.Text)
	}
	uses, ok := OpportunisticUse(w.m, "root.a")
	if asked := OpportunisticDemand(w.m, "root"); !ok || uses != 2 || asked != 18 {
		t.Errorf("uses %d, %v, and asks for %d", uses, ok, asked)
	}
	set(5)
	w.now = w.now.Add(2 * time.Minute)
	if n := len(w.allocate(first, AllocateRequest{}).Granted); n != 0 {
		t.Errorf("granted %d after the lease", n)
	}
	set(20)
	if n := len(w.allocate(first, AllocateRequest{}).Granted); n != 7 {
		t.Errorf("granted %d up to the queue's own maximum, want 7", n)
	}
	ClearOpportunisticCap(w.m, w.now, "root.a")
	if room, _ := w.m.opportunistic.room(w.m.apps.byID[other.Application]); room < 1<<30 {
		t.Errorf("room for %d without a cap", room)
	}
	w.audit()
}

// A user's part of a federation-wide limit counts the user's applications in the queue and below it. Other users have
// the part of each, and no part is used after its lease.
func TestUserCapLimitsOpportunisticContainers(t *testing.T) {
	w, _ := limited(t, func(_, _, _ *queues.Queue) {})
	first, below, other := w.unmanaged("u", "a"), w.unmanaged("u", "b"), w.unmanaged("v", "b")
	part := func(n int, lasts time.Duration) OpportunisticCap {
		return OpportunisticCap{Queue: "root", Cap: n, Most: 20, Until: w.now.Add(lasts)}
	}
	SetOpportunisticUserCaps(w.m, w.now, OpportunisticUserCaps{
		Each: part(2, time.Minute), Users: map[string]OpportunisticCap{"u": part(5, time.Minute)},
	})
	for _, k := range []struct {
		id   creel.AttemptID
		want int
	}{{first, 4}, {below, 1}, {other, 2}} {
		if n := len(w.asks(k.id, opportuneAsk(1, 4)).Granted); n != k.want {
			t.Errorf("%s got %d, want %d", k.id, n, k.want)
		}
	}
	const want = "It asks for 3 opportunistic containers, but " +
		"user u has its part of 5 here of the federation's maximum of 20 in queue root."
	if y, _ := w.m.Why(below.Application); y.Text != want {
		t.Errorf("why: %s", y.Text)
	}
	if got := OpportunisticUsers(w.m, "root"); !slices.Equal(got, []UserContainers{{"u", 5, 8}, {"v", 2, 4}}) {
		t.Errorf("users: %v", got)
	}
	if got := OpportunisticUsers(w.m, "root.a"); !slices.Equal(got, []UserContainers{{"u", 4, 4}}) {
		t.Errorf("users of root.a: %v", got)
	}
	SetOpportunisticUserCaps(w.m, w.now, OpportunisticUserCaps{
		Each: part(20, time.Second), Users: map[string]OpportunisticCap{"u": part(6, time.Hour)},
	})
	w.now = w.now.Add(2 * time.Second)
	if n, m := len(w.allocate(other, AllocateRequest{}).Granted), len(w.allocate(below, AllocateRequest{}).Granted); n != 0 || m != 1 {
		t.Errorf("%d granted after the lease of each user, %d by the part of 6", n, m)
	}
	ClearOpportunisticUserCaps(w.m, w.now, "root")
	if n := len(w.allocate(other, AllocateRequest{}).Granted); n != 2 {
		t.Errorf("%d granted without a limit, want 2", n)
	}
	w.audit()
}

func TestMachineWithoutOpportunisticContainersHasNoUse(t *testing.T) {
	w := newWorld(t, nil)
	SetOpportunisticCap(w.m, w.now, OpportunisticCap{Queue: "root.default", Cap: 3, Until: w.now.Add(time.Minute)})
	SetOpportunisticUserCaps(w.m, w.now, OpportunisticUserCaps{Each: OpportunisticCap{Queue: "root.default"}})
	ClearOpportunisticUserCaps(w.m, w.now, "root.default")
	if users := OpportunisticUsers(w.m, "root.default"); users != nil {
		t.Errorf("users: %v", users)
	}
	if n, ok := OpportunisticUse(w.m, "root.default"); ok || n != 0 || OpportunisticDemand(w.m, "root.default") != 0 {
		t.Errorf("it uses %d, %v", n, ok)
	}
}
