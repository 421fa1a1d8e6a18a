// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"

	"github.com/creelrm/creel/statestore"
)

// Health checks that the system serves changes, and reports settings that weaken a promise.
func (s *Store) Health(ctx context.Context) ([]statestore.Finding, error) {
	if err := s.prepare(ctx); err != nil {
		return nil, s.gaveUp(ctx, err)
	}
	findings, err := s.tree.Health(ctx)
	if err != nil {
		return nil, s.gaveUp(ctx, err)
	}
	return findings, nil
}

// Unanswered is the number of calls without an answer so far.
func (s *engine) Unanswered() int64 { return s.unanswered.Load() }
