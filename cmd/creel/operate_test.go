// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Labels are made, given to nodes and taken from them through a router.
func TestNodeLabelsByCommand(t *testing.T) {
	fed := smallWith(t, []string{"yarn.node-labels.enabled=true", "yarn.acl.enable=true", "yarn.admin.acl=root"})
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	s.run(0, "node", "labels", "--add", "gpu,fast(exclusive=false)", "--user", "root")
	s.shows(0, "node labels", "gpu", "true", "fast", "false")
	nodes := strings.Fields(s.run(0, "node", "list", "-o", "name"))
	s.shows(0, "node labels "+nodes[0]+" "+nodes[5]+" --set gpu --user root", nodes[0]+" has label gpu")
	for _, line := range strings.Split(s.run(0, "node", "labels", "-o", "wide"), "\n") {
		if strings.HasPrefix(line, "gpu") && (!strings.Contains(line, nodes[0]) || !strings.Contains(line, nodes[5]) ||
			!strings.Contains(line, " 2 ")) {
			t.Errorf("two nodes of two subclusters have the label: %q", line)
		}
	}
	s.shows(0, "node labels "+nodes[0]+" --clear --user root", "no label")
	if out := s.run(0, "node", "labels", "-o", "wide"); strings.Contains(out, nodes[0]) || !strings.Contains(out, nodes[5]) {
		t.Error(out)
	}
	if out := s.run(exitUsage, "node", "labels", nodes[5], "--set", "none", "--user", "root"); strings.Contains(out, "java.") {
		t.Errorf("an unknown label: %s", out)
	}
	s.run(exitNotPermitted, "node", "labels", "--remove", "fast", "--user", "eve")
	s.run(0, "node", "labels", "--remove", "fast", "--user", "root")
	if out := s.run(0, "node", "labels"); strings.Contains(out, "fast") {
		t.Error(out)
	}
	for _, wrong := range []string{
		"node labels h1", "node labels --set gpu", "node labels h1 --set gpu --clear", "node labels --add gpu(x)",
	} {
		s.shows(exitUsage, wrong)
	}
}

// The queues of one member are shown, tried, changed and put back while it runs.
func TestSchedulerConfByCommand(t *testing.T) {
	fed := smallWith(t, []string{"yarn.scheduler.configuration.store.class=memory"})
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	member := strings.Fields(s.run(0, "subcluster", "list", "-o", "name"))[0]
	const key = "yarn.scheduler.capacity.root.prod.maximum-capacity"
	conf := func(args ...string) string {
		return s.run(0, append([]string{"admin", "scheduler-conf", "--subcluster", member, "--user", "root"}, args...)...)
	}
	before := conf(key)
	conf("--validate", "--set", "root.prod:maximum-capacity=77")
	if now := conf(key); now != before {
		t.Errorf("a change that was tried is there: %s, was %s", now, before)
	}
	conf("--set", "root.prod:maximum-capacity=77", "--set", "root.prod:ordering-policy=fair")
	if now := conf(key); !strings.Contains(now, "77") {
		t.Errorf("after the change: %s", now)
	}
	s.shows(exitUsage, "admin scheduler-conf --user root --set root.prod:capacity=999 --subcluster "+member)
	conf("--format")
	if now := conf(key); now != before {
		t.Errorf("after format: %s, was %s", now, before)
	}
	s.shows(exitUsage, "admin scheduler-conf --user root", "subClusterId")
	for _, wrong := range []string{"--set prod", "--set root.prod:x", "--global =1", "--validate", "--format x"} {
		s.shows(exitUsage, "admin scheduler-conf "+wrong)
	}
}

// A queue stops and starts in all members, or in one, where calls may change it; elsewhere the error names the setting.
func TestQueueStopsByCallsToMembers(t *testing.T) {
	fed := smallWith(t, []string{"yarn.scheduler.configuration.store.class=memory"})
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	s.shows(exitOK, "queue stop research --user root", "queue root.research is STOPPED at sc-1, sc-2")
	id := strings.TrimSpace(s.run(exitOK, "app", "submit", "--queue", "research", "-o", "name", "--", "true"))
	s.shows(exitOK, "app wait --for state=FAILED "+id)
	s.shows(exitOK, "app status "+id, "STOPPED")
	s.shows(exitOK, "queue start root.research --user root --subcluster sc-2", "queue root.research is RUNNING at sc-2")
	s.shows(exitNotFound, "queue stop root.nosuch --user root")

	files := cliClient{t, "http://" + small(t).Routers[0].Address("web")}
	files.shows(exitUsage, "queue stop root.research --user root", "sc-1: ", "yarn.scheduler.configuration.store.class")
}

