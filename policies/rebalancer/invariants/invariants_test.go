// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/policies/rebalancer/escrow"
	"github.com/creelrm/creel/subcluster"
)

var began = time.Unix(1_700_000_000, 0)

const (
	queueA = creel.QueuePath("root.a")
	queueB = creel.QueuePath("root.b")
)

func gb(n int64) creel.Resource { return creel.NewResource(n<<10, n) }

// scene is a federation of two members of 100 GB with two queues each, in which all is well.
type scene struct {
	at      time.Time
	used    [2][2]int64 // GB, of members and queues
	pending [2][2]int64
	free    int64 // false headroom that root.a reports in the first member
	parent  int64 // false use that root reports in the first member
	maximum int64
	caps    []escrow.Holder
	source  string
	users   []escrow.Holder
	weights [2]float64 // of root.a
	plan    int64      // its version
	hot     int64      // demand of a user whose limit is 10 GB
	at8     int64      // root.a's pending in sc-1 of a user who has 8 GB there and may have no more
	taken   bool       // something may be taken back for root.a
	noPlan  bool
	before  *subcluster.Plan
	label   string // of all nodes
	away    bool   // sc-2 is lost
	most    int64  // root.a's maximum in each member, by its own files; 0: none
}

func well() *scene {
	return &scene{
		used: [2][2]int64{{45, 50}, {15, 50}}, pending: [2][2]int64{{10, 0}, {0, 0}}, maximum: 60,
		caps: []escrow.Holder{
			{Member: "sc-1", Epoch: 1, Cap: gb(45), Ends: began.Add(time.Hour), Version: 3},
			{Member: "sc-2", Epoch: 1, Cap: gb(15), Ends: began.Add(time.Hour), Version: 7},
		},
		users: []escrow.Holder{
			{Member: "sc-1", Epoch: 1, Cap: gb(5), Ends: began.Add(time.Hour), Version: 1},
			{Member: "sc-2", Epoch: 1, Cap: gb(5), Ends: began.Add(time.Hour), Version: 1},
		},
		source: "s", weights: [2]float64{0.8, 0.2},
	}
}

