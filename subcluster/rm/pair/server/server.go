// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/subcluster/rm/pair"
)

// Lease is the pair's lease in the shared state.
type Lease interface {
	// Ask takes or renews the lease if claim is set. Else it only returns the holder.
	Ask(ctx context.Context, claim bool) pair.Answer
	Release(ctx context.Context) error
}

// Services are the running services of an active ResourceManager.
type Services interface {
	// Failed receives an error if they end by themselves.
	Failed() <-chan error
	// Stop ends them and waits.
	Stop() error
}

// Config of a driver. All fields are required, except FollowEvery and Log.
type Config struct {
	Pair  pair.Config
	ID    string // of this ResourceManager: yarn.resourcemanager.ha.id
	Lease Lease
	// Follow brings the copy of the state up to date. It may run while Begin opens the state.
	Follow func(ctx context.Context) error
	// Begin makes this process the holder of the state, and starts the services.
	Begin       func() (Services, error)
	FollowEvery time.Duration // 200 ms
	Log         *slog.Logger  // nil: silent
}

// Status of a ResourceManager in its pair.
type Status struct {
	Role   pair.Role
	Leader string // name of another process that has the lease, "" if none is known
}

// Server is the driver.
type Server struct {
	cfg     Config
	clock   pauseclock.LeaseClock // of all times: it also counts the suspension of a machine
	events  chan func(now time.Time)
	stopped chan struct{}
	until   atomic.Pointer[time.Time]
	status  atomic.Pointer[Status]

	// Only the loop uses these.
	machine  *pair.Machine
	began    time.Time // of the takeover under way
	services Services
	ending   bool // the services must end, and are still starting
	work     sync.WaitGroup
	waiting  []waiter
}

// waiter is an administrator's order that waits for the machine.
type waiter struct {
	settled func(now time.Time) (done bool, err error)
	answer  chan error
}

// New makes a standby. Run drives it.
func New(cfg Config) *Server {
	cfg.FollowEvery = cmp.Or(cfg.FollowEvery, 200*time.Millisecond)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		cfg:     cfg,
		events:  make(chan func(time.Time)),
		stopped: make(chan struct{}),
	}
	s.machine = pair.New(cfg.Pair, s.clock.Now())
	s.publish()
	return s
}

// Leads reports whether this process may answer. It becomes false before the lease ends, also while the process is
// paused.
func (s *Server) Leads() bool { return s.clock.Now().Before(*s.until.Load()) }

// Status returns the present status.
func (s *Server) Status() Status { return *s.status.Load() }

// publish makes the machine's state visible to all goroutines.
func (s *Server) publish() {
	until := s.machine.Until()
	s.until.Store(&until)
	s.status.Store(&Status{Role: s.machine.Role(), Leader: s.machine.Leader()})
}

// Run drives the machine until the context ends. It then ends the services and releases the lease.
func (s *Server) Run(ctx context.Context) error {
	working, stop := context.WithCancel(ctx)
	s.work.Go(func() { s.follow(working) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case event := <-s.events:
			event(s.clock.Now())
		case <-timer.C:
			s.machine.Tick(s.clock.Now())
		case <-ctx.Done():
			stop()
			return s.end()
		}
		s.perform(working)
		s.settle(s.clock.Now(), nil)
		wait := time.Hour
		if d := s.machine.Deadline(); !d.IsZero() {
			wait = max(d.Sub(s.clock.Now()), 0)
		}
		timer.Reset(wait)
	}
}

// end is the end of the process.
func (s *Server) end() error {
	held := s.machine.Role() != pair.Standby
	s.until.Store(new(time.Time)) // answers stop
	close(s.stopped)
	s.work.Wait() // a Begin under way stores its services
	var err error
	if s.services != nil {
		err = s.services.Stop()
	}
	s.settle(s.clock.Now(), errors.New("the ResourceManager is stopping"))
	if held {
		s.release()
	}
	return err
}

// post passes an event to the loop, unless it has ended.
func (s *Server) post(event func(now time.Time)) bool {
	select {
	case s.events <- event:
		return true
	case <-s.stopped:
		return false
	}
}

// perform carries out the machine's actions, and publishes its state before: the services see that this process leads
// when they begin, and no longer when they end.
func (s *Server) perform(ctx context.Context) {
	before := s.Status()
	s.publish()
	if after := s.Status(); before != after {
		s.cfg.Log.Info("role in the pair", "id", s.cfg.ID, "role", after.Role.String(), "was", before.Role.String(),
			"other_with_lease", after.Leader)
	}
	for _, a := range s.machine.Actions() {
		switch a.Kind {
		case pair.Look, pair.Claim:
			s.work.Go(func() { s.ask(ctx, a.Kind == pair.Claim) })
		case pair.Begin:
			s.cfg.Log.Info("taking over", "id", s.cfg.ID, "reason", a.Why)
			s.began = s.clock.Now()
			s.work.Go(s.begin)
		case pair.End:
			s.cfg.Log.Warn("no longer active", "id", s.cfg.ID, "reason", a.Why)
			s.endServices()
		case pair.Release:
			s.work.Go(func() {
				s.release()
				s.post(s.machine.Released)
			})
		}
	}
}

