// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"testing"

	"github.com/creelrm/creel"
)

// Reports are stored for the user who got them, the oldest are dropped first, and names chosen by clients do not fill
// the memory.
func TestReportsAreRememberedInBoundedMemory(t *testing.T) {
	s := New(Config{DecisionsKept: 100_000})
	app := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	s.saw(app, "ann", RPC, []byte("one"))
	s.saw(app, "ann", RPC, []byte("other"))
	if body, _, ok := s.seen(app, "ann", RPC); !ok || string(body) != "other" || s.reportCache.bytes != 5 {
		t.Errorf("ann's is %q, %v, of %d bytes", body, ok, s.reportCache.bytes)
	}
	if _, _, ok := s.seen(app, "bob", RPC); ok {
		t.Error("bob sees what ann saw")
	}
	large := make([]byte, reportMost)
	for i := range 3 * reportCacheBytes / reportMost {
		s.saw(app, fmt.Sprint(i), REST, large)
		sum := 0
		if i%500 == 0 {
			for _, r := range s.reportCache.reports.Values() {
				sum += len(r.body)
			}
			if sum != s.reportCache.bytes || sum > reportCacheBytes {
				t.Fatalf("%d bytes are remembered, %d counted", sum, s.reportCache.bytes)
			}
		}
	}
	few := New(Config{DecisionsKept: 2})
	for i := range 5 {
		few.saw(app, fmt.Sprint(i), RPC, []byte("12345"))
	}
	if _, _, ok := few.seen(app, "4", RPC); !ok || few.reportCache.reports.Len() != 2 || few.reportCache.bytes != 10 {
		t.Errorf("of two at most %d are kept, %d bytes", few.reportCache.reports.Len(), few.reportCache.bytes)
	}
}
