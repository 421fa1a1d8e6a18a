// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/remote"
)

// Hold makes a member hold a waiting application, and returns the data for its next home.
func Hold(
	ctx context.Context,
	m *remote.Member,
	app creel.ApplicationID,
	claim int64,
	why string,
) (*yarnrpc.MovedApplication, error) {
	return holdVerb(ctx, m, app, yarnrpc.Hold, claim, why)
}

// Release undoes Hold.
func Release(ctx context.Context, m *remote.Member, app creel.ApplicationID, claim int64) error {
	_, err := holdVerb(ctx, m, app, yarnrpc.ReleaseHold, claim, "")
	return err
}

// Drop makes a member delete an application that it holds.
func Drop(ctx context.Context, m *remote.Member, app creel.ApplicationID, claim int64) error {
	_, err := holdVerb(ctx, m, app, yarnrpc.DropHeld, claim, "")
	return err
}

func holdVerb(
	ctx context.Context,
	m *remote.Member,
	app creel.ApplicationID,
	verb yarnrpc.HoldVerb,
	claim int64,
	why string,
) (*yarnrpc.MovedApplication, error) {
	answer, err := report(ctx, m, app, func(request []byte) []byte {
		return yarnrpc.WithHold(request, verb, claim, why)
	})
	if err != nil {
		return nil, err
	}
	c, done := yarnrpc.HoldDone(answer, verb, claim)
	if !done {
		return nil, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: fmt.Sprintf("%s cannot be moved", app),
			Why:  fmt.Sprintf("the ResourceManager of %s holds no applications: it is not creel's, or older", m.ID),
		}
	}
	return &c, nil
}

// SubmitCarried submits an application that another member holds, with its user's name.
func SubmitCarried(ctx context.Context, m *remote.Member, c *yarnrpc.MovedApplication, claim int64) error {
	_, err := m.Client(ctx, remote.Write, c.User, "submitApplication", yarnrpc.SubmissionOf(c, claim))
	return err
}

// WaitingApplication is an application that waits for its AM's first container.
type WaitingApplication struct {
	Application creel.ApplicationID
	Queue       creel.QueuePath
	Submitted   time.Time
	Label       string // of the nodes on which its AM's container must run
	Held        int64  // number of the claim under which it is held; 0: it is not held
}

// Waiting lists the waiting applications of a member.
func Waiting(ctx context.Context, m *remote.Member) ([]WaitingApplication, error) {
	list, err := getApplications(ctx, m, &yarnpb.GetApplicationsRequestProto{
		ApplicationStates: []yarnpb.YarnApplicationStateProto{yarnpb.YarnApplicationStateProto_ACCEPTED},
	})
	if err != nil {
		return nil, err
	}
	var out []WaitingApplication
	for _, a := range list.GetApplications() {
		if a.GetUnmanagedApplication() || a.GetAppResource_Usage().GetNumUsedContainers() > 0 ||
			a.GetCurrentApplicationAttemptId().GetAttemptId() > 1 {
			continue
		}
		out = append(out, WaitingApplication{
			yarnpb.ToApplicationID(a.GetApplicationId()), creel.QueuePath(a.GetQueue()),
			time.UnixMilli(a.GetStartTime()), amLabel(a), yarnpb.HeldUnder(a),
		})
	}
	return out, nil
}

// amLabel returns the label of the nodes of an application's AM, "" for nodes without one.
func amLabel(a *yarnpb.ApplicationReportProto) string {
	if label := a.GetAmNodeLabelExpression(); !strings.HasPrefix(label, "<") { // "<DEFAULT_PARTITION>", "<Not set>"
		return label
	}
	return ""
}
