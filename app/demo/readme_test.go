// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The output in README.md is what Print writes, but for the numbers.
func TestReadmeShowsTheSummary(t *testing.T) {
	var s Summary
	s.Applications.Submitted, s.Applications.Finished = 1, 1
	var out strings.Builder
	if !s.Print(&out) {
		t.Fatalf("not good:\n%s", out.String())
	}
	number := regexp.MustCompile(`\d+(\.\d+)?`)
	printed := number.ReplaceAllString(out.String(), "N")
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "$ go run ./cmd/creel demo\n")
	shown, _, _ := strings.Cut(rest, "```")
	if strings.Count(shown, "\n") < 5 {
		t.Fatalf("README.md shows no output of the demo: %q", shown)
	}
	for line := range strings.Lines(shown) {
		if !strings.Contains(printed, number.ReplaceAllString(line, "N")) {
			t.Errorf("README.md shows a line that the demo does not print: %s", line)
		}
	}
}
