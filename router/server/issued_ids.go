// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/remote"
)

// issuedIDs is this router's record of the application ids that members issued. A member numbers ids from 1 after
// each start, and an id contains the time of the start. So every id up to the highest seen has been issued.
type issuedIDs struct {
	mu     sync.RWMutex
	starts map[int64]highest // by cluster timestamp
}

type highest struct {
	number int32
	member creel.SubclusterID // the issuer, "" if unknown
}

// startsMost bounds the known starts of members; beyond it all are dropped and learnt again.
const startsMost = 4096

// askTime bounds the call that returns a member's newest id.
const askTime = 2 * time.Second

// Gave records that a member issued n ids from first on; member is "" if unknown.
func (s *Server) Gave(first creel.ApplicationID, n int, member creel.SubclusterID) {
	g := &s.issuedIDs
	last := first.ID + int32(n) - 1
	g.mu.RLock()
	known, there := g.starts[first.ClusterTimestamp]
	g.mu.RUnlock()
	if there && known.number >= last && (known.member != "" || member == "") {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	known = g.starts[first.ClusterTimestamp]
	known.number = max(known.number, last)
	if member != "" {
		known.member = member
	}
	if g.starts == nil || len(g.starts) >= startsMost {
		g.starts = map[int64]highest{}
	}
	g.starts[first.ClusterTimestamp] = known
}

// checkGiven rejects an application id that no member issued, with an error of kind creel.ErrInvalidRequest. It
// rejects only ids that are certainly wrong: the number exceeds the newest number of the member with that start. If
// no member has that start now, the id may be from before a restart, and is accepted. Ids that this router passed on
// need no call to a member.
func (s *Server) checkGiven(ctx context.Context, app creel.ApplicationID) error {
	if app.ID <= 0 || app.ClusterTimestamp <= 0 {
		return neverGiven(app, "ids are numbered from 1, and name the start of a ResourceManager")
	}
	s.issuedIDs.mu.RLock()
	known, there := s.issuedIDs.starts[app.ClusterTimestamp]
	s.issuedIDs.mu.RUnlock()
	if there && app.ID <= known.number {
		return nil
	}
	if _, repeated := s.HomeSeen(app); repeated {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var newest creel.ApplicationID
	for _, p := range Ask(ctx, s, func(ctx context.Context, m *remote.Member) (creel.ApplicationID, error) {
		if there && known.member != "" && m.ID != known.member {
			return creel.ApplicationID{}, nil
		}
		return s.conf.Members(m).NewID(ctx)
	}) {
		if p.Err == nil && !p.Value.IsZero() {
			s.Gave(p.Value, 1, p.Member)
			if p.Value.ClusterTimestamp == app.ClusterTimestamp {
				newest = p.Value
			}
		}
	}
	if newest.IsZero() || app.ID < newest.ID {
		return nil
	}
	return neverGiven(app, fmt.Sprintf("the ResourceManager of that start has issued %d ids", newest.ID-1))
}

func neverGiven(app creel.ApplicationID, why string) error {
	return &creel.Error{
		Kind: creel.ErrInvalidRequest,
		What: fmt.Sprintf("application id %s was never issued", app),
		Why:  why,
		Try:  "ask for an id with getNewApplication",
	}
}