func (s *Server) ask(ctx context.Context, claim bool) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Pair.Lease/2)
	defer cancel()
	asked := s.clock.Now()
	answer := s.cfg.Lease.Ask(ctx, claim)
	answer.Asked = asked
	if answer.Err != nil && ctx.Err() != context.Canceled {
		s.cfg.Log.Warn("failed to ask for the pair's lease", "id", s.cfg.ID, "error", answer.Err)
	}
	s.post(func(now time.Time) { s.machine.Answered(now, answer) })
}

// begin starts the services. The machine may have resigned meanwhile: then they end at once.
func (s *Server) begin() {
	services, err := s.cfg.Begin()
	if err != nil {
		s.cfg.Log.Error("failed to take over", "id", s.cfg.ID, "error", err)
	}
	if !s.post(func(now time.Time) { s.started(now, services, err) }) && err == nil {
		s.services = services // the loop has ended: end stops them
	}
}

func (s *Server) started(now time.Time, services Services, err error) {
	if err != nil {
		services = ended{}
	}
	s.services = services
	if s.ending {
		s.endServices()
	}
	s.machine.Began(now, err)
	if s.machine.Role() != pair.Active {
		return
	}
	s.cfg.Log.Info("active", "id", s.cfg.ID, "takeover", now.Sub(s.began).String())
	s.work.Go(func() {
		select {
		case err := <-services.Failed():
			s.post(func(time.Time) { s.machine.Failed(err) })
		case <-s.stopped:
		}
	})
}

// ended are services that did not start.
type ended struct{}

func (ended) Failed() <-chan error { return nil }
func (ended) Stop() error          { return nil }

// endServices ends the services in the background. If they are still starting, started calls it again.
func (s *Server) endServices() {
	services := s.services
	s.services, s.ending = nil, services == nil
	if services == nil {
		return
	}
	s.work.Go(func() {
		if err := services.Stop(); err != nil {
			s.cfg.Log.Warn("failed to end the services cleanly", "id", s.cfg.ID, "error", err)
		}
		s.post(s.machine.Ended)
	})
}

// release also completes while the process ends: the other one of the pair waits for it.
func (s *Server) release() {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Pair.Lease)
	defer cancel()
	if err := s.cfg.Lease.Release(ctx); err != nil {
		s.cfg.Log.Warn("failed to release the pair's lease: it ends by itself", "id", s.cfg.ID, "error", err)
	}
}

// follow keeps the copy of the state current while this ResourceManager is the standby.
func (s *Server) follow(ctx context.Context) {
	tick := time.NewTicker(s.cfg.FollowEvery)
	defer tick.Stop()
	for failing := false; ; {
		if s.Status().Role == pair.Standby {
			err := s.cfg.Follow(ctx)
			if err != nil && !failing && ctx.Err() == nil {
				s.cfg.Log.Warn("failed to follow the state: a takeover would read all of it",
					"id", s.cfg.ID, "error", err)
			}
			failing = err != nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// settle answers the orders that the machine has carried out, or all of them with an error.
func (s *Server) settle(now time.Time, err error) {
	rest := s.waiting[:0]
	for _, w := range s.waiting {
		done, failed := w.settled(now)
		if err != nil {
			done, failed = true, err
		}
		if done {
			w.answer <- failed
		} else {
			rest = append(rest, w)
		}
	}
	s.waiting = rest
}

// Lead makes this ResourceManager active. It returns when it is, or when the other one still has the lease after the
// time in which a silent one loses it.
func (s *Server) Lead(ctx context.Context) error {
	return s.order(ctx, func(now time.Time) error { return s.machine.Lead(now) }, func(now time.Time) (bool, error) {
		switch {
		case s.machine.Role() == pair.Active:
			return true, nil
		case s.machine.Ordered(now):
			return false, nil
		}
		return true, &creel.Error{
			Kind: creel.ErrConflict,
			What: fmt.Sprintf("%s did not become active", s.cfg.ID),
			Why:  "the lease is held by " + cmp.Or(s.machine.Leader(), "no process, or its store does not answer"),
			Try:  "make the active one standby first",
		}
	})
}

// StandBy makes this ResourceManager standby, and returns when its services have ended.
func (s *Server) StandBy(ctx context.Context) error {
	stand := func(now time.Time) error { s.machine.StandBy(now); return nil }
	return s.order(ctx, stand, func(time.Time) (bool, error) { return s.machine.Role() == pair.Standby, nil })
}

// order passes an administrator's order to the machine, and waits until it is settled.
func (s *Server) order(
	ctx context.Context, order func(time.Time) error, settled func(time.Time) (bool, error),
) error {
	answer := make(chan error, 1)
	if !s.post(func(now time.Time) {
		if err := order(now); err != nil {
			answer <- err
			return
		}
		s.waiting = append(s.waiting, waiter{settled, answer})
	}) {
		return errors.New("the ResourceManager is stopping")
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
