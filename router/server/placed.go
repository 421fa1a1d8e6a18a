// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
)

// A submission waits placementWait for a member's placement, and asks at most placementTries members.
const (
	placementWait  = time.Second
	placementTries = 2
)

// placed returns the queue in which members would run a submission: the policy and the load of that queue decide. A
// member with placement rules is asked, at random, since all members should have the same rules. Without an answer it
// is the queue that the submission names. A rule that rejects the submission is the home's to apply.
func (s *Server) placed(ctx context.Context, sub policies.Submission) creel.QueuePath {
	view := s.View()
	if view == nil {
		return sub.Queue
	}
	var may []*subcluster.Status
	for i := range view.Members {
		if m := &view.Members[i]; m.State == subcluster.StateActive && m.Load.Places.Has(sub.Queue) {
			may = append(may, m)
		}
	}
	if len(may) == 0 {
		return sub.Queue
	}
	s.random().Shuffle(len(may), func(i, j int) { may[i], may[j] = may[j], may[i] })
	for _, m := range may[:min(len(may), placementTries)] {
		wait, cancel := context.WithTimeout(ctx, placementWait)
		queue, err := s.conf.Members(s.conf.Pool.Member(m)).Placed(wait, sub)
		cancel()
		if err == nil {
			return cmp.Or(queue, sub.Queue)
		}
		if VerdictOf(err) == router.Refused {
			return sub.Queue
		}
	}
	return sub.Queue
}
