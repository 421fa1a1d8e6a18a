// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// A map that names missing files leads astray. Paths in ARCHITECTURE.md are written in backquotes, with a slash or an
// ending.
func TestArchitectureMapNamesExistingPaths(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(string(page), "")
	path := regexp.MustCompile("`([A-Za-z0-9_./-]+)`|\\]\\(([A-Za-z0-9_./-]+)\\)")
	named := 0
	for _, m := range path.FindAllStringSubmatch(text, -1) {
		name := m[1] + m[2]
		if !strings.Contains(name, "/") && !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".md") {
			continue // an identifier
		}
		named++
		if _, err := os.Stat(strings.TrimSuffix(name, "/")); err != nil {
			t.Errorf("ARCHITECTURE.md names %s, which is not there", name)
		}
	}
	if named < 50 {
		t.Errorf("only %d paths were found in ARCHITECTURE.md", named)
	}
}
