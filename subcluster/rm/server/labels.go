// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	"github.com/creelrm/creel/subcluster/rm"
)

// AddLabels adds node labels to the cluster at an administrator's order. Like the functions below, it returns when
// the change is durable.
func (s *Server) AddLabels(ctx context.Context, list []rm.Label) error {
	return s.durableOrder(ctx, func(m *rm.Machine, now time.Time) error { return m.AddLabels(now, list) })
}

// RemoveLabels removes labels from the cluster and from nodes.
func (s *Server) RemoveLabels(ctx context.Context, names []string) error {
	return s.durableOrder(ctx, func(m *rm.Machine, now time.Time) error { return m.RemoveLabels(now, names) })
}

// ReplaceLabels replaces the labels of nodes; strict rejects nodes that never registered.
func (s *Server) ReplaceLabels(ctx context.Context, list []rm.NodeLabels, strict bool) error {
	return s.durableOrder(ctx, func(m *rm.Machine, now time.Time) error { return m.ReplaceLabels(now, list, strict) })
}

// durableOrder is order for changes that must be durable before the response.
func (s *Server) durableOrder(ctx context.Context, f func(m *rm.Machine, now time.Time) error) error {
	_, err := Do(ctx, s, Caller{}, Op[struct{}]{
		durable: true,
		Run: func(m *rm.Machine, now time.Time) func() (struct{}, error) {
			err := f(m, now)
			s.owner.Changed()
			s.changes.Add(1)
			s.moves.Add(1)
			return Failed[struct{}](err)
		},
	})
	return err
}
