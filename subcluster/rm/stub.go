// SPDX-License-Identifier: Apache-2.0

package rm

import "slices"

func keys(t *attempt) []string {
	var out []string
	for k := range t.black.names {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
