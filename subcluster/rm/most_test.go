// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"
)

// An application may ask for more attempts than others get, up to the bound of all.
func TestHowManyAttempts(t *testing.T) {
	for _, tc := range []struct{ most, global, asked, want int }{
		{2, 0, 0, 2},
		{2, 0, 1, 1},
		{2, 0, 5, 2},
		{2, 4, 5, 4},
		{2, 4, 3, 3},
		{2, 4, 0, 2},
		{5, 3, 0, 5},
		{5, 3, 4, 3},
	} {
		l := attemptLife{m: &Machine{cfg: Config{MaxAttempts: tc.most, GlobalMaxAttempts: tc.global}}}
		if got := l.most(&app{sub: &Submission{MaxAttempts: tc.asked}}); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}

// Versions are compared by their numbers; a snapshot is older than its release.
func TestVersionsOfNodes(t *testing.T) {
	for _, pair := range [][2]string{
		{"3.3.6", "3.4.0"}, {"3.4.0-SNAPSHOT", "3.4.0"}, {"2.10.2", "3.0"}, {"3.4", "3.4.2"}, {"", "3.4.0"}, {"3.9.1", "3.10.0"},
	} {
		if !olderVersion(pair[0], pair[1]) || olderVersion(pair[1], pair[0]) || olderVersion(pair[1], pair[1]) {
			t.Errorf("%v", pair)
		}
	}
}
