// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/subcluster"
)

func TestPreemptListsEachContainer(t *testing.T) {
	var b strings.Builder
	writePreemption(&b, &subcluster.Preemption{Queue: "root.b", On: true})
	if b.String() != "Nothing would be taken back for root.b.\n" {
		t.Errorf("for nothing it says %q", b.String())
	}
	b.Reset()
	writePreemption(&b, &subcluster.Preemption{Queue: "root.b", Victims: []subcluster.Victim{{
		User: "alice", Queue: "root.a", Node: "n1:1", Resource: subcluster.Amounts{"memory-mb": 2048}, ForQueue: "root.b",
		Rule: "guarantee", Kill: time.Unix(0, 0), Ran: 90, MemorySeconds: 3600 * 1024, VCoreSeconds: 7200, AM: true,
	}}})
	for _, want := range []string{
		"Preemption is off.", "an AM of alice in root.a, on n1:1, 2048 MiB for 1m30s", "would be told, and killed at",
		"for the guarantee of", "1 containers; lost are 1.0 GiB-hours and 2.0 vcore-hours.",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %q", want, b.String())
		}
	}
}
