// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/history"
)

// observed has what the server observes each second, under a lock.
type observed struct {
	mu      sync.Mutex
	changes router.Changes
	sampler router.Sampler
	history history.History
	judge   router.Judge
	judged  time.Time // last observation of judge
}

// WaitingBy makes the history use a list of applications. It returns nil while there is no current list, then the
// members' reports count. It must be called before Observe.
func (s *Server) WaitingBy(list func(now time.Time) *router.Waiting) { s.waiting = list }

// Observe samples the federation each second until ctx ends, for the history, Events and Summary. The owner of the
// Server must run it; otherwise these are empty.
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
		if s.waiting != nil {
			o.Waiting = s.waiting(o.Now)
		}
		s.observed.add(o)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// add adds an observation.
func (x *observed) add(o router.Observation) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.changes.Observe(o)
	x.sampler.Observe(&x.history, o)
	if o.Now.Sub(x.judged) >= history.Step {
		x.judged = o.Now
		x.judge.Observe(o.Now, o.View)
	}
}

// History returns the last steps of a subject, which together have at least the time last. ok is false if it has no
// figures. leftOut is the number of subjects for which the history has no room.
func (s *Server) History(
	now time.Time, subject history.Subject, r history.Resolution, last time.Duration,
) (out history.Series, leftOut int, ok bool) {
	s.observed.mu.Lock()
	defer s.observed.mu.Unlock()
	out, ok = s.observed.history.Read(now, subject, r, last)
	return out, s.observed.history.LeftOut(), ok
}

// CopyHistory writes the history for another router. It locks the history for one subject at a time, so that a slow
// reader delays nothing.
func CopyHistory(s *Server, now time.Time, w io.Writer) error {
	s.observed.mu.Lock()
	head, at := s.observed.history.Head(now)
	all := s.observed.history.Subjects()
	s.observed.mu.Unlock()
	block := history.AppendHead(nil, head)
	for _, subject := range all {
		if _, err := w.Write(block); err != nil {
			return err
		}
		block = block[:0]
		s.observed.mu.Lock()
		c, ok := s.observed.history.Copy(subject, at)
		s.observed.mu.Unlock()
		if ok {
			block = history.AppendCopy(block, &c)
		}
	}
	_, err := w.Write(block)
	return err
}

// MergeHistory adds a copy of another router's history, of which the first byte came at now. It returns the number of
// subjects that it read, also if the copy ends early.
func MergeHistory(s *Server, now time.Time, from io.Reader) (subjects int, err error) {
	r, err := history.NewReader(from)
	if err != nil {
		return 0, err
	}
	for ; ; subjects++ {
		c, err := r.Next()
		if err == io.EOF {
			return subjects, nil
		}
		if err != nil {
			return subjects, err
		}
		s.observed.mu.Lock()
		s.observed.history.Merge(now, r.Head, c)
		s.observed.mu.Unlock()
	}
}

// Events returns the last events, newest first.
func (s *Server) Events() []router.Event {
	s.observed.mu.Lock()
	defer s.observed.mu.Unlock()
	return s.observed.changes.Events()
}

// Summary judges the federation as this router sees it now. apps are the present numbers of applications, broken the
// present breaches of invariants.
func (s *Server) Summary(apps router.Tally, broken ...router.Breach) router.Summary {
	s.observed.mu.Lock()
	defer s.observed.mu.Unlock()
	return s.observed.judge.Summarize(time.Now(), s.View(), apps, broken...)
}

// Short lists the queues that are below their guarantee while they ask for more, the worst first.
func (s *Server) Short() []router.ShortQueue {
	s.observed.mu.Lock()
	defer s.observed.mu.Unlock()
	return s.observed.judge.Short(time.Now())
}

// Holder explains why a queue gets no more of nodes that are full; the texts are "" if no queue is above its guarantee.
func (s *Server) Holder(queue creel.QueuePath) (cause, remedy string) {
	s.observed.mu.Lock()
	defer s.observed.mu.Unlock()
	return s.observed.judge.Holder(queue)
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
	s.observed.mu.Lock()
	defer s.observed.mu.Unlock()
	s.observed.judge.Refused(id, found)
}

// Refusals returns the refusals of a member that the last trial found.
func (s *Server) Refusals(id creel.SubclusterID) []router.Refusal {
	s.observed.mu.Lock()
	defer s.observed.mu.Unlock()
	return s.observed.judge.Refusals(id)
}
