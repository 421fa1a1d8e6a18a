// SPDX-License-Identifier: Apache-2.0

package router

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Refusal is a service that a live member does not render to this router, found by a trial.
type Refusal struct {
	Kind string `json:"kind"` // one of RefusalKinds
	Text string `json:"text"` // predicate of a sentence about the member, without a full stop
	Try  string `json:"try"`  // what an operator changes
}

// RefusalKinds are the kinds of refusals.
var RefusalKinds = []string{
	"impersonation", // calls by RPC in the name of another user
	"kill",          // kills by RPC
	"kill_by_rest",
	"refresh", // an administrator's refresh
	"clock",   // its clock and this router's differ
	"release", // its Hadoop's calls are unknown
}

// ClockTolerance is the greatest difference of a member's clock that a trial accepts. Ages and expiries that one
// daemon writes and another reads would be wrong by more.
const ClockTolerance = 30 * time.Second

// JudgeClock compares a member's clock, read in whole seconds between sent and received, with this router's.
func JudgeClock(theirs, sent, received time.Time) (Refusal, bool) {
	ahead := max(theirs.Sub(received), 0)
	behind := max(sent.Sub(theirs.Add(time.Second)), 0)
	if max(ahead, behind) <= ClockTolerance {
		return Refusal{}, false
	}
	side, by := "ahead of", ahead
	if behind > 0 {
		side, by = "behind", behind
	}
	return Refusal{
		"clock", fmt.Sprintf("has a clock %s %s this router's", ageText(by), side),
		"synchronize the clocks of both machines (NTP)",
	}, true
}

// Refused replaces the refusals that trials found, by member.
func (j *Judge) Refused(id creel.SubclusterID, found []Refusal) {
	if j.refusals == nil {
		j.refusals = map[creel.SubclusterID][]Refusal{}
	}
	j.refusals[id] = found
	if len(found) == 0 {
		delete(j.refusals, id)
	}
}

// Refusals returns the refusals of a member.
func (j *Judge) Refusals(id creel.SubclusterID) []Refusal { return slices.Clone(j.refusals[id]) }

// worstRefusal describes the worst refusal of the view's live members; the texts are "" if there is none.
func (j *Judge) worstRefusal(view *subcluster.View) (text, remedy string) {
	best, more := len(RefusalKinds), 0
	for _, id := range slices.SortedFunc(maps.Keys(j.refusals), cmp.Compare[creel.SubclusterID]) {
		if m, ok := view.Member(id); !ok || !m.State.Alive() {
			continue
		}
		for _, r := range j.refusals[id] {
			more++
			if rank := slices.Index(RefusalKinds, r.Kind); rank < best {
				best, text, remedy = rank, string(id)+" "+strings.TrimSuffix(r.Text, "."), r.Try
			}
		}
	}
	if more > 1 {
		text += fmt.Sprintf(", and %s", count(int64(more-1), "more refusal", "more refusals"))
	}
	return text, remedy
}
