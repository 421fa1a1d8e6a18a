// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster/remote"
)

// creelMember is a ResourceManager of creel's. Its own calls are further fields of Hadoop's messages.
type creelMember struct{ member }

// Fences implements Member.
func (creelMember) Fences() bool { return true }

// Disown implements Member.
func (c creelMember) Disown(ctx context.Context, app creel.ApplicationID, claim int64) (router.Standing, error) {
	answer, err := c.report(ctx, app, func(request []byte) []byte { return yarnrpc.WithDisown(request, claim) })
	is, err := standing(answer, err)
	if err == nil && is == router.Running && yarnrpc.IsDisowned(answer, claim) {
		is = router.Disowned
	}
	return is, err
}

// Placed implements Member.
func (c creelMember) Placed(ctx context.Context, sub policies.Submission) (creel.QueuePath, error) {
	asked, err := yarnrpc.AskPlacement(&yarnpb.ApplicationSubmissionContextProto{
		ApplicationId:   yarnpb.FromApplicationID(sub.Application),
		ApplicationName: &sub.Name, ApplicationType: &sub.Type, ApplicationTags: sub.Tags,
		Queue: proto.String(string(sub.Queue)),
	})
	if err != nil {
		return "", err
	}
	request, err := asked.MarshalVT()
	if err != nil {
		return "", err
	}
	answer, err := c.m.Client(ctx, remote.Read, sub.User, "getQueueInfo", request)
	return yarnrpc.PlacedIn(answer), err
}

// CarryOut implements Member. By REST, an internal error is a state that passes, as after a restart.
func (c creelMember) CarryOut(ctx context.Context, i intents.Intent) (done bool, err error) {
	return c.carryOut(ctx, i, func(i intents.Intent, code int) bool {
		return code == http.StatusServiceUnavailable ||
			code == http.StatusInternalServerError && i.Verb != intents.Signal
	})
}

// End implements Member.
func (c creelMember) End(ctx context.Context, app creel.ApplicationID, why string) (bool, error) {
	done, err := c.CarryOut(ctx, killed(app, why))
	if !errors.Is(err, creel.ErrBusy) {
		return done, err
	}
	answer, err := c.report(ctx, app, nil)
	if err != nil {
		return false, err
	}
	var r yarnpb.GetApplicationReportResponseProto
	if err := r.UnmarshalVT(answer); err != nil {
		return false, err
	}
	if claim := yarnpb.HeldUnder(r.GetApplicationReport()); claim > 0 {
		return true, c.Drop(ctx, app, claim)
	}
	return false, nil // busy for another reason: the caller repeats
}

// Hold implements Member.
func (c creelMember) Hold(
	ctx context.Context, app creel.ApplicationID, claim int64, why string,
) (*yarnrpc.MovedApplication, error) {
	return c.hold(ctx, app, yarnrpc.Hold, claim, why)
}

// Release implements Member.
func (c creelMember) Release(ctx context.Context, app creel.ApplicationID, claim int64) error {
	_, err := c.hold(ctx, app, yarnrpc.ReleaseHold, claim, "")
	return err
}

// Drop implements Member.
func (c creelMember) Drop(ctx context.Context, app creel.ApplicationID, claim int64) error {
	_, err := c.hold(ctx, app, yarnrpc.DropHeld, claim, "")
	return err
}

// hold makes one call about a held application.
func (c creelMember) hold(
	ctx context.Context, app creel.ApplicationID, verb yarnrpc.HoldVerb, claim int64, why string,
) (*yarnrpc.MovedApplication, error) {
	answer, err := c.report(ctx, app, func(request []byte) []byte {
		return yarnrpc.WithHold(request, verb, claim, why)
	})
	if err != nil {
		return nil, err
	}
	held, done := yarnrpc.HoldDone(answer, verb, claim)
	if !done {
		return nil, holdsNone(c.m.ID, app)
	}
	return &held, nil
}

// holdsNone is the error for a ResourceManager that cannot hold applications.
func holdsNone(id creel.SubclusterID, app creel.ApplicationID) error {
	return &creel.Error{
		Kind: creel.ErrInvalidRequest,
		What: fmt.Sprintf("%s cannot be moved", app),
		Why:  fmt.Sprintf("the ResourceManager of %s holds no applications: it is not creel's, or older", id),
	}
}
