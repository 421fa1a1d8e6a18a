// SPDX-License-Identifier: Apache-2.0

package statestore

// Away is what to do with an application that lives at a member which is not its home.
type Away int

// What to do with it.
const (
	AwayWait   Away = iota // the home did not answer: nobody can tell
	AwayEnd                // the home has it, or had it: this is a second run
	AwayRehome             // the home does not know it: the record is wrong
)

// JudgeAway decides what becomes of an application that lives away from home, from
// what its home said: whether it answered, and whether it knows the application.
func JudgeAway(answered, known bool) (Away, string) {
	switch {
	case !answered:
		return AwayWait, "its home does not answer"
	case known:
		return AwayEnd, "its home has it too"
	}
	return AwayRehome, "its home does not know it"
}
