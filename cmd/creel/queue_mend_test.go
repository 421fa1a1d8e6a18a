// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/router/routertest"
)

// mendCommands run at a router as a user, and must end with an exit code.
func mendCommands(t *testing.T, f *routertest.Federation) func(user string, want int, args ...string) string {
	return func(user string, want int, args ...string) string {
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
}

// Queues that members lack, and guarantees and maxima that differ from the document, are shown, then changed in the
// members' configuration, and reverted. Values that others changed meanwhile stay. Members whose queues come from
// files report so.
func TestDriftIsMended(t *testing.T) {
	f := routertest.Start(t, routertest.Options{
		Members: 2, Routers: 1, Settings: []string{"yarn.scheduler.configuration.store.class=memory"},
	})
	as := mendCommands(t, f)
	has := func(text string, wanted ...string) {
		t.Helper()
		for _, w := range wanted {
			if !strings.Contains(text, w) {
				t.Errorf("no %q in\n%s", w, text)
			}
		}
	}
	drift := func(want bool) func() bool {
		return func() bool {
			text := as("root", exitOK, "queue", "show", "--federation")
			return strings.Contains(text, "root.default") &&
				(strings.Contains(text, "without such a queue") || strings.Contains(text, "files guarantee")) == want
		}
	}
	file := filepath.Join(t.TempDir(), "federation.yaml")
	document := "queues:\n- {queue: root.default, guarantee: 50%, maximum: 60%}\n" +
		"- {queue: root.new, guarantee: 20%}\n- {queue: root.new.child, guarantee: 20%}\n"
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	f.Until("the members report their queues", drift(false))
	has(as("root", exitOK, "queue", "mend", "--dry-run"), "nothing is to be changed")
	as("root", exitOK, "queue", "apply", "-f", file)
	f.Until("drift", drift(true))

	has(as("root", exitOK, "queue", "mend", "--dry-run"), "sc-a: root.default capacity 70 -> 50",
		"sc-b: + root.new capacity 20", "sc-b: + root.new.child capacity 100", "nothing was changed")
	f.Until("drift is still there", drift(true))
	has(as("alice", exitNotPermitted, "queue", "mend"), "yarn.admin.acl")
	has(as("root", exitNotFound, "queue", "mend", "--subcluster", "nowhere", "--dry-run"), "nowhere")
	made := as("root", exitOK, "queue", "mend", "--comment", "as agreed")
	has(made, "sc-a: + root.new capacity 20")
	undo := regexp.MustCompile(`--undo (\d+)`).FindStringSubmatch(made)[1]
	f.Until("no drift", drift(false))
	f.Until("a second mend finds nothing", func() bool {
		return strings.Contains(as("root", exitOK, "queue", "mend"), "nothing is to be changed")
	})
	has(as("root", exitOK, "queue", "mend", "--history"), "as agreed", "in 2 members")

	has(as("root", exitOK, "queue", "mend", "--undo", undo, "--dry-run"), "sc-b: root.new is removed",
		"sc-a: root.default capacity 50 -> 70")
	has(as("root", exitOK, "queue", "mend", "--undo", undo, "--subcluster", "sc-b"), "sc-b: root.new.child is removed")
	f.Until("drift in one of them", drift(true))
	has(as("root", exitPartial, "queue", "mend", "--undo", undo), "sc-a: root.new is removed",
		"sc-b: the queues of sc-b stay as they are", "it has been changed since")
	has(as("root", exitOK, "queue", "mend", "--dry-run"), "sc-a: root.default capacity 70 -> 50",
		"sc-b: + root.new capacity 20")
	has(as("root", exitUsage, "queue", "mend", "--undo", "0"), "--undo 0")
}

// Guarantees and maxima on nodes of a label are mended in the members' own configuration, and so
// is that a queue may not use them; all of it is taken back. Other nodes stay as they are.
func TestDriftOnNodesOfALabelIsMended(t *testing.T) {
	f := routertest.Start(t, routertest.Options{
		Members: 2, Routers: 1, Settings: []string{
			"yarn.scheduler.configuration.store.class=memory",
			"yarn.node-labels.enabled=true",
			"yarn.scheduler.capacity.root.default.accessible-node-labels=fpga",
			"yarn.scheduler.capacity.root.other.accessible-node-labels.gpu.capacity=100",
		},
	})
	as := mendCommands(t, f)
	as("root", exitOK, "node", "labels", "--add", "gpu")
	nodes := strings.Fields(as("root", exitOK, "node", "list", "-o", "name"))
	as("root", exitOK, "node", "labels", nodes[0], nodes[len(nodes)-1], "--set", "gpu")
	f.Until("both members report their nodes of the label, of which percentages are", func() bool {
		var list []rebalancer.QueueState
		err := json.Unmarshal([]byte(as("root", exitOK, "queue", "show", "--federation", "-o", "json")), &list)
		return err == nil && slices.ContainsFunc(list, func(q rebalancer.QueueState) bool {
			return q.Queue == "root.other" && q.Label == "gpu" && q.Members["sc-a"]["memory"] > 0 &&
				q.Members["sc-b"]["memory"] > 0
		})
	})
	file := filepath.Join(t.TempDir(), "federation.yaml")
	document := "queues:\n- {queue: root.default, labels: {gpu: {guarantee: 40%, maximum: 45%}}}\n"
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	as("root", exitOK, "queue", "apply", "-f", file)
	drift := func(want bool) func() bool {
		return func() bool {
			return strings.Contains(as("root", exitOK, "queue", "show", "--federation"), "without such a queue") == want
		}
	}
	f.Until("drift", drift(true))
	const own = "root.default accessible-node-labels"
	wanted := []string{
		own + " fpga -> fpga,gpu", own + ".gpu.capacity none -> 40", own + ".gpu.maximum-capacity none -> 90",
		"root.other accessible-node-labels.gpu.capacity 100 -> 60",
	}
	says := func(text, id string, wanted ...string) bool {
		for _, w := range wanted {
			if !strings.Contains(text, id+": "+w) {
				return false
			}
		}
		return true
	}
	f.Until("both members are to change", func() bool {
		text := as("root", exitOK, "queue", "mend", "--dry-run")
		return says(text, "sc-a", wanted...) && says(text, "sc-b", wanted...)
	})
	made := as("root", exitOK, "queue", "mend")
	if !says(made, "sc-a", wanted...) || !says(made, "sc-b", wanted...) || strings.Contains(made, " capacity ") {
		t.Errorf("it changes\n%s", made)
	}
	f.Until("no drift", drift(false))
	f.Until("a second mend finds nothing", func() bool {
		return strings.Contains(as("root", exitOK, "queue", "mend", "--dry-run"), "nothing is to be changed")
	})
	undo := regexp.MustCompile(`--undo (\d+)`).FindStringSubmatch(made)[1]
	if text := as("root", exitOK, "queue", "mend", "--undo", undo); !says(text, "sc-b", own+" fpga,gpu -> fpga") {
		t.Errorf("undone it says\n%s", text)
	}
	f.Until("drift again", drift(true))
	conf := as("root", exitOK, "admin", "scheduler-conf", "--subcluster", "sc-a", "yarn.scheduler.capacity.root.")
	if strings.Contains(conf, "fpga,gpu") || strings.Contains(conf, "default.accessible-node-labels.gpu") {
		t.Errorf("undone the configuration is\n%s", conf)
	}
}

// Members whose queues come from files are left unchanged, and this is reported.
func TestDriftOfFilesIsNotMended(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 1, Routers: 1})
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs([]string{"queue", "mend", "--server", f.Routers[0].Web, "--user", "root"})
	err := root.ExecuteContext(t.Context())
	if exitCode(err) != exitPartial || !strings.Contains(out.String(), "its queues come from a file") ||
		!strings.Contains(out.String(), "yarn.scheduler.configuration.store.class") {
		t.Errorf("%v\n%s", err, &out)
	}
}
