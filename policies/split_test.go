// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
)

var gig = creel.Resource{MemoryMB: 1024, VCores: 1}

func gigs(n int64) creel.Resource { return creel.Resource{MemoryMB: n * 1024, VCores: n} }

func split(name, more string) string {
	return fmt.Sprintf(`{"split":{"policy":%q%s}}`, name, more)
}

// show prints shares as "sc-a 7, sc-b 3".
func show(shares []Share) string {
	var parts []string
	for _, s := range shares {
		parts = append(parts, fmt.Sprintf("%s %d", s.Member, s.Count))
	}
	return strings.Join(parts, ", ")
}

func reach2(roomA, roomB int64) []Reach {
	return []Reach{
		{Member: "sc-a", Home: true, Headroom: gigs(roomA), Known: true},
		{Member: "sc-b", UAM: true, Headroom: gigs(roomB), Known: true},
	}
}

func TestSplits(t *testing.T) {
	v := view(member("sc-a", 50_000), member("sc-b", 50_000))
	onB := []Place{
		{Name: "b1", Count: 4, Members: []creel.SubclusterID{"sc-b"}},
		{Name: "/rb", Count: 4, Members: []creel.SubclusterID{"sc-b"}},
	}
	for _, c := range []struct {
		story, doc string
		group      Group
		reach      []Reach
		want       string
	}{
		{"home only", split("home", ""), Group{Count: 10, Size: gig}, reach2(0, 100), "sc-a 10"},
		{"home only, and what others hold comes home", split("home", ""), Group{Count: 10, Size: gig, Held: []Share{{"sc-b", 4}}}, reach2(0, 100), "sc-a 10"},
		{"broadcast asks everybody for all", split("broadcast", ""), Group{Count: 10, Size: gig}, reach2(0, 100), "sc-a 10, sc-b 10"},
		{"ours stays at home while it fits", split("balanced", ""), Group{Count: 10, Size: gig}, reach2(10, 30), "sc-a 10"},
		{"ours: what is over goes where the application is", split("balanced", ""), Group{Count: 10, Size: gig}, reach2(2, 30), "sc-a 2, sc-b 8"},
		{"ours lets what fits nowhere wait by size", split("balanced", ""), Group{Count: 40, Size: gig}, reach2(10, 10), "sc-a 20, sc-b 20"},
		{"ours takes places first", split("balanced", ""), Group{Count: 10, Size: gig, Places: onB}, reach2(60, 0), "sc-a 6, sc-b 4"},
		{"ours: pending takes room away", split("balanced", ""), Group{Count: 4, Size: gig},
			[]Reach{{Member: "sc-a", Home: true, Headroom: gigs(10), Known: true, Pending: 10}, {Member: "sc-b", UAM: true, Headroom: gigs(10), Known: true}}, "sc-b 4"},
		{"ours starts a UAM when home is full", split("balanced", ""), Group{Count: 1, Size: gig},
			[]Reach{{Member: "sc-a", Home: true, Known: true}, {Member: "sc-b"}}, "sc-b 1"},
		{"ours starts none for fewer than the document says", split("balanced", `,"twinAt":4`), Group{Count: 3, Size: gig},
			[]Reach{{Member: "sc-a", Home: true, Known: true}, {Member: "sc-b"}}, "sc-a 3"},
		{"held asks stay where they are", split("balanced", ""), Group{Count: 10, Size: gig, Held: []Share{{"sc-a", 2}, {"sc-b", 8}}}, reach2(90, 10), "sc-a 2, sc-b 8"},
		{"only what is new is placed", split("balanced", ""), Group{Count: 12, Size: gig, Held: []Share{{"sc-a", 2}, {"sc-b", 8}}}, reach2(90, 0), "sc-a 4, sc-b 8"},
		{"fewer wanted: taken back in proportion", split("balanced", ""), Group{Count: 5, Size: gig, Held: []Share{{"sc-a", 2}, {"sc-b", 8}}}, reach2(90, 0), "sc-a 1, sc-b 4"},
		{"a closed member's asks move", split("balanced", ""), Group{Count: 10, Size: gig, Held: []Share{{"sc-a", 2}, {"sc-b", 8}}},
			[]Reach{{Member: "sc-a", Home: true, Headroom: gigs(90), Known: true}, {Member: "sc-b", UAM: true, Closed: true}}, "sc-a 10"},
		{"home is closed: others take it", split("balanced", ""), Group{Count: 4, Size: gig},
			[]Reach{{Member: "sc-a", Home: true, Closed: true}, {Member: "sc-b", UAM: true, Known: true}}, "sc-b 4"},
		{"all are closed: home keeps it", split("balanced", ""), Group{Count: 4, Size: gig},
			[]Reach{{Member: "sc-a", Home: true, Closed: true}, {Member: "sc-b", UAM: true, Closed: true}}, "sc-a 4"},
		{"a strict wish goes nowhere else", split("balanced", ""), Group{Count: 10, Size: gig, Strict: true, Places: onB}, reach2(90, 0), "sc-b 10"},
		{"a strict wish that nobody knows goes home", split("balanced", ""), Group{Count: 3, Size: gig, Strict: true, Places: []Place{{Name: "x9", Count: 3}}},
			[]Reach{{Member: "sc-a", Home: true, Headroom: gigs(9), Known: true}, {Member: "sc-b", UAM: true, Known: true}}, "sc-a 3"},
		{"locality by weight", split("locality", `,"weights":{"sc-a":1,"sc-b":3},"headroomAlpha":0`), Group{Count: 8, Size: gig}, reach2(100, 0), "sc-a 2, sc-b 6"},
		{"locality by headroom", split("locality", `,"headroomAlpha":1`), Group{Count: 8, Size: gig}, reach2(30, 10), "sc-a 6, sc-b 2"},
		{"locality sends to the owner", split("locality", ""), Group{Count: 4, Size: gig, Places: onB}, reach2(90, 0), "sc-b 4"},
	} {
		plan, err := must(t, c.doc).Split(v, "root.a", c.group, c.reach, seeded(1))
		if err != nil {
			t.Errorf("%s: %v", c.story, err)
		} else if got := show(plan.Shares); got != c.want {
			t.Errorf("%s: %s, want %s\n%s", c.story, got, c.want, plan.Reason)
		}
	}
	if _, err := must(
		t,
		split("reject", ""),
	).Split(v, "root.a", Group{Count: 1}, reach2(1, 1), seeded(1)); !errors.Is(
		err,
		creel.ErrNotPermitted,
	) {
		t.Errorf("reject: %v", err)
	}
}

