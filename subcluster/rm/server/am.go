// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// RegisterAM registers an attempt's AM.
func (s *Server) RegisterAM(r *rm.RegisterAM) Op[codec.AMRegistration] {
	return Op[codec.AMRegistration]{
		name:   "registerApplicationMaster",
		target: r.Attempt.String(),
		Run: func(m *rm.Machine, now time.Time) func() (codec.AMRegistration, error) {
			registered, err := m.RegisterAM(now, r)
			if err != nil {
				return Failed[codec.AMRegistration](err)
			}
			s.traces.registered(r.Attempt.Application)
			a, _ := m.App(r.Attempt.Application)
			return Done(codec.AMRegistration{AMRegistration: registered, App: a})
		},
	}
}

// FinishAM unregisters an attempt's AM. The answer reports whether the application is unregistered; the AM repeats
// the call until it is.
func (s *Server) FinishAM(f *rm.FinishAM) Op[bool] {
	return Op[bool]{
		name:   "finishApplicationMaster",
		target: f.Attempt.String(),
		Run: func(m *rm.Machine, now time.Time) func() (bool, error) {
			finished, err := m.FinishAM(now, f)
			if err != nil {
				return Failed[bool](err)
			}
			return Done(finished)
		},
	}
}

// Allocate performs an AM's heartbeat. answer is called once. If the machine had no owner, that is in the caller's
// goroutine, before Allocate returns; else it is in a responder.
func (s *Server) Allocate(attempt creel.AttemptID, r *rm.AllocateRequest, answer func(*codec.AllocateAnswer, error)) {
	allocate(s, attempt, r, codec.CopyAnswer, answer)
}

// allocate is Server.Allocate; copied makes the copy of the answer, as the machine's owner.
func allocate(
	s *Server, attempt creel.AttemptID, r *rm.AllocateRequest,
	copied func(*rm.Machine, time.Time, *rm.Answer) *codec.AllocateAnswer, answer func(*codec.AllocateAnswer, error),
) {
	n := s.metrics.Allocates.Add(1)
	err := s.call(func(m *rm.Machine, now time.Time) func() {
		end := s.metrics.AllocateTimes.begin(n)
		a, err := m.Allocate(now, attempt, r)
		if end != nil {
			end()
		}
		if err != nil {
			return func() { answer(nil, err) }
		}
		s.traces.allocated(attempt, r, a)
		out := copied(m, now, a)
		return func() { answer(out, nil) }
	})
	if err != nil {
		answer(nil, err)
	}
}
