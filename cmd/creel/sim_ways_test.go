// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestWaysArePrintedSideBySide(t *testing.T) {
	s := simulator{t: t, dir: t.TempDir()}
	for _, day := range [][]string{{"--load", "0.5"}, {"--trace", "tiny"}} {
		args := append([]string{"--ways", "heartbeat,ours", "--nodes", "4", "--seeds", "2"}, day...)
		out := s.run(exitOK, args...)
		rows := map[string]int{}
		for line := range strings.Lines(out) {
			if word, _, _ := strings.Cut(line, " "); word != "" {
				rows[word]++
			}
		}
		if rows["WAY"] != 2 || rows["heartbeat"] < 2 || rows["ours"] != rows["heartbeat"] {
			t.Errorf("%v prints rows %v:\n%s", day, rows, out)
		}
		if again := s.run(exitOK, args...); again != out {
			t.Errorf("%v prints other figures the second time:\n%s\n%s", day, out, again)
		}
	}
}
