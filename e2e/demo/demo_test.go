// SPDX-License-Identifier: Apache-2.0

// Package demo runs `creel demo` while parts of the federation, and its store,
// are killed.
package demo

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/process"
)

// summary has the fields of --summary that the tests need.
type summary struct {
	Applications struct{ Submitted, Finished, Failed, Lost, Doubled int }
	Containers   struct{ Granted int64 }
	Invariants   struct{ Checked, Broken int64 }
	Subclusters  []struct{ Applications int }
}

func build(t *testing.T) string {
	creel := filepath.Join(t.TempDir(), "creel")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", creel, "../../cmd/creel").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return creel
}

// start begins an hour of the recorded day with a subcluster and a router
// killed on the way.
func start(t *testing.T, creel string, flags ...string) (p *process.Process, file string) {
	dir := t.TempDir()
	file = filepath.Join(dir, "summary.json")
	args := append(
		[]string{creel, "demo", "--hours", "9-10", "--speed", "120", "--nodes", "100", "--faults", "--summary", file},
		flags...)
	return process.Start(t, process.Command{Name: "demo", Args: args, Dir: dir}), file
}

// verdict waits for the end and checks the summary for broken invariants.
func verdict(t *testing.T, p *process.Process, file string) {
	<-p.Done()
	if err := p.Exit(); err != nil {
		t.Fatalf("the demo ends with %v\n%s", err, p.Tail(40))
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s summary
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	a := s.Applications
	if a.Submitted < 500 || a.Finished+a.Failed != a.Submitted || a.Lost != 0 || a.Doubled != 0 ||
		s.Invariants.Broken != 0 ||
		s.Invariants.Checked == 0 ||
		s.Containers.Granted < 10_000 {
		t.Errorf("the summary is not one of a good day:\n%s", b)
	}
	for i, sub := range s.Subclusters {
		if sub.Applications == 0 {
			t.Errorf("subcluster %d had nothing to do:\n%s", i+1, b)
		}
	}
	t.Logf("%s", p.Tail(14))
	printed := strings.Split(p.Output(), "\n")
	for i := range printed {
		printed[i] = number.ReplaceAllString(printed[i], "N")
	}
	for _, line := range readmeLines(t) {
		i := slices.Index(printed, number.ReplaceAllString(line, "N"))
		if i < 0 {
			t.Fatalf("README.md shows a line that the demo does not print, or prints elsewhere:\n%s", line)
		}
		printed = printed[i+1:]
	}
}

var number = regexp.MustCompile(`\d+(\.\d+)?`)

// readmeLines returns the demo's output that README.md shows.
func readmeLines(t *testing.T) []string {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(readme), "$ go run ./cmd/creel demo\n")
	text, _, ends := strings.Cut(rest, "\n```")
	lines := strings.Split(text, "\n")
	if !begins || !ends || len(lines) < 5 || !strings.HasPrefix(lines[len(lines)-1], "verdict: good.") {
		t.Fatalf("README.md shows no output of the demo up to its verdict:\n%s", text)
	}
	return lines
}

func TestASubclusterAndARouterAreKilled(t *testing.T) {
	p, file := start(t, build(t))
	verdict(t, p, file)
}

func TestRedisIsKilledBesides(t *testing.T) {
	creel := build(t)
	dir := t.TempDir()
	address := process.FreeAddress(t, "127.0.0.1")
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	redis := func(name string) *process.Process {
		r := process.Start(t, process.Command{
			Name: "redis-" + name,
			Dir:  dir,
			Args: []string{
				"redis-server",
				"--bind",
				"127.0.0.1",
				"--port",
				port,
				"--dir",
				dir,
				"--appendonly",
				"yes",
				"--appendfsync",
				"always",
				"--save",
				"",
			},
		})
		r.WaitPort(t, address)
		return r
	}
	first := redis("1")
	p, file := start(t, creel, "--store", "redis://"+address)
	p.WaitLine(t, "is back") // the subcluster; submissions go on for a while
	first.Kill()
	<-first.Done()
	redis("2")
	verdict(t, p, file)
}
