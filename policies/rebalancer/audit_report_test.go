// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"testing"
	"time"
)

func TestPresentBreachesAreRecentAndOnce(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	at := func(age time.Duration, of string) AuditBreach {
		return AuditBreach{At: now.Add(-age), Invariant: "escrow", Of: of}
	}
	a := AuditReport{Breaches: []AuditBreach{
		at(time.Hour, "root.old"), at(9*time.Minute, "root.a"), at(BreachAgain, "root.b"), at(time.Minute, "root.a"),
	}}
	got := a.Present(now)
	if len(got) != 2 || got[0] != at(time.Minute, "root.a") || got[1] != at(BreachAgain, "root.b") {
		t.Errorf("present: %+v", got)
	}
}