func (s *scene) look() *Look {
	var members []subcluster.Status
	for m := range 2 {
		id := creel.SubclusterID(fmt.Sprintf("sc-%d", m+1))
		sum := s.used[m][0] + s.used[m][1]
		root := subcluster.QueueLoad{Queue: "root", Capacity: gb(100), Used: gb(sum), Free: gb(100 - sum)}
		load := subcluster.Load{Metrics: subcluster.ClusterMetrics{
			TotalMB: 100 << 10, TotalVirtualCores: 100, AvailableMB: (100 - sum) << 10, AvailableVirtualCores: 100 - sum,
		}}
		if m == 0 {
			root.Used = root.Used.Add(gb(s.parent))
		}
		load.Queues = append(load.Queues, root)
		for q, path := range []creel.QueuePath{queueA, queueB} {
			free := 100 - sum
			if m+q == 0 {
				free += s.free
			}
			load.Queues = append(load.Queues, subcluster.QueueLoad{
				Queue: path, Capacity: gb(50), Used: gb(s.used[m][q]), Pending: gb(s.pending[m][q]), Free: gb(free),
			})
			if s.at8 > 0 && m+q == 0 {
				load.Queues[len(load.Queues)-1].Users = []subcluster.UserLoad{
					{User: "bob", Used: gb(8), Pending: gb(s.at8), Most: gb(8)},
				}
			}
			if each := gb(0); s.at8 > 0 && m == 1 {
				load.Queues[len(load.Queues)-1].EachUser = &each
			}
		}
		if most := gb(s.most); s.most > 0 {
			load.Queues[1].Most = &most
		}
		state := subcluster.StateActive
		if s.away && m == 1 {
			state = subcluster.StateLost
		}
		members = append(members, subcluster.Status{
			Member: subcluster.Member{ID: id, Version: "creel"}, State: state, Load: load,
			Age: time.Duration(m) * 300 * time.Millisecond,
		})
	}
	tree := &rebalancer.Tree{Version: 1, Queues: []rebalancer.Queue{
		{Path: queueA, Maximum: gb(s.maximum), Preemption: gb(10), PreemptionEvery: time.Minute},
	}}
	plan := &subcluster.Plan{
		Version: s.plan, At: s.at, LeaseMS: 30_000, Tree: 1, Total: gb(200),
		Members: []subcluster.MemberSize{{Member: "sc-1", Share: 0.5}, {Member: "sc-2", Share: 0.5}},
		Starts: []subcluster.MemberStart{
			{Member: "sc-1", Size: gb(100), Counts: 1}, {Member: "sc-2", Size: gb(100), Counts: 1},
		},
		Queues: []subcluster.QueuePlan{
			{
				Queue: queueA, Wants: 0.3, Entitled: 0.3, Uses: float64(s.used[0][0]+s.used[1][0]) / 200,
				Members: []subcluster.MemberPlan{{Member: "sc-1", Weight: s.weights[0]}, {Member: "sc-2", Weight: s.weights[1]}},
			},
			{Queue: queueB, Wants: 0.5, Entitled: 0.5, Uses: 0.5},
		},
	}
	if s.taken {
		plan.Preemption = []subcluster.PreemptionBudget{{
			Queue: queueA, Members: []subcluster.PreemptionMember{{Member: "sc-1", Share: gb(10)}},
		}}
	}
	record := &escrow.Record{Queue: queueA, Maximum: gb(s.maximum), Source: s.source, Holders: slices.Clone(s.caps)}
	each := &escrow.Record{Queue: queueA, Maximum: gb(10), Source: s.source, Holders: slices.Clone(s.users)}
	users := &escrow.UsersRecord{Each: each}
	if s.hot > 0 {
		users.Hot = []escrow.HotUser{{User: "ann", Record: &escrow.Record{
			Queue: queueA, Maximum: gb(10), Source: s.source, Holders: []escrow.Holder{{Member: "sc-1", Epoch: 1, Needs: gb(s.hot)}},
		}}}
	}
	l := &Look{
		View: subcluster.NewView(s.at, members, nil), Tree: tree, Plan: plan, At: s.at,
		Caps: []*escrow.Record{record}, Users: []*escrow.UsersRecord{users}, InForce: !s.noPlan,
	}
	if s.label != "" {
		l.relabel(s.label)
	}
	return l
}

// relabel turns all data of a check into data of nodes with a label: there are no others.
func (l *Look) relabel(label string) {
	for i := range l.View.Members {
		load := &l.View.Members[i].Load
		m := load.Metrics
		total := creel.NewResource(m.TotalMB, m.TotalVirtualCores)
		load.Metrics = subcluster.ClusterMetrics{}
		load.Labels.Put(subcluster.Partition{
			Label: label, Total: total, Used: total.Sub(creel.NewResource(m.AvailableMB, m.AvailableVirtualCores)),
		})
		for j := range load.Queues {
			load.Queues[j].Label = label
		}
	}
	l.Tree = &rebalancer.Tree{Version: l.Tree.Version, Labels: map[string][]rebalancer.Queue{label: l.Tree.Queues}}
	l.Plan = &subcluster.Plan{
		Version: l.Plan.Version, At: l.Plan.At, LeaseMS: l.Plan.LeaseMS, Tree: l.Plan.Tree,
		Labels: []subcluster.LabelPlan{{Label: label, Plan: *l.Plan}},
	}
	l.Caps[0].Label, l.Users[0].Each.Label = label, label
}

// looks plays a scene for n checks, one every ten seconds, and returns the breaches found.
func (s *scene) looks(r *Reports, n int) {
	if s.at.IsZero() {
		s.at = began
	}
	for range n {
		s.plan++
		l := s.look()
		if l.InForce {
			r.Planned(s.before, l.Plan)
			s.before = l.Plan
		}
		r.Look(l)
		s.at = s.at.Add(10 * time.Second)
	}
}

