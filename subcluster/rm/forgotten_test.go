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
	m := &Machine{cfg: Config{Volatile: true}}
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
		m.issued.remember(&app{id: id, sub: sub, issued: 7})
		m.disownEnded(id)
	}
	bytes := (heap() - before) / maxDisowned
	if len(m.disowned.claims) != maxDisowned || len(m.issued.homes.numbers) != maxDisowned {
		t.Errorf("%d disowned and %d numbers are left", len(m.disowned.claims), len(m.issued.homes.numbers))
	}
	if bytes > most {
		t.Errorf("a forgotten application costs %d bytes, at most %d are documented", bytes, most)
	}
	runtime.KeepAlive(m)
}
