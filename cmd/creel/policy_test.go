// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/subcluster"
)

// Policies are changed through a router and directly in the store: write, read, reject invalid ones, roll back.
func TestPolicyCommands(t *testing.T) {
	t.Run("through a router", func(t *testing.T) {
		f := routertest.Start(t, routertest.Options{Routers: 1})
		try := policyCommands(t, "--server", f.Routers[0].Web, "--user", "root")
		policyStory(t, try)
		alice := policyCommands(t, "--server", f.Routers[0].Web, "--user", "alice")
		if out := alice(exitNotPermitted, "set", "root.a", "{}"); !strings.Contains(out, "yarn.admin.acl") {
			t.Errorf("alice is told %q", out)
		}
		weightsStory(t, try, "sc-a")
	})
	t.Run("in the store", func(t *testing.T) {
		store := "redis://" + redistest.Start(t).Addr
		try := policyCommands(t, "--store", store)
		policyStory(t, try)
		try(exitOK, "set", "root.c", weighted("eest")) // as long as there is no member
		registerEast(t, store)
		weightsStory(t, try, "east")
	})
}

// policyCommands runs commands of creel policy with flags behind them.
func policyCommands(t *testing.T, flags ...string) func(want int, args ...string) string {
	return func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		root := rootCommand()
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append(append([]string{"policy"}, args...), flags...))
		err := root.ExecuteContext(t.Context())
		if err != nil {
			out.WriteString(err.Error())
		}
		if got := exitCode(err); got != want {
			t.Fatalf("creel policy %v: exit code %d, want %d\n%s", args, got, want, &out)
		}
		return out.String()
	}
}

func policyStory(t *testing.T, try func(want int, args ...string) string) {
	t.Helper()
	has := func(text string, wanted ...string) {
		t.Helper()
		for _, w := range wanted {
			if !strings.Contains(text, w) {
				t.Errorf("no %q in\n%s", w, text)
			}
		}
	}
	has(try(exitNotFound, "get", "root.a"), "creel policy set")
	has(try(exitNotFound, "rollback", "root.a"), "never had")
	has(try(exitUsage, "set", "root.a", `{"home":{"policy":"nonsense"}}`), "balanced, hash")
	has(try(exitUsage, "set", "a", `{}`), "root.a")
	try(exitUsage, "set", "root.a")
	has(try(exitOK, "set", "root.a", `{"home":{"policy":"hash"}}`, "--dry-run"), "- (none)", `+ {"home"`)
	if out := try(exitOK, "list", "-o", "name"); out != "" {
		t.Errorf("a dry run wrote %q", out)
	}
	try(exitOK, "set", "root.a", `{"home":{"policy":"hash"}}`, "--comment", "spread by name")
	has(try(exitOK, "get", "root.a.b"), "# of root.a, version", `"policy": "hash"`)
	has(try(exitConflict, "set", "root.a", `{}`, "--expect", "0"), "it was changed meanwhile")
	try(exitOK, "set", "root.a", `{"home":{"policy":"load"},"split":{"policy":"home"}}`)

	var versions []rest.PolicyDoc
	if err := json.Unmarshal([]byte(try(exitOK, "history", "root.a", "-o", "json")), &versions); err != nil {
		t.Fatal(err)
	}
	if len(versions) != 2 || versions[0].Home != "load" || versions[0].Split != "home" || versions[1].Home != "hash" ||
		versions[1].Comment != "spread by name" {
		t.Fatalf("history: %+v", versions)
	}
	has(try(exitOK, "rollback", "root.a"), "is at version", `+ {"home":{"policy":"hash"`, `- {"home":{"policy":"load"`, "holds for root.a")
	has(try(exitOK, "rollback", "root.a"), `+ {"home":{"policy":"load"`)
	has(try(exitOK, "rollback", "root.a", "--to", "-1"), `+ {"home":{"policy":"hash"`)
	has(try(exitUsage, "rollback", "root.a", "--to", "0"), "-1 for the one before")
	has(try(exitNotFound, "rollback", "root.a", "--to", "7"), "no version 7")
	has(try(exitOK, "get", "root.a"), `"policy": "hash"`)
	try(exitOK, "rollback", "root.a", "--to", strconv.FormatInt(versions[0].Version, 10))
	has(try(exitOK, "get", "root.a"), `"policy": "load"`)
	has(try(exitOK, "get", "root.a", "--version", strconv.FormatInt(versions[1].Version, 10)), `"policy": "hash"`)
	has(try(exitNotFound, "get", "root.a", "--version", "7"), "no version 7")
	try(exitOK, "set", "root.a", "--remove")
	try(exitNotFound, "get", "root.a")
	has(try(exitOK, "history", "root.a"), "(removed)", "rollback to version")

	try(exitOK, "set", "root.b", `{}`)
	has(try(exitOK, "rollback", "root.b"), "+ (none)", "no document holds")
	try(exitNotFound, "get", "root.b")
}

func weighted(id string) string { return `{"home":{"policy":"weighted","weights":{"` + id + `":1}}}` }

// Weights are checked against the members, of which there is one.
func weightsStory(t *testing.T, try func(want int, args ...string) string, member string) {
	t.Helper()
	for _, args := range [][]string{{}, {"--dry-run"}} {
		out := try(exitUsage, append([]string{"set", "root.d", weighted("eest")}, args...)...)
		for _, want := range []string{"eest", "the subclusters are " + member, "--any-member"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in %s", want, out)
			}
		}
	}
	try(exitOK, "set", "root.d", weighted("eest"), "--any-member")
	try(exitOK, "set", "root.d", weighted(member))
}

func registerEast(t *testing.T, store string) {
	t.Helper()
	defaults, err := settings.Load(settings.Sources{Defines: []string{"creel.store.url=" + store}})
	if err != nil {
		t.Fatal(err)
	}
	s, closeStore, err := role.OpenStore(t.Context(), defaults)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Register(t.Context(), subcluster.Member{
		ID: "east", Epoch: 1, Lease: time.Hour, Addresses: subcluster.Addresses{Client: "east:8032"},
	}); err != nil {
		t.Fatal(err)
	}
	if err := closeStore(); err != nil {
		t.Fatal(err)
	}
}
