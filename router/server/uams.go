// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// IDs returns the id of an application in each member: its own id, or the other id of its UAM there. While the store
// does not answer, it is the application's id in all members.
func (s *Server) IDs(ctx context.Context, app creel.ApplicationID) func(creel.SubclusterID) creel.ApplicationID {
	uams := s.uams(ctx, app)
	return func(m creel.SubclusterID) creel.ApplicationID {
		for _, p := range uams {
			if p.Member == m {
				return p.ID
			}
		}
		return app
	}
}

// uams returns the UAMs of an application from its record; none while the store does not answer.
func (s *Server) uams(ctx context.Context, app creel.ApplicationID) []intents.Part {
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	parts, err := s.readUAMs(ctx, app)
	if err != nil {
		s.conf.Log.Warn("failed to read an application's UAMs", "application", app.String(),
			"error", err)
	}
	return parts
}

func (s *Server) readUAMs(ctx context.Context, app creel.ApplicationID) ([]intents.Part, error) {
	if s.conf.Intents == nil {
		return nil, nil
	}
	return intents.Parts(ctx, s.conf.Intents, app, "")
}

// Clients ask for the report of a running application each second, and most applications have no UAMs. So the content
// of the record is cached for a short time.
const (
	uamsKept = 2 * time.Second
	uamsMost = 16 << 10    // applications; beyond it, all are read again
	uamsTime = time.Second // a report waits so long for the store, and then for the UAMs' members
	// uamsAgain is the time between two calls to members that may have had a UAM of an ended application, while one
	// of them does not answer.
	uamsAgain = 5 * time.Second
)

// uamCache caches the UAMs of applications for a short time.
type uamCache struct {
	mu    sync.Mutex
	known map[creel.ApplicationID]cachedUAMs
}

type cachedUAMs struct {
	uams  []intents.Part
	at    time.Time
	ended bool // the application has ended; uams are the members that reported a part of it
	all   bool // all members answered
}

// lateUAMs returns the UAMs of an application; the data is at most uamsKept old.
func (s *Server) lateUAMs(ctx context.Context, app creel.ApplicationID) []intents.Part {
	s.uamCache.mu.Lock()
	k, there := s.uamCache.known[app]
	s.uamCache.mu.Unlock()
	if there && time.Since(k.at) < uamsKept {
		return k.uams
	}
	ctx, cancel := context.WithTimeout(ctx, uamsTime)
	defer cancel()
	if uams, err := s.readUAMs(ctx, app); err == nil {
		k.uams = uams
	}
	k.at, k.ended = time.Now(), false // also after a failure, so that the next report does not wait for the store again
	s.uamCache.keep(app, k)
	return k.uams
}

// keep stores the UAMs of an application.
func (l *uamCache) keep(app creel.ApplicationID, k cachedUAMs) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || len(l.known) >= uamsMost {
		l.known = map[creel.ApplicationID]cachedUAMs{}
	}
	l.known[app] = k
}

// endedUAMs returns the UAMs that an ended application had. Its record is deleted with its last attempt. The cached
// content of the record stays known. Every other member may have had a UAM until all were asked; guessed is the
// number of these.
func (s *Server) endedUAMs(ctx context.Context, app creel.ApplicationID) (uams []intents.Part, guessed int) {
	s.uamCache.mu.Lock()
	k, there := s.uamCache.known[app]
	s.uamCache.mu.Unlock()
	if k.ended && (k.all || time.Since(k.at) < uamsAgain) {
		return k.uams, 0
	}
	if !there {
		k.uams = s.lateUAMs(ctx, app)
	}
	uams = slices.Clone(k.uams)
	for i := range s.View().Members {
		m := &s.View().Members[i]
		if m.State != subcluster.StateDeregistered &&
			!slices.ContainsFunc(uams, func(u intents.Part) bool { return u.Member == m.ID }) {
			uams = append(uams, intents.Part{Member: m.ID, ID: app})
		}
	}
	return uams, len(uams) - len(k.uams)
}

// application is an application whose UAMs are asked.
type application struct {
	ID    creel.ApplicationID
	Home  creel.SubclusterID
	Ended bool
}

// askUAMs calls the members in which an application has or had UAMs, except its home, at the same time. Each call
// uses the application's id there. It waits at most a second, and does not call members with an expired lease. If
// absent returns true for an error, the member has no part of the application and is left out.
func askUAMs[T any](
	ctx context.Context,
	s *Server,
	app application,
	call func(ctx context.Context, m *remote.Member, id creel.ApplicationID) (T, error),
	absent func(error) bool,
) []router.Part[T] {
	uams, guessed := []intents.Part(nil), 0
	if app.Ended {
		uams, guessed = s.endedUAMs(ctx, app.ID)
	} else {
		uams = s.lateUAMs(ctx, app.ID)
	}
	parts := callUAMs(ctx, s, app.Home, uams, call)
	there, had, all := parts[:0], []intents.Part(nil), true
	for i, p := range parts {
		none := uams[i].Member == app.Home || p.Err != nil && absent(p.Err)
		guess := i >= len(uams)-guessed
		all = all && (none || p.Err == nil)
		if !none && (p.Err == nil || !guess) {
			there, had = append(there, p), append(had, uams[i])
		}
	}
	if app.Ended && guessed > 0 {
		s.uamCache.keep(app.ID, cachedUAMs{uams: had, at: time.Now(), ended: true, all: all})
	}
	return there
}

// callUAMs calls the members of uams except home.
func callUAMs[T any](
	ctx context.Context,
	s *Server,
	home creel.SubclusterID,
	uams []intents.Part,
	call func(ctx context.Context, m *remote.Member, id creel.ApplicationID) (T, error),
) []router.Part[T] {
	parts := make([]router.Part[T], len(uams))
	ctx, cancel := context.WithTimeout(ctx, uamsTime)
	defer cancel()
	var wait sync.WaitGroup
	for i, u := range uams {
		parts[i].Member = u.Member
		if u.Member == home {
			continue
		}
		status, there := s.View().Member(u.Member)
		if !there || status.State == subcluster.StateSuspect || status.State == subcluster.StateLost {
			parts[i].Err = fmt.Errorf("%w: %s", ErrLost, "it does not send heartbeats")
			continue
		}
		m := s.conf.Pool.Member(status)
		wait.Go(func() { parts[i].Value, parts[i].Err = call(ctx, m, u.ID) })
	}
	wait.Wait()
	return parts
}

// attempts maps an attempt at home to the attempts of its UAMs, which have its containers in other members.
type attempts struct {
	of   creel.AttemptID
	uams []intents.Part
}

// attempts reads the UAMs of an attempt's application.
func (s *Server) attempts(ctx context.Context, of creel.AttemptID) attempts {
	return attempts{of, s.uams(ctx, of.Application)}
}

// earlier reports whether a later attempt has the UAMs. Their containers belong to the later attempt, so only home
// has containers of this one.
func (a attempts) earlier() bool {
	return slices.ContainsFunc(a.uams, func(p intents.Part) bool { return a.of.Compare(p.Of) < 0 })
}

// at returns the attempt in a member. In a UAM's member it is the UAM's attempt, the first one if the record has
// none. At home, and without a recorded UAM, it has home's number.
func (a attempts) at(m creel.SubclusterID) creel.AttemptID {
	for _, p := range a.uams {
		if p.Member == m {
			return creel.AttemptID{Application: p.ID, Attempt: cmp.Or(p.Attempt, 1)}
		}
	}
	return a.of
}
