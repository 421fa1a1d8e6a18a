// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
)

const gpuType = "yarn.io/gpu"

// labelled returns a member that publishes labels, each with the given GB and cores free of 100.
func labelled(id creel.SubclusterID, availableMB int64, free map[string]int64) subcluster.Status {
	m := member(id, availableMB)
	m.Load.Labels.Known = true
	for label, gb := range free {
		m.Load.Labels.Put(subcluster.Partition{
			Label: label, Shared: strings.HasPrefix(label, "shared"), Total: gigs(100), Used: gigs(100 - gb),
		})
	}
	m.Load.Queues = []subcluster.QueueLoad{
		{Queue: "root", Capacity: gigs(100), Free: gigs(availableMB / 1024)},
		{Queue: "root.a", Capacity: gigs(50), Free: gigs(availableMB / 1024)},
	}
	return m
}

type free = map[string]int64

// A submission gets a home that has its label, by the free resources of that label's nodes.
func TestHomesHaveTheLabel(t *testing.T) {
	byDefault := labelled("sc-d", 10_000, free{"gpu": 10})
	byDefault.Load.Labels.Add("root.a", []string{"gpu"}, "gpu")
	forAMs := labelled("sc-e", 90_000, free{"am": 0})
	forAMs.Load.Labels.AMs = "am"
	closed := labelled("sc-f", 90_000, free{"gpu": 90})
	closed.Load.Labels.Add("root.a", []string{}, "")
	lost := labelled("sc-g", 90_000, free{"gpu": 90})
	lost.State = subcluster.StateLost
	old := member("sc-o", 90_000)
	young := labelled("sc-y", 0, nil)
	young.Load.Metrics, young.Load.Queues = subcluster.ClusterMetrics{}, nil
	allLabelled := labelled("sc-z", 0, free{"gpu": 9})
	allLabelled.Load.Metrics = subcluster.ClusterMetrics{}
	gpus := labelled("sc-h", 1_000, nil)
	gpus.Load.Queues[0].Capacity = gpus.Load.Queues[0].Capacity.With(gpuType, 4)
	typed := labelled("sc-t", 90_000, free{"gpu": 50})
	typed.Load.Labels.Partitions[0].Total = gigs(100).With(gpuType, 4)
	a, b, c := labelled("sc-a", 90_000, nil), labelled("sc-b", 1_000, free{"gpu": 80}), labelled("sc-c", 90_000, free{"gpu": 1, "ssd": 5})
	for _, x := range []struct {
		story   string
		members []subcluster.Status
		label   string
		size    creel.Resource
		home    creel.SubclusterID
		kind    error
		says    string
	}{
		{"the one that has it", []subcluster.Status{a, b}, "gpu", gig, "sc-b", nil, `sc-a: excluded, it has no node label "gpu"`},
		{"every node of it is labelled", []subcluster.Status{a, allLabelled}, "gpu", gig, "sc-z", nil, `sc-a: excluded, it has no node label "gpu"`},
		{"where more of it is free", []subcluster.Status{a, b, c}, "gpu", gigs(2), "sc-b", nil, "full and others are not (label gpu free <memory:1024, vCores:1>"},
		{"nobody has it", []subcluster.Status{a, b, c}, "tpu", gig, "", creel.ErrInvalidLabel, "no subcluster contains label= tpu: sc-b has gpu, sc-c has gpu, ssd"},
		{"nobody has any", []subcluster.Status{a}, "tpu", gig, "", creel.ErrInvalidLabel, "no subcluster has node labels"},
		{"who has it is away", []subcluster.Status{a, lost}, "gpu", gig, "", creel.ErrNoSubcluster, "it is lost"},
		{"an older member may have it, as before", []subcluster.Status{a, old}, "gpu", gig, "sc-o", nil, ""},
		{"the default of the queue there", []subcluster.Status{byDefault}, "", gig, "sc-d", nil, "label gpu free"},
		{"the label of AMs: full there", []subcluster.Status{a, forAMs}, "", gig, "sc-a", nil, "label am free <memory:0, vCores:0>"},
		{"the queue may not name it there", []subcluster.Status{b, closed}, "gpu", gig, "sc-b", nil, `asks in queue "root.a" may not name node label "gpu" there`},
		{"nor elsewhere: placement rules may know another queue", []subcluster.Status{a, closed}, "gpu", gig, "sc-f", nil, ""},
		{"a type that one has", []subcluster.Status{a, gpus}, "", gig.With(gpuType, 1), "sc-h", nil, "sc-a: excluded, it has no yarn.io/gpu"},
		{"a type that nodes of a label have alone", []subcluster.Status{b, typed}, "gpu", gig.With(gpuType, 1), "sc-t", nil, "sc-b: excluded, it has no yarn.io/gpu"},
		{"a type that nobody has", []subcluster.Status{a, gpus}, "", gig.With("fpga", 1), "", creel.ErrInvalidResource, "no subcluster has nodes with fpga: sc-h has yarn.io/gpu"},
		{"a type, where nodes are still to come", []subcluster.Status{a, young}, "", gig.With("fpga", 1), "sc-a", nil, ""},
	} {
		t.Run(x.story, func(t *testing.T) {
			s := Submission{Queue: "root.a", Label: x.label, Size: x.size}
			for seed := range uint64(20) {
				got, reason, err := Default().Home(view(x.members...), s, nil, seeded(seed))
				text := reason.String()
				if err != nil {
					text += err.Error()
				}
				if got != x.home || !errors.Is(err, x.kind) || (err == nil) != (x.kind == nil) || !strings.Contains(text, x.says) {
					t.Fatalf("%q, %v, want %q, %v and %q\n%s", got, err, x.home, x.kind, x.says, text)
				}
			}
		})
	}
	frozen := view(a)
	frozen.Freeze = &subcluster.Freeze{Reason: "the store is away"}
	if _, _, err := Default().Home(frozen, Submission{Queue: "root.a", Label: "gpu", Size: gig}, nil, seeded(1)); errors.Is(err, creel.ErrInvalidLabel) {
		t.Errorf("a frozen view refuses for good: %v", err)
	}
}

