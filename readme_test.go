// SPDX-License-Identifier: Apache-2.0

package creel_test

import (
	"bytes"
	"os"
	"testing"
)

// A reader sees the whole README in two screens.
func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(text, []byte("\n")); lines > 110 {
		t.Errorf("README.md has %d lines, at most 110 are allowed: move details to docs", lines)
	}
	for _, command := range []string{"go run ./cmd/creel demo\n", "\n./test "} {
		if !bytes.Contains(text, []byte(command)) {
			t.Errorf("README.md does not show %q", command)
		}
	}
}
