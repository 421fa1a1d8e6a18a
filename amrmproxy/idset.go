// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"slices"
	"sort"

	"github.com/creelrm/creel"
)

// idSet is a compact set of container ids. ResourceManagers number containers consecutively. So an application with a
// million containers needs only a few runs: one for each attempt and epoch, and one more for each gap.
type idSet struct {
	attempts []attemptIDs // the newest attempt last
}

// attemptIDs has the ids of one attempt, by their numbers, which include the epoch.
type attemptIDs struct {
	attempt creel.AttemptID
	runs    []idRun // ascending, with a gap between each two
}

// idRun is the numbers from first to last, both included.
type idRun struct{ first, last int64 }

// Limits of a set's size. Beyond them the set drops the earliest attempt, or the lower half of an attempt's runs.
const (
	mostAttempts = 32
	mostRuns     = 4096
)

// has reports whether id was added and not dropped.
func (s *idSet) has(id creel.ContainerID) bool {
	runs := s.of(id.Attempt)
	if runs == nil {
		return false
	}
	i := after(*runs, id.ID)
	return i > 0 && id.ID <= (*runs)[i-1].last
}

// add adds id to the set.
func (s *idSet) add(id creel.ContainerID) {
	p := s.of(id.Attempt)
	if p == nil {
		if len(s.attempts) >= mostAttempts {
			s.attempts = slices.Delete(s.attempts, 0, 1)
		}
		s.attempts = append(s.attempts, attemptIDs{attempt: id.Attempt})
		p = &s.attempts[len(s.attempts)-1].runs
	}
	runs, n := *p, id.ID
	i := after(runs, n)
	if i > 0 && n <= runs[i-1].last {
		return
	}
	below, above := i > 0 && runs[i-1].last == n-1, i < len(runs) && runs[i].first == n+1
	switch {
	case below && above:
		runs[i-1].last = runs[i].last
		*p = slices.Delete(runs, i, i+1)
	case below:
		runs[i-1].last = n
	case above:
		runs[i].first = n
	default:
		if len(runs) >= mostRuns {
			half := len(runs) / 2
			runs, i = slices.Delete(runs, 0, half), max(i-half, 0)
		}
		*p = slices.Insert(runs, i, idRun{n, n})
	}
}

// of returns the runs of an attempt, nil if none of its ids was added.
func (s *idSet) of(a creel.AttemptID) *[]idRun {
	for i := len(s.attempts) - 1; i >= 0; i-- {
		if s.attempts[i].attempt == a {
			return &s.attempts[i].runs
		}
	}
	return nil
}

// after returns the index of the first run that begins after n.
func after(runs []idRun, n int64) int {
	if last := len(runs) - 1; last >= 0 && n >= runs[last].first { // the usual case: the id is new
		return len(runs)
	}
	return sort.Search(len(runs), func(i int) bool { return runs[i].first > n })
}