func TestDrainingMemberGetsNoSpanningContainers(t *testing.T) {
	b := member("sc-b", 90_000)
	b.State, b.Reason = subcluster.StateDraining, "drained: ann"
	v := view(member("sc-a", 10_000), b)
	for _, uam := range []bool{false, true} {
		r := []Reach{{Member: "sc-a", Home: true, Known: true}, {Member: "sc-b", UAM: uam, Known: uam, Headroom: gigs(10)}}
		g := Group{Count: 4, Size: gig, Held: []Share{{"sc-b", 3}}}
		plan, _ := Default().Split(v, "root.a", g, r, seeded(1))
		if show(plan.Shares) != "sc-a 4" || !strings.Contains(plan.Reason.String(), "it is draining, and not home") {
			t.Errorf("UAM %v: %s\n%s", uam, show(plan.Shares), plan.Reason)
		}
	}
	r := []Reach{{Member: "sc-a", Closed: true}, {Member: "sc-b", Home: true, Known: true, Headroom: gigs(10)}}
	if plan, _ := Default().Split(v, "root.a", Group{Count: 4, Size: gig}, r, seeded(1)); show(plan.Shares) != "sc-b 4" {
		t.Errorf("an application at home there: %s\n%s", show(plan.Shares), plan.Reason)
	}
}

