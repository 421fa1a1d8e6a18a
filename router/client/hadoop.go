// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net/http"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore/intents"
)

// hadoopMember is a ResourceManager of Hadoop's, for which an agent acts. It gets no call of creel's own.
type hadoopMember struct{ member }

// Fences implements Member.
func (hadoopMember) Fences() bool { return false }

// Disown implements Member.
func (c hadoopMember) Disown(ctx context.Context, app creel.ApplicationID, _ int64) (router.Standing, error) {
	return standing(c.report(ctx, app, nil))
}

// Placed implements Member.
func (hadoopMember) Placed(context.Context, policies.Submission) (creel.QueuePath, error) {
	return "", nil
}

// CarryOut implements Member. By REST, Hadoop's ResourceManagers answer lasting refusals as internal errors.
func (c hadoopMember) CarryOut(ctx context.Context, i intents.Intent) (done bool, err error) {
	return c.carryOut(ctx, i, func(_ intents.Intent, code int) bool { return code == http.StatusServiceUnavailable })
}

// End implements Member.
func (c hadoopMember) End(ctx context.Context, app creel.ApplicationID, why string) (bool, error) {
	done, err := c.CarryOut(ctx, killed(app, why))
	if errors.Is(err, creel.ErrBusy) {
		return false, nil // the caller repeats
	}
	return done, err
}

// Hold implements Member.
func (c hadoopMember) Hold(
	ctx context.Context, app creel.ApplicationID, _ int64, _ string,
) (*yarnrpc.MovedApplication, error) {
	return nil, c.holdsNone(ctx, app)
}

// Release implements Member.
func (c hadoopMember) Release(ctx context.Context, app creel.ApplicationID, _ int64) error {
	return c.holdsNone(ctx, app)
}

// Drop implements Member.
func (c hadoopMember) Drop(ctx context.Context, app creel.ApplicationID, _ int64) error {
	return c.holdsNone(ctx, app)
}

// holdsNone returns the error for an application that cannot be held; creel.ErrApplicationNotFound if it is absent.
func (c hadoopMember) holdsNone(ctx context.Context, app creel.ApplicationID) error {
	if _, err := c.report(ctx, app, nil); err != nil {
		return err
	}
	return holdsNone(c.m.ID, app)
}
