// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"
)

// Users repeat submissions of ended applications that their homes do not list any more, also after a restart of the
// home: none runs again, and each user reads that the application has ended.
func TestRepeatAfterTheEndRunsNothing(t *testing.T) {
	c := day(t, 1, 9*time.Hour, 9*time.Hour+10*time.Minute, 5)
	var err error
	if c.Faults, err = NamedFaults([]string{"repeats"}); err != nil {
		t.Fatal(err)
	}
	r := run(t, c)
	if !r.Good() {
		t.Fatalf("%d of %d ended: %v", r.Finished+r.Failed, r.Submitted, r.Broken)
	}
	repeats, rejected := r.Faults["submissions repeated after the end"],
		r.Faults["repeats rejected since their application has ended"]
	proven := r.Faults["repeats in the run that accepted them"]
	if repeats < 20 || rejected < repeats/2 || r.Faults["subclusters restarted"] == 0 || proven == 0 {
		t.Errorf("%d repeats, of which %d were rejected as ended; %v", repeats, rejected, r.Faults)
	}
}
