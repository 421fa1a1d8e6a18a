// SPDX-License-Identifier: Apache-2.0

package opportunistic

import "testing"

func TestReasonOfKillIsInDiagnostics(t *testing.T) {
	for text, want := range map[string]string{
		"Opportunistic container queue is full.\n":                  "queue_full",
		"Container De-queued to meet NM queuing limits.\n":          "queue_limit",
		"Container Killed to make room for Guaranteed Container.\n": "room",
	} {
		if got := KillOf(text).String(); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}
