// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
)

func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, n^0x9e3779b97f4a7c15)) }

// member is one subcluster of a test's view: 100 GB and 100 cores in all.
func member(id creel.SubclusterID, availableMB int64) subcluster.Status {
	s := subcluster.Status{State: subcluster.StateActive, Reason: "heartbeat 1s ago"}
	s.ID = id
	m := &s.Load.Metrics
	m.TotalMB, m.AvailableMB, m.TotalVirtualCores, m.AvailableVirtualCores = 100_000, availableMB, 100, availableMB/1000
	m.ActiveNodes = 10
	return s
}

func view(members ...subcluster.Status) *subcluster.View {
	return subcluster.NewView(time.Time{}, members, nil)
}

func must(t testing.TB, doc string) Policy {
	t.Helper()
	p, err := Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func home(name, weights string) string {
	if weights != "" {
		weights = `,"weights":` + weights
	}
	return fmt.Sprintf(`{"home":{"policy":%q%s}}`, name, weights)
}

// counts makes n choices and counts them.
func counts(t *testing.T, p Policy, v *subcluster.View, s Submission, n int) map[creel.SubclusterID]int {
	t.Helper()
	got := map[creel.SubclusterID]int{}
	rnd := seeded(7)
	for range n {
		id, _, err := p.Home(v, s, nil, rnd)
		if err != nil {
			t.Fatal(err)
		}
		got[id]++
	}
	return got
}

var small = Submission{Queue: "root.a", Size: creel.Resource{MemoryMB: 1024, VCores: 1}}

func TestUniformSplitsEqually(t *testing.T) {
	got := counts(
		t,
		must(t, home("uniform", "")),
		view(member("sc-a", 1), member("sc-b", 90_000), member("sc-c", 50_000)),
		small,
		3000,
	)
	for id, n := range got {
		if n < 900 || n > 1100 {
			t.Errorf("%s was chosen %d times of 3000", id, n)
		}
	}
	if len(got) != 3 {
		t.Errorf("chosen: %v", got)
	}
}

func TestWeightedFollowsTheWeightsOfThoseUp(t *testing.T) {
	lost := member("sc-c", 1)
	lost.State, lost.Reason = subcluster.StateLost, "no heartbeat for 40s"
	got := counts(
		t,
		must(t, home("weighted", `{"sc-a":3,"sc-b":1,"sc-c":96}`)),
		view(member("sc-a", 1), member("sc-b", 1), lost, member("sc-d", 1)),
		small,
		4000,
	)
	if got["sc-a"] < 2850 || got["sc-a"] > 3150 || got["sc-a"]+got["sc-b"] != 4000 {
		t.Errorf("want 3 to 1 between sc-a and sc-b, got %v", got)
	}
}

func TestPriorityTakesTheGreatestThatIsUp(t *testing.T) {
	p := must(t, home("priority", `{"sc-a":1,"sc-b":5,"sc-c":3}`))
	v := view(member("sc-a", 1), member("sc-b", 1), member("sc-c", 1))
	if id, _, _ := p.Home(v, small, nil, seeded(1)); id != "sc-b" {
		t.Errorf("chose %s", id)
	}
	id, reason, _ := p.Home(v, small, []creel.SubclusterID{"sc-b"}, seeded(1))
	if id != "sc-c" || reason.Candidates[1].Excluded != "it was tried and did not accept it" {
		t.Errorf("after sc-b failed: %s\n%s", id, reason)
	}
}

func TestLoadCountsRecentSends(t *testing.T) {
	p := must(t, home("load", ""))
	s := small
	sent := map[creel.SubclusterID]int64{}
	s.Assumed = func(v *subcluster.View, each []RecentLoad) {
		for i := range each {
			apps := sent[v.Members[i].ID]
			each[i] = RecentLoad{apps, creel.Resource{MemoryMB: apps * 1024}}
		}
	}
	v := view(member("sc-a", 40_000), member("sc-b", 50_000))
	for range 40 {
		id, _, err := p.Home(v, s, nil, seeded(1))
		if err != nil {
			t.Fatal(err)
		}
		sent[id]++
	}
	// 10,000 MB more free are about ten AMs more; all 40 without the count.
	if d := sent["sc-b"] - sent["sc-a"]; d < 9 || d > 11 {
		t.Errorf("sent %v", sent)
	}
}

func TestHashMovesOnlyQueuesOfRemovedMember(t *testing.T) {
	p := must(t, home("hash", ""))
	all := []subcluster.Status{member("sc-a", 1), member("sc-b", 1), member("sc-c", 1), member("sc-d", 1)}
	moved, kept := 0, map[creel.SubclusterID]int{}
	for q := range 1000 {
		s := small
		s.Queue = creel.QueuePath(fmt.Sprintf("root.q%d", q))
		before, _, _ := p.Home(view(all...), s, nil, seeded(1))
		after, _, _ := p.Home(view(all[1:]...), s, nil, seeded(2))
		if before != "sc-a" && before != after {
			moved++
		}
		kept[before]++
	}
	if moved != 0 {
		t.Errorf("%d queues moved though their member stayed", moved)
	}
	for id, n := range kept {
		if n < 180 || n > 320 {
			t.Errorf("%s has %d of 1000 queues", id, n)
		}
	}
}

func TestLocalityTakesTheHostBeforeTheRack(t *testing.T) {
	all := []creel.SubclusterID{"sc-a", "sc-b", "sc-c"}
	where := func(place string) []creel.SubclusterID {
		return map[string][]creel.SubclusterID{"/default-rack": all, "hb": {"sc-b"}, "/r1": {"sc-b", "sc-c"}, "hc": {"sc-c"}}[place]
	}
	for _, c := range []struct {
		story  string
		places []string
		strict bool
		want   []creel.SubclusterID
	}{
		{"the rack that all have is named first", []string{"/default-rack", "hb"}, false, all[1:2]},
		{"a rack that two have is named first", []string{"/r1", "hb"}, false, all[1:2]},
		{"two hosts: the first", []string{"/r1", "hc", "hb"}, false, all[2:]},
		{"the host nobody has", []string{"hx", "/r1"}, false, all[1:]},
		{"the rack that all have says nothing", []string{"/default-rack"}, false, all},
		{"nor where nothing else will do", []string{"/default-rack"}, true, all},
		{"where nothing else will do", []string{"/r1", "hb"}, true, all[1:2]},
	} {
		chosen := map[creel.SubclusterID]bool{}
		for seed := range uint64(60) {
			s := Submission{Queue: "root.a", Size: gig, Places: c.places, Strict: c.strict, Where: where}
			id, reason, err := must(t, `{"home":{"policy":"locality"}}`).Home(
				view(member("sc-a", 50_000), member("sc-b", 50_000), member("sc-c", 50_000)), s, nil, seeded(seed))
			if chosen[id] = true; err != nil || !slices.Contains(c.want, id) {
				t.Errorf("%s: %s, %v, want one of %v\n%s", c.story, id, err, c.want, reason)
				break
			}
		}
		if len(chosen) != len(c.want) {
			t.Errorf("%s: %v, want each of %v", c.story, chosen, c.want)
		}
	}
}

func TestLocalityHonoursStrictAskOrRefuses(t *testing.T) {
	p := must(t, home("locality", `{"sc-a":1,"sc-b":1}`))
	v := view(member("sc-a", 1), member("sc-b", 1))
	s := small
	s.Places = []string{"n7", "/r7"}
	s.Where = func(name string) []creel.SubclusterID {
		if name == "n7" || name == "/r7" {
			return []creel.SubclusterID{"sc-b"}
		}
		return nil
	}
	for seed := range uint64(20) {
		if id, r, _ := p.Home(v, s, nil, seeded(seed)); id != "sc-b" {
			t.Fatalf("%s", r)
		}
	}
	s.Strict = true
	_, _, err := p.Home(v, s, []creel.SubclusterID{"sc-b"}, seeded(1))
	if !errors.Is(err, creel.ErrNoSubcluster) || !strings.Contains(err.Error(), "n7") {
		t.Errorf("a strict wish for a member that is out: %v", err)
	}
	s.Strict = false
	if id, _, err := p.Home(v, s, []creel.SubclusterID{"sc-b"}, seeded(1)); id != "sc-a" || err != nil {
		t.Errorf("a relaxed wish: %s %v", id, err)
	}
}

func TestBalancedExcludesFullMembersWithReason(t *testing.T) {
	full := member("sc-a", 0)
	full.Load.Metrics.PendingMB = 50_000
	v := view(full, member("sc-b", 30_000), member("sc-c", 60_000))
	got := counts(t, Default(), v, small, 300)
	if got["sc-a"] != 0 || got["sc-c"] != 300 {
		t.Errorf("with two left both are drawn, and the freer wins: %v", got)
	}
	_, reason, _ := Default().Home(v, small, nil, seeded(1))
	if !strings.Contains(reason.Candidates[0].Excluded, "full and others are not") {
		t.Errorf("%s", reason)
	}
	// When no member has free capacity, the one with the shortest wait.
	v = view(full, func() subcluster.Status { s := full; s.ID = "sc-b"; s.Load.Metrics.PendingMB = 10_000; return s }())
	if id, r, _ := Default().Home(v, small, nil, seeded(1)); id != "sc-b" {
		t.Errorf("%s", r)
	}
}

func TestBalancedUsesTheQueuesOwnFigures(t *testing.T) {
	a, b := member("sc-a", 90_000), member("sc-b", 20_000)
	a.Load.Queues = []subcluster.QueueLoad{
		{
			Queue:    "root.a",
			Capacity: creel.Resource{MemoryMB: 10_000, VCores: 10},
			Pending:  creel.Resource{MemoryMB: 5000, VCores: 5},
		},
	}
	b.Load.Queues = []subcluster.QueueLoad{
		{
			Queue:    "root.a",
			Capacity: creel.Resource{MemoryMB: 10_000, VCores: 10},
			Free:     creel.Resource{MemoryMB: 8000, VCores: 8},
		},
	}
	if id, r, _ := Default().Home(view(a, b), small, nil, seeded(1)); id != "sc-b" {
		t.Errorf("sc-a is free, but not for this queue:\n%s", r)
	}
	s := small
	s.Queue = "a"
	if id, r, _ := Default().Home(view(a, b), s, nil, seeded(1)); id != "sc-b" {
		t.Errorf("by leaf name:\n%s", r)
	}
}

func TestPowerOfTwoAvoidsHerding(t *testing.T) {
	v := view(member("sc-a", 50_000), member("sc-b", 51_000), member("sc-c", 52_000), member("sc-d", 53_000))
	got := counts(t, Default(), v, small, 1200)
	if got["sc-d"] > 700 || got["sc-b"] == 0 || got["sc-c"] == 0 {
		t.Errorf("routers of one view ran to one member: %v", got)
	}
}

func TestUnableMembersAreExcluded(t *testing.T) {
	gpu := member("sc-gpu", 10_000)
	gpu.Load.Queues = []subcluster.QueueLoad{
		{
			Queue:    "root.a",
			Capacity: creel.NewResource(1000, 1, creel.Amount{Name: "yarn.io/gpu", Value: 4}),
			Free:     creel.Resource{MemoryMB: 10_000, VCores: 10},
		},
		{Queue: "root.a", Label: "fast", Capacity: creel.Resource{MemoryMB: 1000, VCores: 1}},
	}
	plain := member("sc-plain", 90_000)
	plain.Load.Queues = []subcluster.QueueLoad{
		{
			Queue:    "root.a",
			Capacity: creel.Resource{MemoryMB: 1000, VCores: 1},
			Free:     creel.Resource{MemoryMB: 90_000, VCores: 90},
		},
	}
	draining := member("sc-drain", 90_000)
	draining.State, draining.Reason = subcluster.StateDraining, "drained: ann, disks"
	v := view(gpu, plain, draining)

	s := small
	s.Size = creel.NewResource(1024, 1, creel.Amount{Name: "yarn.io/gpu", Value: 1})
	id, reason, err := Default().Home(v, s, nil, seeded(1))
	if id != "sc-gpu" || err != nil {
		t.Errorf("a graphics card: %s %v\n%s", id, err, reason)
	}
	s = small
	s.Label = "fast"
	if id, r, _ := Default().Home(v, s, nil, seeded(1)); id != "sc-gpu" {
		t.Errorf("a label:\n%s", r)
	}
	s = small
	s.Reserved = "sc-drain"
	_, reason, err = Default().Home(v, s, nil, seeded(1))
	if !errors.Is(err, creel.ErrNoSubcluster) || !strings.Contains(err.Error(), "drained: ann, disks") {
		t.Errorf("%v\n%s", err, reason)
	}
	s = small
	s.Size.MemoryMB = 200_000
	if id, reason, err = Default().Home(v, s, nil, seeded(1)); err != nil {
		t.Errorf("larger than any cluster, which its home refuses or lets wait: %s %v\n%s", id, err, reason)
	}
	s.Size.MemoryMB = 60_000
	lost := member("sc-lost", 90_000)
	lost.State, lost.Load.Metrics.TotalMB = subcluster.StateLost, 100_000
	small1, small2 := member("sc-1", 10), member("sc-2", 10)
	small1.Load.Metrics.TotalMB, small2.Load.Metrics.TotalMB = 50_000, 50_000
	if _, _, err = Default().Home(view(small1, small2, lost), s, nil, seeded(1)); !errors.Is(err, creel.ErrNoSubcluster) ||
		!strings.Contains(err.Error(), "more than its total") {
		t.Errorf("larger than all that is there now: %v", err)
	}
}

// The home is where the reservation was made, whatever the policy says since: only that member's plan has it.
func TestHomeFollowsReservation(t *testing.T) {
	s := small
	s.Reserved = "sc-b"
	v := view(member("sc-a", 90_000), member("sc-b", 10))
	for _, doc := range []string{home("weighted", `{"sc-a":1}`), home("priority", `{"sc-a":1}`), home("balanced", "")} {
		id, reason, err := must(t, doc).Home(v, s, nil, seeded(1))
		if id != "sc-b" || err != nil || reason.Because != "it holds the reservation" {
			t.Errorf("%s: %s, %v\n%s", doc, id, err, reason)
		}
	}
	if _, _, err := must(t, home("reject", "")).Home(v, s, nil, seeded(1)); !errors.Is(err, creel.ErrNotPermitted) {
		t.Errorf("reject: %v", err)
	}
}

func TestNoActiveMemberIsReported(t *testing.T) {
	for _, v := range []*subcluster.View{nil, view()} {
		if _, _, err := Default().Home(v, small, nil, seeded(1)); !errors.Is(err, creel.ErrNoSubcluster) {
			t.Errorf("empty view: %v", err)
		}
	}
	if _, _, err := must(
		t,
		home("reject", ""),
	).Home(view(member("sc-a", 1)), small, nil, seeded(1)); !errors.Is(
		err,
		creel.ErrNotPermitted,
	) {
		t.Errorf("reject: %v", err)
	}
}

// An invariant of all home policies: a chosen member is active, untried, has weight and is reported as such; if none
// is chosen, none was eligible.
func TestHomePoliciesChooseOnlyEligibleMembers(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		names := slices.DeleteFunc(HomeNames(), func(name string) bool { return name == rejectHome{}.name() })
		name := rapid.SampledFrom(names).Draw(t, "policy")
		var members []subcluster.Status
		weights := map[creel.SubclusterID]float64{}
		for i := range rapid.IntRange(0, 6).Draw(t, "members") {
			m := member(creel.SubclusterID(fmt.Sprintf("sc-%d", i)), rapid.Int64Range(-1000, 100_000).Draw(t, "free"))
			m.State = subcluster.State(rapid.IntRange(0, 5).Draw(t, "state"))
			m.Load.Metrics.PendingMB = rapid.Int64Range(0, 200_000).Draw(t, "pending")
			members = append(members, m)
			weights[m.ID] = float64(rapid.IntRange(0, 3).Draw(t, "weight"))
		}
		var tried []creel.SubclusterID
		if len(members) > 0 && rapid.Bool().Draw(t, "failed") {
			tried = append(tried, rapid.SampledFrom(members).Draw(t, "tried").ID)
		}
		rule, err := homeFrom(ruleDoc{Policy: name, Weights: weights})
		if err != nil {
			if rule, err = homeFrom(ruleDoc{Policy: name}); err != nil {
				t.Fatal(err)
			}
			weights = nil
		}
		p := Policy{home: rule}
		seed := rapid.Uint64().Draw(t, "seed")
		id, reason, err := p.Home(view(members...), small, tried, seeded(seed))
		may := func(m subcluster.Status) bool {
			return m.State == subcluster.StateActive && !slices.Contains(tried, m.ID) && Weights(weights).of(m.ID) > 0
		}
		if err != nil {
			if !errors.Is(err, creel.ErrNoSubcluster) || slices.ContainsFunc(members, may) || reason.Chosen != "" {
				t.Fatalf("refused though somebody may: %v\n%s", err, reason)
			}
			return
		}
		i := slices.IndexFunc(members, func(m subcluster.Status) bool { return m.ID == id })
		if i < 0 || !may(members[i]) || reason.Chosen != id || reason.Because == "" ||
			len(reason.Candidates) != len(members) {
			t.Fatalf("chose %s\n%s", id, reason)
		}
		for _, c := range reason.Candidates {
			if c.Member == id && c.Excluded != "" {
				t.Fatalf("chosen and excluded:\n%s", reason)
			}
		}
		again, _, _ := p.Home(view(members...), small, tried, seeded(seed))
		if again != id {
			t.Fatalf("the same arguments chose %s, then %s", id, again)
		}
	})
}

