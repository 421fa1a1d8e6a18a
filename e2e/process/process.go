// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/programs"
)

// Guard is the time that a child may take to become ready or to end before the test fails. It is far above the needs of
// a slow machine and decides nothing else.
const Guard = 6 * time.Minute

// stopGrace is the time between SIGTERM and SIGKILL.
const stopGrace = time.Minute

// Command describes the program to start.
type Command struct {
	Name string   // for logs: "rm", "nm1"
	Args []string // program and arguments
	Env  []string // added to the test's environment
	Dir  string   // a directory for this child alone; its output is written to Dir/Name.log
	// Stdin, if not nil, is the child's standard input. Otherwise the input is empty.
	Stdin io.Reader
	// Sweep, if not empty, is a text in the command line or environment of leftover processes. An example is the local
	// directory of a NodeManager, whose containers have sessions of their own. They are killed with the child.
	Sweep string
}

// Process is a running or ended child.
type Process struct {
	Name string
	dir  string
	left string // Command.Sweep
	cmd  *exec.Cmd
	out  output
	done chan struct{} // closed after the child was waited for
	err  error         // its exit error; read after done
}

// Start starts the child. The child ends with the test.
func Start(t testing.TB, c Command) *Process {
	t.Helper()
	p := Spawn(t, c)
	t.Cleanup(func() { p.End(t) })
	return p
}

// Spawn starts the child. The caller calls End when the test ends.
func Spawn(t testing.TB, c Command) *Process {
	t.Helper()
	p, err := start(c, nil)
	if err != nil {
		t.Fatalf("start %s: %v", c.Name, err)
	}
	return p
}

// End stops the child and, if the test has failed, logs its last lines.
func (p *Process) End(t testing.TB) {
	t.Helper()
	p.Stop()
	if t.Failed() {
		t.Logf("--- last lines of %s (%s) ---\n%s", p.Name, strings.Join(p.cmd.Args, " "), p.Tail(40))
	}
}

// Run runs a program to its end and returns its standard output, all its output, and its exit code. If the program
// outlives the context, its whole group is killed and the test fails.
func Run(ctx context.Context, t testing.TB, c Command) (stdout, all string, code int) {
	t.Helper()
	var std lockedBuffer
	p, err := start(c, &std)
	if err != nil {
		t.Fatalf("start %s: %v", c.Name, err)
	}
	defer p.Kill()
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Kill()
		t.Fatalf("%s did not end: %v\n%s", c.Name, ctx.Err(), p.Tail(60))
	}
	return std.String(), p.Output(), p.cmd.ProcessState.ExitCode()
}

func start(c Command, stdout io.Writer) (*Process, error) {
	program := c.Args[0]
	if !strings.ContainsRune(program, filepath.Separator) {
		path, err := programs.Path(program)
		if err != nil {
			return nil, err
		}
		program = path
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(c.Dir, c.Name+".log"))
	if err != nil {
		return nil, err
	}
	p := &Process{Name: c.Name, dir: c.Dir, left: c.Sweep, done: make(chan struct{})}
	p.out.log = log
	p.cmd = exec.Command(program, c.Args[1:]...)
	p.cmd.Dir = c.Dir
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.Stderr = &p.out
	p.cmd.Stdout = &p.out
	if stdout != nil {
		p.cmd.Stdout = io.MultiWriter(stdout, &p.out)
	}
	// A grandchild with the open pipe must not delay the end.
	p.cmd.WaitDelay = 2 * time.Second
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var in io.WriteCloser
	if c.Stdin != nil {
		// Not cmd.Stdin: its Wait would wait for a reader without an end.
		if in, err = p.cmd.StdinPipe(); err != nil {
			log.Close()
			return nil, err
		}
	}
	if err := spawn(p.cmd); err != nil {
		log.Close()
		return nil, err
	}
	if in != nil {
		go func() {
			_, _ = io.Copy(in, c.Stdin) // not an error if the child stops reading
			in.Close()
		}()
	}
	go func() {
		p.err = p.cmd.Wait()
		p.out.close()
		close(p.done)
	}()
	return p, nil
}

// spawner is the only thread that starts children. The kernel sends the parent death signal when the *thread* that
// forked ends. So a fork from any goroutine could kill a child early; this thread lives as long as the binary.
var spawner = sync.OnceValue(func() chan func() {
	closeInheritedOnExec()
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

// closeInheritedOnExec marks the descriptors that this binary inherited as close-on-exec. Go does that for its own.
// Without it a daemon would keep open a lock or pipe of the shell that started the tests.
func closeInheritedOnExec() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

func spawn(cmd *exec.Cmd) error {
	err := make(chan error)
	spawner() <- func() { err <- cmd.Start() }
	return <-err
}

// PID returns the child's process id, which is also its process group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Dir returns the child's directory.
func (p *Process) Dir() string { return p.dir }

// Done returns a channel that is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the child has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Exit waits for the child's end and returns its error, nil for exit code 0.
func (p *Process) Exit() error {
	<-p.done
	return p.err
}

// Signal sends a signal to the child alone.
func (p *Process) Signal(s syscall.Signal) { _ = syscall.Kill(p.PID(), s) }

// Stop requests the child's end, and kills the child if it does not end in time. It returns when the child and its
// leftovers are gone. A second call has no effect.
func (p *Process) Stop() {
	if !p.Ended() {
		p.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(stopGrace):
		}
	}
	p.Kill()
}

// Kill ends the child and all its processes at once, and waits for the child's end.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	<-p.done
	if p.left != "" {
		sweep(p.left)
	}
}

