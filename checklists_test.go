// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	quoted     = regexp.MustCompile("`([^`\n]+)`")
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// checklists are the sections of CONTRIBUTING.md that name the files to change for one kind of addition.
var checklists = []string{
	"A setting", "A store operation", "A store", "An RPC of the ResourceManager", "A YARN REST endpoint", "A native endpoint",
	"A home policy", "An ordering policy",
}

// section is a part of a page, under a heading of the third level.
type section struct{ name, body string }

// sectionsOf returns the sections of a text.
func sectionsOf(text string) (out []section) {
	for _, part := range strings.Split(text, "\n### ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		out = append(out, section{name, body})
	}
	return out
}

// checklistSections returns the checklists of CONTRIBUTING.md.
func checklistSections(t *testing.T) []section {
	t.Helper()
	page, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## Checklists\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return sectionsOf(text)
}

// Each path in a checklist exists, each identifier in a row occurs in the row's first path, and each command runs an
// existing test. In paths NAME stands for any name.
func TestChecklistsNameExistingCode(t *testing.T) {
	var names []string
	for _, s := range checklistSections(t) {
		name, body := s.name, s.body
		names = append(names, name)
		if rows := strings.Count(body, "\n| `"); rows < 2 {
			t.Errorf("%s: only %d rows", name, rows)
		}
		for line := range strings.Lines(body) {
			for _, problem := range lineProblems(line) {
				t.Errorf("%s: %s", name, problem)
			}
		}
	}
	if !slices.Equal(names, checklists) {
		t.Errorf("the checklists are %q, want %q", names, checklists)
	}
}

// lineProblems returns the problems of the quoted words in a line.
func lineProblems(line string) (problems []string) {
	words := quoted.FindAllStringSubmatch(line, -1)
	source := ""
	if strings.HasPrefix(line, "| `") {
		source = sourceOf(words[0][1])
	}
	for _, m := range words {
		word := m[1]
		switch {
		case strings.Contains(word, "go test ") || strings.Contains(word, "go generate "):
			problems = append(problems, commandProblems(word)...)
		case strings.Contains(word, "/") || filepath.Ext(word) == ".go":
			if len(existing(word)) == 0 {
				problems = append(problems, word+" does not exist")
			}
		case source != "" && identifier.MatchString(word):
			if !regexp.MustCompile(`\b` + word + `\b`).MatchString(source) {
				problems = append(problems, fmt.Sprintf("no %s in %s", word, words[0][1]))
			}
		}
	}
	return problems
}

// commandProblems returns the absent packages of a command, and its -run if no test matches.
func commandProblems(command string) (problems []string) {
	var run string
	named := 0
	words := strings.Fields(command)
	for i, word := range words {
		if word == "-run" && i+1 < len(words) {
			run = words[i+1]
		}
	}
	for _, word := range words {
		if !strings.HasPrefix(word, "./") {
			continue
		}
		named++
		source := sourceOf(word)
		if source == "" {
			problems = append(problems, "no package "+word)
		} else if !regexp.MustCompile(`(?m)^func Test\w*`+strings.TrimPrefix(run, "Test")).MatchString(source) && run != "" {
			problems = append(problems, fmt.Sprintf("no test %s in %s", run, word))
		}
	}
	if named == 0 {
		problems = append(problems, command+" names no package")
	}
	return problems
}

// existing returns the files and directories of a path in which NAME is any name.
func existing(path string) []string {
	files, err := filepath.Glob(strings.ReplaceAll(path, "NAME", "*"))
	if err != nil {
		return nil
	}
	return files
}

// sourceOf returns the text of the files of a path, and of the files in its directory; "" if there are none.
func sourceOf(path string) string {
	var text strings.Builder
	for _, at := range existing(path) {
		inside, err := filepath.Glob(filepath.Join(at, "*"))
		if err != nil {
			return ""
		}
		for _, file := range append(inside, at) {
			if b, err := os.ReadFile(file); err == nil { // not a directory
				text.Write(b)
			}
		}
	}
	return text.String()
}

func TestChecklistsWithAbsentCodeFail(t *testing.T) {
	for line, want := range map[string]int{
		"| `policies/policy.go` | its line in `homeRules` |":                                           0,
		"| `policies/home_NAME.go` | as in `policies/home_uniform.go`, with `choose` |":                0,
		"Then `go test ./policies -run Guide`, and `NAME` stands.":                                     0,
		"| `policies/absent.go` | add it |":                                                            1,
		"| `policies/policy.go` | its line in `noSuchRules` |":                                         1,
		"| `policies/absent_NAME.go` | as in `policies/home_absent.go` |":                              2,
		"Then `go test ./policies -run TestNothingOfTheKind`, `go generate ./internal/absent`, `x/y`.": 3,
	} {
		if problems := lineProblems(line); len(problems) != want {
			t.Errorf("%s: problems %q, want %d", line, problems, want)
		}
	}
}
