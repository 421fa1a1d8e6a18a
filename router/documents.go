// SPDX-License-Identifier: Apache-2.0

package router

import "slices"

// Documents are the calls that the router serves, and how: REST paths are
// below /ws/v1/cluster. The REST handlers are mounted from this list; a test
// holds the RPC services to it.
var Documents = slices.Concat(restDocuments, rpcDocuments, adminDocuments)

var restDocuments = []Document{
	{"REST", "GET /", Merged, "clusterInfo document", "one clusterInfo, as of a single ResourceManager; Hadoop's router answers a list"},
	{"REST", "GET /info", Merged, "clusterInfo document", "as GET /"},
	{"REST", "GET /metrics", Merged, "clusterMetrics document", ""},
	{"REST", "GET /scheduler", Merged, "scheduler document", "one tree, as of a single ResourceManager; Hadoop's router answers a list"},
	{"REST", "GET /nodes", Merged, "nodes document", "each node with its subClusterId"},
	{"REST", "GET /nodes/{nodeId}", AtOwner, "", "the member that heard of it last"},
	{"REST", "GET /apps", Merged, "apps document", ""},
	{"REST", "POST /apps", Chosen, "", "its Location is the router's"},
	{"REST", "POST /apps/new-application", AtAny, "", ""},
	{"REST", "GET /appstatistics", Merged, "appStatInfo document", ""},
	{"REST", "PUT /apps/{appid}/state", AtHomeAll, "", "the UAMs end too"},
	{"REST", "GET /apps/{appid}/appattempts/{attemptid}/containers", Merged, "containers document", "an error of home's is the answer"},
	{"REST", "* /apps/{appid}", AtHome, "", ""},
	{"REST", "* /apps/{appid}/*", AtHome, "", "state, queue, priority, timeouts, attempts, one container"},
	{"REST", "POST /containers/{containerid}/signal/{command}", AtOwner, "", "home first, then whoever runs it"},
	{"REST", "POST /nodes/{nodeId}/resource", AtOwner, "", ""},
	{"REST", "POST /nodes/{nodeId}/replace-labels", AtOwner, "", ""},
	{"REST", "POST /add-node-labels", Everywhere, "", ""},
	{"REST", "POST /remove-node-labels", Everywhere, "", ""},
	{"REST", "POST /replace-node-to-labels", Everywhere, "", ""},
	{"REST", "GET /scheduler/app-activities/{appid}", AtHome, "", ""},
	{"REST", "GET /*", AtAny, "", "what no other line names: label lists, scheduler-conf, scheduler-overview, queue access, reservations"},
}

