// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every document in the guide is valid, and the guide shows every policy.
func TestTheGuideShowsDocumentsThatHold(t *testing.T) {
	text, err := os.ReadFile("../docs/guide/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 5 {
		t.Errorf("it shows %d documents", len(blocks))
	}
	for _, b := range blocks {
		if _, err := Parse([]byte(b[1])); err != nil {
			t.Errorf("%s: %v", b[1], err)
		}
	}
	homes, splits, _ := strings.Cut(string(text), "## Splits")
	for part, names := range map[string][]string{homes: HomeNames(), splits: SplitNames()} {
		for _, name := range names {
			if !strings.Contains(part, "| `"+name+"` |") {
				t.Errorf("it does not explain %s", name)
			}
		}
	}
}
