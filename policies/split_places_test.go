// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"slices"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Three members that can run 10 each, home is sc-1; each has one of the hosts h1, h2, h3, and all of them have
// /default-rack, but only sc-2 has /r2.
func TestAsksGoWhereTheirPlacesAre(t *testing.T) {
	all := []creel.SubclusterID{"sc-1", "sc-2", "sc-3"}
	place := func(name string, n int64) Place {
		switch name {
		case "h1", "h2", "h3":
			return Place{Name: name, Count: n, Members: []creel.SubclusterID{creel.SubclusterID("sc-" + name[1:])}}
		case "/default-rack":
			return Place{Name: name, Count: n, Members: all}
		case "/default-rack, but only its hosts":
			return Place{Name: "/default-rack", Count: n, Members: all, Strict: true}
		case "/r2, but only its hosts":
			return Place{Name: "/r2", Count: n, Members: []creel.SubclusterID{"sc-2"}, Strict: true}
		case "/r2":
			return Place{Name: name, Count: n, Members: []creel.SubclusterID{"sc-2"}}
		}
		return Place{Name: name, Count: n} // no member is known to have it
	}
	for _, c := range []struct {
		name   string
		count  int64
		strict bool
		places []Place
		stuck  creel.SubclusterID
		full   creel.SubclusterID
		closed creel.SubclusterID
		want   string
		silent creel.SubclusterID // about its hosts
	}{
		{"data elsewhere, and the rack that all have", 8, false,
			[]Place{place("h2", 8), place("/default-rack", 8)}, "", "", "", "sc-2:8 ", ""},
		{"more than the room where the data is", 14, false, []Place{place("h2", 14)}, "", "", "", "sc-2:14 ", ""},
		{"data in two members, replicated in both: home is enough", 6, false,
			[]Place{place("h1", 6), place("h2", 6)}, "", "", "", "sc-1:6 ", ""},
		{"replicated in both, home is full: one other is enough", 6, false,
			[]Place{place("h1", 6), place("h2", 6)}, "", "sc-1", "", "sc-2:6 ", ""},
		{"a part without places goes home first", 9, false, []Place{place("h3", 4)}, "", "", "", "sc-1:5 sc-3:4 ", ""},
		{"a rack that one has", 5, false, []Place{place("/r2", 5)}, "", "", "", "sc-2:5 ", ""},
		{"a host nobody knows", 5, false, []Place{place("h9", 5)}, "", "", "", "sc-1:5 ", ""},
		{"it waited for its place too long", 5, false, []Place{place("h2", 5)}, "sc-2", "", "", "sc-1:5 ", ""},
		{"it may run nowhere else, however long it waits", 5, true, []Place{place("h2", 5)}, "sc-2", "", "", "sc-2:5 ", ""},
		{"strict, a rack that all have", 5, true, []Place{place("/default-rack", 5)}, "", "", "", "sc-1:5 ", ""},
		{"strict, two hosts", 5, true, []Place{place("h2", 2), place("h3", 3)}, "", "", "", "sc-2:2 sc-3:3 ", ""},
		{"strict, more than is full", 14, true, []Place{place("h2", 14)}, "", "sc-2", "", "sc-2:14 ", ""},
		{"strict, a host in a rack that all have", 5, true,
			[]Place{place("h2", 5), place("/default-rack, but only its hosts", 5)}, "", "", "", "sc-2:5 ", ""},
		{"strict, that host's member is lost: they wait at home", 5, true,
			[]Place{place("h2", 5), place("/default-rack, but only its hosts", 5)}, "", "sc-1", "sc-2", "sc-1:5 ", ""},
		{"strict, a host nobody knows, whose rack one has", 5, true,
			[]Place{place("h9", 5), place("/r2, but only its hosts", 5)}, "", "", "", "sc-2:5 ", ""},
		{"strict, a host nobody knows, and its rack's member is lost", 5, true,
			[]Place{place("h9", 5), place("/r2, but only its hosts", 5)}, "", "sc-1", "sc-2", "sc-1:5 ", ""},
		{"strict, a host nobody knows: where it was asked for long, others have their turn", 5, true,
			[]Place{place("h9", 5)}, "sc-1", "", "sc-2", "sc-3:5 ", ""},
		{"strict, a host nobody knows: its rack's member has its turn before one that tells nothing", 5, true,
			[]Place{place("h9", 5), place("/r2, but only its hosts", 5)}, "", "", "", "sc-2:5 ", "sc-3"},
		{"strict, a host nobody knows: then the one that tells nothing", 5, true,
			[]Place{place("h9", 5), place("/r2, but only its hosts", 5)}, "sc-2", "", "", "sc-3:5 ", "sc-3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := view(member("sc-1", 10240), member("sc-2", 10240), member("sc-3", 10240))
			for i := range v.Members {
				if m := &v.Members[i]; m.ID != c.silent {
					m.Load.Nodes = "a digest"
				}
			}
			reach := make([]Reach, len(all))
			for i, id := range all {
				reach[i] = Reach{Member: id, Home: i == 0, Stuck: id == c.stuck, Closed: id == c.closed}
				if id == c.full || id == c.stuck {
					reach[i].Known = true // without headroom
				}
			}
			g := Group{Count: c.count, Size: gig, Strict: c.strict, Places: c.places}
			plan, err := Default().Split(v, "root.a", g, reach, seeded(1))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, s := range plan.Shares {
				got += fmt.Sprintf("%s:%d ", s.Member, s.Count)
			}
			if got != c.want {
				t.Errorf("got %s, want %s: %s", got, c.want, plan.Reason.Because)
			}
			// Asks that are held at the member with their place stay there at the next split.
			g.Held = plan.Shares
			again, err := Default().Split(v, "root.a", g, reach, seeded(2))
			if err != nil || fmt.Sprint(again.Shares) != fmt.Sprint(plan.Shares) {
				t.Errorf("the next split makes %v of %v, %v", again.Shares, plan.Shares, err)
			}
		})
	}
}

