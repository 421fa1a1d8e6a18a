// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// Clients makes the calls of ApplicationClientProtocol for launching and killing UAMs. Calls act as user, or as the
// proxy's own user for "".
type Clients interface {
	// NewID requests an application id from a member. The member issues each id only once.
	NewID(ctx context.Context, member creel.SubclusterID, user string) (creel.ApplicationID, error)
	Submit(
		ctx context.Context,
		member creel.SubclusterID,
		user string,
		app *yarnpb.ApplicationSubmissionContextProto,
	) error
	// Report returns an application's report. The error is of kind creel.ErrApplicationNotFound if there is none.
	Report(
		ctx context.Context,
		member creel.SubclusterID,
		user string,
		app creel.ApplicationID,
	) (*yarnpb.ApplicationReportProto, error)
	// Kill kills an application, and reports whether it has ended.
	Kill(
		ctx context.Context,
		member creel.SubclusterID,
		user string,
		app creel.ApplicationID,
		why string,
	) (ended bool, err error)
}

// Sleep waits for d; the error is the context's.
type Sleep func(ctx context.Context, d time.Duration) error

// ownerOf returns the application's owner: the ResourceManager returns the token of a UAM only to the owner.
func ownerOf(
	ctx context.Context,
	c Clients,
	home creel.SubclusterID,
	app creel.ApplicationID,
	known string,
) (string, error) {
	if known != "" {
		return known, nil
	}
	report, err := c.Report(ctx, home, "", app)
	if err != nil {
		return "", fmt.Errorf("failed to find the owner of %s: %w", app, err)
	}
	if report.GetUser() == "" {
		return "", noOwner(app)
	}
	return report.GetUser(), nil
}

// HomeTime returns the part of a launch's or drop's time for home's optional report. If home accepts calls but does
// not answer, there is time left for the next steps.
func HomeTime(whole time.Duration) time.Duration { return min(3*time.Second, whole/3) }

// originOf returns home's report of the application, with its owner. If the owner is known and home does not answer
// before brief ends, the report has only the owner.
func originOf(ctx, brief context.Context, c Clients, l Launch) (*yarnpb.ApplicationReportProto, error) {
	if l.User != "" {
		ctx = brief
	}
	origin, err := c.Report(ctx, l.Home, l.User, l.Application)
	switch {
	case err != nil && l.User == "":
		return nil, fmt.Errorf("failed to find the owner of %s: %w", l.Application, err)
	case err != nil:
		return &yarnpb.ApplicationReportProto{User: proto.String(l.User)}, nil
	case origin.GetUser() == "":
		return nil, noOwner(l.Application)
	}
	return origin, nil
}

func noOwner(app creel.ApplicationID) error {
	return &creel.Error{
		Kind: creel.ErrUnavailable,
		What: "home did not report the owner of " + app.String(),
		Try:  "try again",
	}
}

// ErrSpent is the kind of the error for a member that has had a UAM with the id, and does not accept it again.
var ErrSpent = fmt.Errorf("%w: the application id was used", creel.ErrConflict)

