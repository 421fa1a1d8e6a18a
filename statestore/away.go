// SPDX-License-Identifier: Apache-2.0

package statestore

// Away is the decision about an application that runs at a member other than its home.
type Away int

// The decisions.
const (
	AwayWait   Away = iota // no reply from the home: try again later
	AwayEnd                // the home has or had the application: this is a second run
	AwayRehome             // the record is wrong: its home does not know the application, or has an earlier run
)

// JudgeAway decides about an application that runs away from its home. answered reports whether the home replied; home
// is its run of the application, nil if it knows none. Both runs exist only if the store went back to an earlier state.
func JudgeAway(answered bool, home *ReportedApplication, away ReportedApplication) (Away, string) {
	switch {
	case !answered:
		return AwayWait, "its home does not answer"
	case home == nil:
		return AwayRehome, "its home does not know it"
	case home.Ended:
		return AwayEnd, "it has ended at its home"
	case Further(away, *home) < 0:
		return AwayRehome, "its run is further on than the home's run"
	}
	return AwayEnd, "its home has it too"
}
