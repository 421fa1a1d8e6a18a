// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	"github.com/creelrm/creel/subcluster/rm"
)

// Turn lets the owner run f, which may change the machine, and waits for it. f must not block; nothing else uses the
// machine meanwhile.
func (s *Server) Turn(ctx context.Context, f func(m *rm.Machine, now time.Time)) error {
	return s.order(ctx, func(m *rm.Machine, now time.Time) error {
		f(m, now)
		return nil
	})
}
