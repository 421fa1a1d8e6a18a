// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// shellWords splits a line as a shell does. It ends at a pipe, a redirection, a separator or a comment.
func shellWords(line string) (words []string) {
	var word strings.Builder
	var quote rune
	open := false
	flush := func() {
		if open {
			words = append(words, word.String())
		}
		word.Reset()
		open = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case quote == 0 && (r == '|' || r == '>' || r == '<' || r == ';' || r == '&' || r == '#' && !open):
			flush()
			return words
		case quote == 0 && (r == ' ' || r == '\t'):
			flush()
		default:
			word.WriteRune(r)
			open = true
		}
	}
	flush()
	return words
}

// Each command has an example of itself, and all examples have existing commands, flags and the right arguments.
func TestEveryCommandHasWorkingExamples(t *testing.T) {
	all := verbs(rootCommand(), map[string]*cobra.Command{})
	checked := 0
	for name, verb := range all {
		shows := false
		for line := range strings.SplitSeq(strings.ReplaceAll(verb.Example, "\\\n", " "), "\n") {
			words := shellWords(line)
			if len(words) == 0 || words[0] != "creel" {
				continue
			}
			c, rest, err := rootCommand().Find(words[1:])
			if err != nil {
				t.Errorf("creel %s: %q: %v", name, line, err)
				continue
			}
			shows = shows || c.CommandPath() == "creel "+name
			err = c.ParseFlags(rest)
			if err == nil {
				err = c.ValidateRequiredFlags()
			}
			if err == nil {
				err = c.ValidateArgs(c.Flags().Args())
			}
			if err != nil {
				t.Errorf("creel %s: %q: %v", name, line, err)
			}
			checked++
		}
		if !shows {
			t.Errorf("creel %s has no example of itself", name)
		}
	}
	if checked < len(all) {
		t.Errorf("checked %d examples of %d commands", checked, len(all))
	}
	for name := range exampleLines {
		want := strings.ReplaceAll(exampleLines[name], "\n", "\n  ")
		if all[name] == nil || strings.TrimSpace(all[name].Example) != want {
			t.Errorf("the table's examples of creel %s are not used", name)
		}
	}
}