// A document sets from how many containers on a UAM is worth its cost: each member must get that many. Fewer
// containers wait, but not for ever.
func TestAUAMIsWorthItsCostByItsPart(t *testing.T) {
	onC := []Place{{Name: "h1", Count: 1, Members: []creel.SubclusterID{"sc-c"}}}
	for _, c := range []struct {
		story  string
		count  int64
		late   bool
		uam    bool // in sc-b
		places []Place
		want   string
	}{
		{"enough for one", 20, false, false, nil, "sc-b 20"},
		{"the remainder is too few for another", 21, false, false, nil, "sc-a 1, sc-b 20|sc-b 21"},
		{"enough for two", 40, false, false, nil, "sc-b 20, sc-c 20"},
		{"the members with a UAM cost nothing", 5, false, true, nil, "sc-b 5"},
		{"too few", 19, false, false, nil, "sc-a 19"},
		{"too few, and it has waited for long", 19, true, false, nil, "sc-b 19|sc-c 19"},
		{"the remainder has waited for long", 21, true, false, nil, "sc-b 20, sc-c 1|sc-b 1, sc-c 20"},
		{"one is wanted on a host", 1, false, false, onC, "sc-a 1"},
		{"one is wanted on a host, and has waited for long", 1, true, false, onC, "sc-c 1"},
	} {
		t.Run(c.story, func(t *testing.T) {
			v := view(member("sc-a", 0), member("sc-b", 20*1024), member("sc-c", 20*1024))
			for i := range v.Members[1:] {
				v.Members[i+1].Load.Metrics.AvailableMB, v.Members[i+1].Load.Metrics.AvailableVirtualCores = 20*1024, 20
			}
			reach := []Reach{{Member: "sc-a", Home: true, Known: true}, {Member: "sc-b", UAM: c.uam}, {Member: "sc-c"}}
			g := Group{Count: c.count, Size: gig, Late: c.late, Places: c.places}
			p := must(t, split("balanced", `,"twinAt":20,"weights":{"sc-b":10,"sc-c":1}`))
			plan, err := p.Split(v, "root.a", g, reach, seeded(1))
			got := show(plan.Shares)
			if err != nil || !regexp.MustCompile("^("+c.want+")$").MatchString(got) {
				t.Errorf("%s, %v, want %s\n%s", got, err, c.want, plan.Reason)
			}
		})
	}
}

// Small free capacities in many members are not worth a UAM each.
func TestMembersWithLittleRoomAreNotWorthAUAM(t *testing.T) {
	v, reach := many(20), []Reach{}
	for i := range v.Members {
		v.Members[i].Load.Metrics.AvailableMB = 10 * 1024
		reach = append(reach, Reach{Member: v.Members[i].ID, Home: i == 0, Known: i == 0})
	}
	for late, want := range map[bool]int{false: 1, true: 4} {
		plan, err := must(t, split("balanced", `,"twinAt":20`)).Split(v, "root.a", Group{Count: 40, Size: gig, Late: late}, reach, seeded(1))
		if err != nil || len(plan.Shares) > 1+want || len(plan.Shares) < want {
			t.Errorf("late %v: %s, %v\n%s", late, show(plan.Shares), err, plan.Reason)
		}
	}
}

// Weights that name only missing members, one of them by a former name, do not confine an application to home; the
// reason says so.
func TestSplitReportsWeightsOfGoneMembers(t *testing.T) {
	v := view(member("sc-a", 0), member("sc-b", 50_000))
	reach := []Reach{{Member: "sc-a", Home: true, Known: true}, {Member: "sc-b"}}
	for doc, want := range map[string]string{
		`,"weights":{"old-b":1}`:          "the policy assigns weight only to old-b, which the federation lacks, so its weights do not count; 10 span to sc-b",
		`,"weights":{"old-b":1,"sc-b":0}`: "10 wait, fitting nowhere now",
		`,"weights":{"old-b":1,"sc-b":2}`: "10 span to sc-b",
	} {
		plan, err := must(t, split("balanced", doc)).Split(v, "root.a", Group{Count: 10, Size: gig}, reach, seeded(1))
		if err != nil || !strings.Contains(plan.Reason.Because, want) {
			t.Errorf("%s: %v\n%s", doc, err, plan.Reason)
		}
	}
}