// Asks are held at members; then the AM names other places, more or fewer, as Spark does when it adds and removes
// executors. Home is sc-a, without free capacity; sc-b and sc-c can run 50 and have UAMs.
func TestHeldAsksFollowTheirPlaces(t *testing.T) {
	at := func(host string, n int64, members ...creel.SubclusterID) Place {
		return Place{Name: host, Count: n, Members: members}
	}
	for _, c := range []struct {
		story  string
		count  int64
		strict bool
		held   []Share
		places []Place
		full   creel.SubclusterID
		want   string
	}{
		{"some become wanted on a host elsewhere", 10, false, []Share{{"sc-a", 10}}, []Place{at("h2", 4, "sc-b")}, "", "sc-a 6, sc-b 4"},
		{"its member has no room", 10, false, []Share{{"sc-a", 10}}, []Place{at("h2", 4, "sc-b")}, "sc-b", "sc-a 10"},
		{"they are there already", 10, false, []Share{{"sc-a", 6}, {"sc-b", 4}}, []Place{at("h2", 4, "sc-b")}, "", "sc-a 6, sc-b 4"},
		{"replicas: what is local stays", 6, false, []Share{{"sc-b", 6}}, []Place{at("h2", 6, "sc-b"), at("h3", 6, "sc-c")}, "", "sc-b 6"},
		{"a host changes", 8, false, []Share{{"sc-b", 8}}, []Place{at("h2", 3, "sc-b"), at("h3", 5, "sc-c")}, "", "sc-b 3, sc-c 5"},
		{"more are wanted, and some of those held elsewhere", 12, false, []Share{{"sc-a", 10}}, []Place{at("h2", 4, "sc-b")}, "", "sc-a 6, sc-b 4, sc-c 2"},
		{"fewer are wanted: what has its place stays", 6, false, []Share{{"sc-a", 2}, {"sc-b", 4}, {"sc-c", 4}}, []Place{at("h3", 4, "sc-c")}, "", "sc-a 1, sc-b 1, sc-c 4"},
		{"far fewer are wanted", 2, false, []Share{{"sc-a", 2}, {"sc-b", 4}, {"sc-c", 4}}, []Place{at("h3", 4, "sc-c")}, "", "sc-c 2"},
		{"fewer, of which more elsewhere", 6, false, []Share{{"sc-a", 8}, {"sc-b", 2}}, []Place{at("h2", 2, "sc-b"), at("h3", 3, "sc-c")}, "", "sc-a 1, sc-b 2, sc-c 3"},
		{"strict: they move though there is no room", 4, true, []Share{{"sc-b", 4}}, []Place{at("h2", 1, "sc-b"), at("h3", 3, "sc-c")}, "sc-c", "sc-b 1, sc-c 3"},
		{"a rack of one member", 10, false, []Share{{"sc-a", 10}}, []Place{at("/r2", 4, "sc-b")}, "", "sc-a 6, sc-b 4"},
		{"a rack of two, a host of one", 10, false, []Share{{"sc-a", 10}}, []Place{at("h2", 4, "sc-b"), at("/r2", 4, "sc-b", "sc-c")}, "", "sc-a 6, sc-b 4"},
	} {
		t.Run(c.story, func(t *testing.T) {
			reach := []Reach{{Member: "sc-a", Home: true, Known: true}, {Member: "sc-b", UAM: true, Known: true, Headroom: gigs(50)},
				{Member: "sc-c", UAM: true, Known: true, Headroom: gigs(50)}}
			g := Group{Count: c.count, Size: gig, Strict: c.strict, Held: c.held, Places: c.places}
			for range 2 { // and once more, with the asks it holds by then
				for i := range reach {
					reach[i].Pending = 0
					for _, h := range g.Held {
						if h.Member == reach[i].Member {
							reach[i].Pending = h.Count
						}
					}
					if reach[i].Member == c.full {
						reach[i].Headroom = creel.Resource{}
					}
				}
				plan, err := Default().Split(view(member("sc-a", 0), member("sc-b", 0), member("sc-c", 0)), "root.a", g, reach, seeded(1))
				if err != nil || show(plan.Shares) != c.want {
					t.Fatalf("%s, %v, want %s\n%s", show(plan.Shares), err, c.want, plan.Reason)
				}
				g.Held = plan.Shares
			}
		})
	}
}

