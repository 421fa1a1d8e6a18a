// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func sh(script string) []string { return []string{"bash", "-c", script} }

func alive(pid int) bool {
	// A zombie still answers kill -0; its state is Z.
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

func TestRunReturnsOutputAndExitCode(t *testing.T) {
	stdout, all, code := Run(context.Background(), t, Command{
		Name:  "both",
		Dir:   t.TempDir(),
		Args:  sh("echo out; echo err >&2; cat; exit 3"),
		Stdin: strings.NewReader("in\n"),
	})
	if stdout != "out\nin\n" || !strings.Contains(all, "err\n") || code != 3 {
		t.Fatalf("stdout %q, all %q, code %d", stdout, all, code)
	}
}

func TestLinesOfEndedChildHaveItsName(t *testing.T) {
	p := Start(t, Command{
		Name: "rm",
		Dir:  t.TempDir(),
		Args: sh("echo application_7_0001 taken; echo application_7_0002 taken; echo -n appattempt_7_0001_000001 over"),
	})
	if err := p.Exit(); err != nil {
		t.Fatal(err)
	}
	if got, want := p.Lines("_7_0001"), "rm application_7_0001 taken\nrm appattempt_7_0001_000001 over\n"; got != want {
		t.Fatalf("lines\n%swant\n%s", got, want)
	}
}

func TestEndDoesNotWaitForEndlessInput(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	p := Start(t, Command{Name: "reader", Dir: t.TempDir(), Args: sh("read -r line; echo got $line"), Stdin: r})
	if _, err := io.WriteString(w, "this\n"); err != nil {
		t.Fatal(err)
	}
	if err := p.Exit(); err != nil || p.Output() != "got this\n" {
		t.Fatalf("%v, %q", err, p.Output())
	}
}

func TestStopTakesGrandchildrenAlong(t *testing.T) {
	// One grandchild in the group, and one that left it for a session of its
	// own but carries the directory in its environment, as a container does.
	dir := t.TempDir()
	p := Start(t, Command{Name: "parent", Dir: dir, Sweep: dir + "/work", Args: sh(
		`sleep 1000 & echo "same $!"; WORK=$PWD/work setsid sleep 1000 & echo "own $!"; echo ready; wait`)})
	p.WaitLine(t, "ready")
	var pids []int
	for _, line := range strings.Split(p.Output(), "\n") {
		if f := strings.Fields(line); len(f) == 2 {
			pid, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			if !alive(pid) {
				t.Fatalf("%s is not running", line)
			}
			pids = append(pids, pid)
		}
	}
	if len(pids) != 2 {
		t.Fatalf("output %q", p.Output())
	}
	p.Stop()
	for _, pid := range pids {
		if err := Poll(nil, func() bool { return !alive(pid) }); err != nil {
			t.Errorf("process %d: %v", pid, err)
		}
	}
}

func TestKillAloneLeavesGrandchildren(t *testing.T) {
	dir := t.TempDir()
	p := Start(
		t,
		Command{
			Name:  "parent",
			Dir:   dir,
			Sweep: dir + "/work",
			Args:  sh(`WORK=$PWD/work setsid sleep 1000 & echo "own $!"; echo ready; wait`),
		},
	)
	p.WaitLine(t, "ready")
	pid, err := strconv.Atoi(strings.Fields(p.Output())[1])
	if err != nil {
		t.Fatal(err)
	}
	p.KillAlone()
	if !alive(pid) {
		t.Fatal("the grandchild died with its parent")
	}
	p.Stop()
	if err := Poll(nil, func() bool { return !alive(pid) }); err != nil {
		t.Fatal(err)
	}
}

// The binary that starts a child is killed; the child must not live on.
func TestChildDiesWithTheTestBinary(t *testing.T) {
	if dir := os.Getenv("PROCESS_TEST_ORPHAN"); dir != "" {
		p := Start(t, Command{Name: "orphan", Dir: dir, Args: []string{"sleep", "1000"}})
		fmt.Printf("pid %d\n", p.PID())
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildDiesWithTheTestBinary$", "-test.v")
	cmd.Env = append(os.Environ(), "PROCESS_TEST_ORPHAN="+t.TempDir())
	out, err := cmd.Output()
	if err == nil {
		t.Fatal("the inner binary was not killed")
	}
	_, after, ok := strings.Cut(string(out), "pid ")
	if !ok {
		t.Fatalf("output %q", out)
	}
	pid, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := Poll(nil, func() bool { return !alive(pid) }); err != nil {
		t.Fatal(err)
	}
}

func TestChildInheritsNoDescriptor(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := Start(t, Command{Name: "fds", Dir: t.TempDir(), Args: []string{"sleep", "1000"}})
	// The program itself opens files for a moment as it starts; inherited ones stay open.
	p.Await(t, "only the standard descriptors", func() bool {
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))
		return err == nil && len(open) == 3
	})
}

func TestWaitLineSeesTextSplitOverWrites(t *testing.T) {
	p := Start(
		t,
		Command{Name: "slow", Dir: t.TempDir(), Args: sh("printf rea; read -t 0.05; printf 'dy now'; sleep 1000")},
	)
	p.WaitLine(t, "ready now")
}

func TestFreePortsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		port := FreePort(t, "127.0.0.1")
		if seen[port] {
			t.Fatalf("port %d twice", port)
		}
		seen[port] = true
	}
}

// A port reserved by one process is reserved for no other, even without a listener. A lock belongs to the opened
// file, so this process's lock conflicts with itself, too.
func TestPortIsReservedOnce(t *testing.T) {
	port := FreePort(t, "127.0.0.1")
	if !free("127.0.0.1", port) || reserved(t, port) {
		t.Errorf("port %d is given twice", port)
	}
}
