// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"
)

// A process's message from its claim of an epoch may arrive again while the next process runs. The auditor attributes
// it to the process that sent it.
func TestLateClaimBelongsToSendingProcess(t *testing.T) {
	c := day(t, 1, 9*time.Hour, 9*time.Hour+time.Minute, 2)
	c.Faults = &Faults{Claims: true, Again: 1, Down: time.Second}
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	w.faulty = true
	of := w.clusters[0]
	passes(w, 2*time.Second)
	first := of.joining.Epoch()
	of.down()
	of.comeBack()
	passes(w, latest+time.Minute)
	if len(w.audit.breaches) > 0 || first == 0 || of.joining.Epoch() <= first {
		t.Errorf("epochs %d and %d, the auditor says %q", first, of.joining.Epoch(), w.audit.breaches)
	}
	used := memberEpoch{of.id, first}
	if w.audit.used[used] == of.process {
		t.Errorf("epoch %d is taken for the second process'", first)
	}
}
