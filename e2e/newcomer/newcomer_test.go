// SPDX-License-Identifier: Apache-2.0

// Package newcomer does the first steps of a new user: the demo, a federation of one's own, a first command, why an
// application waits, policies, a drain, a lost member. It checks the meaning of the output.
package newcomer

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/federation"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
)

func TestMain(m *testing.M) { rm.Main(m) }

// newcomer types commands.
type newcomer struct {
	*testing.T
	dir, server string
	typed       int
}

// types runs a command to its end, which must have the exit code.
func (n *newcomer) types(want int, args ...string) string {
	n.Helper()
	out, all, code := n.tries(args...)
	if code != want {
		n.Fatalf("creel %s exits with %d, not %d:\n%s", strings.Join(args, " "), code, want, all)
	}
	if want != 0 {
		return all
	}
	return out
}

// tries runs a command to its end. all is its whole output.
func (n *newcomer) tries(args ...string) (out, all string, code int) {
	n.Helper()
	n.typed++
	ctx, cancel := context.WithTimeout(n.Context(), 2*process.Guard)
	defer cancel()
	return process.Run(ctx, n, process.Command{
		Name: fmt.Sprintf("typed-%d", n.typed), Dir: n.dir,
		Args: append([]string{rm.Binary(n)}, args...),
		Env:  []string{"CREEL_SERVER=" + n.server, "CREEL_CONTEXTS=" + n.dir + "/contexts.yaml"},
	})
}

// reads runs a command with -o json, and reads its document.
func (n *newcomer) reads(into any, args ...string) {
	n.Helper()
	out := n.types(0, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		n.Fatalf("creel %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (n *newcomer) says(out string, parts ...string) {
	n.Helper()
	for _, part := range parts {
		if !strings.Contains(out, part) {
			n.Errorf("it does not say %q:\n%s", part, out)
		}
	}
}

func (n *newcomer) await(what string, ok func() bool) {
	n.Helper()
	for end := time.Now().Add(process.Guard); !ok(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			n.Fatalf("not in time: %s", what)
		}
	}
}

// file writes a file that a newcomer would edit.
func (n *newcomer) file(name, text string) string {
	at := filepath.Join(n.dir, name)
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		n.Fatal(err)
	}
	return at
}

type why struct {
	State, Home string
	Waits       []struct {
		Member string
		Wait   *struct {
			Code, Text         string
			Needs, Used, Limit map[string]int64
			Nodes              struct {
				Open, Full int
				TooSmall   int `json:"too_small"`
			}
			Unlocks string `json:"unlocks_when"`
		}
	}
}

func TestTheFirstHour(t *testing.T) {
	n := &newcomer{T: t, dir: t.TempDir()}
	n.demo()
	_, store := federation.StartRedis(t)
	n.up(store)
	n.firstCommands()
	n.explained()
	n.policies()
	n.drain()
	n.lost(store)
}

// demo: an hour of the recorded day; the figures of its summary agree.
func (n *newcomer) demo() {
	summary := filepath.Join(n.dir, "summary.json")
	out := n.types(0, "demo", "--hours", "3-4", "--speed", "600", "--nodes", "50", "--summary", summary)
	n.says(out, "verdict: good.", "0 lost, 0 doubled")
	var s struct {
		Applications struct{ Submitted, Finished, Failed, Lost, Doubled int }
		Containers   struct{ Granted int }
		Subclusters  []struct{ Applications int }
	}
	b, err := os.ReadFile(summary)
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	sum := 0
	for _, sub := range s.Subclusters {
		sum += sub.Applications
	}
	a := s.Applications
	if err != nil || a.Submitted < 10 || a.Finished != a.Submitted || sum != a.Submitted || s.Containers.Granted < a.Submitted {
		n.Fatalf("the summary: %+v, %v", s, err)
	}
}

// up: a federation of one's own stays up.
func (n *newcomer) up(store string) *process.Process {
	ready := filepath.Join(n.dir, "ready.json")
	p := process.Start(n, process.Command{Name: "up", Dir: n.dir, Args: []string{
		rm.Binary(n), "up", "--any-port", "--store", store, "--data", filepath.Join(n.dir, "up"), "--ready-file", ready,
	}})
	var entries []struct {
		Role      string
		Addresses map[string]string
	}
	p.Await(n, "the ready file", func() bool {
		b, err := os.ReadFile(ready)
		return err == nil && json.Unmarshal(b, &entries) == nil
	})
	at := slices.IndexFunc(entries, func(e struct {
		Role      string
		Addresses map[string]string
	}) bool {
		return e.Role == "router"
	})
	n.server = "http://" + entries[at].Addresses["web"]
	n.says(p.Output(), "Dashboard", "HADOOP_CONF_DIR=")
	return p
}

