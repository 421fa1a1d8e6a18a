// SPDX-License-Identifier: Apache-2.0

package invariants

// Invariant is one of the twelve invariants.
type Invariant string

const (
	GlobalMaximum     Invariant = "global_maximum"     // all members together use no more of a queue than its maximum
	Guarantee         Invariant = "guarantee"          // a queue with demand gets its guarantee
	UserLimits        Invariant = "user_limits"        // as GlobalMaximum, for each user of a queue
	WorkConservation  Invariant = "work_conservation"  // no resource stays idle that a waiting queue may use
	NoStarvation      Invariant = "no_starvation"      // a queue that stays below its entitlement gets something
	ParentConsistency Invariant = "parent_consistency" // queues sum to the queue above them
	Locality          Invariant = "locality"           // an ask that insists on a place is granted there
	TrueHeadroom      Invariant = "true_headroom"      // no headroom is reported that does not exist
	Stability         Invariant = "stability"          // weights change by at most the step, or not at all
	RebalancerLoss    Invariant = "rebalancer_loss"    // the exact invariants apply without a plan
	MemberLoss        Invariant = "member_loss"        // a member keeps its part until its lease is over
	Rounding          Invariant = "rounding"           // whole parts sum to the whole, and none is zero
)

// Reported are the invariants that Reports checks.
var Reported = []Invariant{
	GlobalMaximum, Guarantee, UserLimits, WorkConservation, NoStarvation, ParentConsistency, TrueHeadroom, Stability,
	RebalancerLoss, MemberLoss, Rounding,
}

// Tally counts checks. It is not safe for concurrent use.
type Tally struct {
	Checked, Broken map[Invariant]int64
	// Tell is called for each breach, with the queue or member concerned; may be nil.
	Tell func(i Invariant, of string, breach error)
}

// Check counts a check, and a breach if breach is not nil.
func (t *Tally) Check(i Invariant, of string, breach error) {
	if t.Checked == nil {
		t.Checked, t.Broken = map[Invariant]int64{}, map[Invariant]int64{}
	}
	t.Checked[i]++
	if breach == nil {
		return
	}
	t.Broken[i]++
	if t.Tell != nil {
		t.Tell(i, of, breach)
	}
}

// All returns both totals.
func (t *Tally) All() (checked, broken int64) {
	for i, n := range t.Checked {
		checked, broken = checked+n, broken+t.Broken[i]
	}
	return checked, broken
}
