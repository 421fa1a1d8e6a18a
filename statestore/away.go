// SPDX-License-Identifier: Apache-2.0

package statestore

// Away is the decision about an application that lives at a member which is not its home.
type Away int

// The decisions.
const (
	AwayWait   Away = iota // the home did not answer: it cannot be decided yet
	AwayEnd                // the home has it, or had it: this is a second run
	AwayRehome             // the home does not know it: the record is wrong
)

// JudgeAway decides about an application that lives away from home, by its home's reply: whether it answered, and
// whether it knows the application.
func JudgeAway(answered, known bool) (Away, string) {
	switch {
	case !answered:
		return AwayWait, "its home does not answer"
	case known:
		return AwayEnd, "its home has it too"
	}
	return AwayRehome, "its home does not know it"
}
