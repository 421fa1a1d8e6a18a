// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"math"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

func gigs(n int64) creel.Resource { return creel.NewResource(1024*n, n) }

// userLoad returns the use, pending asks and limit of a user.
func userLoad(name string, used, pending, most int64) subcluster.UserLoad {
	return subcluster.UserLoad{User: name, Used: gigs(used), Pending: gigs(pending), Most: gigs(most)}
}

func boundTo(n int64) *creel.Resource {
	r := gigs(n)
	return &r
}

// Waiting asks count as demand as far as limits allow them in some member.
func TestDemandAboveLimitsDoesNotCount(t *testing.T) {
	limited := &Queue{Path: "root.a", UserLimit: gigs(15)}
	row := func(used, pending int64, users ...subcluster.UserLoad) subcluster.QueueLoad {
		return subcluster.QueueLoad{Queue: "root.a", Used: gigs(used), Pending: gigs(pending), Users: users}
	}
	one := func(q subcluster.QueueLoad, each int64) subcluster.QueueLoad {
		q.EachUser = boundTo(each)
		return q
	}
	most := func(q subcluster.QueueLoad, n int64) subcluster.QueueLoad {
		q.Most = boundTo(n)
		return q
	}
	for name, c := range map[string]struct {
		tree  *Queue
		rows  [2]subcluster.QueueLoad
		all   int64
		heres [2]int64
	}{
		"members that tell of no users": {limited, [2]subcluster.QueueLoad{row(10, 90), row(0, 10)}, 100, [2]int64{90, 10}},
		"a user at the limit of the federation": {
			limited, [2]subcluster.QueueLoad{
				row(7, 90, userLoad("ann", 7, 90, 50)), row(8, 10, userLoad("ann", 8, 10, 50)),
			}, 0, [2]int64{0, 0},
		},
		"it rose by five": {
			&Queue{Path: "root.a", UserLimit: gigs(20)}, [2]subcluster.QueueLoad{
				row(7, 90, userLoad("ann", 7, 90, 50)), row(8, 10, userLoad("ann", 8, 10, 50)),
			}, 5, [2]int64{5, 5},
		},
		"beside another who may have it all": {
			limited, [2]subcluster.QueueLoad{
				row(7, 95, userLoad("ann", 7, 90, 50)), row(8, 14, userLoad("ann", 8, 10, 50)),
			}, 9, [2]int64{5, 4},
		},
		"two beyond it": {
			limited, [2]subcluster.QueueLoad{
				row(7, 90, userLoad("ann", 7, 90, 50)), row(2, 80, userLoad("bob", 2, 80, 50)),
			}, 8 + 13, [2]int64{8, 13},
		},
		"a part of the limit that is too small here, while another has room": {
			limited, [2]subcluster.QueueLoad{row(5, 90, userLoad("ann", 5, 90, 5)), row(0, 0)}, 10, [2]int64{0, 0},
		},
		"a user beyond what one may have in each member": {
			nil, [2]subcluster.QueueLoad{one(row(10, 90, userLoad("ann", 10, 90, 10)), 10), one(row(0, 0), 12)},
			12, [2]int64{0, 0},
		},
		"beyond what one may have in one member, and the other tells of none": {
			nil, [2]subcluster.QueueLoad{one(row(10, 70, userLoad("ann", 10, 70, 10)), 10), row(0, 0)}, 70, [2]int64{0, 0},
		},
		"more than the queue may have in its members": {
			nil, [2]subcluster.QueueLoad{most(row(10, 90), 30), most(row(0, 10), 20)}, 20 + 20, [2]int64{20, 10},
		},
		"more than it may have in the one that tells of it": {
			nil, [2]subcluster.QueueLoad{most(row(10, 300), 30), row(0, 10)}, 20 + 100, [2]int64{20, 10},
		},
	} {
		in := []MemberLoad{{&c.rows[0], gigs(100)}, {&c.rows[1], gigs(100)}}
		got := DemandOf(c.tree, in)
		if !got.All.Equal(gigs(c.all)) || !got.Here[0].Equal(gigs(c.heres[0])) || !got.Here[1].Equal(gigs(c.heres[1])) {
			t.Errorf("%s: wanted is %s, here %s, want %s and %v", name, got.All, got.Here, gigs(c.all), c.heres)
		}
	}
}