// KillAlone ends the child with SIGKILL, but not the processes it started. It simulates a crash: the containers of a
// NodeManager live on.
func (p *Process) KillAlone() {
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// sweep kills the processes with the text in their command line or environment.
func sweep(text string) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	self := os.Getpid()
	needle := []byte(text)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == self {
			continue
		}
		for _, f := range []string{"cmdline", "environ"} {
			b, err := os.ReadFile(filepath.Join("/proc", e.Name(), f))
			if err == nil && bytes.Contains(b, needle) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				break
			}
		}
	}
}

// WaitLine returns when the child has printed a line that contains text.
func (p *Process) WaitLine(t testing.TB, text string) {
	t.Helper()
	select {
	case <-p.out.waitFor(text):
	case <-p.done:
		if !strings.Contains(p.Output(), text) {
			t.Fatalf("%s ended (%v) before it said %q\n%s", p.Name, p.err, text, p.Tail(60))
		}
	case <-time.After(Guard):
		t.Fatalf("%s did not say %q within %v\n%s", p.Name, text, Guard, p.Tail(60))
	}
}

// WaitPort returns when the address accepts a connection.
func (p *Process) WaitPort(t testing.TB, address string) {
	t.Helper()
	p.Await(t, "port "+address, func() bool {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return false
		}
		c.Close()
		return true
	})
}

// Await returns when cond holds. It checks every few milliseconds, and fails if the child ends first.
func (p *Process) Await(t testing.TB, what string, cond func() bool) {
	t.Helper()
	if err := Poll(p.done, cond); err != nil {
		t.Fatalf("%s: waiting for %s: %v\n%s", p.Name, what, err, p.Tail(60))
	}
}

var errEnded = errors.New("the process ended")

// Poll checks cond until it holds, stop is closed, or Guard is over.
func Poll(stop <-chan struct{}, cond func() bool) error {
	guard := time.After(Guard)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-stop:
			return errEnded
		case <-guard:
			return fmt.Errorf("not within %v", Guard)
		case <-tick.C:
		}
	}
	return nil
}

// Output returns the child's output so far.
func (p *Process) Output() string {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.out.buf.String()
}

// Lines returns the lines of Output that contain text, each after the child's name.
func (p *Process) Lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(p.Output()) {
		if strings.Contains(line, text) {
			b.WriteString(p.Name + " " + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return b.String()
}

// Tail returns the last n lines of Output.
func (p *Process) Tail(n int) string {
	lines := strings.Split(strings.TrimRight(p.Output(), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// CPU returns the child's user and system time, read from /proc.
func (p *Process) CPU(t testing.TB) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	// The second field is a name in brackets, and may contain spaces.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	user, err1 := strconv.ParseInt(f[11], 10, 64)
	system, err2 := strconv.ParseInt(f[12], 10, 64)
	if err1 != nil || err2 != nil {
		t.Fatalf("%s: cannot read %q", p.Name, b)
	}
	const tick = time.Second / 100 // USER_HZ, 100 on every Linux that Go runs on
	return time.Duration(user+system) * tick
}

// RSS returns the child's resident memory in bytes.
func (p *Process) RSS(t testing.TB) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.PID()))
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		t.Fatalf("%s: cannot read %q", p.Name, b)
	}
	return pages * int64(os.Getpagesize())
}

// output collects a child's output in memory and in a file. It wakes waiters when their text appears.
type output struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	log     *os.File
	waiters []waiter
}

type waiter struct {
	text []byte
	from int // a hit starts at this offset or later
	seen chan struct{}
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Write(b)
	if o.log != nil {
		_, _ = o.log.Write(b)
	}
	o.wake()
	return len(b), nil
}

func (o *output) wake() {
	all := o.buf.Bytes()
	kept := o.waiters[:0]
	for _, w := range o.waiters {
		if bytes.Contains(all[w.from:], w.text) {
			close(w.seen)
			continue
		}
		w.from = max(0, len(all)-len(w.text)+1)
		kept = append(kept, w)
	}
	o.waiters = kept
}

func (o *output) waitFor(text string) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := waiter{text: []byte(text), seen: make(chan struct{})}
	o.waiters = append(o.waiters, w)
	o.wake()
	return w.seen
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log.Close()
	o.log = nil
}

// lockedBuffer is a buffer for concurrent use by a test and the goroutine that copies a child's output.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
