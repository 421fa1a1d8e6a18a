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

func TestAuditedCallSubjects(t *testing.T) {
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
		{ResourceManagerAdministrationProtocolName, "refreshQueues", &yarnpb.RefreshQueuesRequestProto{SubClusterId: proto.String("sc-a")}, "sc-a", true},
		{ResourceManagerAdministrationProtocolName, "deregisterSubCluster", &yarnpb.DeregisterSubClusterRequestProto{SubClusterId: proto.String("sc-a")}, "sc-a", true},
		{ResourceManagerAdministrationProtocolName, "saveFederationQueuePolicy", &yarnpb.SaveFederationQueuePolicyRequestProto{Queue: proto.String("root.a")}, "root.a", true},
		{ResourceManagerAdministrationProtocolName, "batchSaveFederationQueuePolicies", &yarnpb.BatchSaveFederationQueuePoliciesRequestProto{FederationQueueWeights: []*yarnpb.FederationQueueWeightProto{
			{Queue: proto.String("root.a")}, {Queue: proto.String("root.b")}}}, "root.a,root.b", true},
		{ResourceManagerAdministrationProtocolName, "deleteFederationPoliciesByQueues", &yarnpb.DeleteFederationQueuePoliciesRequestProto{Queues: []string{"root.a", "root.b", "root.a"}}, "root.a,root.b", true},
		{ResourceManagerAdministrationProtocolName, "deleteFederationApplication", &yarnpb.DeleteFederationApplicationRequestProto{Application: proto.String(app.String())}, "application_1410901177871_0001", true},
		{ResourceManagerAdministrationProtocolName, "updateNodeResource", &yarnpb.UpdateNodeResourceRequestProto{SubClusterId: proto.String("sc-a"), NodeResourceMap: []*yarnpb.NodeResourceMapProto{
			{NodeId: yarnpb.FromNodeID(creel.NodeID{Host: "n1", Port: 7})}}}, "n1:7", true},
		{ResourceManagerAdministrationProtocolName, "replaceLabelsOnNodes", &yarnpb.ReplaceLabelsOnNodeRequestProto{NodeToLabels: []*yarnpb.NodeIdToLabelsProto{
			{NodeId: yarnpb.FromNodeID(creel.NodeID{Host: "n1"})}}}, creel.NodeID{Host: "n1"}.String(), true},
		{ResourceManagerAdministrationProtocolName, "mapAttributesToNodes", &yarnpb.NodesToAttributesMappingRequestProto{NodeToAttributes: []*yarnpb.NodeToAttributesProto{
			{Node: proto.String("n1")}}}, "n1", true},
		{ApplicationClientProtocolName, "deleteReservation", &yarnpb.ReservationDeleteRequestProto{ReservationId: &yarnpb.ReservationIdProto{Id: proto.Int64(3), ClusterTimestamp: proto.Int64(5)}}, "reservation_5_0003", true},
		{ApplicationClientProtocolName, "submitApplication", nil, "", true}, // served raw
	} {
		call := &hrpc.Call{Protocol: c.protocol, Method: c.method, Identity: &hrpc.Identity{User: "appattempt_x"}}
		if what, changes := Audited(call, c.request); what != c.what || changes != c.changes {
			t.Errorf("%s: %q, %v, want %q, %v", c.method, what, changes, c.what, c.changes)
		}
	}
}
