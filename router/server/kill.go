// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore/kills"
	"github.com/creelrm/creel/subcluster/remote"
)

// recordTime bounds the writing down of a kill whose home did not answer.
const recordTime = 5 * time.Second

// Kill ends an application at its home, and then wherever it may have a UAM: a
// member that does not know the application has nothing to end. The answer is
// the home's, and so is the error. A UAM that this misses ends all the same:
// its proxy drops it when home says that the attempt is over.
//
// A home that does not answer leaves the kill on record (later), and routers make it
// when the home is back. What the other members have is ended at once; each of them
// asks whether the user may.
func Kill[T any](
	ctx context.Context,
	s *Server,
	k kills.Kill,
	call func(ctx context.Context, m *remote.Member) (T, error),
) (answer T, later bool, err error) {
	answer, home, err := AtHome(ctx, s, k.Application, call)
	if err != nil {
		if s.conf.Kills == nil || !errors.Is(err, creel.ErrUnavailable) {
			return answer, false, err
		}
		// The caller's time may be over with the home's silence.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
		defer cancel()
		if kills.Record(ctx, s.conf.Kills, k) != nil {
			return answer, false, err // what the home did is the better answer
		}
		later = true
		s.conf.Log.Warn("a kill waits for the application's home", "application", k.Application.String(),
			"user", k.User, "error", err)
	}
	Ask(ctx, s, func(ctx context.Context, m *remote.Member) (bool, error) {
		if home != nil && m.ID == home.ID {
			return true, nil
		}
		_, err := call(ctx, m)
		return err == nil, nil
	})
	s.counts.Killed.Add(1)
	return answer, later, nil
}

// KillsOf are the kills of an application that wait for its home.
func (s *Server) KillsOf(ctx context.Context, app creel.ApplicationID) (out []kills.Kill, err error) {
	if s.conf.Kills == nil {
		return nil, nil
	}
	all, err := kills.Waiting(ctx, s.conf.Kills)
	for _, k := range all {
		if k.Application == app {
			out = append(out, k)
		}
	}
	return out, err
}