var rpcDocuments = []Document{
	{"RPC", "getNewApplication", AtAny, "", "in blocks, for those who ask at the same time"},
	{"RPC", "submitApplication", Chosen, "", ""},
	{"RPC", "forceKillApplication", AtHomeAll, "", "the UAMs end too"},
	{"RPC", "getApplicationReport", AtHome, "", ""},
	{"RPC", "failApplicationAttempt", AtHome, "", ""},
	{"RPC", "moveApplicationAcrossQueues", AtHome, "", ""},
	{"RPC", "getApplicationAttemptReport", AtHome, "", ""},
	{"RPC", "getApplicationAttempts", AtHome, "", ""},
	{"RPC", "updateApplicationPriority", AtHome, "", ""},
	{"RPC", "updateApplicationTimeouts", AtHome, "", ""},
	{"RPC", "getApplications", Merged, "GetApplicationsResponseProto", ""},
	{"RPC", "getClusterNodes", Merged, "GetClusterNodesResponseProto", ""},
	{"RPC", "getClusterMetrics", Merged, "GetClusterMetricsResponseProto", ""},
	{"RPC", "getQueueInfo", Merged, "GetQueueInfoResponseProto", ""},
	{"RPC", "getQueueUserAcls", Merged, "GetQueueUserAclsInfoResponseProto", ""},
	{"RPC", "getResourceTypeInfo", Merged, "GetAllResourceTypeInfoResponseProto", ""},
	{"RPC", "getContainers", Merged, "GetContainersResponseProto", "an error of home's is the answer"},
	{"RPC", "getContainerReport", AtOwner, "", "home first, then whoever runs it"},
	{"RPC", "signalToContainer", AtOwner, "", "home first, then whoever runs it"},
	{"RPC", "getNodeToLabels", Merged, "GetNodesToLabelsResponseProto", ""},
	{"RPC", "getLabelsToNodes", Merged, "GetLabelsToNodesResponseProto", ""},
	{"RPC", "getClusterNodeLabels", Merged, "GetClusterNodeLabelsResponseProto", ""},
	{"RPC", "getClusterNodeAttributes", Merged, "GetClusterNodeAttributesResponseProto", ""},
	{"RPC", "getAttributesToNodes", Merged, "GetAttributesToNodesResponseProto", ""},
	{"RPC", "getNodesToAttributes", Merged, "GetNodesToAttributesResponseProto", ""},
	{"RPC", "getResourceProfiles", AtAny, "", ""},
	{"RPC", "getResourceProfile", AtAny, "", ""},
	{"RPC", "getNewReservation", AtAny, "", "reservations have no home yet"},
	{"RPC", "submitReservation", AtAny, "", "reservations have no home yet"},
	{"RPC", "updateReservation", AtAny, "", "reservations have no home yet"},
	{"RPC", "deleteReservation", AtAny, "", "reservations have no home yet"},
	{"RPC", "listReservations", AtAny, "", "reservations have no home yet"},
	{"RPC", "getDelegationToken", AtAny, "", "the router has no tokens of its own yet"},
	{"RPC", "renewDelegationToken", AtAny, "", "the router has no tokens of its own yet"},
	{"RPC", "cancelDelegationToken", AtAny, "", "the router has no tokens of its own yet"},
}

var adminDocuments = []Document{
	{"RPC admin", "refreshQueues", Everywhere, "", "or to the subcluster it names"},
	{"RPC admin", "refreshNodes", Everywhere, "", "or to the subcluster it names"},
	{"RPC admin", "refreshSuperUserGroupsConfiguration", Everywhere, "", "or to the subcluster it names"},
	{"RPC admin", "refreshUserToGroupsMappings", Everywhere, "", "or to the subcluster it names"},
	{"RPC admin", "refreshAdminAcls", Everywhere, "", "or to the subcluster it names"},
	{"RPC admin", "refreshServiceAcls", Everywhere, "", "or to the subcluster it names"},
	{"RPC admin", "refreshNodesResources", Everywhere, "", "or to the subcluster it names"},
	{"RPC admin", "addToClusterNodeLabels", Everywhere, "", "or to the subcluster it names"},
	{"RPC admin", "removeFromClusterNodeLabels", Everywhere, "", "or to the subcluster it names"},
	{"RPC admin", "refreshClusterMaxPriority", Everywhere, "", "or to the subcluster it names"},
	{"RPC admin", "getGroupsForUser", Merged, "GetGroupsForUserResponseProto", ""},
	{"RPC admin", "checkForDecommissioningNodes", Merged, "CheckForDecommissioningNodesResponseProto", ""},
	{"RPC admin", "updateNodeResource", AtOwner, "", "each node's part to its member"},
	{"RPC admin", "replaceLabelsOnNodes", AtOwner, "", "each node's part to its member"},
	{"RPC admin", "mapAttributesToNodes", AtOwner, "", "each node's part to its member"},
	{"RPC admin", "deregisterSubCluster", Unserved, "", "`creel subcluster`"},
	{"RPC admin", "getFederationSubClusters", Unserved, "", "`creel subcluster list`"},
	{"RPC admin", "saveFederationQueuePolicy", Unserved, "", "`creel policy set`"},
	{"RPC admin", "batchSaveFederationQueuePolicies", Unserved, "", "`creel policy set`"},
	{"RPC admin", "listFederationQueuePolicies", Unserved, "", "`creel policy list`"},
	{"RPC admin", "deleteFederationPoliciesByQueues", Unserved, "", "`creel policy set --remove`"},
	{"RPC admin", "deleteFederationApplication", Unserved, "", ""},
}
