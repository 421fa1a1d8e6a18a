// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/rm"
)

// creel run on Hadoop's NodeManagers. They fetch creel as a local resource and start it as the AM. The AM uses the
// proxy on its node. The command runs in two subclusters, with its words unchanged.
func TestRun(t *testing.T) {
	const even = `{"home":{"policy":"weighted","weights":{"sc-1":1,"sc-2":1}},` +
		`"split":{"policy":"locality","weights":{"sc-1":1,"sc-2":1},"headroomAlpha":0}}`
	f := Start(t, Options{Routers: 1, Policy: even})
	run := func(args ...string) (string, int) {
		t.Helper()
		cmd := f.run(t, args...)
		out, err := cmd.CombinedOutput()
		var code *exec.ExitError
		if err != nil && !errors.As(err, &code) {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}

	dir := t.TempDir()
	const script = `printf '%s|' "$0" "$SAYS" "$NM_HOST" > "` // its words hold quotes, dollars and spaces
	out, code := run("--containers", "4", "--env", `SAYS=a "b" $c`, "--",
		"sh", "-c", script+dir+`/$CONTAINER_ID"`, "it's $0")
	if code != 0 || !strings.Contains(out, "4 of 4 containers ended with exit code 0") || strings.Contains(out, "simulated") {
		t.Fatalf("exit %d:\n%s", code, out)
	}
	files, err := filepath.Glob(dir + "/container_*")
	if err != nil || len(files) != 4 {
		t.Fatalf("%d containers ran, %v:\n%s", len(files), err, out)
	}
	hosts := map[string]int{}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Split(string(b), "|")
		if len(words) != 4 || words[0] != "it's $0" || words[1] != `a "b" $c` {
			t.Errorf("the command read %q", words)
			continue
		}
		hosts[words[2]]++
	}
	if len(hosts) != 2 {
		t.Errorf("the containers ran on %v, not in both subclusters", hosts)
	}

	out, code = run("--containers", "2", "--", "sh", "-c", "echo there is no such thing >&2; exit 3")
	for _, part := range []string{"FAILED after", "2 of 2 containers failed", "exit code 3", "there is no such thing"} {
		if code != 8 || !strings.Contains(out, part) {
			t.Errorf("a command that fails: exit %d, without %q:\n%s", code, part, out)
		}
	}

	// A container that fits nowhere for now is explained; Ctrl-C kills.
	cmd := f.run(t, "--containers", "40", "--memory", "1g", "--", "sleep", "300")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
	defer stop.Stop()
	var said strings.Builder
	sent := false
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if !sent && strings.Contains(lines.Text(), "no_node_has_room") { // and not while its AM starts
			sent = true
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd.Wait() // its code is looked at
	for _, part := range []string{"no_node_has_room", "it was interrupted", "KILLED after"} {
		if cmd.ProcessState.ExitCode() != 8 || !strings.Contains(said.String(), part) {
			t.Errorf("interrupted: exit %d, without %q:\n%s", cmd.ProcessState.ExitCode(), part, &said)
		}
	}
}

// run starts `creel run` on the first router. Its AM calls the proxy on its node.
func (f *Federation) run(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	all := append([]string{
		"run", "--server", "http://" + f.RouterAddresses[0].Web, "--scheduler", "$NM_HOST:" + strconv.Itoa(f.proxyPort),
		"--memory", "128",
	}, args...)
	return exec.Command(rm.Binary(t), all...)
}