// If all is well, everything that reports cover is judged, and nothing is broken. Each fault is found by the
// invariant that it breaks and no other, on nodes of a label as on those without one.
func TestReportsTellWhichInvariantIsBroken(t *testing.T) {
	for name, x := range map[string]struct {
		turn  func(s *scene)
		looks int
		is    []Invariant
	}{
		"nothing is wrong": {func(*scene) {}, 100, nil},
		"a queue uses more than its maximum in all members": {
			func(s *scene) { s.used[1][0] = 21; s.used[1][1] = 40 }, 4, []Invariant{GlobalMaximum},
		},
		"a member's own maximum, which calls cannot change, is raised": {
			func(s *scene) {
				s.caps[0].Fixed, s.caps[0].Cap, s.caps[0].Version = true, gb(50), 4
				s.used[0] = [2]int64{50, 45}
			},
			10, nil,
		},
		"members' own maxima are below what is guaranteed": {
			func(s *scene) { s.used, s.most = [2][2]int64{{20, 79}, {20, 80}}, 20 }, 40, nil,
		},
		"they are, and a member could give more within them": {
			func(s *scene) { s.used, s.most = [2][2]int64{{12, 79}, {12, 85}}, 30 }, 40, []Invariant{Guarantee, NoStarvation},
		},
		"it does so between two reports alone": {
			func(s *scene) { s.used[1][0] = 21; s.used[1][1] = 40 }, 2, nil,
		},
		"what ran when the maximum was lowered runs on": {
			func(s *scene) { s.maximum, s.pending = 40, [2][2]int64{} }, 10, nil,
		},
		"a member's part rises above what is left": {
			func(s *scene) { s.caps[0].Cap = gb(46); s.caps[0].Version++ }, 1, []Invariant{GlobalMaximum},
		},
		"a part is taken from a member before its lease is over": {
			func(s *scene) { s.caps = s.caps[:1] }, 1, []Invariant{MemberLoss},
		},
		"a part changes without a word of its member": {
			func(s *scene) { s.caps[1].Cap = gb(10) }, 1, []Invariant{MemberLoss},
		},
		"a part of another store": {func(s *scene) { s.source, s.caps = "t", nil; s.users = nil }, 1, nil},
		"parts of a user's limit sum above it": {
			func(s *scene) { s.users[0].Cap = gb(6); s.users[0].Version++ }, 1, []Invariant{UserLimits},
		},
		"a queue is short of its guarantee": {
			func(s *scene) { s.used = [2][2]int64{{20, 79}, {15, 85}} }, 40, []Invariant{Guarantee, NoStarvation},
		},
		"what it waits for is all above the limit of a user": {
			func(s *scene) { s.used, s.hot = [2][2]int64{{20, 79}, {15, 85}}, 10_000 }, 40, nil,
		},
		"members ask for that user for what their nodes can give": {
			func(s *scene) { s.used, s.hot = [2][2]int64{{20, 79}, {15, 85}}, 11 }, 40, nil,
		},
		"members report that all that waits is of a user at a limit": {
			func(s *scene) { s.used, s.at8 = [2][2]int64{{20, 79}, {15, 85}}, 10 }, 40, nil,
		},
		"a fifth of it is": {
			func(s *scene) { s.used, s.at8 = [2][2]int64{{20, 79}, {15, 85}}, 2 }, 40, []Invariant{Guarantee, NoStarvation},
		},
		"it is so for a minute": {func(s *scene) { s.used[0] = [2]int64{20, 79} }, 6, nil},
		"it is, and is given a budget": {
			func(s *scene) { s.used, s.taken = [2][2]int64{{20, 79}, {15, 85}}, true }, 40, []Invariant{Guarantee},
		},
		"a queue waits beside what is idle": {
			func(s *scene) { s.used[0], s.taken = [2]int64{30, 20}, true }, 40, []Invariant{Guarantee, WorkConservation},
		},
		"children do not sum to their parent": {func(s *scene) { s.parent = 1 }, 1, []Invariant{ParentConsistency}},
		"room is told that there is not":      {func(s *scene) { s.free = 1 }, 1, []Invariant{TrueHeadroom}},
		"a weight jumps":                      {func(s *scene) { s.weights = [2]float64{0.65, 0.35} }, 1, []Invariant{Stability}},
		"a weight goes a step":                {func(s *scene) { s.weights, s.used[0][0] = [2]float64{0.71, 0.29}, 43 }, 1, nil},
		"without a plan room is told that is not": {
			func(s *scene) { s.free, s.noPlan = 1, true }, 1, []Invariant{TrueHeadroom, RebalancerLoss},
		},
		"without a plan all is well": {func(s *scene) { s.noPlan = true }, 50, nil},
	} {
		for _, label := range []string{"", "gpu"} {
			t.Run(name+map[string]string{"gpu": " (nodes of a label)"}[label], func(t *testing.T) {
				s, found := well(), map[Invariant]error{}
				s.label = label
				r := &Reports{Within: 5 * time.Minute, Step: 0.1, Band: 0.01, Linger: 10 * time.Minute}
				s.looks(r, 15) // more than steps: weights are where they go
				if _, broken := r.Tally.All(); broken > 0 {
					t.Fatalf("broken before anything was: %v", r.Tally.Broken)
				}
				for _, i := range Reported {
					if i != RebalancerLoss && r.Tally.Checked[i] == 0 {
						t.Errorf("%s was not judged", i)
					}
				}
				r.Tally.Tell = func(i Invariant, of string, breach error) {
					if found[i] = fmt.Errorf("%s: %w", of, breach); strings.HasSuffix(of, " on nodes of label gpu") != (label != "") {
						t.Errorf("%s of %s is found on other nodes", i, of)
					}
				}
				x.turn(s)
				s.looks(r, x.looks)
				for _, i := range x.is {
					if found[i] == nil {
						t.Errorf("%s is not found broken", i)
					}
				}
				for i, breach := range found {
					if t.Log(i, breach); !slices.Contains(x.is, i) {
						t.Errorf("%s is found broken", i)
					}
				}
			})
		}
	}
}

