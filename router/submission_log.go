// SPDX-License-Identifier: Apache-2.0

package router

import (
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
)

// PlacedSubmission is a submission that got a home.
type PlacedSubmission struct {
	policies.Submission
	Home creel.SubclusterID
}

// SubmissionLog stores the last submissions that got a home, so that another policy can decide them again. Like
// Memory it is pure and has no lock.
type SubmissionLog struct {
	most int
	ring []PlacedSubmission
	next int // index of the oldest when the ring is full
}

// NewSubmissionLog makes a log of at most most submissions, at least one.
func NewSubmissionLog(most int) *SubmissionLog { return &SubmissionLog{most: max(most, 1)} }

// Add stores a submission.
func (r *SubmissionLog) Add(sub policies.Submission, home creel.SubclusterID) {
	sub.Where, sub.Assumed = nil, nil // valid only during the submission
	if len(r.ring) < r.most {
		r.ring = append(r.ring, PlacedSubmission{sub, home})
		return
	}
	r.ring[r.next] = PlacedSubmission{sub, home}
	r.next = (r.next + 1) % r.most
}

// Of returns the last submissions to a queue, at most most, oldest first. A submission with only the leaf name of a
// queue counts for every queue with that leaf name, since only its home can resolve the name.
func (r *SubmissionLog) Of(queue creel.QueuePath, most int) []PlacedSubmission {
	var out []PlacedSubmission
	for i := len(r.ring) - 1; i >= 0 && len(out) < most; i-- {
		s := r.ring[(r.next+i)%len(r.ring)]
		if s.Queue == queue || !s.Queue.IsFull() && strings.HasSuffix(string(queue), "."+string(s.Queue)) {
			out = append(out, s)
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}
