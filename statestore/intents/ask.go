// SPDX-License-Identifier: Apache-2.0

package intents

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/creelrm/creel"
)

// Waits reports whether a change stays recorded after the home's answer: the home was away, or busy while the
// application is being moved from it. moving is called only if busy.
func Waits(away, busy bool, moving func() bool) bool { return away || busy && moving() }

// KeepSignal records a signal for each silent member that may have the container: the home, and the members with a UAM
// of the application. No other member can have it. It returns these members. The error comes from the store; then the
// signal may be recorded for some members.
func KeepSignal(
	ctx context.Context, s Store, i Intent, home creel.SubclusterID, silent []creel.SubclusterID,
) (kept []creel.SubclusterID, err error) {
	parts, err := Parts(ctx, s, i.Application, home)
	if err != nil {
		return nil, err
	}
	for _, id := range silent {
		if i.Member = id; id == home {
			i.Member = ""
		} else if !slices.ContainsFunc(parts, func(p Part) bool { return p.Member == id }) {
			continue
		}
		if err := Record(ctx, s, i); err != nil {
			return kept, err
		}
		kept = append(kept, id)
	}
	return kept, nil
}

// comesAgain reports whether a member must be asked again: it is busy, or its disk is full.
func comesAgain(err error) bool {
	return errors.Is(err, creel.ErrBusy) || errors.Is(err, creel.ErrReadOnly)
}

// AtOthers calls every other member that has a part of the application, if the verb applies to parts, to make the
// home's change there. It records the change for a member that does not answer (creel.ErrUnavailable), accepts no
// changes now, or does not know the UAM yet (creel.ErrApplicationNotFound): the UAM is recorded before it is submitted,
// with the value that home had then. Where the change is made, it removes intents recorded before the home was asked
// (Earlier). Errors come from members or the store: they are about unchanged parts, and intents that stay recorded.
func AtOthers(
	ctx context.Context, s Store, i Intent, home creel.SubclusterID, earlier Documents,
	call func(context.Context, Part) error,
) error {
	i.Member = ""
	failed := earlier.at("").giveWay(ctx, s, i)
	others, err := Others(ctx, s, i, home)
	if err != nil {
		failed = errors.Join(failed, fmt.Errorf("failed to find the application's other subclusters: %w", err))
	}
	for _, p := range others {
		err := call(ctx, p)
		i.Member = p.Member
		if errors.Is(err, creel.ErrUnavailable) || errors.Is(err, creel.ErrApplicationNotFound) || comesAgain(err) {
			err = Record(ctx, s, i)
		} else if err == nil {
			err = earlier.at(p.Member).giveWay(ctx, s, i)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("subcluster %s: %w", p.Member, err))
		}
	}
	return failed
}
