// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"testing"

	"github.com/creelrm/creel"
)

// Three members with room for 10 each, home is sc-1; hosts h1, h2, h3 are theirs, and
// all of them have /default-rack, but only sc-2 has /r2.
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
		return Place{Name: name, Count: n} // nobody is known to have it
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
		{"replicated in both, home is full", 6, false,
			[]Place{place("h1", 6), place("h2", 6)}, "", "sc-1", "", "sc-1:3 sc-2:3 ", ""},
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
			// What is held where it belongs stays there at the next split.
			g.Held = plan.Shares
			again, err := Default().Split(v, "root.a", g, reach, seeded(2))
			if err != nil || fmt.Sprint(again.Shares) != fmt.Sprint(plan.Shares) {
				t.Errorf("the next split makes %v of %v, %v", again.Shares, plan.Shares, err)
			}
		})
	}
}
