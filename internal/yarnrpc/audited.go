// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
)

// changing are the methods that make an auditable change. Heartbeats (allocate, nodeHeartbeat) also change state,
// thousands of times. They only continue a registration, so they are not in the list.
var changing = map[string]map[string]bool{
	ApplicationClientProtocolName: set(
		"submitApplication",
		"failApplicationAttempt",
		"forceKillApplication",
		"getDelegationToken",
		"renewDelegationToken",
		"cancelDelegationToken",
		"moveApplicationAcrossQueues",
		"submitReservation",
		"updateReservation",
		"deleteReservation",
		"updateApplicationPriority",
		"signalToContainer",
		"updateApplicationTimeouts",
	),
	ApplicationMasterProtocolName: set("registerApplicationMaster", "finishApplicationMaster"),
	ContainerManagementProtocolName: set(
		"startContainers",
		"stopContainers",
		"increaseContainersResource",
		"updateContainer",
		"signalToContainer",
		"localize",
		"reInitializeContainer",
		"restartContainer",
		"rollbackLastReInitialization",
		"commitLastReInitialization",
	),
	ResourceTrackerName: set("registerNodeManager", "unRegisterNodeManager"),
	ResourceManagerAdministrationProtocolName: set(
		"refreshQueues",
		"refreshNodes",
		"refreshSuperUserGroupsConfiguration",
		"refreshUserToGroupsMappings",
		"refreshAdminAcls",
		"refreshServiceAcls",
		"updateNodeResource",
		"refreshNodesResources",
		"addToClusterNodeLabels",
		"removeFromClusterNodeLabels",
		"replaceLabelsOnNodes",
		"refreshClusterMaxPriority",
		"mapAttributesToNodes",
		"deregisterSubCluster",
		"saveFederationQueuePolicy",
		"batchSaveFederationQueuePolicies",
		"deleteFederationApplication",
		"deleteFederationPoliciesByQueues",
	),
	DistributedSchedulingAMProtocolName: set(
		"registerApplicationMasterForDistributedScheduling",
		"finishApplicationMaster",
	),
	HAServiceProtocolName: set("transitionToActive", "transitionToStandby", "transitionToObserver"),
}

func set(names ...string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out
}

// Audited reports whether a call makes an auditable change, and names its object. The object is the id of an
// application, attempt, container, reservation or node, queues, nodes or hosts, the subcluster in an administrator's
// order, or "". For an AM's call it is the attempt of the connection's user.
func Audited(call *hrpc.Call, request proto.Message) (what string, changes bool) {
	if !changing[call.Protocol][call.Method] {
		return "", false
	}
	switch r := request.(type) {
	case interface {
		GetApplicationId() *yarnpb.ApplicationIdProto
	}:
		what = yarnpb.ToApplicationID(r.GetApplicationId()).String()
	case *yarnpb.SubmitApplicationRequestProto:
		what = yarnpb.ToApplicationID(r.GetApplicationSubmissionContext().GetApplicationId()).String()
	case interface {
		GetApplicationAttemptId() *yarnpb.ApplicationAttemptIdProto
	}:
		what = yarnpb.ToAttemptID(r.GetApplicationAttemptId()).String()
	case interface {
		GetContainerId() *yarnpb.ContainerIdProto
	}:
		what = yarnpb.ToContainerID(r.GetContainerId()).String()
	case *yarnpb.ContainerIdProto:
		what = yarnpb.ToContainerID(r).String()
	case interface{ GetNodeId() *yarnpb.NodeIdProto }:
		what = yarnpb.ToNodeID(r.GetNodeId()).String()
	case interface{ GetQueue() string }:
		what = r.GetQueue()
	case interface {
		GetReservationId() *yarnpb.ReservationIdProto
	}:
		what = yarnpb.ToReservationID(r.GetReservationId()).String()
	case interface{ GetApplication() string }:
		what = r.GetApplication()
	case interface{ GetQueues() []string }:
		what = audit.Targets(r.GetQueues())
	case *yarnpb.BatchSaveFederationQueuePoliciesRequestProto:
		what = targets(r.GetFederationQueueWeights(), (*yarnpb.FederationQueueWeightProto).GetQueue)
	case *yarnpb.UpdateNodeResourceRequestProto:
		what = targets(r.GetNodeResourceMap(), func(n *yarnpb.NodeResourceMapProto) string {
			return yarnpb.ToNodeID(n.GetNodeId()).String()
		})
	case *yarnpb.ReplaceLabelsOnNodeRequestProto:
		what = targets(r.GetNodeToLabels(), func(n *yarnpb.NodeIdToLabelsProto) string {
			return yarnpb.ToNodeID(n.GetNodeId()).String()
		})
	case *yarnpb.NodesToAttributesMappingRequestProto:
		what = targets(r.GetNodeToAttributes(), (*yarnpb.NodeToAttributesProto).GetNode)
	case interface{ GetSubClusterId() string }:
		what = r.GetSubClusterId()
	default:
		if call.Protocol == ApplicationMasterProtocolName || call.Protocol == DistributedSchedulingAMProtocolName {
			what = call.Identity.User
		}
	}
	return what, true
}

// targets joins the names of the items in a request.
func targets[T any](parts []T, name func(T) string) string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = name(p)
	}
	return audit.Targets(names)
}
