// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"strings"
	"testing"
)

// Apache's releases outside those of the table are unknown. Vendors' numbers say nothing.
func TestReleasesOutsideTableAreUnknown(t *testing.T) {
	for release, want := range map[string]string{
		"": "", "3.1.4": "", "3.4.2": "", "3.5.0": "", "2.10.2": "older than 3.1.4", "3.1.3": "older than 3.1.4",
		"4.0.0": "newer than all", "2.6.0-cdh5.16.2": "",
	} {
		if why := UnknownRelease(release); (why == "") != (want == "") || !strings.HasPrefix(why, want) {
			t.Errorf("%q: %q, want %q", release, why, want)
		}
	}
}
