// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
)

// history is a router.History and a router.Judge with a lock.
type history struct {
	mu sync.Mutex
	router.History
	judge  router.Judge
	judged time.Time // last observation of judge
}

// Observe samples the federation each second until ctx ends, for History, Events and Summary. The owner of the Server
// must run it; otherwise these are empty.
func (s *Server) Observe(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		o := router.Observation{
			Now: time.Now(), View: s.View(), Submissions: s.counts.Submitted.Load(),
			Open: map[creel.SubclusterID][]string{},
		}
		if o.View != nil {
			for i := range o.View.Members {
				o.Open[o.View.Members[i].ID] = s.CutOff(o.View.Members[i].ID)
			}
		}
		s.history.mu.Lock()
		s.history.History.Observe(o)
		if o.Now.Sub(s.history.judged) >= router.HistoryStep {
			s.history.judged = o.Now
			s.history.judge.Observe(o.Now, o.View)
		}
		s.history.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// History returns the rates of the last ten minutes, oldest first.
func (s *Server) History() []router.Point {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	return s.history.Points()
}

// Events returns the last events, newest first.
func (s *Server) Events() []router.Event {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	return s.history.History.Events()
}

// Summary judges the federation as this router sees it now. apps are the present numbers of applications, broken the
// present breaches of invariants.
func (s *Server) Summary(apps router.Tally, broken ...router.Breach) router.Summary {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	return s.history.judge.Summarize(time.Now(), s.View(), apps, broken...)
}

// Short lists the queues that are below their guarantee while they ask for more, the worst first.
func (s *Server) Short() []router.ShortQueue {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	return s.history.judge.Short(time.Now())
}

// Holder explains why a queue gets no more of nodes that are full; the texts are "" if no queue is above its guarantee.
func (s *Server) Holder(queue creel.QueuePath) (cause, remedy string) {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	return s.history.judge.Holder(queue)
}

// CutOff returns the kinds of call to a member that a breaker stops now.
func (s *Server) CutOff(id creel.SubclusterID) (kinds []string) {
	client, err := s.Member(id)
	if err != nil {
		return nil
	}
	for _, k := range client.Open() {
		kinds = append(kinds, k.String())
	}
	return kinds
}

// Refused replaces the refusals of a member that a trial found; none: it serves this router.
func (s *Server) Refused(id creel.SubclusterID, found []router.Refusal) {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	s.history.judge.Refused(id, found)
}

// Refusals returns the refusals of a member that the last trial found.
func (s *Server) Refusals(id creel.SubclusterID) []router.Refusal {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	return s.history.judge.Refusals(id)
}
