// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Arguments and flags that name something live complete to it; no command's completion fails.
func TestEveryCommandCompletesLiveNames(t *testing.T) {
	fed := small(t)
	t.Setenv("CREEL_SERVER", "http://"+fed.Routers[0].Address("web"))
	t.Setenv("CREEL_CONTEXTS", filepath.Join(t.TempDir(), "contexts.yaml"))
	t.Setenv("CREEL_CONTEXT", "")
	complete := func(words ...string) string {
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
		"output": "json", "mode": "finish", "role": "proxy",
	}
	server := []string{"--server", "http://" + fed.Routers[0].Address("web")}
	for name, verb := range verbs(rootCommand(), map[string]*cobra.Command{}) {
		words := strings.Fields(name)
		if verb.Flags().Lookup("server") != nil {
			words = slices.Concat(words, server)
		}
		verb.LocalFlags().VisitAll(func(f *pflag.Flag) {
			want := flags[f.Name]
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
