// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/remote"
)

// Home finds the home of an application in memory or in the store. For an application submitted without a router it
// asks every member.
func (s *Server) Home(ctx context.Context, app creel.ApplicationID) (*remote.Member, error) {
	if id, ok := s.HomeSeen(app); ok {
		if m, err := s.Member(id); err == nil {
			return m, nil
		}
	}
	id, err := s.conf.Homes.Home(ctx, app)
	if errors.Is(err, creel.ErrApplicationNotFound) {
		return s.search(ctx, app, err)
	}
	if err != nil {
		if m := s.listedHome(ctx, app); m != nil {
			return m, nil
		}
		return nil, err
	}
	s.memoryLock.Lock()
	s.memory.Learn(app, id)
	s.memoryLock.Unlock()
	return s.Member(id)
}

// ListedBy sets the function that finds an application's home in the last list of applications. It is called once,
// before the Server is used.
func (s *Server) ListedBy(find func(app creel.ApplicationID) (creel.SubclusterID, bool)) {
	s.listed = find
}

// listedHome returns the home of an application by the last list, for a read while the store does not answer. Changes
// do not use it: the application may have moved since.
func (s *Server) listedHome(ctx context.Context, app creel.ApplicationID) *remote.Member {
	if s.listed == nil || statestore.PatienceOf(ctx) == nil {
		return nil
	}
	id, ok := s.listed(app)
	if !ok {
		return nil
	}
	m, err := s.Member(id)
	if err != nil {
		return nil
	}
	return m
}

// search asks every member whether it has an application without a claim.
func (s *Server) search(ctx context.Context, app creel.ApplicationID, notFound error) (*remote.Member, error) {
	parts := Ask(ctx, s, func(ctx context.Context, m *remote.Member) (bool, error) {
		return s.conf.Members(m).Has(ctx, app)
	})
	silent := 0
	for _, p := range parts {
		switch {
		case p.Err != nil:
			silent++
		case p.Value:
			return s.Member(p.Member)
		}
	}
	if silent > 0 {
		_, missing := router.Present(parts)
		return nil, &creel.Error{
			Kind: creel.ErrUnavailable,
			What: fmt.Sprintf("%s cannot be found now", app),
			Why: "no record of it, and not every subcluster answered: " + router.MissingText(
				missing,
			),
			Try:        "try again in a moment",
			RetryAfter: time.Second,
		}
	}
	return nil, notFound
}

// HomeSeen returns the remembered home of an application, without I/O.
func (s *Server) HomeSeen(app creel.ApplicationID) (creel.SubclusterID, bool) {
	s.memoryLock.Lock()
	defer s.memoryLock.Unlock()
	return s.memory.Home(app)
}

// RememberedHomes returns the number of homes that this router remembers, and the greatest number that it can have.
func (s *Server) RememberedHomes() (n, bound int) {
	s.memoryLock.Lock()
	defer s.memoryLock.Unlock()
	return s.memory.Homes()
}

// Forget drops the remembered home of an application; the next call about it asks the store.
func (s *Server) Forget(app creel.ApplicationID) {
	s.memoryLock.Lock()
	defer s.memoryLock.Unlock()
	s.memory.Forget(app)
}

// Changed drops the remembered home of an application whose home has changed by a change that the store announced.
// Announcements save calls to former homes. A missed one does no harm: the former home does not know the application.
func (s *Server) Changed(c statestore.Change) {
	if c.Kind == statestore.ChangeHome {
		s.Forget(c.Application)
	}
}

// Decision returns this router's outcome of a submission, if remembered.
func (s *Server) Decision(app creel.ApplicationID) (router.Outcome, bool) {
	s.memoryLock.Lock()
	defer s.memoryLock.Unlock()
	return s.memory.Outcome(app)
}

// Placement returns the stored record of the choice of an application's home, by any router. It returns false if
// there is none: the claim was made again after the store was emptied.
func (s *Server) Placement(ctx context.Context, app creel.ApplicationID) (router.Placement, bool, error) {
	b, err := s.conf.Homes.Placement(ctx, app)
	if err != nil || len(b) == 0 {
		if errors.Is(err, creel.ErrApplicationNotFound) {
			err = nil
		}
		return router.Placement{}, false, err
	}
	p, err := router.DecodePlacement(b)
	return p, err == nil, err
}

