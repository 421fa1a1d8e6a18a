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

// SubmissionLog stores the last submissions that got a home, for another policy to decide them again. It is pure,
// without locks, as Memory is.
type SubmissionLog struct {
	most int
	ring []PlacedSubmission
	next int // the oldest, once the ring is full
}

// NewSubmissionLog makes one of at most that many submissions, at least one.
func NewSubmissionLog(most int) *SubmissionLog { return &SubmissionLog{most: max(most, 1)} }

// Add remembers one.
func (r *SubmissionLog) Add(sub policies.Submission, home creel.SubclusterID) {
	sub.Where, sub.Assumed = nil, nil // of the moment
	if len(r.ring) < r.most {
		r.ring = append(r.ring, PlacedSubmission{sub, home})
		return
	}
	r.ring[r.next] = PlacedSubmission{sub, home}
	r.next = (r.next + 1) % r.most
}

// Of returns the last submissions to a queue, oldest first, at most that many.
// One that named the queue by its last part alone counts for every queue that is
// called so, since only its home knows which was meant.
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