// With free memory and no free cores nothing fits, unless the scheduler compares memory alone.
func TestWithoutCoresThereIsNoRoom(t *testing.T) {
	noCores := creel.Resource{MemoryMB: 50 << 10}
	b := func(change func(*subcluster.Load)) subcluster.Status {
		m := member("sc-b", 50_000)
		m.Load.Metrics.TotalMB, m.Load.Metrics.TotalVirtualCores = 100_000, 64
		m.Load.Metrics.AllocatedVirtualCores, m.Load.Metrics.AvailableVirtualCores = 64, 0
		change(&m.Load)
		return m
	}
	as := func(*subcluster.Load) {}
	for _, c := range []struct {
		story string
		b     subcluster.Status
		reach Reach // of sc-b
		out   bool  // it gets nothing
	}{
		{"the view shows no free cores", b(as), Reach{}, true},
		{"more are waited for than are free", b(func(l *subcluster.Load) {
			l.Metrics.AvailableVirtualCores, l.Metrics.AllocatedVirtualCores, l.Metrics.PendingVirtualCores = 10, 54, 500
		}), Reach{}, true},
		{"more are in use than there are: it does not compare them", b(func(l *subcluster.Load) {
			l.Metrics.AllocatedVirtualCores, l.Metrics.AvailableVirtualCores = 90, -26
		}), Reach{}, false},
		{"it says that it does not compare them", b(func(l *subcluster.Load) { l.MemoryOnly = true }), Reach{}, false},
		{"it answers a headroom without cores", b(as), Reach{Known: true, Headroom: noCores}, true},
		{"the same, and said at the registration that it compares memory alone", b(as),
			Reach{Known: true, Headroom: noCores, MemoryOnly: true}, false},
	} {
		t.Run(c.story, func(t *testing.T) {
			c.reach.Member = "sc-b"
			for _, home := range []bool{false, true} {
				c.reach.Home, c.reach.UAM = home, !home
				reach := []Reach{{Member: "sc-a", Home: !home, UAM: home, Known: true}, c.reach, {Member: "sc-c", UAM: true, Known: true, Headroom: gigs(9)}}
				v := view(member("sc-a", 0), c.b, member("sc-c", 20_000))
				plan, err := Default().Split(v, "root.a", Group{Count: 9, Size: gig}, reach, seeded(1))
				if want := map[bool]string{true: "sc-c 9", false: "sc-b 9"}[c.out]; err != nil || show(plan.Shares) != want {
					t.Errorf("home %v: %s, %v, want %s\n%s", home, show(plan.Shares), err, want, plan.Reason)
				}
			}
		})
	}
}

