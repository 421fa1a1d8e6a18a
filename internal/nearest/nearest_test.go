// SPDX-License-Identifier: Apache-2.0

package nearest_test

import (
	"slices"
	"testing"

	"github.com/creelrm/creel/internal/nearest"
)

func TestNearestWordIsFound(t *testing.T) {
	known := slices.Values([]string{"guarantee", "maximum", "weight", "preemption", "preemption_seconds"})
	for word, want := range map[string]string{
		"garantee": "guarantee", "guarantees": "guarantee", "Maximum": "maximum", "wieght": "weight",
		"preemption_second": "preemption_seconds", "preemptoin": "preemption", "": "", "limit": "", "max": "",
	} {
		if got := nearest.Word(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestDistanceStopsAtLimit(t *testing.T) {
	for _, c := range []struct {
		a, b        string
		limit, want int
	}{
		{"kitten", "sitting", 9, 3}, {"kitten", "sitting", 3, 3}, {"kitten", "sitting", 2, 2}, {"", "abc", 9, 3},
		{"abc", "", 2, 2}, {"same", "same", 1, 0}, {"ab", "ba", 9, 2},
	} {
		if got := nearest.Distance(c.a, c.b, c.limit); got != c.want {
			t.Errorf("%q to %q below %d: %d, want %d", c.a, c.b, c.limit, got, c.want)
		}
	}
}
