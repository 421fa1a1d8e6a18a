// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const mostWords = 25 // of an entry

var (
	fragmentName = regexp.MustCompile(`^[0-9]{4}\.txt$`)
	fragmentText = regexp.MustCompile(`^((?:breaking: )?[a-z][a-z-]*): \S.*[.]\n$`)
)

// fragments returns the entries of a directory's files, each a line "area: sentence". Entries are sorted by area, then
// by number. A missing directory has no entries.
func fragments(dir fs.FS) ([]string, error) {
	files, err := fs.ReadDir(dir, ".")
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var entries []string
	area := map[string]string{}
	for _, file := range files {
		if !fragmentName.MatchString(file.Name()) {
			return nil, fmt.Errorf("%s: expected a name of four digits, such as 0042.txt", file.Name())
		}
		text, err := fs.ReadFile(dir, file.Name())
		if err != nil {
			return nil, err
		}
		m := fragmentText.FindSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("%s: expected one line, \"area: sentence.\", not %q", file.Name(), text)
		}
		entry := strings.TrimSuffix(string(text), "\n")
		if n := len(strings.Fields(entry)); n > mostWords {
			return nil, fmt.Errorf("%s: %d words, at most %d are allowed", file.Name(), n, mostWords)
		}
		entries = append(entries, entry)
		area[entry] = string(m[1])
	}
	slices.SortStableFunc(entries, func(a, b string) int { return strings.Compare(area[a], area[b]) })
	return entries, nil
}

// joinChangelog adds entries to the changelog's section of a version, and dates the section. Without a section it adds
// one above the others, if there are entries.
func joinChangelog(changelog []byte, version string, at time.Time, entries []string) ([]byte, error) {
	heading := regexp.MustCompile(`(?m)^## ` + regexp.QuoteMeta(version) + `(?: .*)?\n`)
	dated := fmt.Sprintf("## %s (%s)\n", version, at.Format(time.DateOnly))
	var list strings.Builder
	for _, entry := range entries {
		fmt.Fprintf(&list, "* %s\n", entry)
	}
	sections := regexp.MustCompile(`(?m)^## `)
	section := heading.FindIndex(changelog)
	if section == nil {
		first := sections.FindIndex(changelog)
		if first == nil {
			return nil, fmt.Errorf("the changelog has no section")
		}
		if len(entries) == 0 {
			return changelog, nil
		}
		return slices.Concat(changelog[:first[0]], []byte(dated+"\n"+list.String()+"\n"), changelog[first[0]:]), nil
	}
	body, rest := changelog[section[1]:], []byte(nil)
	if next := sections.FindIndex(body); next != nil {
		body, rest = body[:next[0]], body[next[0]:]
	}
	out := slices.Concat(changelog[:section[0]], []byte(dated), bytes.TrimRight(body, "\n"), []byte("\n"))
	if list.Len() > 0 {
		out = append(out, "\n"+list.String()...)
	}
	if len(rest) > 0 {
		out = append(out, '\n')
	}
	return append(out, rest...), nil
}

// changelog returns the changelog of this release.
func (r *release) changelog() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(r.source, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	entries, err := fragments(os.DirFS(filepath.Join(r.source, ".changelog")))
	if err != nil {
		return nil, fmt.Errorf(".changelog: %w", err)
	}
	return joinChangelog(text, strings.TrimPrefix(r.version, "v"), r.time, entries)
}

// writeChangelog joins the fragments into the tree's changelog and removes them, before the release is tagged.
func (r *release) writeChangelog() error {
	text, err := r.changelog()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.source, "CHANGELOG.md"), text, 0o644); err != nil {
		return err
	}
	joined, err := filepath.Glob(filepath.Join(r.source, ".changelog", "*.txt"))
	if err != nil {
		return err
	}
	for _, file := range joined {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}
