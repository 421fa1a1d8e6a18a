// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster/remote"
)

// Containers returns the members' lists of an attempt's containers: of its home, and of every member with a UAM of it,
// where the UAM has another attempt id. If the UAMs belong to a later attempt, the only list is home's. The error is
// home's; errors of other members are in their parts.
func Containers[R any](
	ctx context.Context,
	s *Server,
	attempt creel.AttemptID,
	list func(ctx context.Context, m *remote.Member, at creel.AttemptID) (R, error),
) ([]router.Part[R], error) {
	attempts := s.attempts(ctx, attempt)
	if attempts.earlier() {
		own, home, err := AtHome(ctx, s, attempt.Application,
			func(ctx context.Context, m *remote.Member) (R, error) { return list(ctx, m, attempt) })
		if err != nil {
			return nil, err
		}
		return []router.Part[R]{{Member: home.ID, Value: own}}, nil
	}
	if _, err := s.Home(ctx, attempt.Application); err != nil {
		return nil, err
	}
	lists := Ask(ctx, s, func(ctx context.Context, m *remote.Member) (R, error) {
		return list(ctx, m, attempts.at(m.ID))
	})
	_, _, err := partOfHome(ctx, s, attempt.Application, lists)
	return lists, err
}
