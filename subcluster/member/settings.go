// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// Settings has the queues of a ResourceManager without escrow. Their maxima are settings: remote.HadoopQueues.
type Settings interface {
	// Read returns the present queues, and whether their maxima can be changed.
	Read(ctx context.Context) (queues map[subcluster.QueueOn]remote.QueueNow, change bool, err error)
	// Limit changes maxima on nodes without a label. If unclear is true, the change may have been made, or may still
	// be made.
	Limit(ctx context.Context, to map[creel.QueuePath]creel.Resource) (unclear bool, err error)
}

// askSettings makes the requests from the ResourceManager's reported settings.
func (k *Keeper) askSettings(ctx context.Context, sent time.Time) error {
	now, change, err := k.Settings.Read(ctx)
	if err != nil {
		return fmt.Errorf("its queues cannot be read: %w", err)
	}
	for path, q := range k.queues {
		is := now[path]                               // a missing queue uses nothing and may use nothing
		q.setting.Fixed = !change || path.Label != "" // maxima on labels are not changed
		q.setting.Seen(is.Most)
		q.request = q.setting.Ask(sent, is.Uses, is.Needs)
	}
	return nil
}

// change sets the granted maxima of all queues with a federation-wide maximum, even if only some changed. A queue's
// percentage means another amount when its parent's maximum changes.
func (k *Keeper) change(ctx context.Context, sent time.Time) error {
	if k.Clock.Now().Sub(sent) >= k.Terms.Lease-k.Terms.Margin {
		return nil // the grant is too old: another process may act for the member by now
	}
	to, due := map[creel.QueuePath]creel.Resource{}, map[creel.QueuePath]creel.Resource{}
	for path, q := range k.queues {
		if target, changes := q.setting.Change(); changes {
			due[path.Queue], to[path.Queue] = target, target
		} else if !q.setting.Fixed {
			to[path.Queue] = q.request.Holds
		}
	}
	if len(due) == 0 {
		return nil
	}
	unclear, err := k.Settings.Limit(ctx, to)
	for path, target := range due {
		if err == nil || unclear {
			k.queues[subcluster.QueueOn{Queue: path}].setting.Changed(k.Clock.Now(), target, err == nil)
		}
	}
	return err
}

// lift drops queues that no longer have a federation-wide maximum. Their setting keeps its last value: only an
// administrator knows the right one.
func (k *Keeper) lift() {
	for path, q := range k.queues {
		if !q.seen {
			delete(k.queues, path)
			if path.Label == "" {
				k.Log.Warn("queue's federation-wide maximum removed; its maximum-capacity stays",
					"subcluster", k.ID, "queue", string(path.Queue))
			}
		}
	}
}
