// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"errors"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// isLost reports the error of a call to the system.
func isLost(err error) bool { return errors.As(err, new(*lostCall)) || errors.Is(err, errSoon) }

// uams is the shard of an application's UAM records. Hadoop's programs have none.
func (t *txn) uams(app creel.ApplicationID) (*shard, error) {
	return t.shard(part{t.store.paths.uams + "/" + app.String(), []string{"spreads", "dropped"}})
}

// SaveUAMRecord implements statestore.UAMRecords.
func (s *Store) SaveUAMRecord(ctx context.Context, r statestore.UAMRecord) (revision int64, err error) {
	if err := statestore.CheckUAMRecord(&r); err != nil {
		return 0, err
	}
	err = s.change(ctx, false, func(t *txn) error {
		of, err := t.uams(r.Attempt.Application)
		if err == nil {
			revision, err = of.SaveUAMRecord(r)
		}
		return err
	})
	return revision, err
}

// UAMRecord implements statestore.UAMRecords.
func (s *Store) UAMRecord(ctx context.Context, a creel.AttemptID) (r statestore.UAMRecord, err error) {
	err = s.look(ctx, func(t *txn) error {
		of, err := t.uams(a.Application)
		if err == nil {
			r, err = of.UAMRecord(a)
		}
		return err
	})
	return r, err
}

// UAMRecordsOf implements statestore.UAMRecords.
func (s *Store) UAMRecordsOf(
	ctx context.Context, app creel.ApplicationID,
) (list []statestore.UAMRecord, err error) {
	err = s.look(ctx, func(t *txn) error {
		of, err := t.uams(app)
		if err == nil {
			list = of.UAMRecordsOf(app)
		}
		return err
	})
	return list, err
}

// DropUAMRecord implements statestore.UAMRecords.
func (s *Store) DropUAMRecord(ctx context.Context, a creel.AttemptID) error {
	return s.change(ctx, false, func(t *txn) error {
		of, err := t.uams(a.Application)
		if err == nil {
			of.DropUAMRecord(a)
		}
		return err
	})
}
