// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// homeAndMember are clients of a home, which has a report of an application, and of a member that launches submitted
// applications.
type homeAndMember struct {
	Clients
	origin    *yarnpb.ApplicationReportProto // nil: home hangs
	submitted *yarnpb.ApplicationSubmissionContextProto
	user      string // the user that submitted, or killed
}

func (c *homeAndMember) Submit(
	ctx context.Context, _ creel.SubclusterID, user string, app *yarnpb.ApplicationSubmissionContextProto,
) error {
	c.submitted, c.user = app, user
	return ctx.Err()
}

func (c *homeAndMember) Report(
	ctx context.Context, member creel.SubclusterID, _ string, _ creel.ApplicationID,
) (*yarnpb.ApplicationReportProto, error) {
	switch {
	case member != "home":
		report := &yarnpb.ApplicationReportProto{AmRmToken: &yarnpb.TokenProto{Password: []byte("secret")}}
		return report, ctx.Err()
	case c.origin == nil:
		<-ctx.Done()
	}
	return c.origin, ctx.Err()
}

func (c *homeAndMember) Kill(
	ctx context.Context, _ creel.SubclusterID, user string, _ creel.ApplicationID, _ string,
) (bool, error) {
	c.user = user
	return true, ctx.Err()
}

// A UAM has its application's type, tags and priority at home, and the rest of its lifetime.
func TestUAMInheritsApplicationProperties(t *testing.T) {
	lifetime := func(left int64) []*yarnpb.AppTimeoutsMapProto {
		kind := yarnpb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME.Enum()
		return []*yarnpb.AppTimeoutsMapProto{{
			ApplicationTimeoutType: kind,
			ApplicationTimeout:     &yarnpb.ApplicationTimeoutProto{ApplicationTimeoutType: kind, RemainingTime: &left},
		}}
	}
	for left, want := range map[int64]int64{-1: 0, 0: 0, 90: 90} {
		c := &homeAndMember{origin: &yarnpb.ApplicationReportProto{
			User: proto.String("alice"), ApplicationType: proto.String("SPARK"), ApplicationTags: []string{"nightly"},
			Priority: yarnpb.FromPriority(7), AppTimeouts: lifetime(left),
		}}
		app := creel.ApplicationID{ClusterTimestamp: 1, ID: 2}
		out, err := LaunchUAM(t.Context(), t.Context(), c, func(context.Context, time.Duration) error { return nil },
			Launch{Member: "away", Home: "home", Application: app, Queue: "root.q", Name: creel.UAMName("home")})
		if err != nil || string(out.Token.GetPassword()) != "secret" {
			t.Fatal(out, err)
		}
		s := c.submitted
		if !s.GetUnmanagedAm() || s.GetApplicationType() != "SPARK" || s.GetPriority().GetPriority() != 7 ||
			!slices.Equal(s.GetApplicationTags(), []string{"nightly"}) || s.GetQueue() != "root.q" {
			t.Errorf("submitted: %v", s)
		}
		var got int64
		for _, x := range s.GetApplicationTimeouts() {
			got += x.GetTimeout()
		}
		if got != want || (len(s.GetApplicationTimeouts()) > 0) != (want > 0) {
			t.Errorf("of an application with %d s left the UAM has %v", left, s.GetApplicationTimeouts())
		}
	}
}

// While home hangs a UAM is launched without the facts that home would have reported, and one is killed.
func TestAUAMIsLaunchedAndKilledWhileHomeHangs(t *testing.T) {
	sleep := func(context.Context, time.Duration) error { return nil }
	app := creel.ApplicationID{ClusterTimestamp: 1, ID: 2}
	type doing = func(ctx, brief context.Context, t *testing.T, c *homeAndMember) error
	launch := func(user string) doing {
		return func(ctx, brief context.Context, t *testing.T, c *homeAndMember) error {
			out, err := LaunchUAM(ctx, brief, c, sleep, Launch{Member: "away", Home: "home", Application: app, User: user})
			if err == nil && (string(out.Token.GetPassword()) != "secret" || out.User != user || c.submitted == nil) {
				t.Errorf("launched: %+v, submitted: %v", out, c.submitted)
			}
			return err
		}
	}
	drop := func(user string) doing {
		return func(ctx, brief context.Context, _ *testing.T, c *homeAndMember) error {
			return DropUAM(ctx, brief, c, sleep, Drop{Member: "away", Home: "home", Application: app, User: user})
		}
	}
	for what, step := range map[string]struct {
		do       doing
		in, want time.Duration
		user     string
		err      error
	}{
		"launch":                 {launch("alice"), 15 * time.Second, 3 * time.Second, "alice", nil},
		"launch in a short time": {launch("alice"), 6 * time.Second, 2 * time.Second, "alice", nil},
		"launch of nobody knows whose": {
			launch(""), 15 * time.Second, 15 * time.Second, "", context.DeadlineExceeded,
		},
		"kill":                       {drop("alice"), 10 * time.Second, 0, "alice", nil},
		"kill of nobody knows whose": {drop(""), 10 * time.Second, 3 * time.Second, "", nil},
		"the same in a short time":   {drop(""), 3 * time.Second, time.Second, "", nil},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, began := new(homeAndMember), time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), step.in)
				defer cancel()
				brief, enough := context.WithTimeout(ctx, HomeTime(step.in))
				defer enough()
				err := step.do(ctx, brief, t, c)
				if took := time.Since(began); took != step.want || !errors.Is(err, step.err) || c.user != step.user {
					t.Errorf("took %s as %q: %v; want %s as %q: %v", took, c.user, err, step.want, step.user, step.err)
				}
			})
		})
	}
}
