// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pseudoTerminal returns a terminal for a command's output, and a function that closes it and returns all that was
// written.
func pseudoTerminal(t *testing.T) (*os.File, func() string) {
	t.Helper()
	controller, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { controller.Close() })
	number, err := unix.IoctlGetInt(int(controller.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(controller.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		b, _ := io.ReadAll(controller) // ends with EIO when the last writer has closed
		read <- string(b)
	}()
	return tty, func() string {
		tty.Close()
		return <-read
	}
}

func TestRunRewritesOneLineOnATerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	fed := small(t)
	out, written := pseudoTerminal(t)
	root := rootCommand()
	root.SetOut(out)
	root.SetArgs([]string{
		"run", "--server", "http://" + fed.Routers[0].Address("web"), "--containers", "50", "--memory", "4g",
		"--timeout", "4s", "--", "sleep", "60",
	})
	if err := root.ExecuteContext(t.Context()); exitCode(err) != exitWaitFailed {
		t.Fatal(err)
	}
	text := written()
	rows := strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")), "\n")
	if len(rows) != 3 { // submitted, killed and the end stay
		t.Errorf("%d rows stay, want 3:\n%q", len(rows), text)
	}
	if n := strings.Count(rows[1], rewriteLine); n < 4 || !strings.Contains(rows[1], "of 50 containers ended, 3 s: ") ||
		!strings.Contains(rows[1], "no_node_has_room") {
		t.Errorf("the line was rewritten %d times:\n%q", n, rows[1])
	}
}

func TestProgressWithoutTerminalPrintsFewLines(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, time.Hour)
	p.show("early")
	p.printed = p.printed.Add(-2 * time.Hour)
	p.show("due")
	p.show("too soon")
	p.clear()
	p.line("end")
	if got := out.String(); got != "due\nend\n" {
		t.Errorf("%q", got)
	}
}

func TestSimulatorShowsItsProgress(t *testing.T) {
	f := drawn(1)
	f.hours, f.nodes, f.faults = "9-9.25", 20, false
	var out bytes.Buffer
	f.shown = &progress{out: &out, terminal: true}
	if r := f.run(1, nil); r.err != nil {
		t.Fatal(r.err)
	}
	if text := out.String(); !strings.Contains(text, "applications ended after ") || !strings.HasSuffix(text, rewriteLine) {
		t.Errorf("%q", text)
	}
}
