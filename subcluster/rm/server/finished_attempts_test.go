// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
)

// A finished attempt is known for the grace period, and uses no memory afterwards.
func TestFinishedAMIsRememberedForAWhile(t *testing.T) {
	f := finishedAttempts{grace: time.Minute}
	id := func(n int) creel.AttemptID {
		return creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: int32(n)}, Attempt: 1}
	}
	began := time.Unix(1_000_000, 0)
	for n := range 1000 {
		f.add(id(n), began.Add(time.Duration(n)*time.Second))
	}
	now := began.Add(999 * time.Second)
	for n, want := range map[int]bool{0: false, 939: false, 940: true, 999: true, 1000: false} {
		if got := f.has(id(n), now); got != want {
			t.Errorf("attempt %d: %v, want %v", n, got, want)
		}
	}
	if len(f.at) > 61 || len(f.order) > 61 {
		t.Errorf("%d attempts are remembered, %d in order", len(f.at), len(f.order))
	}
}