// The load policy compares the free resources of the label's nodes.
func TestLoadPolicyCountsLabelNodes(t *testing.T) {
	v := view(labelled("sc-a", 90_000, free{"gpu": 1}), labelled("sc-b", 1_000, free{"gpu": 50}))
	got, _, err := must(t, home("load", "")).Home(v, Submission{Queue: "root.a", Label: "gpu", Size: gig}, nil, seeded(1))
	if err != nil || got != "sc-b" {
		t.Errorf("%s, %v", got, err)
	}
}

// An ask with a label goes to members that have it, home or not.
func TestSplitsGoWhereTheLabelIs(t *testing.T) {
	byDefault := labelled("sc-b", 50_000, free{"gpu": 20})
	byDefault.Load.Labels.Add("root.a", []string{"gpu"}, "gpu")
	closed := labelled("sc-b", 50_000, free{"gpu": 20})
	closed.Load.Labels.Add("root.a", []string{}, "")
	away := labelled("sc-b", 50_000, free{"gpu": 20})
	away.State = subcluster.StateSuspect
	a, b, c := labelled("sc-a", 90_000, nil), labelled("sc-b", 50_000, free{"gpu": 20}), labelled("sc-c", 90_000, free{"gpu": 50, "shared": 50})
	shared := labelled("sc-c", 90_000, free{"shared": 50})
	shared.Load.Labels.Partitions[0].Total = gigs(100).With(gpuType, 2)
	sharedAway, sharedDraining, sharedGone := shared, shared, shared
	sharedAway.State, sharedDraining.State, sharedGone.State = subcluster.StateLost, subcluster.StateDraining, subcluster.StateDeregistered
	for _, x := range []struct {
		story    string
		members  []subcluster.Status
		group    Group
		doc      string
		want     string
		unplaced int64
		kind     error
	}{
		{"home has none", []subcluster.Status{a, b}, Group{Count: 5, Size: gig, Label: "gpu"}, "balanced", "sc-b 5", 0, nil},
		{"home has some", []subcluster.Status{b, c}, Group{Count: 5, Size: gig, Label: "gpu"}, "balanced", "sc-b 5", 0, nil},
		{"what home has of it is not enough", []subcluster.Status{b, c}, Group{Count: 30, Size: gig, Label: "gpu"}, "balanced", "sc-b 20, sc-c 10", 0, nil},
		{"more than there is waits where it is", []subcluster.Status{a, b}, Group{Count: 50, Size: gig, Label: "gpu"}, "balanced", "sc-b 50", 0, nil},
		{"broadcast", []subcluster.Status{a, b, c}, Group{Count: 5, Size: gig, Label: "gpu"}, "broadcast", "sc-b 5, sc-c 5", 0, nil},
		{"locality", []subcluster.Status{a, b}, Group{Count: 5, Size: gig, Label: "gpu"}, "locality", "sc-b 5", 0, nil},
		{"home alone by the policy, which has none", []subcluster.Status{a, b}, Group{Count: 5, Size: gig, Label: "gpu"}, "home", "", 5, creel.ErrInvalidLabel},
		{"the member that has it is away", []subcluster.Status{a, away}, Group{Count: 5, Size: gig, Label: "gpu"}, "balanced", "", 5, nil},
		{"nobody has it", []subcluster.Status{a, b}, Group{Count: 5, Size: gig, Label: "tpu"}, "balanced", "", 5, creel.ErrInvalidLabel},
		{"the queue may name it nowhere", []subcluster.Status{a, closed}, Group{Count: 5, Size: gig, Label: "gpu"}, "balanced", "", 5, creel.ErrInvalidLabel},
		{"none named: elsewhere the queue has a default", []subcluster.Status{labelled("sc-a", 1024, nil), byDefault}, Group{Count: 5, Size: gig}, "balanced", "sc-a 1, sc-b 4", 0, nil},
		{"no label is named: the default does not hold", []subcluster.Status{labelled("sc-a", 1024, nil), byDefault}, Group{Count: 5, Size: gig, LabelGiven: true}, "balanced", "sc-a 1, sc-b 4", 0, nil},
		{"it lost the label: what it held moves", []subcluster.Status{a, labelled("sc-b", 50_000, nil), c}, Group{Count: 5, Size: gig, Label: "gpu", Held: []Share{{"sc-b", 5}}}, "balanced", "sc-c 5", 0, nil},
		{"home has no GPU", []subcluster.Status{a, shared}, Group{Count: 2, Size: gig.With(gpuType, 1)}, "balanced", "sc-c 2", 0, nil},
		{"the member that has GPUs is away", []subcluster.Status{a, sharedAway}, Group{Count: 2, Size: gig.With(gpuType, 1)}, "balanced", "", 2, nil},
		{"it is drained", []subcluster.Status{a, b, sharedDraining}, Group{Count: 2, Size: gig.With(gpuType, 1)}, "locality", "", 2, nil},
		{"it is gone for good: home says so", []subcluster.Status{a, sharedGone}, Group{Count: 2, Size: gig.With(gpuType, 1)}, "balanced", "sc-a 2", 0, nil},
		{"it is away, and home is asked alone by the policy: home says so", []subcluster.Status{a, sharedAway}, Group{Count: 2, Size: gig.With(gpuType, 1)}, "home", "sc-a 2", 0, nil},
		{"nobody has one: home says so", []subcluster.Status{a, b}, Group{Count: 2, Size: gig.With(gpuType, 1)}, "balanced", "sc-a 2", 0, nil},
	} {
		t.Run(x.story, func(t *testing.T) {
			v, reach := view(x.members...), []Reach{}
			for i, m := range v.Members {
				reach = append(reach, Reach{Member: m.ID, Home: i == 0})
			}
			plan, err := must(t, split(x.doc, "")).Split(v, "root.a", x.group, reach, seeded(1))
			if show(plan.Shares) != x.want || plan.Unplaced != x.unplaced || !errors.Is(err, x.kind) || (err == nil) != (x.kind == nil) {
				t.Errorf("%q and %d unplaced, %v; want %q and %d, %v\n%s", show(plan.Shares), plan.Unplaced, err, x.want, x.unplaced, x.kind, plan.Reason)
			}
		})
	}
}

