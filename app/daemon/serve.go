// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// Options of Serve.
type Options struct {
	ReadyFile string        // written once everything serves; "" writes none
	Array     bool          // the ready file is an array even with one entry
	Drain     time.Duration // for requests in flight after the first signal
	// Exit ends the process at the second signal; nil: os.Exit.
	Exit func(code int)
}

// stopGrace is the time for releasing stores and sockets, in addition to Options.Drain.
const stopGrace = 5 * time.Second

// Serve runs a service until a signal, a failing task, or ctx ends it. It owns the service: it releases all resources
// before it returns.
//
//  1. All tasks are started in order, and Service.Awaits are awaited.
//  2. The ready file is written, the addresses are logged, systemd is notified.
//  3. First SIGINT or SIGTERM: the service reports not ready, and its tasks are stopped in reverse order within the
//     drain time.
//  4. Second signal: the process exits at once.
//
// SIGHUP reloads the reloadable parts; nothing stops.
func Serve(ctx context.Context, s *Service, o Options) error {
	if o.Exit == nil {
		o.Exit = os.Exit
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)

	running := s.Start()
	var err error
	awaits := s.Awaits
	for announced := false; err == nil; {
		if len(awaits) == 0 && !announced {
			announced = true
			if err = announce(s, o); err != nil {
				break
			}
			notify("READY=1")
		}
		var next <-chan struct{}
		if len(awaits) > 0 {
			next = awaits[0]
		}
		select {
		case <-next:
			awaits = awaits[1:]
		case err = <-running.Failed():
		case sig := <-signals:
			slog.Info("stopping", "signal", sig.String(), "drain", o.Drain.String())
			err = errStop
		case <-ctx.Done():
			err = errStop
		case <-reload:
			s.reload(ctx)
		}
	}
	if err == errStop {
		err = nil
	}

	notify("STOPPING=1")
	stopped := make(chan error, 1)
	go func() { stopped <- running.Stop() }() // it ends with this function, unless a task hangs
	select {
	case closing := <-stopped:
		err = errors.Join(err, closing)
		slog.Info("stopped")
	case sig := <-signals:
		slog.Warn("exiting now", "signal", sig.String())
		o.Exit(1)
	case <-time.After(o.Drain + stopGrace):
		err = errors.Join(err, fmt.Errorf("not drained within %v", o.Drain))
	}
	return err
}

// errStop ends the loop of Serve without a failure.
var errStop = errors.New("stop")

// announce signals that the service is ready.
func announce(s *Service, o Options) error {
	for _, e := range s.Entries {
		slog.Info("serves", "role", e.Role, "addresses", e.Addresses)
	}
	if o.ReadyFile == "" {
		return nil
	}
	var content any = s.Entries
	if !o.Array && len(s.Entries) == 1 {
		content = s.Entries[0]
	}
	return writeReady(o.ReadyFile, content)
}

func (s *Service) reload(ctx context.Context) {
	if s.Reload == nil {
		slog.Info("nothing to reload")
		return
	}
	if err := s.Reload(ctx); err != nil {
		slog.Error("failed to reload; the previous configuration stays in force", "error", err)
		return
	}
	slog.Info("reloaded")
}

// writeReady creates the file in one step, because scripts wait for its name.
func writeReady(path string, content any) error {
	b, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".ready-*")
	if err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(append(b, '\n'))
	if err = errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	return os.Rename(tmp.Name(), path)
}
