// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// A document names members by id. An id may be misspelt, or its member removed later. CheckMembers rejects such a
// document when it is written. If it was stored anyway, weightsInForce keeps its queue running.

// CheckMembers rejects a policy whose weights, for homes or splits, name an unknown subcluster. If known is empty,
// every name passes. The error is a *creel.Error of kind creel.ErrInvalidRequest.
func (p Policy) CheckMembers(known []creel.SubclusterID) error {
	if len(known) == 0 {
		return nil
	}
	var unknown []string
	home, split := p.Weights()
	for _, w := range []Weights{home, split} {
		for id := range w {
			if !slices.Contains(known, id) && !slices.Contains(unknown, string(id)) {
				unknown = append(unknown, string(id))
			}
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	ids := make([]string, len(known))
	for i, id := range known {
		ids[i] = string(id)
	}
	slices.Sort(ids)
	return bad(
		"it assigns weight to "+strings.Join(unknown, ", ")+"; no subcluster has that name",
		"the subclusters are "+strings.Join(ids, ", "),
	)
}

// Weights returns the policy's weights for homes and for splits, nil for rules without weights. Callers must not
// change them.
func (p Policy) Weights() (home, split Weights) { return p.homeRule().given(), p.splitRule().given() }

// homeRule returns the home rule, or the default for the zero Policy.
func (p Policy) homeRule() homeRule {
	if p.home == nil {
		return balancedHome{}
	}
	return p.home
}

// splitRule returns the split rule, or the default for the zero Policy.
func (p Policy) splitRule() splitRule {
	if p.split == nil {
		return balancedSplit{}
	}
	return p.split
}

// weightsInForce returns the weights that a decision uses. Weights that favour only missing members would stop their
// queue for good. In that case all members count equally, except members that the document excludes with a 0.
// fallback is the first sentence of the decision's reason, empty if the document's weights apply.
func weightsInForce(given Weights, view *subcluster.View) (in Weights, fallback string) {
	if given == nil || view == nil || len(view.Members) == 0 {
		return given, ""
	}
	in = Weights{}
	for i := range view.Members {
		id := view.Members[i].ID
		weight, named := given[id]
		switch {
		case weight > 0:
			return given, ""
		case !named:
			in[id] = 1
		}
	}
	var unknown []string
	for id, weight := range given {
		if weight > 0 {
			unknown = append(unknown, string(id))
		}
	}
	slices.Sort(unknown)
	if len(in) == 0 { // the document excludes every present member with a 0, on purpose
		return given, ""
	}
	return in, fmt.Sprintf(
		"the policy assigns weight only to %s, which the federation lacks, so its weights do not count; ",
		strings.Join(unknown, ", "),
	)
}

// Excludes reports whether the policy's weights prevent a member from becoming the home of applications.
func (p Policy) Excludes(view *subcluster.View, id creel.SubclusterID) bool {
	weights, _ := weightsInForce(p.homeRule().given(), view)
	return weights.of(id) <= 0
}
