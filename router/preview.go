// SPDX-License-Identifier: Apache-2.0

package router

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// Preview has the decisions about a queue's last submissions under another policy.
type Preview struct {
	Queue       creel.QueuePath `json:"queue"`
	Submissions int             `json:"submissions"`
	Moved       int             `json:"moved"`    // get another home than under the policy in force
	Homeless    int             `json:"homeless"` // get no home
	Members     []PreviewMember `json:"members"`
}

// PreviewMember counts submissions by their home.
type PreviewMember struct {
	Member creel.SubclusterID `json:"member"`
	Were   int                `json:"were"`  // submitted there
	Now    int                `json:"now"`   // under the policy in force
	After  int                `json:"after"` // under the new one
}

// NewPreview decides submissions one after another over a view, by the policy in force and by a new one. Decided
// submissions count as sent, as in a router. The same seed produces the same decisions.
func NewPreview(
	view *subcluster.View,
	q creel.QueuePath,
	seen []PlacedSubmission,
	held, fresh policies.Policy,
	seed uint64,
) Preview {
	doc := Preview{Queue: q, Submissions: len(seen)}
	count := map[creel.SubclusterID]*PreviewMember{}
	member := func(id creel.SubclusterID) *PreviewMember {
		if count[id] == nil {
			count[id] = &PreviewMember{Member: id}
		}
		return count[id]
	}
	for i := range view.Members {
		member(view.Members[i].ID)
	}
	now, after := decider(view, held, seed), decider(view, fresh, seed)
	for _, s := range seen {
		member(s.Home).Were++
		a, b := now(s.Submission), after(s.Submission)
		if a != "" {
			member(a).Now++
		}
		if b == "" {
			doc.Homeless++
			continue
		}
		member(b).After++
		if a != b {
			doc.Moved++
		}
	}
	for _, m := range count {
		doc.Members = append(doc.Members, *m)
	}
	slices.SortFunc(doc.Members, func(a, b PreviewMember) int { return cmp.Compare(a.Member, b.Member) })
	return doc
}

// decider returns a function that decides one submission after another; decided ones count as sent.
func decider(view *subcluster.View, p policies.Policy, seed uint64) func(policies.Submission) creel.SubclusterID {
	rnd := rand.New(rand.NewPCG(seed, 0))
	var assumed AssumedLoad
	return func(s policies.Submission) creel.SubclusterID {
		s.Assumed = assumed.Write
		home, _, err := p.Home(view, s, nil, rnd)
		if err != nil {
			return ""
		}
		assumed.Add(view, home, s.Size)
		return home
	}
}
