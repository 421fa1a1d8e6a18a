// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"strings"
	"testing"
	"time"
)

// Ages in a sentence have their instant, and the rest of the sentence is text.
func TestAgesInSentencesHaveTheirInstant(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	got := string(ages(now, "<b> read 0.4 s ago, and 15 min ago"))
	for _, part := range []string{"&lt;b&gt; read <time", "2026-11-29T11:59:59.000Z", "2026-11-29T11:45:00.000Z"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q has no %q", got, part)
		}
	}
	if strings.Count(got, "<time") != 2 {
		t.Errorf("%q", got)
	}
}
