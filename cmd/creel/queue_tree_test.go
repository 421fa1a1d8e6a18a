// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/router/routertest"
)

// The federation's queue tree is derived at first, then checked, previewed, written, refused to other users and over
// another version, compared, and rolled back. The rebalancer is asked for its plan, paused and resumed.
func TestQueueTreeCommands(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	as := func(user string, want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		root := rootCommand()
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append(args, "--server", f.Routers[0].Web, "--user", user))
		err := root.ExecuteContext(t.Context())
		if err != nil {
			out.WriteString(err.Error())
		}
		if got := exitCode(err); got != want {
			t.Fatalf("creel %v: exit code %d, want %d\n%s", args, got, want, &out)
		}
		return out.String()
	}
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "federation.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	has := func(text string, wanted ...string) {
		t.Helper()
		for _, w := range wanted {
			if !strings.Contains(text, w) {
				t.Errorf("no %q in\n%s", w, text)
			}
		}
	}
	f.Until("the members report their queues", func() bool {
		return strings.Contains(as("root", exitOK, "queue", "show", "--federation"), "root.default")
	})
	has(as("root", exitOK, "queue", "show", "--federation"), "there is no document", "members")
	has(as("root", exitUsage, "queue", "apply", "-f", file("queues:\n- queue: root.default\n  maximun: 40%\n")), "maximun")
	has(as("root", exitUsage, "queue", "apply", "-f",
		file("queues:\n- {queue: root.default, guarantee: 70%}\n- {queue: root.b, guarantee: 40%}\n")), "110%")
	first := file("queues:\n- queue: root.default # less\n  weight: 2\n  maximum: 40%\n")
	has(as("root", exitOK, "queue", "apply", "-f", first, "--dry-run"), "nothing was written", "+ root.default", "weight 2")
	has(as("root", exitOK, "queue", "show", "--federation"), "there is no document")
	has(as("alice", exitNotPermitted, "queue", "apply", "-f", first), "yarn.admin.acl")
	has(as("root", exitOK, "queue", "apply", "-f", first, "--comment", "less"), "the one before was 0", "memory")
	has(as("root", exitOK, "queue", "show", "--federation"), "document version", "by root")
	has(as("root", exitConflict, "queue", "apply", "-f", first, "--expect", "7"), "its version is")
	second := file("queues:\n- {queue: root.default, optout: true}\n- {queue: root.nowhere, guarantee: 10%}\n")
	has(as("root", exitOK, "queue", "diff", "-f", second), "- root.default", "+ root.nowhere")
	has(as("root", exitOK, "queue", "apply", "-f", second), "drift of root.nowhere", "without such a queue: sc-a, sc-b")
	has(as("root", exitOK, "queue", "history"), "less", "root")
	has(as("root", exitOK, "queue", "rollback"), "+ root.default", "weight 2", "- root.nowhere", "the document of version", "maximum: 40%")
	has(as("root", exitOK, "queue", "show", "--document"), "queues:\n- queue: root.default # less\n  weight: 2")
	has(as("root", exitOK, "queue", "rollback", "--to", "-1"), "+ root.nowhere", "optout: true")
	has(as("root", exitOK, "queue", "show", "--document"), "{queue: root.default, optout: true}")
	has(as("root", exitOK, "queue", "rollback"), "- root.nowhere")
	has(as("root", exitNotFound, "queue", "rollback", "--to", "-9"), "stored versions", "creel queue history")
	has(as("root", exitNotFound, "queue", "rollback", "--to", "7"), "has no version 7")
	has(as("root", exitUsage, "queue", "rollback", "--to", "0"), "-1 for the one before")
	has(as("root", exitOK, "queue", "history"), "rollback to version")
	has(as("root", exitOK, "queue", "apply", "--remove"), "- root.default")
	has(as("root", exitOK, "queue", "show", "--federation"), "there is no document")
	has(as("root", exitNotFound, "queue", "show", "--document"), "there is no document")
	has(as("root", exitOK, "queue", "rollback"), "+ root.default")
	has(as("root", exitOK, "queue", "rollback"), "- root.default", "no document holds")

	has(as("root", exitNotFound, "rebalancer", "plan"), "creel rebalancer")
	has(as("root", exitOK, "rebalancer", "plan", "--dry-run"), "root.default", "it has no demand")
	has(as("alice", exitNotPermitted, "rebalancer", "pause"), "yarn.admin.acl")
	has(as("root", exitOK, "rebalancer", "pause", "--reason", "new racks"), "paused")
	has(as("root", exitOK, "rebalancer", "resume"), "resumed")
	as("root", exitOK, "rebalancer", "history")
}
