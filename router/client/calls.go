// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster/remote"
)

// report requests an application's report, with the fields that with adds to the request; nil adds none.
func report(
	ctx context.Context, m *remote.Member, app creel.ApplicationID, with func(request []byte) []byte,
) ([]byte, error) {
	request, err := proto.Marshal(
		&yarnpb.GetApplicationReportRequestProto{ApplicationId: yarnpb.FromApplicationID(app)},
	)
	if err != nil {
		return nil, err
	}
	if with != nil {
		request = with(request)
	}
	return m.Client(ctx, remote.Read, "", "getApplicationReport", request)
}

// Known asks a member whether it has an application. An error means that the member could not be asked.
func Known(ctx context.Context, m *remote.Member, app creel.ApplicationID) (bool, error) {
	_, err := report(ctx, m, app, nil)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, creel.ErrApplicationNotFound):
		return false, nil
	}
	return false, err
}

// NewID makes a member issue an application id.
func NewID(ctx context.Context, m *remote.Member) (creel.ApplicationID, error) {
	answer, err := m.Client(ctx, remote.Read, "", "getNewApplication", nil)
	if err != nil {
		return creel.ApplicationID{}, err
	}
	var made yarnpb.GetNewApplicationResponseProto
	if err := made.UnmarshalVT(answer); err != nil {
		return creel.ApplicationID{}, err
	}
	return yarnpb.ToApplicationID(made.GetApplicationId()), nil
}

// Disown asks a member to reject an application under claims up to a number, unless it has the application. Hadoop's
// ResourceManagers only report whether they have it.
func Disown(ctx context.Context, m *remote.Member, app creel.ApplicationID, claim int64) (router.Standing, error) {
	answer, err := report(ctx, m, app, func(request []byte) []byte { return yarnrpc.WithDisown(request, claim) })
	switch {
	case errors.Is(err, creel.ErrApplicationNotFound):
		return router.Absent, nil
	case err != nil:
		return 0, err
	case yarnrpc.HasEnded(answer):
		return router.Ended, nil
	case yarnrpc.IsDisowned(answer, claim):
		return router.Disowned, nil
	}
	return router.Running, nil
}

// Placed asks a member for the queue in which its placement rules would run a submission. An empty queue is the answer
// of a member that does not understand the request.
func Placed(ctx context.Context, m *remote.Member, sub policies.Submission) (creel.QueuePath, error) {
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
	answer, err := m.Client(ctx, remote.Read, sub.User, "getQueueInfo", request)
	return yarnrpc.PlacedIn(answer), err
}

// End ends an application at a member that is not its home. It kills the application. A member that holds a copy for
// a move rejects the kill as busy; End then drops the copy, by up to two further calls. It reports whether that is
// done.
func End(ctx context.Context, m *remote.Member, app creel.ApplicationID, why string) (bool, error) {
	done, err := CarryOut(ctx, m, intents.Intent{Application: app, Verb: intents.Kill, Diagnostics: why})
	if !errors.Is(err, creel.ErrBusy) {
		return done, err
	}
	answer, err := report(ctx, m, app, nil)
	if err != nil {
		return false, err
	}
	var r yarnpb.GetApplicationReportResponseProto
	if err := r.UnmarshalVT(answer); err != nil {
		return false, err
	}
	if claim := yarnpb.HeldUnder(r.GetApplicationReport()); claim > 0 {
		return true, Drop(ctx, m, app, claim)
	}
	return false, nil // busy for another reason: the caller repeats
}