// The records of opportunistic containers are checked like those of resources, and only once in a federation with labels.
func TestOpportunisticRecordsAreChecked(t *testing.T) {
	for name, x := range map[string]struct {
		turn func(caps, each *escrow.Record)
		is   Invariant
	}{
		"nothing is wrong": {func(_, _ *escrow.Record) {}, ""},
		"a member's part rises above the rest": {func(caps, _ *escrow.Record) {
			caps.Holders[0].Cap, caps.Holders[0].Version = escrow.Containers(8), 2
		}, GlobalMaximum},
		"a part of a user's limit rises above the rest": {func(_, each *escrow.Record) {
			each.Holders[0].Cap, each.Holders[0].Version = escrow.Containers(3), 2
		}, UserLimits},
		"a part is dropped before its lease is over": {func(caps, _ *escrow.Record) {
			caps.Holders = caps.Holders[:1]
		}, MemberLoss},
	} {
		t.Run(name, func(t *testing.T) {
			record := func(most int64, caps ...int64) *escrow.Record {
				r := &escrow.Record{
					Queue: queueA, Label: escrow.Opportunistic, Maximum: escrow.Containers(most), Source: "s",
				}
				for i, n := range caps {
					r.Holders = append(r.Holders, escrow.Holder{
						Member: creel.SubclusterID(fmt.Sprintf("sc-%d", i+1)), Epoch: 1, Cap: escrow.Containers(n),
						Ends: began.Add(time.Hour), Version: 1,
					})
				}
				return r
			}
			found := map[Invariant]string{}
			r := &Reports{Within: 5 * time.Minute, Step: 0.1, Band: 0.01, Linger: 10 * time.Minute}
			r.Tally.Tell = func(i Invariant, of string, breach error) { found[i] = of + ": " + breach.Error() }
			s := well()
			look := func(caps, each *escrow.Record) {
				l := s.look()
				l.View.Members[0].Load.Labels.Put(subcluster.Partition{Label: "gpu", Total: gb(10)})
				l.Caps, l.Users = append(l.Caps, caps), append(l.Users, &escrow.UsersRecord{Each: each})
				r.Look(l)
				s.at = s.at.Add(10 * time.Second)
			}
			s.at = began
			look(record(12, 7, 5), record(4, 2, 2))
			before := r.Tally.Checked[GlobalMaximum]
			caps, each := record(12, 7, 5), record(4, 2, 2)
			x.turn(caps, each)
			look(caps, each)
			if n := r.Tally.Checked[GlobalMaximum] - before; n != 3 {
				t.Errorf("%d maxima checked, want the record and the use of resources, and the record of containers", n)
			}
			if x.is == "" && len(found) > 0 || x.is != "" && len(found) != 1 {
				t.Errorf("found %v", found)
			}
			if of := found[x.is]; x.is != "" && !strings.HasPrefix(of, "root.a, opportunistic containers") {
				t.Errorf("found %q", of)
			}
		})
	}
}

