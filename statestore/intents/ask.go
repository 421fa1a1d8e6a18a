// SPDX-License-Identifier: Apache-2.0

package intents

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/creelrm/creel"
)

// Waits reports whether the home's answer to a change leaves it for later: the home was away, or busy while the
// application is moved from it; moving is called only if busy.
func Waits(away, busy bool, moving func() bool) bool { return away || busy && moving() }

// KeepSignal records a signal for each silent member that may have its container, since no other member has it: for
// the home, and for the members that have a part of the application. It returns these members; an error is the
// store's, and then the signal may be recorded for some.
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

// comesAgain reports whether a member that answered is to be asked again: it is busy, or its disk is full.
func comesAgain(err error) bool {
	return errors.Is(err, creel.ErrBusy) || errors.Is(err, creel.ErrReadOnly)
}

// AtOthers has call carry out the home's change at every other member in which the application has a part, if the
// verb is for those too. For a member that does not answer (creel.ErrUnavailable), or accepts no changes now, it is
// recorded. Intents from before home was asked (Earlier) are removed where this one is carried out. The errors are of
// unchanged parts and of intents that stay on record: errors of their members or the store.
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
		if errors.Is(err, creel.ErrUnavailable) || comesAgain(err) {
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
