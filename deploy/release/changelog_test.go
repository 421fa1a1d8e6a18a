// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

var day = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)

const before = "# Changelog\n\nHow to read it.\n\n## 0.1.0 (unreleased)\n\n* cli: a demo.\n\n## 0.0.9 (2026-01-01)\n\n* cli: a start.\n"

func files(text map[string]string) fstest.MapFS {
	dir := fstest.MapFS{}
	for name, text := range text {
		dir[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return dir
}

func joined(t *testing.T, version string, text map[string]string) string {
	t.Helper()
	entries, err := fragments(files(text))
	if err != nil {
		t.Fatal(err)
	}
	out, err := joinChangelog([]byte(before), version, day, entries)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestNoFragmentsAddNothing(t *testing.T) {
	if out := joined(t, "0.2.0", nil); out != before {
		t.Errorf("the changelog is now\n%s", out)
	}
	entries, err := fragments(os.DirFS(filepath.Join(t.TempDir(), "absent")))
	if err != nil || len(entries) > 0 {
		t.Errorf("a directory that does not exist: %q, %v", entries, err)
	}
}

func TestTwoFragmentsBecomeASection(t *testing.T) {
	out := joined(t, "0.2.0", map[string]string{"0001.txt": "router: answers faster.\n", "0002.txt": "cli: prints less.\n"})
	want := strings.Replace(before, "## 0.1.0",
		"## 0.2.0 (2026-12-01)\n\n* cli: prints less.\n* router: answers faster.\n\n## 0.1.0", 1)
	if out != want {
		t.Errorf("the changelog is now\n%s", out)
	}
}

func TestFragmentsJoinTheSectionOfTheirVersion(t *testing.T) {
	out := joined(t, "0.1.0", map[string]string{"0001.txt": "router: answers faster.\n"})
	want := strings.Replace(before, "(unreleased)\n\n* cli: a demo.\n", "(2026-12-01)\n\n* cli: a demo.\n\n* router: answers faster.\n", 1)
	if out != want {
		t.Errorf("the changelog is now\n%s", out)
	}
}

func TestMalformedFragmentsAreErrors(t *testing.T) {
	for name, text := range map[string]string{
		"0001.txt": "Answers faster.\n",
		"0002.txt": "router: answers faster.\nAnd more.\n",
		"0003.txt": "router: answers faster\n",
		"0004.txt": "",
		"0005.txt": "router:" + strings.Repeat(" word", 25) + ".\n",
		"note.txt": "router: answers faster.\n",
	} {
		if entries, err := fragments(files(map[string]string{name: text})); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %q is read as %q, %v", name, text, entries, err)
		}
	}
	if _, err := fragments(files(map[string]string{"0001.txt": "breaking: router: needs a key.\n"})); err != nil {
		t.Error(err)
	}
}

// The tree's own fragments are well formed, and its changelog has a place for them.
func TestTheTreesChangelogIsJoined(t *testing.T) {
	r := release{source: "../..", version: "v99.0.0", time: day}
	if _, err := r.changelog(); err != nil {
		t.Error(err)
	}
}

func TestWrittenFragmentsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"CHANGELOG.md": before, ".changelog/0001.txt": "cli: prints less.\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := release{source: dir, version: "v0.2.0", time: day}
	if err := r.writeChangelog(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "CHANGELOG.md"))
	if err != nil || !strings.Contains(string(text), "## 0.2.0 (2026-12-01)\n\n* cli: prints less.\n") {
		t.Errorf("the changelog is\n%s, %v", text, err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, ".changelog")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// An entry that breaks the rules fails here, not at the next release.
func TestEntriesOfNextReleaseAreValid(t *testing.T) {
	if _, err := fragments(os.DirFS("../../.changelog")); err != nil {
		t.Error(err)
	}
}