// rounds bounds the look-ups of AtHome while an application changes its home.
const rounds = 5

// AtHome calls the home of an application, and returns its answer and the member. If the home does not know the
// application, the application may have left it, or not have arrived yet. Then the remembered home is dropped, and
// every other member that may have the application is called. A final answer "unknown" needs proof. The application
// must have had the same home before and after the call, and must not be moving. Between two checks a move may start,
// end, or reach a home that was asked too early.
func AtHome[T any](
	ctx context.Context,
	s *Server,
	app creel.ApplicationID,
	call func(ctx context.Context, home *remote.Member) (T, error),
) (answer T, home *remote.Member, err error) {
	home, err = s.Home(ctx, app)
	if err != nil {
		return answer, nil, err
	}
	answer, err = call(ctx, home)
	if err == nil || !unknown(err) {
		return answer, home, err
	}
	s.Forget(app)
	if s.conf.Elsewhere == nil {
		again, homeErr := s.Home(ctx, app)
		if homeErr != nil || again.ID == home.ID {
			return answer, home, err
		}
		answer, err = call(ctx, again)
		return answer, again, err
	}
	var before []creel.SubclusterID
	for range rounds {
		at, moving, notRead := s.conf.Elsewhere(ctx, app)
		if !moving && slices.Equal(at, before) {
			break // the home's answer counts
		}
		for _, id := range at {
			again, notThere := s.Member(id)
			if notThere != nil {
				continue
			}
			if other, e := call(ctx, again); e == nil || !unknown(e) {
				return other, again, e
			}
		}
		if before = at; notRead != nil {
			break // all readable candidates were asked
		}
	}
	return answer, home, err
}

// partOfHome returns the home's part of an answer that every member was asked for, with the home. The remembered home
// may be a former one, which does not know the application: then it is looked up as AtHome does.
func partOfHome[T any](
	ctx context.Context, s *Server, app creel.ApplicationID, parts []router.Part[T],
) (part T, home *remote.Member, err error) {
	return AtHome(ctx, s, app, func(_ context.Context, m *remote.Member) (T, error) {
		for _, p := range parts {
			if p.Member == m.ID {
				return p.Value, p.Err
			}
		}
		return part, nil // it was not asked: it has nothing of the application
	})
}

// moving reports whether an application is being moved to another home.
func (s *Server) moving(ctx context.Context, app creel.ApplicationID) bool {
	if s.conf.Elsewhere == nil {
		return false
	}
	_, moving, err := s.conf.Elsewhere(ctx, app)
	return err == nil && moving
}

// unknown reports whether a member answered that it does not have the application, by RPC or by REST.
func unknown(err error) bool {
	var status *remote.StatusError
	return errors.Is(err, creel.ErrApplicationNotFound) || errors.As(err, &status) && status.Code == http.StatusNotFound
}

// AtHolder calls the home of a container's application. If home does not know the container, it calls the other
// members until one does. The error is home's.
func AtHolder[T any](
	ctx context.Context,
	s *Server,
	app creel.ApplicationID,
	call func(ctx context.Context, m *remote.Member) (T, error),
) (answer T, err error) {
	answer, _, _, err = holder(ctx, s, app, call)
	return answer, err
}

// holder is AtHolder; it also returns the members that did not answer.
func holder[T any](
	ctx context.Context,
	s *Server,
	app creel.ApplicationID,
	call func(ctx context.Context, m *remote.Member) (T, error),
) (answer T, home creel.SubclusterID, silent []creel.SubclusterID, err error) {
	at, err := s.Home(ctx, app)
	if err != nil {
		return answer, "", nil, err
	}
	answer, err = call(ctx, at)
	if err == nil {
		return answer, at.ID, nil, nil
	}
	for _, p := range Ask(ctx, s, func(ctx context.Context, m *remote.Member) (T, error) {
		if m.ID == at.ID {
			return answer, err
		}
		return call(ctx, m)
	}) {
		if p.Err == nil {
			return p.Value, at.ID, nil, nil
		}
		if errors.Is(p.Err, creel.ErrUnavailable) || errors.Is(p.Err, ErrLost) {
			silent = append(silent, p.Member)
		}
	}
	return answer, at.ID, silent, err
}
