// SPDX-License-Identifier: Apache-2.0

package role

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/epochs"
)

// claimTime limits the claim of a first epoch, for which a new ResourceManager waits.
const claimTime = 10 * time.Second

// firstEpoch is the first epoch of a member: from its settings, from its journal, or a free one. An epoch from the
// journal was claimed before, and needs no store. A start that needs no claim does not fail if the store is silent:
// keepEpoch claims the epoch later.
func (m *Membership) firstEpoch(named, kept int64, before bool, log *slog.Logger) (int64, error) {
	if kept != 0 && cmp.Or(named, kept) == kept {
		return kept, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimTime)
	defer cancel()
	want := cmp.Or(named, epochs.Any)
	epoch, err := epochs.Claim(ctx, m.Store, m.ID, want)
	switch {
	case err == nil || errors.Is(err, creel.ErrConflict):
		return epoch, err
	case want != epochs.Any || before:
		want = max(want, 0)
		log.Warn("failed to check that the first epoch is unique", "subcluster", m.ID,
			"epoch", want, "error", err)
		return want, nil
	}
	return 0, &creel.Error{
		Kind: creel.ErrUnavailable,
		What: "the ResourceManager of " + string(m.ID) + " did not start: it has no first epoch",
		Why:  "the store assigns a unique one, and did not answer: " + err.Error(),
		Try:  "start it when the store answers, or set yarn.resourcemanager.epoch to a unique number",
	}
}

// keepEpoch writes a member's first epoch to the store: of a Hadoop member, of a member that started without the
// store, and after the store came back empty.
func keepEpoch(
	ctx context.Context, store statestore.Documents, id creel.SubclusterID, first int64, log *slog.Logger,
) error {
	tick := time.NewTicker(epochEvery)
	defer tick.Stop()
	for logged := ""; ; {
		now := ""
		if _, err := epochs.Claim(ctx, store, id, first); errors.Is(err, creel.ErrConflict) {
			now = err.Error()
		}
		if now != logged && now != "" {
			log.Error("containers of two members may have the same ids", "subcluster", id, "error", now)
		}
		logged = now
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// epochEvery is the pause between a member's checks that the store has its first epoch.
const epochEvery = time.Minute