// The queue is in sc-a, home, and in sc-c; a UAM in it would be rejected by others, except where the queue would be
// created.
func TestSplitGoesToMembersWithQueue(t *testing.T) {
	has := func(id creel.SubclusterID, queues ...creel.QueuePath) subcluster.Status {
		m := member(id, 50_000)
		for _, q := range queues {
			m.Load.Queues = append(m.Load.Queues, subcluster.QueueLoad{Queue: q, Capacity: gigs(20), Free: gigs(20)})
		}
		return m
	}
	const queue = "root.users.ann"
	makes := has("sc-b", "root", "root.users")
	makes.Load.Makes = []creel.QueuePath{"root.users"}
	everywhere := has("sc-b", "root", "root.default")
	everywhere.Load.Makes = []creel.QueuePath{"root"}
	elsewhere := has("sc-b", "root", "root.other")
	elsewhere.Load.Makes = []creel.QueuePath{"root.other"}
	home := has("sc-a", "root", queue)
	home.Load.Queues[1].Free = creel.Resource{}
	for _, c := range []struct {
		story string
		other subcluster.Status
		queue creel.QueuePath
		out   string // why sc-b is, "" if it is not
	}{
		{"it has other queues", has("sc-b", "root", "root.other"), queue, `it has no queue "root.users.ann"`},
		{"it has other queues, and is named the leaf alone", has("sc-b", "root", "root.other"), "ann", `it has no queue "ann"`},
		{"it has the queue", has("sc-b", "root", queue), queue, ""},
		{"it makes such queues", makes, queue, ""},
		{"it makes all queues, as a FairScheduler", everywhere, queue, ""},
		{"it makes others", elsewhere, queue, `it has no queue "root.users.ann"`},
		{"it reports none", has("sc-b"), queue, ""},
		{"nobody reports the queue: placement rules may know it", has("sc-b", "root", "root.other"), "root.mapped", ""},
	} {
		t.Run(c.story, func(t *testing.T) {
			v := view(home, c.other, has("sc-c", "root", queue))
			reach := []Reach{{Member: "sc-a", Home: true, Known: true}, {Member: "sc-b"}, {Member: "sc-c"}}
			for seed := range uint64(9) {
				plan, err := Default().Split(v, c.queue, Group{Count: 10, Size: gig}, reach, seeded(seed))
				if err != nil || plan.Reason.Candidates[1].Excluded != c.out {
					t.Fatalf("%v, %q\n%s", err, plan.Reason.Candidates[1].Excluded, plan.Reason)
				}
				if plan.Waiting > 0 || c.out != "" && show(plan.Shares) != "sc-c 10" {
					t.Fatalf("%s\n%s", show(plan.Shares), plan.Reason)
				}
			}
			home, reason, err := Default().Home(v, Submission{Queue: c.queue, Size: gig}, nil, seeded(1))
			if err != nil || (reason.Candidates[1].Code == ExcludedQueue) != (c.out != "") {
				t.Fatalf("a home is chosen by another rule: %s, %v\n%s", home, err, reason)
			}
		})
	}
}

// An application uses at most one member more than the rest needs, by the size of the smallest member used, and never
// more new ones than the square root of that.
func TestApplicationSpansFewestMembers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	propertytest.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 100).Draw(t, "members")
		most := rapid.SampledFrom([]int64{3, 40, 1000}).Draw(t, "most room")
		var members []subcluster.Status
		var reach []Reach
		for i := range n {
			id := creel.SubclusterID(fmt.Sprintf("sc-%03d", i))
			members = append(members, member(id, rapid.Int64Range(0, most).Draw(t, "free")*1024))
			reach = append(reach, Reach{Member: id, Home: i == 0})
		}
		g := Group{Count: rapid.Int64Range(1, 2000).Draw(t, "count"), Size: gig}
		plan, err := Default().Split(view(members...), "root.a", g, reach, seeded(rapid.Uint64().Draw(t, "seed")))
		if err != nil {
			t.Fatal(err)
		}
		room := func(i int) int64 {
			d := splitDecision{view: view(members...), queue: "root.a", group: g, reach: reach,
				hosts: make([]int64, n), racks: make([]int64, n), reasons: make([]Candidate, n)}
			return d.room(i)
		}
		at := map[creel.SubclusterID]int64{}
		for _, s := range plan.Shares {
			at[s.Member] = s.Count
		}
		if home := min(g.Count, room(0)); at["sc-000"] < home {
			t.Fatalf("home has room for %d of %d and got %d", room(0), g.Count, at["sc-000"])
		}
		over, smallest, spanned, untouched := g.Count-min(g.Count, room(0)), int64(0), int64(0), int64(0)
		for i := 1; i < n; i++ {
			if at[reach[i].Member] == 0 {
				untouched = max(untouched, room(i))
				continue
			}
			if spanned++; smallest == 0 || room(i) < smallest {
				smallest = room(i)
			}
		}
		if spanned > 0 && (spanned-1)*smallest >= over {
			t.Fatalf("%d over in %d members, the smallest with room for %d", over, spanned, smallest)
		}
		if bound := int64(math.Ceil(math.Sqrt(float64(over)))); spanned > bound {
			t.Fatalf("%d over in %d new members, the bound is %d", over, spanned, bound)
		} else if spanned < bound && untouched > 0 && at["sc-000"] > room(0) {
			t.Fatalf("%d wait at home while a member has room for %d", at["sc-000"]-room(0), untouched)
		}
	})
}