// ends is the exit code of a command that a user types, and all that it prints.
func ends(t *testing.T, line string) (int, string) {
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(strings.Fields(line))
	err := root.ExecuteContext(t.Context())
	if err != nil {
		out.WriteString(err.Error())
	}
	return exitCode(err), out.String()
}

// A refused user reads a plain sentence, whether a router's admin port refuses or members through a router.
func TestRefusalIsReadable(t *testing.T) {
	fed := smallWith(t, []string{
		"yarn.acl.enable=true", "yarn.admin.acl=root", "yarn.scheduler.configuration.store.class=fs",
	})
	t.Setenv("CREEL_SERVER", "http://"+fed.Routers[0].Address("web"))
	plain := func(want int, line, text string) {
		t.Helper()
		code, out := ends(t, line)
		if code != want || !strings.Contains(out, text) || strings.Contains(out, "java") ||
			strings.Contains(out, "org.apache") {
			t.Errorf("%s: %d %s", line, code, out)
		}
	}
	for _, verb := range []string{"refresh-queues", "refresh-nodes", "refresh-acls"} {
		for _, at := range []string{fed.Routers[0].Address("admin"), fed.RMs[0].Address("admin")} {
			plain(exitNotPermitted, "admin "+verb+" --user eve --admin "+at, "User eve doesn't have permission")
		}
	}
	plain(exitPartial, "queue mend --dry-run --user eve", "Only admins can carry out this operation")
	plain(exitPartial, "queue mend --dry-run --user eve", "no member's queues could be compared")
	plain(exitOK, "queue mend --dry-run --user root", "nothing is to be changed")
}