// Whatever limits there are: demand is at most the pending asks, never negative, and no less for a queue with a
// higher limit.
func TestWantedCountsWaitingDemand(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		n := func(what string, most int64) int64 { return rapid.Int64Range(0, most).Draw(t, what) }
		rows := make([]subcluster.QueueLoad, 3)
		in := make([]MemberLoad, len(rows))
		var waits creel.Resource
		for m := range rows {
			q := &rows[m]
			used, pending := n("others use", 10), n("others wait for", 10)
			for _, name := range []string{"ann", "bob"} {
				if rapid.Bool().Draw(t, name) {
					u := userLoad(name, n("used", 20), n("pending", 40), n("most", 30))
					used, pending = used+u.Used.VCores, pending+u.Pending.VCores
					q.Users = append(q.Users, u)
				}
			}
			q.Used, q.Pending = gigs(used), gigs(pending)
			if rapid.Bool().Draw(t, "bounded") {
				q.Most = boundTo(n("queue", 60))
			}
			if rapid.Bool().Draw(t, "each bounded") {
				q.EachUser = boundTo(n("each", 30))
			}
			if rapid.IntRange(0, 5).Draw(t, "has none") > 0 {
				in[m], waits = MemberLoad{q, gigs(50)}, waits.Add(q.Pending)
			}
		}
		limit := n("limit", 60)
		got := DemandOf(&Queue{UserLimit: gigs(limit)}, in)
		higher := DemandOf(&Queue{UserLimit: gigs(limit + 1 + n("more", 20))}, in)
		if !got.All.Fits(waits) || got.All.IsNegative() || limit > 0 && !got.All.Fits(higher.All) {
			t.Fatalf("%s of %s that wait are wanted, and %s with a higher limit", got.All, waits, higher.All)
		}
		for m, here := range got.Here {
			if here.IsNegative() || in[m].QueueLoad != nil && !here.Fits(in[m].Pending) {
				t.Fatalf("%s are wanted in a member in which %s wait", here, rows[m].Pending)
			}
		}
	})
}

// By capacities that follow the plan a member frees resources for a queue only as far as limits allow its waiting
// asks there.
func TestCapacityIsFreedOnlyForGrantableDemand(t *testing.T) {
	var members []subcluster.Status
	for _, id := range []creel.SubclusterID{"sc-1", "sc-2"} {
		s := subcluster.Status{State: subcluster.StateActive}
		s.ID, s.Load.Metrics = id, subcluster.ClusterMetrics{TotalMB: 100 << 10, TotalVirtualCores: 100}
		s.Load.Queues = []subcluster.QueueLoad{
			{
				Queue: "root.a", Capacity: gigs(50), Used: gigs(10), Pending: gigs(95),
				Users: []subcluster.UserLoad{userLoad("ann", 10, 90, 10)},
			},
			{Queue: "root.b", Capacity: gigs(50), Used: gigs(90), Pending: gigs(300), Most: boundTo(95)},
		}
		members = append(members, s)
	}
	tree := &Tree{Queues: []Queue{{Path: "root.a", UserLimit: gigs(20)}}}
	r := Read(subcluster.NewView(time.Unix(1000, 0), members, nil), tree)
	for _, x := range r.Pairs {
		if got := math.Round(x.Waits * 1000); got != 25 {
			t.Errorf("%s waits for %.3f in %s, should for 0.025", r.Queues[x.Leaf], x.Waits, r.Members[x.Member])
		}
	}
	var p Planner
	shares := p.Plan(&r.Input, nil)
	out := Publish(r, shares, nil, PlanBounds{})
	GiveCapacities(r, shares, out)
	for _, id := range r.Members {
		if a, b := out.Queues[0].Capacity(id), out.Queues[1].Capacity(id); math.Abs(a-0.075) > 1e-9 || math.Abs(b-0.425) > 1e-9 {
			t.Errorf("in %s root.a is to get %.3f, of which it can use 0.075, and root.b %.3f", id, a, b)
		}
	}
}
