// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/programs"
)

const root = "../.."

const mntDetach = 2 // MNT_DETACH of umount2(2)

// engine is a container engine of the test's own, with Compose.
type engine struct {
	t       *testing.T
	dir     string
	docker  string // its client
	compose string
	env     []string
	files   []string // of Compose
}

// startEngine starts an engine, which ends with the test and removes its networks.
func startEngine(t *testing.T) *engine {
	t.Helper()
	dir, err := os.MkdirTemp("", "compose")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Its own network namespace stays mounted when it ends; where it has none there is nothing to unmount.
		_ = syscall.Unmount(filepath.Join(dir, "exec/netns/default"), mntDetach)
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("the engine left something: %v", err)
		}
	})
	socket := "unix://" + filepath.Join(dir, "socket")
	e := &engine{
		t: t, dir: dir, docker: program(t, "docker"), compose: buildCompose(t),
		env: []string{"DOCKER_HOST=" + socket, "DOCKER_BUILDKIT=0", "DOCKER_CONFIG=" + filepath.Join(dir, "config")},
	}
	program(t, "iptables")
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	d := process.Start(t, process.Command{Name: "dockerd", Dir: work, Args: []string{
		program(t, "dockerd"), "--data-root", filepath.Join(dir, "data"), "--exec-root", filepath.Join(dir, "exec"),
		"-p", filepath.Join(dir, "pid"), "-H", socket, "--bridge", "none",
		// The machine's own rules stay as they are: containers speak with each other and through published ports alone.
		"--iptables=false", "--ip-forward=false", "--ip-masq=false",
	}})
	began := time.Now()
	for {
		out, err := e.command(e.docker, "version", "--format", "{{.Server.Version}}").CombinedOutput()
		if err == nil {
			t.Logf("engine %s after %v", strings.TrimSpace(string(out)), time.Since(began).Round(time.Second))
			return e
		}
		if d.Ended() || time.Since(began) > process.Guard {
			t.Fatalf("the container engine did not start (it needs root and cgroups): %v %s\n%s", err, out, d.Tail(20))
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// buildCompose builds Compose, once.
func buildCompose(t *testing.T) string {
	t.Helper()
	var from []byte
	for _, name := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join("engine", name))
		if err != nil {
			t.Fatal(err)
		}
		from = append(from, b...)
	}
	dir := hadoop.Cached(t, "compose", from, func(dir string) error {
		t.Log("building Compose, two minutes, once")
		cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s", "-o", filepath.Join(dir, "compose"),
			"github.com/docker/compose/v2/cmd")
		cmd.Dir, cmd.Stderr = "engine", os.Stderr
		return cmd.Run()
	})
	return filepath.Join(dir, "compose")
}

func program(t *testing.T, name string) string {
	t.Helper()
	path, err := programs.Path(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// command has no context: cleanup calls it too, after the test's context is done.
func (e *engine) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), e.env...)
	cmd.Dir = root
	return cmd
}

// try runs a client of the engine and returns its output.
func (e *engine) try(name string, args ...string) (string, error) {
	out, err := e.command(name, args...).CombinedOutput()
	return string(out), err
}

// run runs a command that must succeed. It returns standard output; the engine's warnings are on standard error.
func (e *engine) run(name string, args ...string) string {
	e.t.Helper()
	var out, warnings strings.Builder
	cmd := e.command(name, args...)
	cmd.Stdout, cmd.Stderr = &out, &warnings
	if err := cmd.Run(); err != nil {
		e.t.Fatalf("%s %s: %v\n%s%s", filepath.Base(name), strings.Join(args, " "), err, &out, &warnings)
	}
	return out.String()
}

// up runs Compose over the files of the engine.
func (e *engine) up(args ...string) string {
	e.t.Helper()
	return e.run(e.compose, e.composeArgs(args...)...)
}

func (e *engine) composeArgs(args ...string) []string {
	all := []string{"--project-directory", ".", "--progress", "plain"}
	for _, f := range e.files {
		all = append(all, "-f", f)
	}
	return append(all, args...)
}