// With many members, a reason lists the chosen one and the best of the others with their numbers, the excluded ones
// with causes, and how many more there were.
func TestLongReasonHasBestAndExcluded(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		var members []subcluster.Status
		want := map[creel.SubclusterID]bool{} // the candidates, and whether each must be listed
		var in []subcluster.Status
		for i := range rapid.IntRange(9, 60).Draw(t, "members") {
			m := member(creel.SubclusterID(fmt.Sprintf("sc-%02d", i)), 1000*rapid.Int64Range(2, 20).Draw(t, "free"))
			if rapid.IntRange(0, 3).Draw(t, "lost") == 0 {
				m.State, m.Reason = subcluster.StateLost, "no heartbeat for 40s"
			} else {
				in = append(in, m)
			}
			members = append(members, m)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		id, r, err := Default().Home(view(members...), small, nil, seeded(seed))
		if (err != nil) != (len(in) == 0) {
			t.Fatalf("%v with %d in", err, len(in))
		}
		slices.SortStableFunc(in, func(a, b subcluster.Status) int {
			return cmp.Compare(b.Load.Metrics.AvailableMB, a.Load.Metrics.AvailableMB)
		})
		best := slices.DeleteFunc(slices.Clone(in), func(m subcluster.Status) bool { return m.ID == id })
		for i := range best[:min(len(best), listedIn-1)] {
			want[best[i].ID] = true
		}
		if id != "" {
			want[id] = true
		}
		out := 0
		for _, c := range r.Candidates {
			switch {
			case c.Code == "" && (!want[c.Member] || c.Numbers.IsZero() || c.Excluded != ""):
				t.Fatalf("%s is told, of %v:\n%s", c.Member, want, r)
			case c.Code != "":
				if out++; c.Code != "lost" || c.Excluded != "it is lost: no heartbeat for 40s" {
					t.Fatalf("%s is out for %s: %s", c.Member, c.Code, c.Excluded)
				}
			}
		}
		if out != len(members)-len(in) || len(r.Candidates) != out+len(want) ||
			r.LeftOut != len(members)-len(r.Candidates) ||
			!slices.IsSortedFunc(r.Candidates, func(a, b Candidate) int { return cmp.Compare(a.Member, b.Member) }) {
			t.Fatalf("%d members, %d of them in, %d must be told:\n%s", len(members), len(in), len(want), r)
		}
	})
}

