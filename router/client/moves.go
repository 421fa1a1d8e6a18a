// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// WaitingApplication is an application that waits for its AM's first container.
type WaitingApplication struct {
	Application creel.ApplicationID
	Queue       creel.QueuePath
	Submitted   time.Time
	Label       string // of the nodes on which its AM's container must run
	Held        int64  // number of the claim under which it is held; 0: it is not held
}

// Waiting implements Member.
func (c member) Waiting(ctx context.Context) ([]WaitingApplication, error) {
	list, err := getApplications(ctx, c.m, &yarnpb.GetApplicationsRequestProto{
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
