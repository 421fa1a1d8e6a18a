// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// Three ResourceManagers share a user's limit in a queue. The user reaches it from one member. When containers end
// there and a second has demand, the user reaches it from two. In no sample of the scheduler documents is the user
// above it.
func TestUserLimitHoldsOverAllMembers(t *testing.T) {
	const limit, each = 16384, 512
	f := startSimulation(t, 3, 16384, hadoop.Conf{
		"yarn.scheduler.capacity.maximum-am-resource-percent":  "1",
		"yarn.scheduler.capacity.root.other.user-limit-factor": "10",
	})
	user := hadoop.OSUser(t)
	f.applyTree(t, fmt.Sprintf("queues:\n- {queue: root.other, user_limit: {memory: %d}}\n", limit))

	use := func(s *Subcluster) int {
		t.Helper()
		for _, q := range queuesOf(t, s) {
			for _, u := range q.Users.User {
				if q.QueueName == "other" && u.Username == user {
					return u.ResourcesUsed.Memory
				}
			}
		}
		return 0
	}
	samples, most := 0, 0
	// comes samples until the members' use is the expected one. Members whose use falls are read last, so that the
	// sum is at most the use at one moment.
	comes := func(order []*Subcluster, want int) (by map[string]int) {
		t.Helper()
		began := time.Now()
		for {
			sum := 0
			by = map[string]int{}
			for _, s := range order {
				by[s.ID] = use(s)
				sum += by[s.ID]
			}
			samples++
			if most = max(most, sum); sum > limit {
				t.Fatalf("sample %d: %s uses %d MB, above %d: %v", samples, user, sum, limit, by)
			}
			took := time.Since(began)
			if sum >= want {
				if want == 0 {
					return by
				}
				t.Logf("after %s: %v, in %d samples none above", took.Round(100*time.Millisecond), by, samples)
				return by
			}
			if took > process.Guard {
				t.Fatalf("after %s it is %v, want %d in all\n%s", took, by, want,
					f.Creel(t, "rebalancer", "escrow", "--store", f.Store))
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	one, two := f.Subclusters[0], f.Subclusters[1]
	order := []*Subcluster{f.Subclusters[2], two, one}
	AwaitUserLimits(t, f.RouterAddresses[0].Web, 3)
	var apps []string
	for range 40 {
		apps = append(apps, submitSleep(t, one.Addresses.Web, "other", each))
	}
	comes(order, limit*9/10)
	var second []string
	for range 40 {
		second = append(second, submitSleep(t, two.Addresses.Web, "other", each))
	}
	comes(order, limit*9/10)
	for _, id := range append(apps[20:], apps[:12]...) {
		KillApp(t, one.Addresses.Web, id)
		comes(order, 0)
	}
	by := comes(order, limit*9/10)
	if by[two.ID] < limit/2 {
		t.Errorf("%s uses %v, with room for %d MB in %s", user, by, limit-by[one.ID], two.ID)
	}

	waits := second[by[two.ID]/each] // those behind it may not start their AMs at all
	why := f.Creel(t, "app", "why", waits, "--server", "http://"+two.Addresses.Web, "--user", user)
	t.Log(why)
	if want := fmt.Sprintf("here of <memory:%d> in the federation", limit); !strings.Contains(why, want) {
		t.Errorf("%q is not said of an application that waits", want)
	}
	escrow := f.Creel(t, "rebalancer", "escrow", "--store", f.Store)
	t.Log(escrow)
	if !strings.Contains(escrow, user) {
		t.Errorf("the user's record is not listed")
	}
	t.Logf("%s used %d MB of %d at most, in %d samples", user, most, limit, samples)
}
