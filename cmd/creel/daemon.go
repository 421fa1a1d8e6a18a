// SPDX-License-Identifier: Apache-2.0

package main

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

	"github.com/creelrm/creel/internal/hugepages"
	"github.com/creelrm/creel/internal/settings"
	"github.com/spf13/cobra"
)

// readyEntry is one daemon in a ready file: written once it serves.
type readyEntry struct {
	Role      string            `json:"role"`
	PID       int               `json:"pid"`
	Addresses map[string]string `json:"addresses"`
}

// own marks an entry as this process's.
func own(e readyEntry) readyEntry {
	e.PID = os.Getpid()
	return e
}

// daemonFlags are what every daemon takes.
type daemonFlags struct {
	confFlags
	hugePages    bool // the heap in pages of 2 MiB
	readyFile    string
	drainTimeout time.Duration
	store        string
	data         string
	subcluster   string
}

func (f *daemonFlags) register(c *cobra.Command) {
	f.confFlags.register(c)
	c.Flags().
		BoolVar(&f.hugePages, "huge-pages", false, "ask the kernel for huge pages for the heap: an eighth more decisions a second in a large cluster")
	c.Flags().StringVar(&f.readyFile, "ready-file", "", "write `FILE` once serving")
	c.Flags().
		DurationVar(&f.drainTimeout, "drain-timeout", 10*time.Second, "time to finish what is in flight after the first signal")
}

// part is a piece of a daemon that runs until its context ends. Parts stop in
// the reverse of the order they were started in.
type part struct {
	name string
	run  func(ctx context.Context) error
}

// daemon is what a command assembled: its parts in order of start, and where
// it serves.
type daemon struct {
	entries []readyEntry
	parts   []part
	health  *health
	close   []func() error
}

func (d *daemon) add(name string, run func(ctx context.Context) error) {
	d.parts = append(d.parts, part{name, run})
}

// serve runs the daemon until a signal, a failing part, or ctx ends it.
//
//  1. All parts are started, in order.
//  2. The ready file is written.
//  3. First signal: readiness goes false, parts are stopped in reverse order
//     within the drain timeout.
//  4. Second signal: the process exits at once.
func (d *daemon) serve(ctx context.Context, f *daemonFlags, array bool) error {
	defer func() {
		for i := len(d.close) - 1; i >= 0; i-- {
			if err := d.close[i](); err != nil {
				slog.Warn("close", "error", err)
			}
		}
	}()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	failed := make(chan error, len(d.parts))
	stops := make([]func(), 0, len(d.parts))
	for _, p := range d.parts {
		partCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := p.run(partCtx); err != nil && !errors.Is(err, context.Canceled) {
				failed <- fmt.Errorf("%s: %w", p.name, err)
			} else if partCtx.Err() == nil {
				failed <- fmt.Errorf("%s ended by itself", p.name)
			}
		}()
		stops = append(stops, func() { cancel(); <-done })
	}
	if f.readyFile != "" {
		var content any = d.entries
		if !array && len(d.entries) == 1 {
			content = d.entries[0]
		}
		if err := writeReady(f.readyFile, content); err != nil {
			failed <- err
		}
	}
	if d.health != nil {
		d.health.ready.Store(true)
	}
	var err error
	select {
	case err = <-failed:
	case s := <-signals:
		slog.Info("stopping", "signal", s.String(), "drain", f.drainTimeout.String())
	case <-ctx.Done():
	}
	if d.health != nil {
		d.health.ready.Store(false)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
	}()
	select {
	case <-drained:
	case s := <-signals:
		slog.Warn("exiting now", "signal", s.String())
		os.Exit(exitGeneral)
	case <-time.After(f.drainTimeout + 5*time.Second):
		err = errors.Join(err, fmt.Errorf("not drained within %v", f.drainTimeout))
	}
	return err
}

// writeReady puts the file there whole: scripts wait for its name.
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

// daemonCommand makes the command of one daemon: build assembles it from its
// settings, serve runs it.
func daemonCommand(
	use, short string,
	f *daemonFlags,
	build func(ctx context.Context, s *settings.Settings, f *daemonFlags) (*daemon, error),
) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, GroupID: "daemon", Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			setUpLogs()
			s, err := f.load()
			if err != nil {
				return err
			}
			for _, w := range s.Warnings() {
				slog.Warn("settings", "warning", w)
			}
			flush, err := setUpTraces(c.Context(), s, use)
			if err != nil {
				return err
			}
			defer flush()
			d, err := build(c.Context(), s, f)
			if err != nil {
				return err
			}
			if err := d.debugDoor(s); err != nil {
				return err
			}
			defer ballast()()
			if f.hugePages {
				stop, err := hugepages.Keep()
				if err != nil {
					return err
				}
				defer stop()
			}
			return d.serve(c.Context(), f, false)
		}}
	f.register(c)
	return c
}
