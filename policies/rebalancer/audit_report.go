// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"slices"
	"time"
)

// KeptBreaches is the number of breaches that an AuditReport lists.
const KeptBreaches = 20

// BreachAgain is the least time between two reports of the same breach.
const BreachAgain = 10 * time.Minute

// breachLasts is the time for which a breach counts as present: until a check must have reported it again.
const breachLasts = BreachAgain + time.Minute

// AuditReport is the result of the leading rebalancer's checks of the invariants against the members' reports. It is
// stored for operators.
type AuditReport struct {
	Leader     string           `json:"leader"`
	At         time.Time        `json:"at"`        // of the last check, by the store's clock
	WithinMS   int64            `json:"within_ms"` // how long a temporary breach may last
	Looks      int64            `json:"looks"`     // since this leader started
	Invariants []InvariantCount `json:"invariants"`
	Breaches   []AuditBreach    `json:"breaches,omitempty"` // the last, the newest at the end
}

// InvariantCount counts the checks of one invariant since the leader started.
type InvariantCount struct {
	Name    string `json:"name"`
	Checked int64  `json:"checked"`
	Broken  int64  `json:"broken"`
}

// AuditBreach is one breach of an invariant.
type AuditBreach struct {
	At        time.Time `json:"at"`
	Invariant string    `json:"invariant"`
	Of        string    `json:"of"` // queue, member
	Breach    string    `json:"breach"`
}

// Present lists the breaches that may last at a moment of the store's clock, the newest first, each invariant and
// subject once.
func (a *AuditReport) Present(now time.Time) (out []AuditBreach) {
	for _, b := range slices.Backward(a.Breaches) {
		same := func(o AuditBreach) bool { return o.Invariant == b.Invariant && o.Of == b.Of }
		if now.Sub(b.At) < breachLasts && !slices.ContainsFunc(out, same) {
			out = append(out, b)
		}
	}
	return out
}