// Recent grants by a member count for more than the capacity that it reports.
func TestExcessAsksGoToDeliveringMembers(t *testing.T) {
	v := view(member("sc-a", 0), member("sc-b", 50_000), member("sc-c", 50_000), member("sc-d", 50_000))
	uam := func(id creel.SubclusterID, room int64, delivers bool) Reach {
		return Reach{Member: id, UAM: true, Known: true, Headroom: gigs(room), Delivers: delivers}
	}
	for _, c := range []struct {
		story  string
		others []Reach
		want   string
	}{
		{"the one that delivers, though another says that it has more room", []Reach{uam("sc-b", 40, false), uam("sc-c", 20, true), {Member: "sc-d"}}, "sc-c 10"},
		{"of two that deliver the one with more room", []Reach{uam("sc-b", 40, true), uam("sc-c", 20, true), {Member: "sc-d"}}, "sc-b 10"},
		{"what is more goes to the others", []Reach{uam("sc-b", 40, false), uam("sc-c", 4, true), {Member: "sc-d"}}, "sc-b 6, sc-c 4"},
		{"a new one in which a UAM was in vain comes last", []Reach{{Member: "sc-b", Unproven: true}, {Member: "sc-c", Unproven: true}, {Member: "sc-d"}}, "sc-d 10"},
		{"where all were, it has its turn", []Reach{{Member: "sc-b", Unproven: true}, uam("sc-c", 0, false), uam("sc-d", 0, false)}, "sc-b 10"},
	} {
		for seed := range uint64(9) {
			reach := append([]Reach{{Member: "sc-a", Home: true, Known: true}}, c.others...)
			plan, err := Default().Split(v, "root.a", Group{Count: 10, Size: gig}, reach, seeded(seed))
			if err != nil || show(plan.Shares) != c.want {
				t.Fatalf("%s: %s, %v, want %s\n%s", c.story, show(plan.Shares), err, c.want, plan.Reason)
			}
			if why := plan.Reason.String(); !strings.Contains(why, "recent grants") && !strings.Contains(why, "no grant so far") {
				t.Fatalf("%s: the reason does not say so\n%s", c.story, why)
			}
		}
	}
}

// Applications that decide on the same view, of a hundred equal members, each take as few as can hold the rest, and
// not the same few.
func TestSpanningApplicationsUseDifferentMembers(t *testing.T) {
	const room, over = 800, 5201
	var members []subcluster.Status
	var reach []Reach
	for i := range 100 {
		id := creel.SubclusterID(fmt.Sprintf("sc-%03d", i))
		members = append(members, member(id, room*1024))
		reach = append(reach, Reach{Member: id, Home: i == 0})
	}
	taken := map[creel.SubclusterID]int{}
	for seed := range uint64(20) {
		plan, err := Default().Split(view(members...), "root.a", Group{Count: room + over, Size: gig}, reach, seeded(seed))
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.Shares) != 1+7 || plan.Waiting != 0 {
			t.Fatalf("%d wait, the others are at %v", plan.Waiting, plan.Shares)
		}
		for _, s := range plan.Shares {
			taken[s.Member]++
		}
	}
	delete(taken, "sc-000") // home
	if len(taken) < 60 {    // of 140 draws from 99, 75 are expected
		t.Fatalf("twenty applications of seven members each are in %d members: %v", len(taken), taken)
	}
}