// LaunchUAM launches a UAM by the steps of Hadoop's UnmanagedAMLauncher: submit, wait until the attempt is launched,
// read its token from the report. The UAM gets type, tags, priority and remaining lifetime from home's report of the
// application. So the member's queues order the UAM as home's queues order the application, and operators find it. It
// also ends in time while home is away. If home does not answer before brief ends, the launch continues without
// these, provided the owner is known.
//
// It may be repeated: a ResourceManager accepts a repeated submission without change. Creel's ResourceManager starts
// an ended UAM again. Hadoop's does not; then the error is of kind ErrSpent.
//
// ctx bounds the call. brief is derived from ctx and ends after HomeTime.
func LaunchUAM(ctx, brief context.Context, c Clients, sleep Sleep, l Launch) (Launched, error) {
	out := Launched{Member: l.Member}
	origin, err := originOf(ctx, brief, c, l)
	if err != nil {
		return out, err
	}
	user := origin.GetUser()
	out.User, out.Type = user, origin.GetApplicationType()
	id := cmp.Or(l.OwnID, l.Application)
	submission, after := submissionContext(l, id, origin), int32(0)
	if err := c.Submit(ctx, l.Member, user, submission); err != nil {
		return out, fmt.Errorf("submit the UAM to %s: %w", l.Member, err)
	}
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		report, err := c.Report(ctx, l.Member, user, id)
		if err != nil {
			return out, fmt.Errorf("report of the UAM in %s: %w", l.Member, err)
		}
		if t := report.GetAmRmToken(); len(t.GetPassword()) > 0 {
			out.Token, out.Attempt = t, yarnpb.ToAttemptID(report.GetCurrentApplicationAttemptId())
			return out, nil
		}
		switch state := creel.ApplicationState(report.GetYarnApplicationState()); {
		case state.Ended():
			last := report.GetCurrentApplicationAttemptId().GetAttemptId()
			if last <= after {
				return out, &creel.Error{
					Kind: ErrSpent,
					What: fmt.Sprintf("the UAM in %s is %s and cannot be started again", l.Member, state),
					Why:  cmp.Or(report.GetDiagnostics(), "its ResourceManager accepts an application id only once"),
				}
			}
			after = last
			yarnpb.BeginAfter(submission, last)
			if err := c.Submit(ctx, l.Member, user, submission); err != nil {
				return out, fmt.Errorf("restart the UAM in %s: %w", l.Member, err)
			}
		case state == creel.AppRunning:
			return out, &creel.Error{
				Kind: creel.ErrConflict,
				What: fmt.Sprintf("the UAM in %s has registered before", l.Member),
				Why:  "its token was lost; reports have it only before the registration",
				Try:  "kill it there",
			}
		}
		if err := sleep(ctx, pause); err != nil {
			return out, &creel.Error{
				Kind: creel.ErrUnavailable,
				What: fmt.Sprintf("the UAM in %s was not launched in time", l.Member),
				Why:  err.Error(),
				Try:  "check whether its queue is full",
			}
		}
	}
}

// submissionContext returns the submission of a UAM. origin is the report of its application. If the UAM has another
// id than its application, a tag names the application.
func submissionContext(
	l Launch,
	id creel.ApplicationID,
	origin *yarnpb.ApplicationReportProto,
) *yarnpb.ApplicationSubmissionContextProto {
	tags := origin.GetApplicationTags()
	if id != l.Application {
		tags = append(slices.Clone(tags[:min(len(tags), mostTags-1)]), creel.UAMTag(l.Application))
	}
	return &yarnpb.ApplicationSubmissionContextProto{
		ApplicationId:                           yarnpb.FromApplicationID(id),
		ApplicationName:                         proto.String(l.Name),
		Queue:                                   proto.String(string(l.Queue)),
		NodeLabelExpression:                     l.Label,
		UnmanagedAm:                             proto.Bool(true),
		AmContainerSpec:                         &yarnpb.ContainerLaunchContextProto{},
		Resource:                                yarnpb.FromResource(creel.Resource{MemoryMB: 1024, VCores: 1}),
		ApplicationType:                         origin.ApplicationType,
		ApplicationTags:                         tags,
		Priority:                                yarnpb.FromPriority(origin.GetPriority().GetPriority()),
		KeepContainersAcrossApplicationAttempts: proto.Bool(true),
		MaxAppAttempts:                          proto.Int32(1),
		ApplicationTimeouts:                     timeLeft(origin),
	}
}

// timeLeft returns the timeouts for a UAM that starts now, from the remaining timeouts of its application. So the UAM
// ends in time even while its home and its proxy are away.
func timeLeft(origin *yarnpb.ApplicationReportProto) (out []*yarnpb.ApplicationTimeoutMapProto) {
	for _, t := range origin.GetAppTimeouts() {
		if left := t.GetApplicationTimeout().GetRemainingTime(); left > 0 { // -1: no timeout
			out = append(out, &yarnpb.ApplicationTimeoutMapProto{
				ApplicationTimeoutType: t.ApplicationTimeoutType, Timeout: proto.Int64(left),
			})
		}
	}
	return out
}

// mostTags is the number of tags that Hadoop's ResourceManager accepts for an application
// (YarnConfiguration.APPLICATION_MAX_TAGS).
const mostTags = 10

// DropUAM kills a UAM and waits until it has ended. A UAM that does not exist counts as ended. ctx bounds the call.
// brief is derived from ctx and ends after HomeTime.
func DropUAM(ctx, brief context.Context, c Clients, sleep Sleep, d Drop) error {
	user, err := ownerOf(brief, c, d.Home, d.Application, d.User)
	if err != nil {
		user = "" // the proxy's own user may be allowed to kill it
	}
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		ended, err := c.Kill(ctx, d.Member, user, cmp.Or(d.OwnID, d.Application), "its AM has ended")
		if errors.Is(err, creel.ErrApplicationNotFound) {
			return nil
		}
		if err != nil || ended {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}
