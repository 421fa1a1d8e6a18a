// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"context"

	"github.com/creelrm/creel"
)

type fenceKey struct{}

// Under attaches the lease to the context: each write with it fails with creel.ErrStale once a later holder exists.
func Under(ctx context.Context, l Lease) context.Context {
	return context.WithValue(ctx, fenceKey{}, l)
}

// FenceOf is the lease attached to the context.
func FenceOf(ctx context.Context) (Lease, bool) {
	l, ok := ctx.Value(fenceKey{}).(Lease)
	return l, ok && l.Name != ""
}

// Fenced returns the error for a write under a lease that has a later holder.
func Fenced(l Lease, newest int64) error {
	return failf(creel.ErrStale, "step down and acquire the lease again",
		"write refused", "lease %q is held with token %d now, the write carries %d", l.Name, newest, l.Token)
}
