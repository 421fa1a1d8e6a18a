// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/creelrm/creel/app/daemon/health"
)

// Task is a loop of a service. Run blocks until its context ends; an earlier end is a failure of the whole service.
type Task struct {
	Name string
	Run  func(ctx context.Context) error
}

// Entry is one daemon in a ready file.
type Entry struct {
	Role      string            `json:"role"`
	PID       int               `json:"pid"`
	Addresses map[string]string `json:"addresses"`
}

// NewEntry is the entry of a daemon in this process.
func NewEntry(role string, addresses map[string]string) Entry {
	return Entry{Role: role, PID: os.Getpid(), Addresses: addresses}
}

// Service is an assembled daemon: its ports are bound, so that their numbers are known, and nothing runs yet. Its
// owner either calls Start and then Stop, or Close.
type Service struct {
	Entries   []Entry // its daemons, for the ready file: one, except in `creel up`
	Health    *health.Health
	Tasks     []Task                      // in the order of their start
	Reload    func(context.Context) error // SIGHUP; nil does nothing
	Awaits    []<-chan struct{}           // the service has started once all are closed
	Resources                             // released after the last task has ended
}

// Address is an address of the service's first daemon, "" if there is none with this name.
func (s *Service) Address(name string) string { return s.Entries[0].Addresses[name] }

// Add appends a task.
func (s *Service) Add(name string, run func(ctx context.Context) error) {
	s.Tasks = append(s.Tasks, Task{Name: name, Run: run})
}

// AddSelfClosing adds a task that releases its resources when it ends. If the task is never started, release does
// that.
func (s *Service) AddSelfClosing(name string, run func(ctx context.Context) error, release func() error) {
	var ran atomic.Bool
	s.OnClose(func() error {
		if ran.Load() {
			return nil
		}
		return release()
	})
	s.Add(name, func(ctx context.Context) error {
		ran.Store(true)
		return run(ctx)
	})
}

// Running is a service with started tasks, one goroutine each. Start starts them; Stop ends them and waits. It starts
// no other goroutine.
type Running struct {
	service *Service
	failed  chan error
	stops   []func() // in the order of their start
	once    sync.Once
	err     error
}

// Start starts the tasks in their order and makes the service ready.
func (s *Service) Start() *Running {
	r := &Running{service: s, failed: make(chan error, len(s.Tasks))}
	for _, t := range s.Tasks {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := t.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				r.failed <- fmt.Errorf("%s: %w", t.Name, err)
			} else if ctx.Err() == nil {
				r.failed <- fmt.Errorf("%s ended unexpectedly", t.Name)
			}
		}()
		r.stops = append(r.stops, func() { cancel(); <-done })
	}
	if s.Health != nil {
		s.Health.SetReady(true)
	}
	return r
}

// Failed receives the tasks' failures: the first one should stop the service.
func (r *Running) Failed() <-chan error { return r.failed }

// Stop makes the service not ready, ends its tasks one after the other, in reverse order of their start, and releases
// the resources. It waits until all is done. A second call only waits.
func (r *Running) Stop() error {
	r.once.Do(func() {
		if r.service.Health != nil {
			r.service.Health.SetReady(false)
		}
		for i := len(r.stops) - 1; i >= 0; i-- {
			r.stops[i]()
		}
		r.err = r.service.Close()
	})
	return r.err
}