// An application without tags has none, and none is counted.
func TestAnApplicationWithoutTags(t *testing.T) {
	fed := small(t)
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	s.run(0, "app", "submit", "--name", "none", "--", "sleep", "1")
	s.run(0, "app", "submit", "--name", "one", "--tag", "etl", "--", "sleep", "1")
	out := s.run(0, "app", "tags", "-o", "name")
	if got := strings.Fields(out); len(got) != 1 || got[0] != "etl" || strings.Count(out, "\n") != 1 {
		t.Errorf("the tags: %q", out)
	}
	path := filepath.Join(t.TempDir(), "null.json")
	if err := os.WriteFile(path, []byte("null"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.shows(exitUsage, "app submit --file "+path, "is null")
}

// Connection errors are reported in plain words, not as system calls.
func TestConnectionsInWords(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	const gone = "127.0.0.1:1"
	for line, want := range map[string]string{
		"subcluster list --request-timeout 50ms --server http://" + silent.Addr().String(): "no answer came in time",
		"admin refresh-nodes --request-timeout 50ms --admin " + silent.Addr().String():     "no answer came in time",
		"subcluster list --server http://" + gone:                                          "connection refused: no server listens there",
		"admin refresh-nodes --admin " + gone:                                              "connection refused: no server listens there",
		"ready http://" + gone:                                                             "connection refused: no server listens there",
	} {
		code, out := ends(t, line)
		if code != exitUnreachable || !strings.Contains(out, want) || strings.Contains(out, "dial tcp") {
			t.Errorf("%s: %d %s", line, code, out)
		}
	}
}

// Editing a policy changes the queue's own or the inherited one; text that cannot be written is saved.
func TestPolicyEdit(t *testing.T) {
	fed := small(t)
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	t.Setenv("TMPDIR", t.TempDir())
	editor := func(script string) {
		path := filepath.Join(t.TempDir(), "editor")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("VISUAL", path+" -w")
	}
	kept := func() []string {
		found, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "creel-policy-*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	editor("true")
	s.shows(0, "policy edit root.prod --user root", "nothing was changed")
	editor(`sed -i 0,/balanced/s//uniform/ "$2"`)
	s.shows(0, "policy edit root.prod --user root --comment spread", "at version")
	s.shows(0, "policy history root.prod", "uniform", "spread")
	if left := kept(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	editor(`echo '{"home":{"policy":"nonsense"}}' >"$2"`)
	s.shows(exitUsage, "policy edit root.prod --user root", "nonsense", "your text is saved")
	if left := kept(); len(left) != 1 {
		t.Fatalf("kept: %q", left)
	}
	// Another administrator is faster.
	editor(`echo '{"home":{"policy":"hash"}}' >"$2"; touch ` + os.Getenv("TMPDIR") + `/opened
while [ ! -e ` + os.Getenv("TMPDIR") + `/go ]; do sleep 0.05; done`)
	done := make(chan string)
	go func() { done <- s.run(exitConflict, "policy", "edit", "root.prod", "--user", "root") }()
	for {
		if _, err := os.Stat(filepath.Join(os.Getenv("TMPDIR"), "opened")); err == nil {
			break
		}
	}
	s.run(0, "policy", "set", "root.prod", `{"home":{"policy":"priority","weights":{"`+
		strings.Fields(s.run(0, "subcluster", "list", "-o", "name"))[0]+`":1}}}`, "--user", "root")
	if err := os.WriteFile(filepath.Join(os.Getenv("TMPDIR"), "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := <-done; !strings.Contains(out, "your text is saved") {
		t.Error(out)
	}
	s.shows(0, "policy get root.prod", "priority")
	editor("exit 3")
	s.shows(exitUsage, "policy edit root.prod --user root", "exit status 3")
}

// Errors about missing objects have no Java name, for every command, and exit with 3.
func TestMissingObjectErrorIsReadable(t *testing.T) {
	fed := smallWith(t, nil)
	router := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	for _, verb := range []string{
		"subcluster show nosuch", "subcluster drain nosuch", "subcluster drain nosuch --mode move --dry-run",
		"subcluster undrain nosuch", "subcluster deregister nosuch", "subcluster remove nosuch",
		"queue mend --subcluster nosuch", "admin scheduler-conf --subcluster nosuch",
	} {
		router.shows(exitNotFound, verb+" --user root", "nosuch")
	}
	for what, server := range map[string]string{
		"a router": "http://" + fed.Routers[0].Address("web"), "a ResourceManager": "http://" + fed.RMs[0].Address("web"),
	} {
		s := cliClient{t, server}
		for _, verb := range []string{
			"app status application_1_1", "app attempts application_1_1", "app containers application_1_1",
			"app kill application_1_1", "app move application_1_1 prod", "app priority application_1_1 3",
			"app logs application_1_1", "app status application_1_1 -o json",
			"app signal container_1_0001_01_000001 FORCEFUL_SHUTDOWN", "node show nosuch:1", "queue show nosuch",
		} {
			if out := s.run(exitNotFound, strings.Fields(verb)...); strings.Contains(out, "java.") ||
				strings.Contains(out, "Exception") {
				t.Errorf("%s of %s: %s", verb, what, out)
			}
		}
	}
}

// An invalid command line is reported before any request, with the exit code of a usage error.
func TestMistakesOfTheCommandLine(t *testing.T) {
	s := cliClient{t, "http://127.0.0.1:1"}
	for _, command := range []string{
		"subcluster drain east --mode finish --timeout -5s", "app wait application_1_0001 --timeout -1s",
		"app list --since -2h", "run --timeout -1m -- true", "app list --request-timeout -1s",
	} {
		s.shows(exitUsage, command, "is below 0")
	}
	s.shows(exitUsage, "app list --request-timeout 0s", "--request-timeout", "above 0")
	if out := s.run(exitUsage, "app", "list", "--since", "soon"); strings.Contains(out, "time:") {
		t.Errorf("what is no time: %s", out)
	}
	for _, command := range []string{
		"app list --limit -1", "policy get root.prod --version -7", "policy set root.prod {} --expect -1",
		"app submit --memory -5 -- true",
	} {
		s.shows(exitUsage, command, "is below 0")
	}
	for command, words := range map[string]string{
		"app kill": "at least one", "policy set": "one or two", "queue show a b": "at most one",
		"policy set root.prod prod.json": "--file", "app kill application_1_0001 x": `"x"`,
	} {
		s.shows(exitUsage, command, words)
	}
	trailing := filepath.Join(t.TempDir(), "tree.yaml")
	for _, text := range []string{"{} x", "queues: []\n---\nqueues: []\n"} {
		if err := os.WriteFile(trailing, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.shows(exitUsage, "queue apply -f "+trailing, "trailing text after the document")
	}
	root := rootCommand()
	root.SetArgs([]string{"ready", "x:1"})
	if err := root.ExecuteContext(t.Context()); exitCode(err) != exitUnreachable || !strings.Contains(err.Error(), "http://x:1") {
		t.Errorf("ready without a scheme: %v", err)
	}
	_, err := os.ReadFile(filepath.Join(t.TempDir(), "nosuch"))
	if code := exitCode(err); code != exitGeneral {
		t.Errorf("a file that is not there exits with %d, as if a server could not be reached", code)
	}
}
