// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"runtime"
	"testing"

	"github.com/creelrm/creel"
)

// docs/operations/sizing.md has the figure. Five times as many applications end and leave the list as are remembered.
func TestForgottenApplicationCostsFewBytes(t *testing.T) {
	const most = 200
	var issued issuedNumbers
	disowned := disownedTable{out: &outbox{volatile: true}}
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := heap()
	sub := &Submission{Claim: 1}
	for n := range int32(5 * maxDisowned) {
		id := creel.ApplicationID{ClusterTimestamp: 1, ID: n}
		issued.remember(&app{id: id, sub: sub, issued: 7})
		disowned.putEnded(id)
	}
	bytes := (heap() - before) / maxDisowned
	if len(disowned.claims) != maxDisowned || len(issued.homes.numbers) != maxDisowned {
		t.Errorf("%d disowned and %d numbers are left", len(disowned.claims), len(issued.homes.numbers))
	}
	if bytes > most {
		t.Errorf("a forgotten application costs %d bytes, at most %d are documented", bytes, most)
	}
	runtime.KeepAlive(issued)
	runtime.KeepAlive(disowned)
}
