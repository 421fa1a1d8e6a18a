// SPDX-License-Identifier: Apache-2.0

package build

import (
	"strings"
	"testing"
)

func TestVersionBetweenReleases(t *testing.T) {
	n := "v" + strings.TrimSpace(next)
	for module, want := range map[string]string{
		"":                                   n + "-dev",
		"v0.1.0":                             "v0.1.0",
		"v0.1.0-rc.1+dirty":                  "v0.1.0-rc.1+dirty",
		"v0.0.0-20261127194452-dffed05e105e": n + "-dev.20261127194452+dffed05e105e",
		"v0.0.0-20261127194452-dffed05e105e+dirty":  n + "-dev.20261127194452+dffed05e105e.dirty",
		"v0.1.1-0.20261127194452-dffed05e105e":      n + "-dev.20261127194452+dffed05e105e",
		"v0.1.0-rc.1.0.20261127194452-dffed05e105e": n + "-dev.20261127194452+dffed05e105e",
	} {
		if got := development(module); got != want {
			t.Errorf("%q is version %s, want %s", module, got, want)
		}
	}
}
