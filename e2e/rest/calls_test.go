// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"maps"
	"net/url"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// Reasons of differences.
const (
	unknownType  = "Hadoop grants a container without the type; ours rejects an ask for a type that the cluster lacks"
	plainAmounts = "the same amount: ours names no unit, and Hadoop the unit of the type"
	wrongAmount  = "Hadoop reads a fraction as 0 and ignores a wrong unit; ours rejects the change"
)

// callsDiffer are the calls that creel is known to answer differently, with the reason.
var callsDiffer = map[string]string{
	"submit empty":         "an application id without its parts is no id",
	"heartbeat of nothing": "an unknown node, with or without a name, is asked to register again",
	"unregister nothing":   "the removal of an unknown node is no error, with or without its name",

	"allocate tape=5":      unknownType,
	"asks for tape=5":      unknownType,
	"submit by RPC tape=5": unknownType,
	"largest bandwidth":    plainAmounts,
	"largest disk":         plainAmounts,

	"POST bandwidth=5 and a half":       wrongAmount,
	"POST bandwidth=3 G and a half":     wrongAmount,
	"POST bandwidth=5 X":                wrongAmount,
	"POST disk=1 g":                     wrongAmount,
	"POST yarn.io/gpu=5 and a half":     wrongAmount,
	"POST tape=5 and a half":            wrongAmount,
	`POST {"memory":8192.5,"vCores":8}`: wrongAmount,
	`POST {"memory":8192,"vCores":8.5}`: wrongAmount,
	`POST {"memory":8192.0,"vCores":8}`: wrongAmount,
	`POST {"memory":-1,"vCores":8}`:     wrongAmount,
}

// compareCalls compares the outcomes of calls by name.
func (d *duo) compareCalls(t *testing.T, ask func(s *configuredSystem) map[string]string) {
	t.Helper()
	want, got := ask(d.theirs), ask(d.ours)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, known := callsDiffer[name]; known == (want[name] == got[name]) {
			t.Errorf("%s: %s, with Hadoop %s", name, got[name], want[name])
		}
	}
	if len(want) != len(got) || len(want) == 0 {
		t.Errorf("%d outcomes, %d with Hadoop", len(got), len(want))
	}
	t.Logf("%v", want)
}

// userNames submits applications under names of other realms, and names the application's user.
func (s *configuredSystem) userNames() map[string]string {
	out := map[string]string{}
	for _, name := range []string{
		"alice", "alice@REALM", "svc/host@REALM", "svc/host", "alice@", "alice@A@B", "ALICE", "a.b-c_d", "alice@REALM.EXAMPLE.ORG",
	} {
		q := shape{method: "POST", path: "apps?user.name=" + url.QueryEscape(name), head: jsonHead,
			body: submissionOf(`"unmanaged-AM":true,` + launch)}
		f, id := s.send(q, q.body)
		if out["by REST "+name] = "rejected"; f["STATUS"] == "2xx" {
			out["by REST "+name] = s.answer(s.t, request{name: "user", method: "GET", path: "/ws/v1/cluster/apps/" + id},
				"application/json")[".app.user"]
		}
		key := "by RPC " + name
		id2, err := s.as(name).GetNewApplication(s.t.Context(), &pb.GetNewApplicationRequestProto{})
		if err != nil {
			out[key] = "rejected"
			continue
		}
		_, err = s.as(name).SubmitApplication(s.t.Context(), &pb.SubmitApplicationRequestProto{
			ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
				ApplicationId: id2.GetApplicationId(), ApplicationName: proto.String("named"), Queue: proto.String("default"),
				UnmanagedAm: proto.Bool(true), AmContainerSpec: &pb.ContainerLaunchContextProto{},
				Resource: pb.FromResource(creel.NewResource(256, 1)),
			},
		})
		if out[key] = "rejected"; err == nil {
			out[key] = s.report("alice", pb.ToApplicationID(id2.GetApplicationId())).GetUser()
		}
	}
	return out
}