// A host that may be in two members, such as one that moved, is asked for in both, one after the other; if neither
// has free capacity the asks stay where they are.
func TestSharedHostIsAskedInBothMembers(t *testing.T) {
	both := []creel.SubclusterID{"sc-a", "sc-b"}
	for _, c := range []struct {
		story        string
		from         creel.SubclusterID
		stuck        []creel.SubclusterID
		roomA, roomB int64
		want         string
		waiting      int64
	}{
		{"first at home", "", nil, 50, 50, "sc-a 3", 0},
		{"home has no room", "", nil, 0, 50, "sc-b 3", 0},
		{"it waited at home for long", "sc-a", []creel.SubclusterID{"sc-a"}, 0, 50, "sc-b 3", 0},
		{"and the other has no room", "sc-a", []creel.SubclusterID{"sc-a"}, 0, 0, "sc-b 3", 0},
		{"it waited in both", "sc-b", both, 0, 0, "sc-b 3", 3},
		{"it waited in both, and home has room again", "sc-b", both, 2, 0, "sc-a 2, sc-b 1", 1},
	} {
		t.Run(c.story, func(t *testing.T) {
			reach := []Reach{
				{Member: "sc-a", Home: true, Known: true, Headroom: gigs(c.roomA), Stuck: slices.Contains(c.stuck, "sc-a")},
				{Member: "sc-b", UAM: true, Known: true, Headroom: gigs(c.roomB), Stuck: slices.Contains(c.stuck, "sc-b")},
				{Member: "sc-c", UAM: true, Known: true, Headroom: gigs(50)},
			}
			g := Group{Count: 3, Size: gig, Strict: true, From: c.from, Places: []Place{{Name: "h1", Count: 3, Members: both}}}
			plan, err := Default().Split(view(member("sc-a", 0), member("sc-b", 0), member("sc-c", 0)), "root.a", g, reach, seeded(1))
			if err != nil || show(plan.Shares) != c.want || plan.Waiting != c.waiting {
				t.Errorf("%s, %d wait, %v; want %s, %d\n%s", show(plan.Shares), plan.Waiting, err, c.want, c.waiting, plan.Reason)
			}
		})
	}
}

// Each container's data is in thirty members, and so are few members enough.
func TestReplicasInManyMembersCostFewUAMs(t *testing.T) {
	for _, c := range []struct {
		story string
		rooms func(i int) int64 // of each member; home is the first
		uam   int               // where there is one; 0: nowhere
		more  string            // in the document
		want  string
	}{
		{"one has room for all that home has not", func(i int) int64 { return map[bool]int64{true: 40, false: 5}[i == 7] }, 0, "", "sc-00 5, sc-07 25"},
		{"home has room for some", func(i int) int64 { return []int64{4, 9, 40}[min(i, 2)] }, 0, "", "sc-00 4, sc-02 26"},
		{"where the application is comes next", func(i int) int64 { return []int64{4, 9, 40}[min(i, 2)] }, 1, "", "sc-00 4, sc-01 9, sc-02 17"},
		{"no one holds all: as few as do", func(i int) int64 { return []int64{0, 12, 5, 20, 3}[min(i, 4)] }, 0, "", "sc-01 10, sc-03 20"},
		{"a remainder is not worth a UAM, and waits", func(i int) int64 { return []int64{0, 12, 5, 20, 3}[min(i, 4)] }, 0, `,"twinAt":11`, "sc-00 8, sc-03 22"},
		{"nobody has room: they wait where the application is", func(int) int64 { return 0 }, 5, "", "sc-00 15, sc-05 15"},
	} {
		t.Run(c.story, func(t *testing.T) {
			var members []subcluster.Status
			var reach []Reach
			g := Group{Count: 30, Size: gig}
			for i := range 30 {
				id := creel.SubclusterID(fmt.Sprintf("sc-%02d", i))
				m := member(id, 0)
				m.Load.Metrics.AvailableMB, m.Load.Metrics.AvailableVirtualCores = c.rooms(i)*1024, c.rooms(i)
				members = append(members, m)
				reach = append(reach, Reach{Member: id, Home: i == 0, UAM: i > 0 && i == c.uam})
				g.Places = append(g.Places, Place{Name: "host-" + string(id), Count: 30, Members: []creel.SubclusterID{id}})
			}
			plan, err := must(t, split("balanced", c.more)).Split(view(members...), "root.a", g, reach, seeded(1))
			if err != nil || show(plan.Shares) != c.want {
				t.Errorf("%s, %v, want %s\n%s", show(plan.Shares), err, c.want, plan.Reason.Because)
			}
		})
	}
}
