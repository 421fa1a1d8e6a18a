// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	"github.com/creelrm/creel/subcluster/rm"
)

// MapAttributes changes the attributes of hosts at an administrator's order. It returns when the change is durable.
// strict rejects hosts on which no node registered.
func (s *Server) MapAttributes(
	ctx context.Context,
	op rm.AttributeOp,
	list []rm.HostAttributes,
	strict bool,
) error {
	return s.durableOrder(ctx, func(m *rm.Machine, now time.Time) error {
		return m.MapAttributes(now, op, list, strict)
	})
}
