// SPDX-License-Identifier: Apache-2.0

// Package nearest finds the known word that a misspelt one means.
package nearest

import "iter"

// Word returns the known word closest to a word, or "" if none is close: two letters, or a fifth of a long word, may
// differ. Of equally close words it is the first.
func Word(word string, known iter.Seq[string]) string {
	best, bestDistance := "", max(2, len(word)/5)+1
	for name := range known {
		if d := Distance(word, name, bestDistance); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

// Distance is the Levenshtein distance; the computation stops once it reaches limit.
func Distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal, lowest := row[0], i+1
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j+1]+1, row[j]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
			lowest = min(lowest, next)
		}
		if lowest >= limit {
			return limit
		}
	}
	return row[len(b)]
}