// Whatever members have, use and report: asks with a label go only to members that have it, and go there in full
// unless no member can be asked.
func TestMembersWithoutLabelAreNotAsked(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		labels := []string{"gpu", "ssd", "shared"}
		n := rapid.IntRange(1, 5).Draw(t, "members")
		var members []subcluster.Status
		var reach []Reach
		g := Group{
			Count: rapid.Int64Range(1, 60).Draw(t, "count"), Size: gig,
			Label: rapid.SampledFrom([]string{"", "gpu", "ssd", "tpu"}).Draw(t, "label"),
		}
		for i := range n {
			m := labelled(creel.SubclusterID("sc-"+string(rune('a'+i))), rapid.Int64Range(0, 100_000).Draw(t, "free"), nil)
			for _, l := range labels {
				if rapid.Bool().Draw(t, "has "+l) {
					m.Load.Labels.Put(subcluster.Partition{Label: l, Total: gigs(100), Used: gigs(rapid.Int64Range(0, 100).Draw(t, "used"))})
				}
			}
			m.Load.Labels.Known = rapid.IntRange(0, 4).Draw(t, "publishes") > 0
			if rapid.Bool().Draw(t, "a default") {
				m.Load.Labels.Add("root.a", []string{"gpu", "ssd"}, "gpu")
			}
			m.State = rapid.SampledFrom([]subcluster.State{subcluster.StateActive, subcluster.StateActive, subcluster.StateSuspect}).Draw(t, "state")
			members = append(members, m)
			reach = append(reach, Reach{Member: m.ID, Home: i == 0, Closed: rapid.IntRange(0, 5).Draw(t, "closed") == 0})
			if rapid.Bool().Draw(t, "holds") {
				g.Held = append(g.Held, Share{m.ID, rapid.Int64Range(1, 20).Draw(t, "held")})
			}
		}
		v := view(members...)
		doc := rapid.SampledFrom([]string{"balanced", "locality", "home", "broadcast"}).Draw(t, "policy")
		p, err := Parse([]byte(split(doc, "")))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := p.Split(v, "root.a", g, reach, seeded(1))
		var asked int64
		for _, s := range plan.Shares {
			asked += s.Count
			i := slices.IndexFunc(members, func(m subcluster.Status) bool { return m.ID == s.Member })
			l := &members[i].Load.Labels
			label := g.Label
			if label == "" {
				label = l.Default("root.a")
			}
			if l.Known && label != "" && l.Find(label) == nil {
				t.Fatalf("%s is asked for label %q\n%s", s.Member, label, plan.Reason)
			}
		}
		switch {
		case err != nil && (!errors.Is(err, creel.ErrInvalidLabel) || asked > 0):
			t.Fatalf("%d asked, and %v", asked, err)
		case err == nil && !plan.Hedged && asked+plan.Unplaced != g.Count:
			t.Fatalf("%d asked and %d with nobody, of %d\n%s", asked, plan.Unplaced, g.Count, plan.Reason)
		}
	})
}
