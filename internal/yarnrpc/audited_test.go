// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
)

// A name that no protocol has would never be audited.
func TestAuditedMethodsExist(t *testing.T) {
	services := map[string]hrpc.Service{}
	for _, s := range []hrpc.Service{
		ApplicationClientProtocolService(nil), ApplicationMasterProtocolService(nil), ContainerManagementProtocolService(nil), ResourceTrackerService(nil),
		ResourceManagerAdministrationProtocolService(nil), DistributedSchedulingAMProtocolService(nil), HAServiceProtocolService(nil),
	} {
		services[s.Protocol] = s
	}
	for protocol, methods := range changing {
		for name := range methods {
			if _, ok := services[protocol].Methods[name]; !ok {
				t.Errorf("%s has no method %s", protocol, name)
			}
		}
	}
}

func TestWhatAnAuditedCallIsAbout(t *testing.T) {
	app := creel.ApplicationID{ClusterTimestamp: 1410901177871, ID: 1}
	attempt := creel.AttemptID{Application: app, Attempt: 2}
	container := creel.NewContainerID(attempt, 0, 5)
	for _, c := range []struct {
		protocol, method string
		request          proto.Message
		what             string
		changes          bool
	}{
		{ApplicationClientProtocolName, "submitApplication", &yarnpb.SubmitApplicationRequestProto{ApplicationSubmissionContext: &yarnpb.ApplicationSubmissionContextProto{
			ApplicationId: yarnpb.FromApplicationID(app)}}, "application_1410901177871_0001", true},
		{ApplicationClientProtocolName, "forceKillApplication", &yarnpb.KillApplicationRequestProto{ApplicationId: yarnpb.FromApplicationID(app)}, "application_1410901177871_0001", true},
		{ApplicationClientProtocolName, "failApplicationAttempt", &yarnpb.FailApplicationAttemptRequestProto{ApplicationAttemptId: yarnpb.FromAttemptID(attempt)}, "appattempt_1410901177871_0001_000002", true},
		{ApplicationClientProtocolName, "signalToContainer", &yarnpb.SignalContainerRequestProto{ContainerId: yarnpb.FromContainerID(container)}, "container_1410901177871_0001_02_000005", true},
		{ApplicationClientProtocolName, "getApplicationReport", &yarnpb.GetApplicationReportRequestProto{ApplicationId: yarnpb.FromApplicationID(app)}, "", false},
		{ApplicationMasterProtocolName, "registerApplicationMaster", &yarnpb.RegisterApplicationMasterRequestProto{}, "appattempt_x", true},
		{ApplicationMasterProtocolName, "allocate", &yarnpb.AllocateRequestProto{}, "", false},
		{ResourceTrackerName, "registerNodeManager", &yarnpb.RegisterNodeManagerRequestProto{NodeId: yarnpb.FromNodeID(creel.NodeID{Host: "n1", Port: 7})}, "n1:7", true},
		{ResourceTrackerName, "nodeHeartbeat", &yarnpb.NodeHeartbeatRequestProto{}, "", false},
		{ResourceManagerAdministrationProtocolName, "refreshQueues", &yarnpb.RefreshQueuesRequestProto{}, "", true},
		{ApplicationClientProtocolName, "submitApplication", nil, "", true}, // served raw
	} {
		call := &hrpc.Call{Protocol: c.protocol, Method: c.method, Identity: &hrpc.Identity{User: "appattempt_x"}}
		if what, changes := Audited(call, c.request); what != c.what || changes != c.changes {
			t.Errorf("%s: %q, %v, want %q, %v", c.method, what, changes, c.what, c.changes)
		}
	}
}
