// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
)

// queues returns a member with the reported lengths of its nodes' queues.
func queues(id creel.SubclusterID, lengths ...int32) subcluster.Status {
	s := member(id, 0)
	s.Load.NodeQueues = append([]int32{}, lengths...)
	return s
}

// Where all queues at home are long, opportunistic asks go to members with shorter ones, also without free capacity.
func TestOpportunisticAsksGoToShortQueues(t *testing.T) {
	long, short := []int32{5, 9}, []int32{4, 3}
	home := Reach{Member: "sc-a", Home: true, Known: true}
	b, c := Reach{Member: "sc-b"}, Reach{Member: "sc-c"}
	bUAM := Reach{Member: "sc-b", UAM: true, Known: true}
	unknown := member("sc-a", 0)
	for _, x := range []struct {
		story   string
		doc     string
		members []subcluster.Status
		reach   []Reach
		group   Group
		want    string
	}{
		{"a new UAM", "balanced", []subcluster.Status{queues("sc-a", long...), queues("sc-b", short...)},
			[]Reach{home, b}, Group{Count: 3}, "sc-b 3"},
		{"as far as queues are short", "balanced", []subcluster.Status{queues("sc-a", long...), queues("sc-b", short...)},
			[]Reach{home, b}, Group{Count: 5}, "sc-a 2, sc-b 3"},
		{"besides pending asks", "balanced", []subcluster.Status{queues("sc-a", long...), queues("sc-b", short...)},
			[]Reach{home, {Member: "sc-b", Pending: 2}}, Group{Count: 3}, "sc-a 2, sc-b 1"},
		{"home has a short queue", "balanced", []subcluster.Status{queues("sc-a", 9, 4), queues("sc-b", 0, 0)},
			[]Reach{home, b}, Group{Count: 3}, "sc-a 3"},
		{"all queues at home are full", "balanced", []subcluster.Status{queues("sc-a"), queues("sc-b", short...)},
			[]Reach{home, b}, Group{Count: 3}, "sc-b 3"},
		{"home does not report", "balanced", []subcluster.Status{unknown, queues("sc-b", short...)},
			[]Reach{home, b}, Group{Count: 3}, "sc-a 3"},
		{"where the application is, first", "balanced",
			[]subcluster.Status{queues("sc-a", long...), queues("sc-b", 4), queues("sc-c", 0, 0)},
			[]Reach{home, bUAM, c}, Group{Count: 3}, "sc-b 1, sc-c 2"},
		{"a closed member", "balanced", []subcluster.Status{queues("sc-a", long...), queues("sc-b", short...)},
			[]Reach{home, {Member: "sc-b", Closed: true}}, Group{Count: 3}, "sc-a 3"},
		{"too few for a UAM", "late", []subcluster.Status{queues("sc-a", long...), queues("sc-b", short...)},
			[]Reach{home, b}, Group{Count: 3}, "sc-a 3"},
		{"asks with known places", "balanced", []subcluster.Status{queues("sc-a", long...), queues("sc-b", short...)},
			[]Reach{home, b}, Group{Count: 3, Places: []Place{{Name: "h1", Count: 3, Members: []creel.SubclusterID{"sc-a"}}}},
			"sc-a 3"},
		{"home only", "home", []subcluster.Status{queues("sc-a", long...), queues("sc-b", short...)},
			[]Reach{home, b}, Group{Count: 3}, "sc-a 3"},
		{"by locality", "locality", []subcluster.Status{queues("sc-a", long...), queues("sc-b", short...)},
			[]Reach{home, b}, Group{Count: 3}, "sc-b 3"},
	} {
		x.group.Size, x.group.LongQueue = gig, 5
		doc := split(x.doc, "")
		if x.doc == "late" {
			doc = split("balanced", `,"twinAt":4`)
		}
		plan, err := must(t, doc).Split(view(x.members...), "root.a", x.group, x.reach, seeded(1))
		if err != nil {
			t.Errorf("%s: %v", x.story, err)
		} else if got := show(plan.Shares); got != x.want {
			t.Errorf("%s: %s, want %s\n%s", x.story, got, x.want, plan.Reason)
		}
	}
}

func TestReasonNamesShortQueues(t *testing.T) {
	v := view(queues("sc-a", 5, 9), queues("sc-b", 4, 3))
	g := Group{Count: 2, Size: gig, LongQueue: 5}
	plan, err := Default().Split(v, "root.a", g, []Reach{{Member: "sc-a", Home: true}, {Member: "sc-b"}}, seeded(1))
	const want = "in short queues: 2 at sc-b; at home all have at least 5 containers; at the cost of a UAM in sc-b"
	if err != nil || plan.Reason.Because != want {
		t.Errorf("%q, %v", plan.Reason.Because, err)
	}
	g.LongQueue = 0
	if plan, _ := Default().Split(v, "root.a", g, []Reach{{Member: "sc-a", Home: true}, {Member: "sc-b"}}, seeded(1)); show(plan.Shares) != "sc-a 2" {
		t.Errorf("guaranteed asks: %s", show(plan.Shares))
	}
}

// Members get at most the places of their short queues. None gets any while home has a short queue, and home gets none.
// The application joins no more new members than the bound.
func TestShortQueuesAreNotOverfilled(t *testing.T) {
	propertytest.Check(t, func(rt *rapid.T) {
		const long = 4
		var members []subcluster.Status
		d := &splitDecision{
			queue: "root.a", worth: 1, open: []int{0, 1, 2, 3}, shares: make([]int64, 4), hosts: make([]int64, 4),
			racks: make([]int64, 4), reasons: make([]Candidate, 4),
			group: Group{Count: rapid.Int64Range(1, 20).Draw(rt, "count"), Size: gig, LongQueue: long},
		}
		var places []int64
		for i, id := range []creel.SubclusterID{"sc-a", "sc-b", "sc-c", "sc-d"} {
			lengths := rapid.SliceOfN(rapid.Int32Range(0, 6), 0, 4).Draw(rt, "lengths")
			members = append(members, queues(id, lengths...))
			r := Reach{Member: id, Home: i == 0, Pending: rapid.Int64Range(0, 3).Draw(rt, "pending")}
			r.UAM = i > 0 && rapid.Bool().Draw(rt, "UAM")
			d.reach = append(d.reach, r)
			n := int64(0)
			for _, l := range lengths {
				n += int64(max(long-l, 0))
			}
			places = append(places, n)
		}
		d.view = view(members...)
		placed, text := d.toShortQueues(d.group.Count, seeded(rapid.Uint64().Draw(rt, "seed")))
		joined, fits := 0, int64(0)
		for i, n := range d.shares {
			free := max(places[i]-d.reach[i].Pending, 0)
			if n > free || n > 0 && (places[0] > 0 || i == 0) {
				rt.Fatalf("%d at %s, which takes %d; home takes %d: %s", n, d.reach[i].Member, free, places[0], text)
			}
			if i == 0 {
				continue
			}
			if fits += free; n > 0 && !d.reach[i].UAM {
				joined++
			}
		}
		if sum(d.shares, nil) != placed || joined > d.bound() {
			rt.Fatalf("%d placed, shares %v, %d new members of at most %d", placed, d.shares, joined, d.bound())
		}
		if places[0] == 0 && joined < d.bound() && placed != min(d.group.Count, fits) {
			rt.Fatalf("%d of %d placed, short queues take %d", placed, d.group.Count, fits)
		}
	})
}
