// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

// A member omits the start time for users without access to the application.
func TestAnUnknownStartIsNotIn1970(t *testing.T) {
	i := slices.IndexFunc(appColumns, func(c column[appDoc]) bool { return c.title == "STARTED" })
	if got := appColumns[i].text(appDoc{}); got != "-" {
		t.Errorf("started %s", got)
	}
}