// An invariant of all splits: no container is lost, no closed member gets any unless all are closed, asks that fit
// the previous shares do not move, and the same arguments produce the same plan.
func TestNoSplitLosesAContainer(t *testing.T) {
	docs := []string{
		split("home", ""),
		split("broadcast", ""),
		split("balanced", ""),
		split("locality", `,"headroomAlpha":0.5`),
		split("locality", `,"weights":{"sc-1":2},"headroomAlpha":0`),
		split("balanced", `,"weights":{"sc-0":1,"sc-2":7}`),
	}
	propertytest.Check(t, func(t *rapid.T) {
		doc := rapid.SampledFrom(docs).Draw(t, "doc")
		p, err := Parse([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(1, 5).Draw(t, "members")
		var members []subcluster.Status
		var reach []Reach
		var held []Share
		for i := range n {
			id := creel.SubclusterID(fmt.Sprintf("sc-%d", i))
			m := member(id, rapid.Int64Range(0, 100_000).Draw(t, "free"))
			m.State = rapid.SampledFrom([]subcluster.State{subcluster.StateActive, subcluster.StateDraining, subcluster.StateLost}).
				Draw(t, "state")
			members = append(members, m)
			r := Reach{
				Member: id,
				Home:   i == 0,
				UAM:    i > 0 && rapid.Bool().Draw(t, "uam"),
				Closed: rapid.Bool().Draw(t, "closed"),
				Known: rapid.Bool().
					Draw(t, "known"),
				Headroom: gigs(rapid.Int64Range(0, 50).Draw(t, "head")),
				Pending:  rapid.Int64Range(0, 50).Draw(t, "pending"),
			}
			if h := rapid.Int64Range(0, 20).Draw(t, "held"); h > 0 {
				held = append(held, Share{id, h})
				r.Pending += h
			}
			reach = append(reach, r)
		}
		g := Group{
			Count:  rapid.Int64Range(0, 1000).Draw(t, "count"),
			Size:   gig,
			Held:   held,
			Strict: rapid.Bool().Draw(t, "strict"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "places") {
			g.Places = append(
				g.Places,
				Place{
					Name:    "h",
					Count:   rapid.Int64Range(0, 1000).Draw(t, "there"),
					Members: []creel.SubclusterID{reach[rapid.IntRange(0, n-1).Draw(t, "owner")].Member},
				},
			)
		}
		v := view(members...)
		plan, err := p.Split(v, "root.a", g, reach, seeded(3))
		if err != nil {
			t.Fatal(err)
		}
		var got int64
		allClosed := !slices.ContainsFunc(reach, func(r Reach) bool { return !r.Closed })
		for _, s := range plan.Shares {
			got += s.Count
			if s.Count <= 0 || s.Count > g.Count {
				t.Fatalf("share %v of %d", s, g.Count)
			}
			i := slices.IndexFunc(reach, func(r Reach) bool { return r.Member == s.Member })
			if reach[i].Closed && !reach[i].Home {
				t.Fatalf("a closed member got %v (all closed: %v)\n%s", s, allClosed, plan.Reason)
			}
		}
		if plan.Hedged {
			if g.Count > 0 && got < g.Count {
				t.Fatalf("hedged and still short: %s of %d", show(plan.Shares), g.Count)
			}
		} else if got != g.Count {
			t.Fatalf("%s is %d, wanted %d\n%s", show(plan.Shares), got, g.Count, plan.Reason)
		}
		again, _ := p.Split(v, "root.a", g, reach, seeded(3))
		if show(again.Shares) != show(plan.Shares) {
			t.Fatalf("the same arguments gave %s, then %s", show(plan.Shares), show(again.Shares))
		}
		if plan.Hedged {
			return
		}
		// Sticky: splitting the plan's own shares again changes nothing. The asks are pending at their members.
		for i := range reach {
			for _, s := range plan.Shares {
				if s.Member == reach[i].Member {
					reach[i].Pending += s.Count
				}
			}
			for _, s := range g.Held {
				if s.Member == reach[i].Member {
					reach[i].Pending -= s.Count
				}
			}
		}
		g.Held = plan.Shares
		if again, _ = p.Split(v, "root.a", g, reach, seeded(9)); show(again.Shares) != show(plan.Shares) {
			t.Fatalf(
				"an ask that is sent again moved: %s, then %s\n%s",
				show(plan.Shares),
				show(again.Shares),
				again.Reason,
			)
		}
	})
}

// The slow obvious reference model of apportion hands out one at a time.
func TestApportionHandsOutAll(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Float64Range(0, 100), 1, 6).Draw(t, "weights")
		n := rapid.Int64Range(0, 5000).Draw(t, "n")
		var caps []int64
		if rapid.Bool().Draw(t, "capped") {
			caps = rapid.SliceOfN(rapid.Int64Range(0, 1000), len(weights), len(weights)).Draw(t, "caps")
		}
		out := apportion(n, weights, caps)
		var got, most int64
		var total float64
		for i, w := range weights {
			total += w
			if w > 0 && caps != nil {
				most += caps[i]
			} else if w > 0 {
				most = n
			}
		}
		for i, v := range out {
			got += v
			if v < 0 || weights[i] <= 0 && v > 0 || caps != nil && v > caps[i] {
				t.Fatalf("%v of %v, caps %v", out, weights, caps)
			}
			if exact := float64(
				n,
			) * weights[i] / total; caps == nil && total > 0 &&
				(float64(v) > exact+1 || float64(v) < exact-1) {
				t.Fatalf("%d strays more than one from %.3f: %v of %v", v, exact, out, weights)
			}
		}
		if got != min(n, most) {
			t.Fatalf("handed out %d of %d (room for %d): %v, weights %v, caps %v", got, n, most, out, weights, caps)
		}
	})
}

