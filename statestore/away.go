// SPDX-License-Identifier: Apache-2.0

package statestore

// Away is the decision about an application that lives at a member which is not its home.
type Away int

// The decisions.
const (
	AwayWait   Away = iota // the home did not answer: it cannot be decided yet
	AwayEnd                // the home has it, or had it: this is a second run
	AwayRehome             // the record is wrong: the home does not know it, or its run is behind this one
)

// JudgeAway decides about an application that lives away from home, by its home's reply: whether it answered, and its
// run of the application, nil if it knows none. Both runs live only if the store went back to an earlier state.
func JudgeAway(answered bool, home *ReportedApplication, away ReportedApplication) (Away, string) {
	switch {
	case !answered:
		return AwayWait, "its home does not answer"
	case home == nil:
		return AwayRehome, "its home does not know it"
	case home.Ended:
		return AwayEnd, "it has ended at its home"
	case Further(away, *home) < 0:
		return AwayRehome, "its run is further on than that of its home"
	}
	return AwayEnd, "its home has it too"
}