// withoutIDs sends requests without the id that they are about, and such with a part of it.
func (s *configuredSystem) withoutIDs() map[string]string {
	ctx, c, out := s.t.Context(), s.as("alice"), map[string]string{}
	say := func(name string, err error) {
		if out[name] = "answered"; err != nil {
			out[name] = "rejected"
		}
	}
	app := &pb.ApplicationIdProto{}
	half := &pb.ApplicationIdProto{Id: proto.Int32(1)}
	for _, x := range []struct { // in this order: the submissions at the end change the next answers
		name string
		id   *pb.ApplicationIdProto
	}{{"none", nil}, {"empty", app}, {"half", half}} {
		name, id := x.name, x.id
		_, err := c.GetApplicationReport(ctx, &pb.GetApplicationReportRequestProto{ApplicationId: id})
		say("report "+name, err)
		_, err = c.ForceKillApplication(ctx, &pb.KillApplicationRequestProto{ApplicationId: id})
		say("kill "+name, err)
		_, err = c.MoveApplicationAcrossQueues(ctx, &pb.MoveApplicationAcrossQueuesRequestProto{
			ApplicationId: id, TargetQueue: proto.String("other")})
		say("move "+name, err)
		_, err = c.GetApplicationAttempts(ctx, &pb.GetApplicationAttemptsRequestProto{ApplicationId: id})
		say("attempts "+name, err)
		_, err = c.UpdateApplicationPriority(ctx, &pb.UpdateApplicationPriorityRequestProto{
			ApplicationId: id, ApplicationPriority: pb.FromPriority(1)})
		say("priority "+name, err)
		_, err = c.UpdateApplicationTimeouts(ctx, &pb.UpdateApplicationTimeoutsRequestProto{ApplicationId: id})
		say("timeouts "+name, err)
		attempt := &pb.ApplicationAttemptIdProto{ApplicationId: id, AttemptId: proto.Int32(1)}
		_, err = c.GetApplicationAttemptReport(ctx, &pb.GetApplicationAttemptReportRequestProto{ApplicationAttemptId: attempt})
		say("attempt "+name, err)
		_, err = c.GetContainers(ctx, &pb.GetContainersRequestProto{ApplicationAttemptId: attempt})
		say("containers "+name, err)
		_, err = c.FailApplicationAttempt(ctx, &pb.FailApplicationAttemptRequestProto{ApplicationAttemptId: attempt})
		say("fail "+name, err)
		_, err = c.SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{
			ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
				ApplicationId: id, AmContainerSpec: &pb.ContainerLaunchContextProto{}, UnmanagedAm: proto.Bool(true),
			}})
		say("submit "+name, err)
	}
	_, err := c.GetApplicationAttemptReport(ctx, &pb.GetApplicationAttemptReportRequestProto{})
	say("attempt without", err)
	_, err = c.GetContainers(ctx, &pb.GetContainersRequestProto{})
	say("containers without", err)
	_, err = c.GetContainerReport(ctx, &pb.GetContainerReportRequestProto{})
	say("container without", err)
	_, err = c.GetContainerReport(ctx, &pb.GetContainerReportRequestProto{ContainerId: &pb.ContainerIdProto{Id: proto.Int64(1)}})
	say("container without attempt", err)
	_, err = c.FailApplicationAttempt(ctx, &pb.FailApplicationAttemptRequestProto{})
	say("fail without", err)
	_, err = c.SignalToContainer(ctx, &pb.SignalContainerRequestProto{
		ContainerId: &pb.ContainerIdProto{}, Command: pb.SignalContainerCommandProto_OUTPUT_THREAD_DUMP.Enum(),
	})
	say("signal empty", err)
	_, err = c.GetQueueInfo(ctx, &pb.GetQueueInfoRequestProto{})
	say("queue without", err)
	_, err = c.GetApplications(ctx, &pb.GetApplicationsRequestProto{})
	say("applications", err)
	_, err = c.SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{})
	say("submit nothing", err)
	_, err = s.tracker("127.0.0.9").RegisterNodeManager(ctx, &pb.RegisterNodeManagerRequestProto{})
	say("register nothing", err)
	_, err = s.tracker("127.0.0.9").NodeHeartbeat(ctx, &pb.NodeHeartbeatRequestProto{})
	say("heartbeat of nothing", err)
	_, err = s.tracker("127.0.0.9").UnRegisterNodeManager(ctx, &pb.UnRegisterNodeManagerRequestProto{})
	say("unregister nothing", err)
	return out
}
