// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/app/daemon/role"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/subcluster"
)

// Policies as people change them: write, look, refuse what is wrong, go back.
func TestPolicyCommands(t *testing.T) {
	store := "redis://" + redistest.Start(t).Addr
	try := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		root := rootCommand()
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append(append([]string{"policy"}, args...), "--store", store))
		err := root.ExecuteContext(t.Context())
		if err != nil {
			out.WriteString(err.Error())
		}
		if got := exitCode(err); got != want {
			t.Fatalf("creel policy %v: exit code %d, want %d\n%s", args, got, want, &out)
		}
		return out.String()
	}
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
	has(try(exitConflict, "set", "root.a", `{}`, "--expect", "0"), "somebody changed it")
	try(exitOK, "set", "root.a", `{"home":{"policy":"load"},"split":{"policy":"home"}}`)

	var versions []policyDoc
	if err := json.Unmarshal([]byte(try(exitOK, "history", "root.a", "-o", "json")), &versions); err != nil {
		t.Fatal(err)
	}
	if len(versions) != 2 || versions[0].Home != "load" || versions[0].Split != "home" || versions[1].Home != "hash" ||
		versions[1].Comment != "spread by name" {
		t.Fatalf("history: %+v", versions)
	}
	has(try(exitOK, "rollback", "root.a"), "is at version")
	has(try(exitOK, "get", "root.a"), `"policy": "hash"`)
	try(exitOK, "rollback", "root.a", "--to", strconv.FormatInt(versions[0].Version, 10))
	has(try(exitOK, "get", "root.a"), `"policy": "load"`)
	has(try(exitOK, "get", "root.a", "--version", strconv.FormatInt(versions[1].Version, 10)), `"policy": "hash"`)
	has(try(exitNotFound, "get", "root.a", "--version", "7"), "no version 7")
	try(exitOK, "set", "root.a", "--remove")
	try(exitNotFound, "get", "root.a")
	has(try(exitOK, "history", "root.a"), "(removed)", "rollback to version")

	// Weights are checked against the members, as soon as there are any.
	weighted := func(id string) string { return `{"home":{"policy":"weighted","weights":{"` + id + `":1}}}` }
	try(exitOK, "set", "root.c", weighted("eest"))
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
	has(try(exitUsage, "set", "root.c", weighted("eest")), "eest", "the subclusters are east", "--any-member")
	has(try(exitUsage, "set", "root.c", weighted("eest"), "--dry-run"), "eest")
	try(exitOK, "set", "root.c", weighted("eest"), "--any-member")
	try(exitOK, "set", "root.c", weighted("east"))

	try(exitOK, "set", "root.b", `{}`)
	try(exitOK, "rollback", "root.b")
	try(exitNotFound, "get", "root.b")
}
