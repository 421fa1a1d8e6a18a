// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The queue tree that the guide shows is one.
func TestTheGuideShowsAQueueTreeThatHolds(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/queues.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		t.Fatal("it shows none")
	}
	for _, b := range blocks {
		if _, err := readTree("-", strings.NewReader(b[1])); err != nil {
			t.Errorf("%s: %v", b[1], err)
		}
	}
}