// firstCommands runs a command that succeeds, one that fails, and one that is not submitted.
func (n *newcomer) firstCommands() {
	n.says(n.types(0, "run", "--containers", "10", "--memory", "1g", "--", "sleep", "1"),
		"SUCCEEDED after", "10 of 10 containers ended with exit code 0")
	n.says(n.types(8, "run", "--", "false"), "FAILED after", "1 of 1 containers failed", "exit code 1")
	n.says(n.types(2, "run", "--memory", "64g", "--", "date"), "no member can run a container of 65536 MiB", "largest node")
	n.says(n.types(3, "app", "status", "application_1_0001", "-o", "json"), `"exit_code":3`)
	n.says(n.types(2, "app", "lst"), "did you mean list")
	var apps []struct{ Outcome, State string }
	n.reads(&apps, "app", "list", "--type", "CREEL", "--since", "10m")
	if len(apps) != 2 || apps[1].Outcome != "SUCCEEDED" {
		n.Errorf("the list, newest first: %+v", apps)
	}
}

// explained submits a job that does not fit: every surface explains it in the same numbers.
func (n *newcomer) explained() {
	id := strings.TrimSpace(n.types(0, "run", "--detach", "--containers", "80", "--memory", "7500m", "--", "sleep", "600"))
	var w why
	n.await("it waits in every member", func() bool {
		w = why{}
		n.reads(&w, "app", "why", id)
		held := 0
		for _, m := range w.Waits {
			if m.Wait != nil && m.Wait.Code == "no_node_has_room" {
				held++
			}
		}
		return w.State == "RUNNING" && held == 3
	})
	for _, m := range w.Waits {
		if m.Wait.Nodes.Open != 20 || m.Wait.Nodes.Full != 20 || m.Wait.Needs["memory-mb"] < 7500 ||
			m.Wait.Used["memory-mb"] >= m.Wait.Needs["memory-mb"] || m.Wait.Unlocks == "" {
			n.Errorf("%s: %+v", m.Member, m.Wait)
		}
	}
	why := n.types(0, "app", "why", id)
	n.says(why, "cause     waits at ", " (no_node_has_room): ")
	for _, m := range w.Waits { // by name in the table, where equal members share a row
		n.says(why[strings.Index(why, "MEMBER"):], m.Member, "no_node_has_room")
	}
	var list []struct{ ContainerID string }
	n.reads(&list, "app", "containers", id)
	logs := ""
	n.await("a container has started, and has logs", func() (ok bool) {
		var code int
		logs, _, code = n.tries("app", "logs", id, "--container", list[0].ContainerID)
		return code == 0
	})
	n.says(logs, "creel simulates this node: the container runs no program and writes nothing")
	n.types(0, "app", "kill", id)
	n.types(0, "app", "wait", "--for", "state=KILLED", id)
}

