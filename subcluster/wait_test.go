// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"slices"
	"testing"
)

func TestBindingUnitsOfALimit(t *testing.T) {
	for name, c := range map[string]struct {
		limit, used, needs Amounts
		want               []string
	}{
		"memory alone": {
			Amounts{"memory-mb": 4096, "vcores": 100}, Amounts{"memory-mb": 4000, "vcores": 4}, Amounts{"memory-mb": 1024, "vcores": 1},
			[]string{"memory-mb"},
		},
		"both": {
			Amounts{"memory-mb": 4096, "vcores": 4}, Amounts{"memory-mb": 4096, "vcores": 4}, Amounts{"memory-mb": 1024, "vcores": 1},
			[]string{"memory-mb", "vcores"},
		},
		"a type that is not asked for": {
			Amounts{"gpu": 0, "memory-mb": 4096}, Amounts{"memory-mb": 4096}, Amounts{"memory-mb": 1}, []string{"memory-mb"},
		},
		"exactly filled": {Amounts{"memory-mb": 4096}, Amounts{"memory-mb": 3072}, Amounts{"memory-mb": 1024}, nil},
		"applications":   {Amounts{Applications: 3}, Amounts{Applications: 4}, nil, []string{Applications}},
		"no limit":       {nil, Amounts{"memory-mb": 4096}, Amounts{"memory-mb": 1024}, nil},
	} {
		w := Wait{Limit: c.limit, Used: c.used, Needs: c.needs}
		if got := w.Binding(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
