// SPDX-License-Identifier: Apache-2.0

package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/health"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	goleak.VerifyTestMain(m)
}

// diary records events in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) write(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// service has two tasks and one held resource. All three record their start and end.
func service(d *diary) *daemon.Service {
	s := &daemon.Service{
		Entries: []daemon.Entry{daemon.NewEntry("rm", map[string]string{"web": "127.0.0.1:1"})},
		Health:  health.New(),
	}
	s.OnClose(func() error { d.write("released"); return nil })
	for _, name := range []string{"first", "second"} {
		s.Add(name, func(ctx context.Context) error {
			<-ctx.Done()
			d.write(name + " ended")
			return nil
		})
	}
	return s
}

func TestTasksEndInReverseOrderBeforeResources(t *testing.T) {
	var d diary
	r := service(&d).Start()
	if err := errors.Join(r.Stop(), r.Stop()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"second ended", "first ended", "released"}; !slices.Equal(d.lines, want) {
		t.Errorf("%q, want %q", d.lines, want)
	}
}

func TestFinishedTaskEndsService(t *testing.T) {
	var d diary
	for _, fails := range []error{nil, errors.New("the disk is full")} {
		s := service(&d)
		s.Add("third", func(context.Context) error { return fails })
		err := daemon.Serve(t.Context(), s, daemon.Options{})
		if err == nil || !strings.Contains(err.Error(), "third") || fails != nil && !errors.Is(err, fails) {
			t.Errorf("a task that returns %v: %v", fails, err)
		}
	}
	if released := strings.Count(strings.Join(d.lines, " "), "released"); released != 2 {
		t.Errorf("what two services hold was released %d times", released)
	}
}

// Signals are sent to this process as an operator sends them.
func TestSignals(t *testing.T) {
	var d diary
	s := service(&d)
	reloaded := make(chan struct{})
	s.Reload = func(context.Context) error { close(reloaded); return nil }
	hangs := make(chan struct{})
	s.Add("hangs", func(ctx context.Context) error {
		<-ctx.Done()
		d.write("draining")
		syscall.Kill(os.Getpid(), syscall.SIGTERM) // the operator's second signal
		<-hangs
		return nil
	})
	ready := filepath.Join(t.TempDir(), "ready.json")
	s.Add("operator", func(ctx context.Context) error {
		for { // the ready file is there once everything was started
			b, err := os.ReadFile(ready)
			if err != nil {
				time.Sleep(time.Millisecond)
				continue
			}
			var e daemon.Entry
			if err := json.Unmarshal(b, &e); err != nil || e.Role != "rm" || e.PID != os.Getpid() {
				t.Errorf("the ready file holds %s: %v", b, err)
			}
			break
		}
		syscall.Kill(os.Getpid(), syscall.SIGHUP)
		<-reloaded
		syscall.Kill(os.Getpid(), syscall.SIGTERM)
		<-ctx.Done()
		return nil
	})
	exited := 0
	if err := daemon.Serve(t.Context(), s, daemon.Options{
		ReadyFile: ready,
		Exit:      func(code int) { exited = code; close(hangs) },
	}); err != nil {
		t.Fatal(err)
	}
	if exited != 1 {
		t.Errorf("the second signal exits with %d", exited)
	}
	if lines := d.read(); len(lines) == 0 || lines[0] != "draining" { // tasks that were started still end
		t.Errorf("after the first signal: %q", lines)
	}
}

func TestFailedStepReleasesEarlierResources(t *testing.T) {
	var h daemon.Resources
	l, err := h.Listen("web port", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_, err = h.Listen("yarn.router.webapp.address", address)
	if err == nil || !strings.Contains(err.Error(), "yarn.router.webapp.address: cannot listen on "+address) ||
		!strings.Contains(err.Error(), "another program listens there") {
		t.Fatalf("a port in use: %v", err)
	}
	if err := errors.Join(h.Close(), h.Close()); err != nil {
		t.Fatal(err)
	}
	again, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("the port is still taken: %v", err)
	}
	again.Close()
}