// many returns n members with increasing free capacity.
func many(n int) *subcluster.View {
	var members []subcluster.Status
	for i := range n {
		members = append(members, member(creel.SubclusterID(fmt.Sprintf("sc-%04d", i)), 50_000+int64(i)))
	}
	return view(members...)
}

// published returns members as creel's ResourceManagers report them: with labels, and the given number of queues.
func published(members, queues int) *subcluster.View {
	v := many(members)
	for i := range v.Members {
		load := &v.Members[i].Load
		load.Labels.Known = true
		for q := range queues {
			free := creel.NewResource(50_000+int64(i), 50+int64(i))
			load.Queues = append(load.Queues, subcluster.QueueLoad{
				Queue: creel.QueuePath(fmt.Sprintf("root.%c.team-%03d", 'a'+rune(q*26/queues), q)), Capacity: free, Free: free,
			})
		}
	}
	return v
}

// processorTime returns the CPU time of this process, which does not depend on the machine's load.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkHome measures the choice of a home, with applications sent since the last heartbeats; the goal is 2 us
// with 20 members and 20 us with 1,000.
func BenchmarkHome(b *testing.B) {
	for _, queues := range []int{0, 300} {
		for _, n := range []int{3, 20, 1000} {
			b.Run(fmt.Sprintf("%d-members/%d-queues", n, queues), func(b *testing.B) {
				v, p, rnd, s := published(n, queues), Default(), seeded(1), small
				if queues > 0 {
					s.Queue = v.Members[0].Load.Queues[queues/2].Queue
				}
				sent := make([]RecentLoad, n)
				for i := range sent {
					sent[i] = RecentLoad{Apps: 3, Size: creel.NewResource(3000, 3)}
				}
				s.Assumed = func(_ *subcluster.View, each []RecentLoad) { copy(each, sent) } // as a router's does
				b.ReportAllocs()
				began := processorTime()
				for b.Loop() {
					if _, _, err := p.Home(v, s, nil, rnd); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64((processorTime()-began).Nanoseconds())/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// BenchmarkFacts measures the facts of a view for submissions to a queue, computed once for each view and queue.
func BenchmarkFacts(b *testing.B) {
	for _, n := range []int{20, 1000} {
		b.Run(fmt.Sprintf("%d-members", n), func(b *testing.B) {
			v := published(n, 300)
			q := v.Members[0].Load.Queues[150].Queue
			b.ReportAllocs()
			for b.Loop() {
				findFacts(v, q, "")
			}
		})
	}
}

// BenchmarkSplit measures an ask for 1,000 containers over 20 members; the goal is 200 us.
func BenchmarkSplit(b *testing.B) {
	v := many(20)
	var reach []Reach
	for i := range v.Members {
		reach = append(reach, Reach{Member: v.Members[i].ID, Home: i == 3, UAM: i < 5, Headroom: gigs(48), Known: true})
	}
	rnd := seeded(1)
	for _, name := range SplitNames() {
		if name == "reject" {
			continue
		}
		p := must(b, split(name, ""))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Split(v, "root.a", Group{Count: 1000, Size: gig}, reach, rnd); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
