// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Arguments and flags that name something live complete to it; no command's completion fails.
// completed returns the shell's answer to a tab after the words.
func completed(t *testing.T, words ...string) string {
	t.Helper()
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"__complete"}, words...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Errorf("completion of %q: %v", words, err)
	}
	return out.String()
}

func TestEveryCommandCompletesLiveNames(t *testing.T) {
	fed := small(t)
	t.Setenv("CREEL_SERVER", "http://"+fed.Routers[0].Address("web"))
	t.Setenv("CREEL_CONTEXTS", filepath.Join(t.TempDir(), "contexts.yaml"))
	t.Setenv("CREEL_CONTEXT", "")
	complete := func(words ...string) string { return completed(t, words...) }
	expect := func(want string, words ...string) {
		t.Helper()
		if out := complete(words...); !strings.Contains(out, want) {
			t.Errorf("completion of %q lacks %q:\n%s", words, want, out)
		}
	}
	root := rootCommand()
	root.SetArgs([]string{"context", "set", "east", "--server", "http://127.0.0.1:1"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CREEL_CONTEXT", "")
	member := complete("subcluster", "show", "")
	member, _, _ = strings.Cut(member, "\t")
	// Names of flags that complete in each command that has them, and a part of the expected answer.
	flags := map[string]string{
		"queue": "root.default", "subcluster": member, "context": "east",
		"output": "json", "mode": "finish", "role": "proxy", "sort": "memory", "for": "succeeded", "method": "GET",
		"state": "RUNNING", "call": "report", "fault": "sleepers", "split": "by-headroom", "node list --sort": "rack",
	}
	server := []string{"--server", "http://" + fed.Routers[0].Address("web")}
	for name, verb := range verbs(rootCommand(), map[string]*cobra.Command{}) {
		words := strings.Fields(name)
		if verb.Flags().Lookup("server") != nil {
			words = slices.Concat(words, server)
		}
		verb.LocalFlags().VisitAll(func(f *pflag.Flag) {
			want := cmp.Or(flags[name+" --"+f.Name], flags[f.Name])
			if want == "" || f.Value.Type() == "bool" {
				return
			}
			expect(want, slices.Concat(words, []string{"--" + f.Name, ""})...)
		})
		complete(slices.Concat(words, []string{""})...)
	}
	for line, want := range map[string]string{
		"queue start": "root.default", "queue stop": "root.default", "policy set": "root.default",
		"node show": ":", "node drain": ":", "context use": "east", "context remove": "east",
		"config explain": "yarn.resourcemanager.address", "subcluster drain": member, "policy get": "root.default",
	} {
		words := strings.Fields(line)
		if words[0] != "context" && words[0] != "config" {
			c, _, _ := rootCommand().Find(words)
			if c.Flags().Lookup("server") != nil {
				words = slices.Concat(words, server)
			}
		}
		expect(want, append(words, "")...)
	}
}

// freeFlags are the flags with a word of the user's own: texts, names to give, addresses, amounts, files (which the
// shell completes) and settings.
const freeFlags = `
	comment reason name env server admin tracker client scheduler store as user add remove set global define
	conf against-conf against-define data file exclude-file ready-file log html summary corpus trace tree policy against
	asks submission view program body cpu-profile by-size hours accept pid memory am-memory
	since drain-timeout accept-empty take-over accept-missing simulate
`

func TestEveryFlagOfWordsCompletes(t *testing.T) {
	free := map[string]bool{}
	for name := range strings.FieldsSeq(freeFlags) {
		free[name] = false
	}
	for line, verb := range verbs(rootCommand(), map[string]*cobra.Command{}) {
		verb.Flags().VisitAll(func(f *pflag.Flag) {
			if _, is := free[f.Name]; is {
				free[f.Name] = true
				return
			}
			switch f.Value.Type() {
			case "bool", "duration", "int", "int64", "uint64", "float64", "size":
				return
			}
			if _, completes := verb.GetFlagCompletionFunc(f.Name); !completes {
				t.Errorf("creel %s --%s completes nothing", line, f.Name)
			}
		})
	}
	for name, used := range free {
		if !used {
			t.Errorf("no command has --%s", name)
		}
	}
}

func TestFlagsCompleteFromApplicationsAndHistory(t *testing.T) {
	fed := small(t)
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	complete := func(want string, words ...string) {
		t.Helper()
		if out := completed(t, words...); !strings.Contains(out, want) {
			t.Errorf("completion of %q lacks %q:\n%s", words, want, out)
		}
	}
	at := []string{"--server", s.server}
	with := func(words ...string) []string { return append(words, at...) }
	s.run(exitOK, append(with("app", "submit", "--user", "ann", "--tag", "nightly", "--type", "SPARK", "--name", "n"), "--", "true")...)
	s.run(exitOK, with("policy", "set", "root.default", `{"home":{"policy":"hash"}}`, "--user", "root", "--comment", "by name")...)
	for _, words := range [][]string{
		{"ann", "app", "list", "--of", "a"}, {"SPARK", "app", "list", "--type", "S"},
		{"nightly", "app", "list", "--tag", "n"}, {"other,nightly", "app", "list", "--tag", "other,n"},
		{"running,waiting", "app", "list", "--state", "running,w"}, {"DECOMMISSIONED", "node", "list", "--state", "DE"},
		{"by name", "policy", "rollback", "root.default", "--to", ""}, {"by name", "policy", "get", "root.default", "--version", ""},
	} {
		last := words[len(words)-2:]
		complete(words[0], slices.Concat(words[1:len(words)-2], at, last)...)
	}
}
