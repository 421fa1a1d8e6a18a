// SPDX-License-Identifier: Apache-2.0

package router

import "slices"

// rpcTypes has the rules of messages, with the field names of the .proto files.
var rpcTypes = []Type{
	{"GetClusterMetricsResponseProto", merged("YarnClusterMetricsProto", "cluster_metrics")},
	{"YarnClusterMetricsProto", fields(Sum, "num_node_managers", "num_decommissioned_nms", "num_active_nms",
		"num_lost_nms", "num_unhealthy_nms", "num_rebooted_nms", "num_decommissioning_nms", "num_shutdown_nms")},
	{"GetClusterNodesResponseProto", []Field{{
		Name: "nodeReports", Rule: Newest, Key: []string{"nodeId"}, Of: "last_health_report_time",
	}}},
	{
		"GetApplicationsResponseProto",
		[]Field{
			{
				Name: "applications",
				Rule: Join,
				Type: "ApplicationReportProto",
				Key:  []string{"applicationId"},
				Note: partsNote,
			},
		},
	},
	{"ApplicationReportProto", slices.Concat(
		merged("ApplicationResourceUsageReportProto", "app_resource_Usage"),
		fields(
			First,
			"applicationId",
			"user",
			"queue",
			"name",
			"host",
			"rpc_port",
			"client_to_am_token",
			"yarn_application_state",
			"trackingUrl",
			"startTime",
			"finishTime",
			"final_application_status",
			"originalTrackingUrl",
			"currentApplicationAttemptId",
			"progress",
			"applicationType",
			"am_rm_token",
			"applicationTags",
			"unmanaged_application",
			"priority",
			"appNodeLabelExpression",
			"amNodeLabelExpression",
			"appTimeouts",
			"launchTime",
			"submitTime",
			"rmClusterId",
		),
		[]Field{{
			Name: "log_aggregation_status", Rule: Logs, Of: "app_resource_Usage.memory_seconds", Ended: "finishTime",
			Note: logsNote,
		}},
		fields(Words, "diagnostics"),
	)},
	{"ApplicationResourceUsageReportProto", slices.Concat(
		noted("-1: the attempt has left the scheduler", fields(SumKnown, "num_used_containers",
			"num_reserved_containers", "memory_seconds", "vcore_seconds", "preempted_memory_seconds",
			"preempted_vcore_seconds")),
		merged("ResourceProto", "used_resources", "reserved_resources", "needed_resources"),
		fields(First, "queue_usage_percentage", "cluster_usage_percentage"),
		[]Field{
			joined("application_resource_usage_map", "StringLongMapProto", "key"),
			joined("application_preempted_resource_usage_map", "StringLongMapProto", "key"),
		},
	)},
	{"StringLongMapProto", slices.Concat(fields(First, "key"), fields(SumKnown, "value"))},
	{"ResourceProto", slices.Concat(
		fields(SumKnown, "memory", "virtual_cores"),
		[]Field{joined("resource_value_map", "ResourceInformationProto", "key")},
	)},
	{"ResourceInformationProto", slices.Concat(
		fields(First, "key", "units", "type", "tags", "attributes"),
		fields(SumKnown, "value"),
	)},
	{"GetQueueInfoResponseProto", merged("QueueInfoProto", "queueInfo")},
	{"QueueInfoProto", slices.Concat(
		fields(First, "queueName", "queuePath", "schedulerType", "defaultNodeLabelExpression"),
		fields(BySize, "capacity", "maximumCapacity", "weight"),
		noted("it is a share of the queue's own capacity", weighted(BySize, "capacity", "currentCapacity")),
		noted("it takes applications while one member does", []Field{{Name: "state", Rule: Prefer, Of: "Q_RUNNING"}}),
		[]Field{
			joined("childQueues", "QueueInfoProto", "queueName"),
			joined("applications", "ApplicationReportProto", "applicationId"),
			joined("queueConfigurationsMap", "QueueConfigurationsMapProto", "partitionName"),
		},
		fields(Union, "accessibleNodeLabels"),
		merged("QueueStatisticsProto", "queueStatistics"),
		fields(All, "preemptionDisabled", "intraQueuePreemptionDisabled"),
		fields(SumKnown, "minResourceVCore", "minResourceMemory", "maxResourceVCore", "maxResourceMemory",
			"reservedResourceVCore", "reservedResourceMemory", "steadyFairShareVCore", "steadyFairShareMemory"),
		noted(ownLimit, fields(SumKnown, "maxParallelApps", "maxRunningApp")),
		fields(Drop, "subClusterId"),
	)},
	{"QueueStatisticsProto", slices.Concat(
		fields(SumKnown, "numAppsSubmitted", "numAppsRunning", "numAppsPending", "numAppsCompleted", "numAppsKilled",
			"numAppsFailed", "availableMemoryMB", "allocatedMemoryMB", "pendingMemoryMB", "reservedMemoryMB",
			"availableVCores", "allocatedVCores", "pendingVCores", "reservedVCores", "allocatedContainers",
			"pendingContainers", "reservedContainers"),
		noted("one user at two members counts twice: the names are not reported", fields(SumKnown, "numActiveUsers")),
	)},
	{"QueueConfigurationsMapProto", slices.Concat(
		fields(First, "partitionName"), merged("QueueConfigurationsProto", "queueConfigurations"))},
	{"QueueConfigurationsProto", slices.Concat(
		fields(BySize, "capacity", "absoluteCapacity", "maxCapacity", "absoluteMaxCapacity", "maxAMPercentage"),
		merged("ResourceProto", "effectiveMinCapacity", "effectiveMaxCapacity", "configuredMinCapacity",
			"configuredMaxCapacity"),
	)},
	{"GetQueueUserAclsInfoResponseProto", []Field{joined("queueUserAcls", "QueueUserACLInfoProto", "queueName")}},
	{"QueueUserACLInfoProto", slices.Concat(fields(First, "queueName"), fields(Union, "userAcls"))},
	{"GetAllResourceTypeInfoResponseProto", []Field{joined("resource_type_info", "", "name")}},
	{"GetContainersResponseProto", []Field{joined("containers", "", "container_id")}},
	{"GetNodesToLabelsResponseProto", []Field{joined("nodeToLabels", "", "nodeId")}},
	{"GetLabelsToNodesResponseProto", []Field{joined("labelsToNodes", "LabelsToNodeIdsProto", "nodeLabels")}},
	{"LabelsToNodeIdsProto", slices.Concat(fields(First, "nodeLabels"), []Field{joined("nodeId", "")})},
	{"GetClusterNodeLabelsResponseProto", slices.Concat(
		[]Field{joined("nodeLabels", "", "name")}, fields(Union, "deprecatedNodeLabels"))},
	{"GetClusterNodeAttributesResponseProto", []Field{joined("nodeAttributes", "", "attributeKey")}},
	{
		"GetAttributesToNodesResponseProto",
		[]Field{joined("attributesToNodes", "AttributeToNodesProto", "nodeAttribute")},
	},
	{"AttributeToNodesProto", slices.Concat(fields(First, "nodeAttribute"), []Field{joined("nodeValueMap", "")})},
	{"GetNodesToAttributesResponseProto", []Field{joined("nodesToAttributes", "NodeToAttributesProto", "node")}},
	{"NodeToAttributesProto", slices.Concat(fields(First, "node"), []Field{joined("nodeAttributes", "")})},
	{"GetGroupsForUserResponseProto", fields(Union, "groups")},
	{"CheckForDecommissioningNodesResponseProto", []Field{joined("decommissioningNodes", "")}},
}
