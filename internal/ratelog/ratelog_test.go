// SPDX-License-Identifier: Apache-2.0

package ratelog_test

import (
	"testing"
	"time"

	"github.com/creelrm/creel/internal/ratelog"
)

// The first event is logged at once, those of the next minute together after it.
func TestLineIsLoggedOncePerMinuteWithCount(t *testing.T) {
	var l ratelog.Line
	now := time.Unix(1000, 0)
	type told struct {
		at    int // seconds
		count int
	}
	var got []told
	for s := range 130 {
		if count, write := l.Happened(now.Add(time.Duration(s) * time.Second)); write {
			got = append(got, told{s, count})
		}
	}
	want := []told{{0, 1}, {60, 60}, {120, 60}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("it was written %v (second, events), want %v", got, want)
	}
}
