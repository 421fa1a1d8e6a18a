// SPDX-License-Identifier: Apache-2.0

package yarnpb_test

import (
	"testing"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"google.golang.org/protobuf/proto"
)

func TestMissingIDsAreNamed(t *testing.T) {
	app := pb.FromApplicationID(creel.ApplicationID{ClusterTimestamp: 1, ID: 1})
	container := pb.FromContainerID(creel.ContainerID{Attempt: creel.AttemptID{
		Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1,
	}, ID: 1})
	for _, c := range []struct {
		request proto.Message
		want    string
	}{
		{&pb.KillApplicationRequestProto{ApplicationId: app}, ""},
		{&pb.KillApplicationRequestProto{}, "application_id"},
		{&pb.KillApplicationRequestProto{ApplicationId: &pb.ApplicationIdProto{Id: new(int32(1))}},
			"application_id.cluster_timestamp"},
		{&pb.GetContainersRequestProto{ApplicationAttemptId: &pb.ApplicationAttemptIdProto{ApplicationId: app}},
			"application_attempt_id.attemptId"},
		{&pb.GetContainerReportRequestProto{ContainerId: container}, ""},
		{&pb.GetContainerReportRequestProto{ContainerId: &pb.ContainerIdProto{Id: new(int64(1))}},
			"container_id.app_attempt_id"},
		{&pb.UpdateApplicationPriorityRequestProto{ApplicationId: app}, "applicationPriority"},
		{&pb.UpdateApplicationPriorityRequestProto{ApplicationId: app, ApplicationPriority: pb.FromPriority(0)}, ""},
		{&pb.GetApplicationsRequestProto{}, ""},
		{&pb.GetClusterMetricsRequestProto{}, ""},
	} {
		if got := pb.MissingID(c.request); got != c.want {
			t.Errorf("%T %v lacks %q, want %q", c.request, c.request, got, c.want)
		}
	}
}
