// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/creelrm/creel/statestore"
)

// Health makes a write, so that a majority of the servers has answered. It has no findings: ZooKeeper acknowledges
// nothing that a majority has not on disk.
func (s *Store) Health(ctx context.Context) ([]statestore.Finding, error) {
	if err := s.prepare(ctx); err != nil {
		return nil, s.gaveUp(ctx, err)
	}
	_, err := s.zk.Multi(ctx, &zk.SetDataRequest{Path: s.paths.clock, Version: -1})
	if err != nil {
		return nil, s.gaveUp(ctx, err)
	}
	return nil, nil
}

// Unanswered is the number of calls without an answer so far.
func (s *engine) Unanswered() int64 { return s.unanswered.Load() }
