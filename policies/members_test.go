// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"errors"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// A queue keeps running when its weights name only members that the federation lacks, and the reason says so; a
// weight of 0 for a member still applies.
func TestUnknownMemberWeightsDoNotBlockQueue(t *testing.T) {
	v := view(member("sc-a", 50_000), member("sc-b", 50_000), member("sc-c", 50_000))
	for _, name := range HomeNames() {
		rule, err := homeFrom(
			ruleDoc{Policy: name, Weights: map[creel.SubclusterID]float64{"east": 2, "west": 1, "sc-c": 0}},
		)
		if err != nil || name == (rejectHome{}).name() {
			continue
		}
		seen := map[creel.SubclusterID]bool{}
		for seed := range uint64(50) {
			id, reason, err := Policy{home: rule}.Home(v, small, nil, seeded(seed))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if seen[id] = true; id == "sc-c" {
				t.Errorf("%s chose the member that the document gives 0", name)
			}
			if !strings.Contains(reason.Because, "only to east, west, which the federation lacks") {
				t.Fatalf("%s does not say that it fell back: %s", name, reason)
			}
		}
		if len(seen) == 0 {
			t.Errorf("%s chose nobody", name)
		}
	}
}

// While a member that has weight exists, even if it is lost, the weights apply: its queue waits for it.
func TestWeightsHoldWhileTheirMemberExists(t *testing.T) {
	lost := member("sc-a", 1)
	lost.State = subcluster.StateLost
	_, reason, err := must(
		t,
		home("weighted", `{"sc-a":1,"east":1}`),
	).Home(view(lost, member("sc-b", 1)), small, nil, seeded(1))
	if !errors.Is(err, creel.ErrNoSubcluster) {
		t.Errorf("%v\n%s", err, reason)
	}
}

func TestADocumentThatNamesUnknownMembersIsRefused(t *testing.T) {
	known := []creel.SubclusterID{"sc-b", "sc-a"}
	for _, doc := range []string{
		`{"home":{"policy":"weighted","weights":{"sc-a":1,"eest":1}}}`,
		`{"split":{"policy":"locality","weights":{"sc-a":1,"eest":0}}}`,
		`{"routerPolicyWeights":{"eest":1}}`,
	} {
		err := must(t, doc).CheckMembers(known)
		var full *creel.Error
		if !errors.As(err, &full) || !errors.Is(err, creel.ErrInvalidRequest) || !strings.Contains(full.Why, "eest") ||
			!strings.Contains(full.Try, "sc-a, sc-b") {
			t.Errorf("%s: %v", doc, err)
		}
		if err := must(t, doc).CheckMembers(nil); err != nil {
			t.Errorf("%s, with no member to compare with: %v", doc, err)
		}
	}
	for _, doc := range []string{`{}`, `{"home":{"weights":{"sc-a":1}},"split":{"weights":{"sc-b":2}}}`} {
		if err := must(t, doc).CheckMembers(known); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
	}
	if err := (Policy{}).CheckMembers(known); err != nil {
		t.Error(err)
	}
}

// A member that a policy excludes never becomes home: with weight 0, or without one where others have.
func TestPolicyExcludesMembersWithoutWeight(t *testing.T) {
	view := view(member("sc-1", 50_000), member("sc-2", 50_000), member("sc-3", 50_000))
	for document, want := range map[string]string{
		`{"home":{"policy":"priority","weights":{"sc-1":2,"sc-2":0}}}`:  "sc-2 sc-3",
		`{"home":{"policy":"balanced"}}`:                                "",
		`{"home":{"policy":"reject"}}`:                                  "", // closed to new applications, not to waiting ones
		`{"home":{"policy":"weighted","weights":{"gone":1,"sc-3":0}}}`:  "sc-3",
		`{"home":{"policy":"weighted","weights":{"sc-1":1,"gone":1}}}`:  "sc-2 sc-3",
		`{"split":{"policy":"locality","weights":{"sc-1":1,"sc-2":0}}}`: "",
	} {
		p, err := Parse([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range view.Members {
			if id := view.Members[i].ID; p.Excludes(view, id) {
				got = append(got, string(id))
			}
		}
		if is := strings.Join(got, " "); is != want {
			t.Errorf("%s excludes %q, want %q", document, is, want)
		}
	}
}
