// SPDX-License-Identifier: Apache-2.0

package intents

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/creelrm/creel"
)

// Waits reports whether what the home answered to a change leaves it to be carried out later: the home
// was away, or busy while the application is moved from it, which is asked only then.
func Waits(away, busy bool, moving func() bool) bool { return away || busy && moving() }

// KeepSignal records a signal for each of the silent members that may have its container, as nobody else
// has: for the home, and for those that have a part of the application. It returns for which; an error
// is the store's, and then the signal may be on record for some.
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

// AtOthers has call carry out what the home has, at every other member in which the application has a part, if
// the verb is for those too. One that does not answer (creel.ErrUnavailable), or takes nothing now, has it on
// record. Words from before home was asked (Earlier) go where this one is carried out. The errors are of parts
// that stay as they were, and of words that stay on record: what their members or the store said.
func AtOthers(
	ctx context.Context, s Store, i Intent, home creel.SubclusterID, earlier Words,
	call func(context.Context, Part) error,
) error {
	i.Member = ""
	failed := earlier.at("").giveWay(ctx, s, i)
	others, err := Others(ctx, s, i, home)
	if err != nil {
		failed = errors.Join(failed, fmt.Errorf("where else the application has parts is not known: %w", err))
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
