// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"sync"
	"time"

	"github.com/creelrm/creel"
)

// lives remembers the starts of Hadoop members' ResourceManagers, in ms. The ids that they issue contain them.
type lives struct {
	mu sync.Mutex
	of map[creel.SubclusterID]memberLife
}

type memberLife struct {
	start int64
	asked time.Time
}

// lifeFresh is the time for which a start is remembered. An acceptance under a start that has passed proves nothing
// later, so a shorter time protects more of the applications that are accepted soon after a restart.
const lifeFresh = 10 * time.Second

// life implements router.Life.
func (s *Server) life(ctx context.Context, id creel.SubclusterID, fresh bool) (int64, error) {
	status, ok := s.View().Member(id)
	if !ok {
		return 0, nil
	}
	m := s.conf.Members(s.conf.Pool.Member(status))
	if m.Fences() {
		return 0, nil
	}
	s.lives.mu.Lock()
	last := s.lives.of[id]
	s.lives.mu.Unlock()
	if !fresh && time.Since(last.asked) < lifeFresh {
		return last.start, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	asked := time.Now()
	issued, err := m.NewID(ctx)
	if err != nil {
		return 0, err
	}
	s.Gave(issued, 1, id)
	s.lives.mu.Lock()
	defer s.lives.mu.Unlock()
	if s.lives.of == nil {
		s.lives.of = map[creel.SubclusterID]memberLife{}
	}
	if asked.After(s.lives.of[id].asked) {
		s.lives.of[id] = memberLife{issued.ClusterTimestamp, asked}
	}
	return issued.ClusterTimestamp, nil
}