// policies: a new one is seen before it holds, holds, and goes again.
func (n *newcomer) policies() {
	file := n.file("west.json", `{"home":{"policy":"weighted","weights":{"sc-2":1}},"split":{"policy":"home"}}`)
	bad := n.file("bad.json", `{"home":{"policy":"weighted","weights":{"nowhere":1}},"split":{"policy":"home"}}`)
	var p struct {
		Submissions, Homeless int
		Members               []struct {
			Member           string
			Were, Now, After int
		}
	}
	n.reads(&p, "policy", "preview", "root.default", "--file", file)
	were := 0
	for _, m := range p.Members {
		were += m.Were
		if want := map[bool]int{true: p.Submissions}[m.Member == "sc-2"]; m.After != want {
			n.Errorf("%s would have %d of %d", m.Member, m.After, p.Submissions)
		}
	}
	if p.Submissions < 3 || were != p.Submissions || p.Homeless != 0 {
		n.Errorf("the preview: %+v", p)
	}
	job := n.file("job.json", `{"queue":"root.default","user":"ann","memory_mb":1024,"vcores":1}`)
	var try struct{ Home string }
	n.reads(&try, "policy", "try", "--submission", job, "--policy", file)
	if try.Home != "sc-2" {
		n.Errorf("a try has its home at %q", try.Home)
	}
	n.says(n.types(0, "policy", "set", "root.default", "--file", file, "--dry-run"), "would be followed by")
	n.says(n.types(2, "policy", "set", "root.default", "--file", bad), "nowhere")
	n.says(n.types(0, "policy", "set", "root.default", "--file", file, "--comment", "west first"), "queue root.default is at version")
	n.await("the policy holds", func() bool { return n.homes()["sc-2"] == 3 })
	n.says(n.types(0, "policy", "diff", "root.default", "--file", file), "are the same")
	n.says(n.types(0, "policy", "history", "root.default"), "west first")
	all := n.file("all.json", `{"root.default":{"home":{"policy":"weighted","weights":{"sc-3":1}},"split":{"policy":"home"}}}`)
	n.says(n.types(0, "policy", "apply", all, "--dry-run"), `-       "sc-2": 1`, `+       "sc-3": 1`, "1 of 1 queues would change")
	n.types(0, "policy", "rollback", "root.default", "--to", "-1")
	n.types(3, "policy", "rollback", "root.default", "--to", "-9")
	var history []struct {
		Version int
		Removed bool
		Comment string
	}
	n.reads(&history, "policy", "history", "root.default")
	if len(history) != 2 || !history[0].Removed || history[1].Comment != "west first" || history[0].Version <= history[1].Version {
		n.Errorf("the history, newest first: %+v", history)
	}
	n.await("the policy holds no more", func() bool { return n.homes()["sc-2"] < 3 })
}

// homes submits three commands and counts where they went.
func (n *newcomer) homes() map[string]int {
	n.Helper()
	went := map[string]int{}
	for range 3 {
		id := strings.TrimSpace(n.types(0, "run", "--detach", "--", "true"))
		var w why
		n.reads(&w, "app", "why", id)
		went[w.Home]++
	}
	return went
}

// drain: a member that drains gets nothing new.
func (n *newcomer) drain() {
	n.types(0, "subcluster", "drain", "sc-1", "--reason", "new disks")
	n.says(n.types(0, "subcluster", "show", "sc-1"), "draining", "new disks")
	n.await("the routers know", func() bool { return n.homes()["sc-1"] == 0 })
	n.says(n.types(0, "subcluster", "drain", "sc-1", "--mode", "finish", "--timeout", "2m"), "nothing is left")
	n.types(0, "subcluster", "undrain", "sc-1")
}

// lost kills a member: it is reported as missing, the others work.
func (n *newcomer) lost(store string) {
	conf := filepath.Join(n.dir, "up", "conf")
	ready := filepath.Join(n.dir, "rm.json")
	p := process.Start(n, process.Command{Name: "rm-gone", Dir: n.dir, Args: []string{
		rm.Binary(n), "rm", "--conf", conf, "--data", filepath.Join(n.dir, "gone"), "--subcluster", "gone", "--store", store,
		"--ready-file", ready, "-D", "creel.membership.lease=5s", "-D", "creel.membership.heartbeat-interval=500ms",
		"-D", "yarn.resourcemanager.epoch=9000", "-D", "yarn.resourcemanager.address=127.0.0.1:0",
		"-D", "yarn.resourcemanager.scheduler.address=127.0.0.1:0", "-D", "yarn.resourcemanager.resource-tracker.address=127.0.0.1:0",
		"-D", "yarn.resourcemanager.admin.address=127.0.0.1:0", "-D", "yarn.resourcemanager.webapp.address=127.0.0.1:0",
	}})
	state := func() string {
		var list []struct{ ID, State string }
		n.reads(&list, "subcluster", "list")
		for _, s := range list {
			if s.ID == "gone" {
				return s.State
			}
		}
		return ""
	}
	p.Await(n, "the fourth member is active", func() bool { return state() == "active" })
	p.Kill()
	n.await("it is lost", func() bool { return state() == "lost" })
	n.says(n.types(7, "app", "list", "--limit", "1"), "partial: missing gone")
	n.says(n.types(0, "run", "--", "sleep", "0.1"), "SUCCEEDED after")
}
