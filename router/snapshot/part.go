// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/remote"
)

// Part is a member's newest part of a list.
type Part[T any] struct {
	Member creel.SubclusterID
	Items  []T
	At     time.Time // time when the member sent it; zero: never
	Err    error     // reason why there is no newer one
}

// Same reports whether two lists have the same parts: the identical items of each member, and the same errors.
func Same[T any](a, b []Part[T]) bool {
	return slices.EqualFunc(a, b, func(x, y Part[T]) bool {
		return x.Member == y.Member && len(x.Items) == len(y.Items) &&
			(len(x.Items) == 0 || &x.Items[0] == &y.Items[0]) && errors.Is(x.Err, y.Err)
	})
}

// Age returns the age of the oldest part of the members that answer, in seconds.
func Age[T any](parts []Part[T], now time.Time) float64 {
	oldest := now
	for i := range parts {
		if parts[i].Err == nil && parts[i].At.Before(oldest) {
			oldest = parts[i].At
		}
	}
	return now.Sub(oldest).Round(100 * time.Millisecond).Seconds()
}

// Sent reports whether a member has sent its part of a list, or the federation has no member that could.
func Sent[T any](parts []Part[T]) bool {
	return len(parts) == 0 || slices.ContainsFunc(parts, func(p Part[T]) bool { return !p.At.IsZero() })
}

// Refusal returns the first rejection if all members rejected the call, nil if one did not.
func Refusal[T any](parts []Part[T]) error {
	var first *remote.StatusError
	for i := range parts {
		var refused *remote.StatusError
		if parts[i].Err == nil || !errors.As(parts[i].Err, &refused) || refused.Code >= http.StatusInternalServerError {
			return nil
		}
		if first == nil {
			first = refused
		}
	}
	if first == nil {
		return nil
	}
	return &creel.Error{
		Kind: creel.ErrNotPermitted, What: "the members refuse to list this", Why: first.Error(),
		Try: "ask as a permitted user, by ?user.name=",
	}
}
