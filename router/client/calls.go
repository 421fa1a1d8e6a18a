// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster/remote"
)

// member has the calls that creel's and Hadoop's ResourceManagers answer alike.
type member struct{ m *remote.Member }

// report requests an application's report, with the fields that with adds to the request; nil adds none.
func (c member) report(
	ctx context.Context, app creel.ApplicationID, with func(request []byte) []byte,
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
	return c.m.Client(ctx, remote.Read, "", "getApplicationReport", request)
}

// Has implements Member.
func (c member) Has(ctx context.Context, app creel.ApplicationID) (bool, error) {
	_, err := c.report(ctx, app, nil)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, creel.ErrApplicationNotFound):
		return false, nil
	}
	return false, err
}

// NewID implements Member.
func (c member) NewID(ctx context.Context) (creel.ApplicationID, error) {
	answer, err := c.m.Client(ctx, remote.Read, "", "getNewApplication", nil)
	if err != nil {
		return creel.ApplicationID{}, err
	}
	var made yarnpb.GetNewApplicationResponseProto
	if err := made.UnmarshalVT(answer); err != nil {
		return creel.ApplicationID{}, err
	}
	return yarnpb.ToApplicationID(made.GetApplicationId()), nil
}

// SubmitCarried implements Member.
func (c member) SubmitCarried(ctx context.Context, held *yarnrpc.MovedApplication, claim int64) error {
	_, err := c.m.Client(ctx, remote.Write, held.User, "submitApplication", yarnrpc.SubmissionOf(held, claim))
	return err
}

// standing converts the answer to a report of an application: it runs there, has ended, or is absent.
func standing(answer []byte, err error) (router.Standing, error) {
	switch {
	case errors.Is(err, creel.ErrApplicationNotFound):
		return router.Absent, nil
	case err != nil:
		return 0, err
	case yarnrpc.HasEnded(answer):
		return router.Ended, nil
	}
	return router.Running, nil
}

// killed is the intent that ends an application.
func killed(app creel.ApplicationID, why string) intents.Intent {
	return intents.Intent{Application: app, Verb: intents.Kill, Diagnostics: why}
}
