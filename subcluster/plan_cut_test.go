// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

// A part of a plan has the same data as the whole for the named queues, on nodes of each label, and for members that
// start slowly, under the same lease; of other queues nothing.
func TestPartialPlanMatchesWhole(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	paths := []creel.QueuePath{"root.a", "root.b", "root.x.a", "root.y.c"}
	propertytest.Check(t, func(t *rapid.T) {
		queues := func(name string) (out []QueuePlan) {
			for _, path := range paths {
				if rapid.Bool().Draw(t, name+string(path)) {
					given := rapid.Float64Range(0, 1).Draw(t, "given")
					out = append(out, QueuePlan{Queue: path, Entitled: given, Wants: 1, Reason: "r",
						Members: []MemberPlan{{Member: "sc-1", Given: given, Weight: 1}}})
				}
			}
			return out
		}
		whole := &Plan{
			Tree: 3, Total: creel.NewResource(100<<10, 100), Queues: queues("of "), Capacities: true,
			Members:     []MemberSize{{"sc-1", 1}},
			Starts:      []MemberStart{{Member: "sc-1", Counts: rapid.Float64Range(0, 1).Draw(t, "counts")}},
			SlowStartMS: 60_000, Began: at.Add(-time.Hour),
			Preemption: []PreemptionBudget{{Queue: "root.a"}},
		}
		for _, label := range []string{"gpu", "ssd"} {
			if rapid.Bool().Draw(t, label) {
				whole.Labels = append(whole.Labels, LabelPlan{label, Plan{
					Total: creel.NewResource(1<<10, 1), Queues: queues(label + " of "),
				}})
			}
		}
		whole.Under(7, 30*time.Second)
		data, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := whole.Cut()
		if err != nil || parts[0].Leaf != "" {
			t.Fatalf("%v, first is %q", err, parts[0].Leaf)
		}
		wanted := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.ID).Draw(t, "wanted")
		var texts []string
		for _, p := range parts {
			if p.Leaf == "" || slices.Contains(wanted, p.Leaf) {
				texts = append(texts, string(p.Text))
			}
		}
		if whole, err = ParsePlan(data, 17, at); err != nil {
			t.Fatal(err)
		}
		part, err := ParsePlan([]byte(JoinParts(texts)), 17, at)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []creel.SubclusterID{"sc-1", "sc-2"} {
			if part.Counts(id) != whole.Counts(id) {
				t.Errorf("%s counts with %v, in part with %v", id, whole.Counts(id), part.Counts(id))
			}
		}
		for _, label := range []string{"", "gpu", "ssd", "other"} {
			w, p := whole.In(label), part.In(label)
			if (w == nil) != (p == nil) {
				t.Fatalf("of label %q the plan is %v, in part %v", label, w, p)
			}
			if w == nil {
				continue
			}
			if p.Version != 17 || !p.Ends().Equal(w.Ends()) || p.Term != w.Term || !p.Total.Equal(w.Total) {
				t.Errorf("of label %q version %d, term %d of %v, until %v", label, p.Version, p.Term, p.Total, p.Ends())
			}
			for _, path := range append([]creel.QueuePath{"a", "b", "c"}, paths...) { // also by the leaf name alone
				want := w.Queue(path)
				if !slices.Contains(wanted, path.Leaf()) {
					want = nil
				}
				if got := p.Queue(path); (got == nil) != (want == nil) ||
					got != nil && fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", *want) {
					t.Errorf("of label %q %s has %+v, in part %+v", label, path, want, got)
				}
			}
		}
	})
}

func TestUnreadablePartialPlanIsRefused(t *testing.T) {
	for _, parts := range [][]string{{"{"}, {"{}", "{"}} {
		if p, err := ParsePlan([]byte(JoinParts(parts)), 1, time.Time{}); err == nil {
			t.Errorf("%q is read as %+v", parts, p)
		}
	}
}