// Containers that ran when a maximum was lowered run on, also at a member that is lost for a while. Its return is no
// grant; more than it had is.
func TestReturningMemberBringsUseAboveLoweredMaximum(t *testing.T) {
	for _, more := range []int64{0, 1} {
		s := well()
		r := &Reports{Within: 5 * time.Minute, Step: 0.1, Band: 0.01, Linger: 10 * time.Minute}
		s.looks(r, 15)
		s.maximum, s.pending = 40, [2][2]int64{}
		s.looks(r, 4)
		s.away = true
		s.looks(r, 6)
		s.away = false
		s.used[1] = [2]int64{15 + more, 50 - more}
		s.looks(r, 6)
		if broken := r.Tally.Broken[GlobalMaximum]; (broken > 0) != (more > 0) {
			t.Errorf("with %d GB more than before, %d checks of the maximum failed", more, broken)
		}
	}
}

// Weights that change by less than a step each time, and of nothing, are found.
func TestWeightsThatChangeOfNothingAreFound(t *testing.T) {
	s := well()
	r := &Reports{Within: time.Hour, Step: 0.1, Band: 0.01, Linger: time.Minute}
	for n := range 20 {
		s.weights = [2]float64{0.8, 0.2}
		if n%2 == 0 {
			s.weights = [2]float64{0.75, 0.25}
		}
		s.looks(r, 1)
		if broken := r.Tally.Broken[Stability]; (broken > 0) != (n > 11) {
			t.Fatalf("after %d plans %d are broken", n, broken)
		}
	}
}

func TestWholePartsAreHeldAgainstTheWhole(t *testing.T) {
	parts := map[creel.SubclusterID]creel.Resource{"sc-1": gb(3), "sc-2": gb(4)}
	for _, x := range []struct {
		whole creel.Resource
		well  bool
	}{
		{gb(7), true},
		{creel.NewResource(gb(7).MemoryMB-2, 7), true}, // two parts of nothing may be one each
		{creel.NewResource(gb(7).MemoryMB-3, 7), false},
		{gb(7).Add(creel.NewResource(1, 0)), false},
		{creel.NewResource(gb(7).MemoryMB, rebalancer.Unbounded), true},
	} {
		if err := SharesExact(x.whole, parts); (err == nil) != x.well {
			t.Errorf("of %s: %v", x.whole, err)
		}
	}
	parts["sc-2"] = creel.Resource{VCores: 4}
	if SharesExact(gb(3), parts) == nil {
		t.Error("a part of nothing is not found")
	}
}

// A member leaves the record of a user by its own request, which two checks that are far apart do not see; a part of
// a queue, or of a user still there, ends by its lease alone.
func TestMemberMayLeaveUserRecord(t *testing.T) {
	h := escrow.Holder{Member: "sc-1", Epoch: 1, Cap: gb(5), Ends: began.Add(time.Minute), Version: 3}
	before, less := &escrow.Record{Holders: []escrow.Holder{h}}, h
	less.Cap = gb(4)
	gone, cut := &escrow.Record{}, &escrow.Record{Holders: []escrow.Holder{less}}
	less.Ends = h.Ends.Add(5 * time.Second)
	back := &escrow.Record{Holders: []escrow.Holder{less}} // at the version at which it had been
	for _, x := range []struct {
		now    *escrow.Record
		leaves bool
		well   bool
	}{{gone, true, true}, {gone, false, false}, {cut, true, false}, {back, true, true}, {back, false, false}} {
		if err := LeaseKept(before, x.now, began, time.Minute, x.leaves); (err == nil) != x.well {
			t.Errorf("%+v: %v", x, err)
		}
	}
}
