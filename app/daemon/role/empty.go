// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// emptyStart decides whether a ResourceManager with an empty journal may serve. An empty journal is normal for a new
// member, and for a member without live applications. Otherwise a disk was replaced or is not mounted, or the
// directory is wrong. Serving would lose the running applications, so an operator must confirm it first.
func (m *Membership) emptyStart(ctx context.Context, dir string, log *slog.Logger) error {
	living, one, err := livingAt(ctx, m.Store, m.ID)
	for ; err != nil; living, one, err = livingAt(ctx, m.Store, m.ID) {
		log.Warn("the journal is empty, and the store does not answer whether that is right", "dir", dir, "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
	if living == 0 {
		return nil
	}
	if m.AcceptEmpty {
		log.Warn("the journal is empty, and was accepted: the applications of this member are lost",
			"subcluster", m.ID, "dir", dir, "applications", living)
		return nil
	}
	return &creel.Error{
		Kind: creel.ErrConflict,
		What: fmt.Sprintf("the ResourceManager of %s does not serve: its journal %s is empty", m.ID, dir),
		Why:  fmt.Sprintf("the state store has %d living applications of %s, such as %s", living, m.ID, one),
		Try: "mount the disk with its journal, or name the right directory by --data (creel.rm.data); if the journal is " +
			"lost for good, start once with --accept-empty (creel.membership.accept-empty=true): their state is gone",
	}
}

// livingAt counts the live applications whose home is a member, and returns one of them.
func livingAt(
	ctx context.Context,
	store statestore.Homes[creel.ApplicationID],
	id creel.SubclusterID,
) (count int, one creel.ApplicationID, err error) {
	for cursor := ""; ; {
		page, next, err := store.HomesAt(ctx, id, cursor, statestore.MaxPage)
		if err != nil {
			return 0, one, err
		}
		for _, h := range page {
			if h.Ends.IsZero() {
				count, one = count+1, h.ID
			}
		}
		if cursor = next; next == "" {
			return count, one, nil
		}
	}
}
