// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel/internal/settings"
)

// Documents name only commands, flags, settings, metrics and stages of ./test that exist.

// pages returns all documents: Markdown, deployed files, and the examples in the commands' help.
func pages(t *testing.T) map[string]string {
	t.Helper()
	const root = "../.."
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !slices.Contains([]string{".md", ".yml", ".yaml", ".sh"}, filepath.Ext(path)):
			return nil
		}
		b, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, root+"/")] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for c := range commands(rootCommand()) {
		out["help of "+c.CommandPath()] = c.Example
	}
	if len(out) < 20 {
		t.Fatalf("only %d documents found", len(out))
	}
	return out
}

// commands are a command and all below it.
func commands(c *cobra.Command) func(yield func(*cobra.Command) bool) {
	return func(yield func(*cobra.Command) bool) {
		var walk func(c *cobra.Command) bool
		walk = func(c *cobra.Command) bool {
			if !yield(c) {
				return false
			}
			for _, child := range c.Commands() {
				if !walk(child) {
					return false
				}
			}
			return true
		}
		walk(c)
	}
}

// A command line in a document: creel or go run ./cmd/creel at the beginning of a line or of a code span, up to its
// end.
var (
	commandLine = regexp.MustCompile(
		"(?m)(?:^\\s*(?:\\$ )?|`|\"|; |&& )(?:creel|go run \\./cmd/creel) ([a-z][^`\n\"|;&#>)]*)",
	)
	flagOf     = regexp.MustCompile(`(?:^|\s)--([a-z][a-z0-9-]*)`)
	ourSetting = regexp.MustCompile("`(creel\\.[a-z][a-z0-9.-]*[a-z0-9])`")
	testStage  = regexp.MustCompile("`\\./test ([a-z0-9/ ]+)`")
	wordOnly   = regexp.MustCompile(`^[a-z][a-z-]*$`)
)

func TestCommandsThatDocumentsShowExist(t *testing.T) {
	seen := 0
	for name, text := range pages(t) {
		if name == "CHANGELOG.md" {
			continue // it may name removed things
		}
		for _, m := range commandLine.FindAllStringSubmatch(strings.ReplaceAll(text, "\\\n", " "), -1) {
			c, words := rootCommand(), strings.Fields(m[1])
			// A sentence may continue after the name: only a command's name leads on.
			if found, _, err := c.Find(words[:1]); err != nil || found == c {
				if len(words) > 1 && wordOnly.MatchString(words[0]) && strings.Contains(m[1], "--") {
					t.Errorf("%s: `creel %s`: there is no such command", name, strings.TrimSpace(m[1]))
				}
				continue
			}
			found, _, err := c.Find(words)
			if err != nil {
				t.Errorf("%s: `creel %s`: %v", name, strings.TrimSpace(m[1]), err)
				continue
			}
			seen++
			found.InheritedFlags() // merges them
			for _, f := range flagOf.FindAllStringSubmatch(strings.SplitN(m[1], " -- ", 2)[0], -1) {
				if f[1] != "help" && found.Flags().Lookup(f[1]) == nil && found.PersistentFlags().Lookup(f[1]) == nil {
					t.Errorf("%s: `creel %s`: no flag --%s", name, strings.TrimSpace(m[1]), f[1])
				}
			}
		}
	}
	if seen < 60 {
		t.Errorf("only %d command lines found: the documents are not read", seen)
	}
}

func TestSettingsThatDocumentsNameExist(t *testing.T) {
	known := map[string]bool{}
	for _, k := range settings.All() {
		known[k.Key] = true
	}
	seen := 0
	for name, text := range pages(t) {
		for _, m := range ourSetting.FindAllStringSubmatch(text, -1) {
			seen++
			if key := m[1]; !known[key] && !strings.HasSuffix(key, ".node-order") {
				t.Errorf("%s: %s is no setting", name, key)
			}
		}
	}
	if seen < 60 {
		t.Errorf("only %d settings found: the documents are not read", seen)
	}
}

func TestStagesThatDocumentsNameExist(t *testing.T) {
	b, err := os.ReadFile("../../test")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^ +(.*)\) stage "\$name" "\$name" ;;$`).FindSubmatch(b)
	if found == nil {
		t.Fatal("the list of stages in ./test is not found")
	}
	stages := " tools build quick search long " + strings.ReplaceAll(string(found[1]), "|", " ") + " "
	seen := 0
	for name, text := range pages(t) {
		for _, m := range testStage.FindAllStringSubmatch(text, -1) {
			for _, stage := range strings.Fields(m[1]) {
				seen++
				_, err := os.Stat("../../" + stage)
				if stage == "search" || stage == "quick" {
					break // what follows are its arguments
				}
				if strings.HasPrefix(stage, "e2e/") && err != nil ||
					!strings.HasPrefix(stage, "e2e") && !strings.Contains(stages, " "+stage+" ") {
					t.Errorf("%s: ./test %s: there is no such stage", name, stage)
				}
			}
		}
	}
	if seen < 3 {
		t.Errorf("only %d stages found: the documents are not read", seen)
	}
}
