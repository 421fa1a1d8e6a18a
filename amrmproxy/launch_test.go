// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// homeAndMember are clients of a home, whose report of an application they have, and of a
// member that launches what is submitted.
type homeAndMember struct {
	Clients
	origin    *yarnpb.ApplicationReportProto
	submitted *yarnpb.ApplicationSubmissionContextProto
}

func (c *homeAndMember) Submit(
	_ context.Context, _ creel.SubclusterID, _ string, app *yarnpb.ApplicationSubmissionContextProto,
) error {
	c.submitted = app
	return nil
}

func (c *homeAndMember) Report(
	_ context.Context, member creel.SubclusterID, _ string, _ creel.ApplicationID,
) (*yarnpb.ApplicationReportProto, error) {
	if member == "home" {
		return c.origin, nil
	}
	return &yarnpb.ApplicationReportProto{AmRmToken: &yarnpb.TokenProto{Password: []byte("secret")}}, nil
}

// A UAM has what its application has at home: type, tags, priority, and what is left of its lifetime.
func TestAUAMHasWhatItsApplicationHas(t *testing.T) {
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
		out, err := LaunchUAM(t.Context(), c, func(context.Context, time.Duration) error { return nil },
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
