// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster/remote"
)

// recordTime bounds the writing of an intent whose member did not answer. earlierTime bounds the reading of recorded
// intents before a member is asked, so that callers do not wait for an unavailable store.
const (
	recordTime  = 5 * time.Second
	earlierTime = time.Second
)

// PendingChange is a recorded change that routers carry out later.
type PendingChange struct {
	For []creel.SubclusterID // members that did not answer; none: the application is being moved to another home
}

// Change applies a user's change to an application at its home, and then in each other member with a part of it. A
// kill goes to every member, since it does nothing in a member without the application. A move or a priority goes to
// the members with a UAM. Answer and error are home's.
//
// If home does not answer, or the application is being moved to another home, the intent is recorded (kept). Routers
// carry it out when a home can accept it. A kill still goes to the other members at once; each checks the user's
// permission. If another member does not accept a move or a priority now, that is recorded too. A UAM that a kill
// misses still ends: its proxy drops it when home reports that the attempt is over.
//
// In members where this change is carried out, earlier recorded changes of the same kind (queue, priority or
// lifetime) are dropped.
func Change[T any](
	ctx context.Context,
	s *Server,
	i intents.Intent,
	call func(ctx context.Context, m *remote.Member, app creel.ApplicationID) (T, error),
) (answer T, kept *PendingChange, err error) {
	earlier := s.earlier(ctx, i)
	defer func() { s.recordChange(ctx, &i, kept, err) }()
	answer, home, err := AtHome(ctx, s, i.Application, func(ctx context.Context, m *remote.Member) (T, error) {
		return call(ctx, m, i.Application)
	})
	if err != nil {
		away := errors.Is(err, creel.ErrUnavailable)
		moving := func() bool { return s.moving(ctx, i.Application) }
		if s.conf.Intents == nil || !intents.Waits(away, busy(err), moving) {
			return answer, nil, err
		}
		if s.record(ctx, i) != nil {
			return answer, nil, err // home's error is more useful than the store's
		}
		kept = &PendingChange{}
		if home != nil && away {
			kept.For = []creel.SubclusterID{home.ID}
		} else if id, seen := s.HomeSeen(i.Application); seen && away {
			kept.For = []creel.SubclusterID{id}
		}
		s.conf.Log.Warn("change queued: home unavailable", "application", i.Application.String(),
			"user", i.User, "intent", i.String(), "error", err)
	}
	if i.Verb == intents.Kill {
		idAt := s.IDs(ctx, i.Application)
		Ask(ctx, s, func(ctx context.Context, m *remote.Member) (bool, error) {
			if home != nil && m.ID == home.ID {
				return true, nil
			}
			_, err := call(ctx, m, idAt(m.ID))
			return err == nil, nil
		})
		s.counts.Killed.Add(1)
	} else if kept == nil && s.conf.Intents != nil {
		part := func(ctx context.Context, m *remote.Member, app creel.ApplicationID) error {
			_, err := call(ctx, m, app)
			return err
		}
		s.elsewhere(ctx, i, home.ID, earlier, part)
	}
	return answer, kept, nil
}

// recordChange records a user's change as an event.
func (s *Server) recordChange(ctx context.Context, i *intents.Intent, kept *PendingChange, err error) {
	kind, ok := map[intents.Verb]statestore.EventKind{
		intents.Kill: statestore.EventKill, intents.Move: statestore.EventMove,
		intents.Priority: statestore.EventPriority, intents.Timeouts: statestore.EventLifetime,
		intents.Signal: statestore.EventSignal,
	}[i.Verb]
	if !ok || s.conf.Record == nil {
		return
	}
	e := statestore.Event{Kind: kind, Subject: i.Application.String(), User: i.User, After: i.String()}
	switch {
	case err != nil:
		e.Result, e.Detail = statestore.EventFailed, err.Error()
	case kept != nil:
		e.Result = statestore.EventKept
	}
	s.conf.Record(ctx, e)
}