// Numbers become text when they are read, and read the same from JSON.
func TestNumbersAreFormattedLazily(t *testing.T) {
	now := time.Unix(1000, 0)
	m := subcluster.Status{Member: subcluster.Member{ID: "sc-1"}, State: subcluster.StateActive}
	m.Load.Metrics.TotalMB, m.Load.Metrics.AvailableMB, m.Load.Metrics.TotalVirtualCores, m.Load.Metrics.AvailableVirtualCores = 4096, 2048, 4, 2
	_, reason, err := Default().Home(subcluster.NewView(now, []subcluster.Status{m}, nil), Submission{Queue: "default", Size: creel.NewResource(128, 1)}, nil, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	const want = "cluster free <memory:2048, vCores:2>, pending <memory:0, vCores:0>, assumed <memory:0, vCores:0> of 0 applications"
	if got := reason.Candidates[0].Numbers.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	text, err := json.Marshal(reason)
	if err != nil {
		t.Fatal(err)
	}
	var again Reason
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if again.String() != reason.String() || !strings.Contains(reason.String(), want) {
		t.Errorf("%s\nafter JSON: %s", reason, again)
	}
}

// A member that reports no nodes is no home while another has nodes, however full. Before its first report, and if no
// other member may get the application, it may be one: nodes may join.
func TestMembersWithoutNodesAreNoHome(t *testing.T) {
	none := member("none", 0)
	none.Load = subcluster.Load{Labels: subcluster.Labels{Known: true}}
	unread := member("none", 0)
	unread.Load = subcluster.Load{}
	full := member("full", 0)
	full.Load.Metrics.PendingMB, full.Load.Metrics.PendingVirtualCores = 50_000, 50
	for _, rule := range []string{"balanced", "uniform", "hash", "load"} {
		p := must(t, home(rule, ""))
		if got := counts(t, p, view(none, full), small, 50); got["none"] > 0 {
			t.Errorf("%s: of 50 applications %d wait where no nodes are", rule, got["none"])
		}
		if got := counts(t, p, view(none), small, 5); got["none"] != 5 {
			t.Errorf("%s: no member has nodes, and %v got applications", rule, got)
		}
	}
	all := must(t, home("weighted", `{"none":1}`))
	if got := counts(t, all, view(none, full), small, 5); got["none"] != 5 {
		t.Errorf("the policy permits one member, and %v got applications", got)
	}
	if got := counts(t, must(t, home("uniform", "")), view(unread, full), small, 50); got["none"] == 0 {
		t.Errorf("a member that has not reported yet got none: %v", got)
	}
}
