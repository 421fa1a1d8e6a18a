// SPDX-License-Identifier: Apache-2.0

package tidy

import (
	"context"
	"errors"
	"fmt"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// removed forgets the applications of members that were removed more than the TTL ago, by the store's clock. A member
// that has returned keeps its records.
func (k *Keeper) removed(ctx context.Context, view *subcluster.View) error {
	set, err := statestore.RemovalsIn(ctx, k.store)
	if err != nil {
		return err
	}
	var errs []error
	for i := range set.Documents {
		d := &set.Documents[i]
		id := creel.SubclusterID(d.Name)
		if !statestore.Returned(view, id) {
			if !set.Removed(view, id) || set.Now.Sub(d.Time) < k.cfg.TTL {
				continue
			}
			if err := k.forgetAll(ctx, id); err != nil {
				errs = append(errs, fmt.Errorf("%s, which was removed: %w", id, err))
				continue
			}
		}
		_, err := k.store.PutDocument(ctx, statestore.DocumentWrite{
			Class: statestore.RemovalsClass, Name: d.Name, Expect: d.Version, Author: d.Author, Quiet: true,
		})
		if err != nil && !errors.Is(err, creel.ErrConflict) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// forgetAll forgets the applications whose home is a member.
func (k *Keeper) forgetAll(ctx context.Context, id creel.SubclusterID) error {
	for cursor := ""; ; {
		page, next, err := k.store.HomesAt(ctx, id, cursor, statestore.MaxPage)
		if err != nil {
			return err
		}
		for _, h := range page {
			err := k.store.Forget(ctx, h.ID, id, 0)
			if err != nil && !errors.Is(err, creel.ErrConflict) && !errors.Is(err, creel.ErrApplicationNotFound) {
				return err
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}