// RecordDrain records a drain of a host, or its end, as an event.
func (s *Server) RecordDrain(
	ctx context.Context, host string, at creel.SubclusterID, user, after, reason string, err error,
) {
	if s.conf.Record == nil || at == "" {
		return
	}
	e := statestore.Event{
		Kind: statestore.EventDrain, Subject: host, User: user, After: after + " at " + string(at), Detail: reason,
	}
	if err != nil {
		e.Result, e.Detail = statestore.EventFailed, err.Error()
	}
	s.conf.Record(ctx, e)
}

// Signal sends a signal to a container of an application at the member that runs it. It tries home first. If no
// answering member has the container, a silent member may have it. Then the signal is recorded for each silent member
// with a part of the application (kept), and routers carry it out when the member is back. The error is home's.
func Signal[T any](
	ctx context.Context,
	s *Server,
	i intents.Intent,
	call func(ctx context.Context, m *remote.Member) (T, error),
) (answer T, kept *PendingChange, err error) {
	defer func() { s.recordChange(ctx, &i, kept, err) }()
	answer, home, silent, err := holder(ctx, s, i.Application, call)
	if err == nil || s.conf.Intents == nil || len(silent) == 0 {
		return answer, nil, err
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	waits, unkept := intents.KeepSignal(limited, s.conf.Intents, i, home, silent)
	for _, id := range waits {
		s.conf.Log.Warn("signal queued: subcluster unavailable", "application", i.Application.String(), "subcluster",
			string(id), "user", i.User, "intent", i.String(), "error", err)
	}
	if unkept != nil || len(waits) == 0 {
		return answer, nil, err // home's error is more useful than the store's
	}
	return answer, &PendingChange{For: waits}, nil
}

// busy reports whether a member asks for a retry, by RPC or by REST.
func busy(err error) bool {
	var status *remote.StatusError
	return errors.Is(err, creel.ErrBusy) || errors.As(err, &status) && status.Code == http.StatusServiceUnavailable
}

// record writes an intent with a separate timeout: the caller's may have expired while the member was silent.
func (s *Server) record(ctx context.Context, i intents.Intent) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	return intents.Record(ctx, s.conf.Intents, i)
}

// elsewhere repeats home's change at the members with a UAM of the application. A silent member gets it later, as does
// a member that does not know its recorded UAM. If a member rejects it, its UAM stays unchanged, and only the log has
// the error: the user gets home's answer.
func (s *Server) elsewhere(
	ctx context.Context,
	i intents.Intent,
	home creel.SubclusterID,
	earlier intents.Documents,
	call func(ctx context.Context, m *remote.Member, app creel.ApplicationID) error,
) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	err := intents.AtOthers(ctx, s.conf.Intents, i, home, earlier, func(ctx context.Context, p intents.Part) error {
		m, err := s.Member(p.Member)
		if err == nil {
			err = call(ctx, m, p.ID)
		}
		if err != nil && unknown(err) {
			return fmt.Errorf("%w: %w", creel.ErrApplicationNotFound, err) // by REST it is only a status
		}
		return err
	})
	if err != nil {
		s.conf.Log.Warn("failed to apply change to all UAMs",
			"application", i.Application.String(),
			"user", i.User, "intent", i.String(), "error", err)
	}
}

// earlier returns the recorded changes that this change replaces.
func (s *Server) earlier(ctx context.Context, i intents.Intent) intents.Documents {
	if s.conf.Intents == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, earlierTime)
	defer cancel()
	words, err := intents.Earlier(ctx, s.conf.Intents, i)
	if err != nil {
		s.conf.Log.Warn("failed to read earlier queued changes; they may undo this one", "application",
			i.Application.String(), "user", i.User, "intent", i.String(), "error", err)
	}
	return words
}

// IntentsOf returns users' changes of an application that wait or were rejected recently.
func (s *Server) IntentsOf(ctx context.Context, app creel.ApplicationID) ([]intents.Intent, error) {
	if s.conf.Intents == nil {
		return nil, nil
	}
	return intents.Waiting(ctx, s.conf.Intents, app)
}
