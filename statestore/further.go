// SPDX-License-Identifier: Apache-2.0

package statestore

import "cmp"

// Further compares the runs of one application at two members: it is negative if a is further on, and so is the run to
// keep. Each rule breaks the ties of the rule before:
//
//  1. a run that is not held for a move, before one that is: the move took it from there;
//  2. a run that has not ended, before one that has: no work is lost;
//  3. a run whose AM has registered, before one that was only accepted;
//  4. the run with the higher attempt.
func Further(a, b ReportedApplication) int {
	return cmp.Or(
		compareBool(a.Held > 0, b.Held > 0),
		compareBool(a.Ended, b.Ended),
		compareBool(b.Running, a.Running),
		cmp.Compare(b.Attempt, a.Attempt),
	)
}
