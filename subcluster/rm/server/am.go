// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
)

// RegisteredAM is the answer to an AM that registers.
type RegisteredAM struct {
	rm.Registered
	App rm.AppView
}

// RegisterAM registers an attempt's AM.
func (s *Server) RegisterAM(r *rm.RegisterAM) Op[RegisteredAM] {
	return Op[RegisteredAM]{
		name:   "registerApplicationMaster",
		target: r.Attempt.String(),
		Run: func(m *rm.Machine, now time.Time) func() (RegisteredAM, error) {
			registered, err := m.RegisterAM(now, r)
			if err != nil {
				return Failed[RegisteredAM](err)
			}
			a, _ := m.App(r.Attempt.Application)
			return Done(RegisteredAM{Registered: registered, App: a})
		},
	}
}

// FinishAM takes an AM's last word; the answer reports whether its application
// has been unregistered, which it may ask until it has.
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

// Allocated is the answer to an AM's heartbeat.
type Allocated struct {
	rm.Answer
	Nodes []rm.NodeView // of Answer.UpdatedNodes, in their order
	Now   time.Time
}

// Allocate performs an AM's heartbeat. Answer is called once: in the caller's
// goroutine, before Allocate returns, when nobody else owned the machine, else
// in a responder.
func (s *Server) Allocate(attempt creel.AttemptID, r *rm.AllocateRequest, answer func(*Allocated, error)) {
	s.metrics.Allocates.Add(1)
	err := s.call(func(m *rm.Machine, now time.Time) func() {
		a, err := m.Allocate(now, attempt, r)
		if err != nil {
			return func() { answer(nil, err) }
		}
		// The machine writes into this answer again at the next call: the
		// responder works on a copy of what it points at.
		out := &Allocated{Answer: *a, Now: now}
		out.Granted, out.Completed, out.Updated = slices.Clone(
			a.Granted,
		), slices.Clone(
			a.Completed,
		), slices.Clone(
			a.Updated,
		)
		out.UpdateErrors, out.FromPrevious = slices.Clone(a.UpdateErrors), slices.Clone(a.FromPrevious)
		out.Rejected, out.UpdatedNodes = slices.Clone(a.Rejected), slices.Clone(a.UpdatedNodes)
		out.NMTokens, out.Preempt = slices.Clone(a.NMTokens), slices.Clone(a.Preempt)
		for _, u := range out.UpdatedNodes {
			n, _ := m.Node(u.ID)
			out.Nodes = append(out.Nodes, n)
		}
		return func() { answer(out, nil) }
	})
	if err != nil {
		answer(nil, err)
	}
}
