// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
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

// A link from one document to another leads somewhere.
func TestLinksBetweenDocumentsLeadSomewhere(t *testing.T) {
	const root = "../.."
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	count := 0
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root:
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".md"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			count++
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s leads to %s, which is not there", path, m[1])
			}
		}
		return nil
	})
	if err != nil || count < 50 {
		t.Errorf("%d links, %v", count, err)
	}
}
