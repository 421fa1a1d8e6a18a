// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore/intents"
)

// IDs tells which id an application has in a member: its own, or that of a UAM which could
// not have it there. While the store does not say, it is the application's everywhere.
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

// uams are those of an application by its record; none while the store does not say.
func (s *Server) uams(ctx context.Context, app creel.ApplicationID) []intents.Part {
	if s.conf.Intents == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	parts, err := intents.Parts(ctx, s.conf.Intents, app, "")
	if err != nil {
		s.conf.Log.Warn("which UAMs an application has is not known", "application", app.String(),
			"error", err)
	}
	return parts
}

// Attempts tell under which attempt each member has the containers of an attempt of home's.
type Attempts struct {
	of   creel.AttemptID
	uams []intents.Part
}

// Attempts looks an attempt up.
func (s *Server) Attempts(ctx context.Context, of creel.AttemptID) Attempts {
	return Attempts{of, s.uams(ctx, of.Application)}
}

// Earlier reports whether a later attempt has the UAMs. What they hold is that one's, so
// home alone has containers of this one.
func (a Attempts) Earlier() bool {
	return slices.ContainsFunc(a.uams, func(p intents.Part) bool { return a.of.Compare(p.Of) < 0 })
}

// At is the attempt in a member: a UAM's, which is its first if the record does not say, or
// home's number at home, and where no UAM is on record.
func (a Attempts) At(m creel.SubclusterID) creel.AttemptID {
	for _, p := range a.uams {
		if p.Member == m {
			return creel.AttemptID{Application: p.ID, Attempt: cmp.Or(p.Attempt, 1)}
		}
	}
	return a.of
}
