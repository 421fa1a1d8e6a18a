// SPDX-License-Identifier: Apache-2.0

package router

import "slices"

// Types has the rules of every object that the router merges: REST documents (with the field names of Hadoop 3.4's
// and 3.5's DAO classes), then RPC messages.
//
// The reference is a single ResourceManager with the nodes and applications of all members. Its capacities are
// percentages, which do not add up. Its used resources are the sum. Its largest container is the largest of any
// member.
var Types = slices.Concat(restTypes, schedulerTypes, rpcTypes)

const (
	ownLimit = "each member admits up to its own limit; the counts against it are added too"
	setting  = "a setting"
)

var overview = slices.Concat(
	fields(First, "schedulerType", "schedulingResourceType"),
	merged("ResourceInfo, the smallest", "minimumAllocation"),
	merged("ResourceInfo, the largest", "maximumAllocation"),
	fields(Max, "applicationPriority", "schedulerBusy"),
	fields(Sum, "rmDispatcherEventQueueSize", "schedulerDispatcherEventQueueSize"),
)

var restTypes = []Type{
	{"queue access document", slices.Concat(
		[]Field{{Name: "allowed", Rule: Any}},
		fields(First, "user", "subClusterId"),
		[]Field{{Name: "diagnostics", Rule: Prefer, Of: ""}},
	)},
	{"bulk activities document", merged("BulkActivitiesInfo", "bulkActivities")},
	{"BulkActivitiesInfo", []Field{
		joined("activities", ""), {Name: "subClusterId", Rule: First},
	}},
	{"node labels document", []Field{joined("nodeLabelInfo", "NodeLabelInfo", "name")}},
	{"NodeLabelInfo", slices.Concat(
		fields(First, "name", "exclusivity"), fields(Sum, "activeNMs"), merged("PartitionInfo", "partitionInfo"),
	)},
	{"PartitionInfo", merged("ResourceInfo", "resourceAvailable")},
	{"nodes to labels document", merged("NodeToLabelsEntries", "nodeToLabels")},
	{"NodeToLabelsEntries", []Field{joined("entry", "", "key")}},
	{"labels to nodes document", merged("LabelsToNodesEntries", "labelsToNodes")},
	{"LabelsToNodesEntries", []Field{joined("entry", "LabelsToNodesEntry", "key")}},
	{"LabelsToNodesEntry", slices.Concat(fields(First, "key"), merged("NodeIDsInfo", "value"))},
	{"NodeIDsInfo", slices.Concat(fields(Union, "nodes"), merged("PartitionInfo", "partitionInfo"))},
	{"scheduler overview document", slices.Concat(merged("SchedulerOverviewInfo", "scheduler"), overview)},
	{"SchedulerOverviewInfo", overview},
	{"clusterInfo document", merged("ClusterInfo", "clusterInfo")},
	{"ClusterInfo", slices.Concat(
		fields(Router, "id", "startedOn", "state", "haState"),
		fields(First, "rmStateStoreName", "resourceManagerVersion", "resourceManagerBuildVersion",
			"resourceManagerVersionBuiltOn", "hadoopVersion", "hadoopBuildVersion", "hadoopVersionBuiltOn",
			"haZooKeeperConnectionState", "subClusterId"),
	)},
	{"clusterMetrics document", merged("ClusterMetricsInfo", "clusterMetrics")},
	{"ClusterMetricsInfo", slices.Concat(
		fields(
			Sum,
			"appsSubmitted",
			"appsCompleted",
			"appsPending",
			"appsRunning",
			"appsFailed",
			"appsKilled",
			"reservedMB",
			"availableMB",
			"allocatedMB",
			"pendingMB",
			"reservedVirtualCores",
			"availableVirtualCores",
			"allocatedVirtualCores",
			"pendingVirtualCores",
			"containersAllocated",
			"containersReserved",
			"containersPending",
			"totalMB",
			"utilizedMB",
			"totalVirtualCores",
			"utilizedVirtualCores",
			"totalNodes",
			"lostNodes",
			"unhealthyNodes",
			"decommissioningNodes",
			"decommissionedNodes",
			"rebootedNodes",
			"activeNodes",
			"shutdownNodes",
			"containerAssignedPerSecond",
			"totalAllocatedContainersAcrossPartition",
			"rmEventQueueSize",
			"schedulerEventQueueSize",
		),
		weighted(ByField, "totalMB", "utilizedMBPercent"),
		weighted(ByField, "totalVirtualCores", "utilizedVirtualCoresPercent"),
		noted("a client waits for the slowest; -1 is a monitor that is off", fields(Max, "rmSchedulerBusyPercent")),
		merged("ResourceInfo", "totalUsedResourcesAcrossPartition", "totalClusterResourcesAcrossPartition",
			"totalReservedResourcesAcrossPartition"),
		fields(All, "crossPartitionMetricsAvailable"),
	)},
	{"ResourceInfo", slices.Concat(
		fields(Sum, "memory", "vCores"),
		merged("ResourceInformations", "resourceInformations"),
	)},
	{"ResourceInformations", []Field{joined("resourceInformation", "ResourceInformation", "name")}},
	{"ResourceInformation", slices.Concat(
		fields(Sum, "value"),
		fields(Max, "maximumAllocation"),
		fields(Min, "minimumAllocation"),
		fields(First, "name", "units", "resourceType", "attributes", "tags"),
	)},
	{"ResourceInfo, the smallest", slices.Concat(
		fields(Min, "memory", "vCores"),
		merged("ResourceInformations, the smallest", "resourceInformations"),
	)},
	{
		"ResourceInformations, the smallest",
		[]Field{joined("resourceInformation", "ResourceInformation, the smallest", "name")},
	},
	{"ResourceInformation, the smallest", slices.Concat(
		fields(Min, "value", "minimumAllocation"),
		fields(Max, "maximumAllocation"),
		fields(First, "name", "units", "resourceType", "attributes"),
	)},
	{"ResourceInfo, the largest", slices.Concat(
		fields(Max, "memory", "vCores"),
		merged("ResourceInformations, the largest", "resourceInformations"),
	)},
	{
		"ResourceInformations, the largest",
		[]Field{joined("resourceInformation", "ResourceInformation, the largest", "name")},
	},
	{"ResourceInformation, the largest", slices.Concat(
		fields(Max, "value", "maximumAllocation"),
		fields(Min, "minimumAllocation"),
		fields(First, "name", "units", "resourceType", "attributes", "tags"),
	)},
	{"nodes document", merged("NodesInfo", "nodes")},
	{"NodesInfo", []Field{{
		Name: "node", Rule: Newest, Key: []string{"id"}, Of: "lastHealthUpdate",
		Note: "a node that moved is still known to the member it left; subClusterId names its member",
	}}},
	{"apps document", merged("AppsInfo", "apps")},
	{
		"AppsInfo",
		[]Field{
			{
				Name: "app",
				Rule: Join,
				Type: "AppInfo",
				Key:  []string{"id"},
				Note: partsNote,
			},
		},
	},
	{"AppInfo", slices.Concat(
		noted("-1: the attempt has left the scheduler", fields(
			SumKnown,
			"allocatedMB",
			"allocatedVCores",
			"reservedMB",
			"reservedVCores",
			"runningContainers",
			"memorySeconds",
			"vcoreSeconds",
			"preemptedResourceMB",
			"preemptedResourceVCores",
			"numNonAMContainerPreempted",
			"numAMContainerPreempted",
			"preemptedMemorySeconds",
			"preemptedVcoreSeconds",
		)),
		merged("ResourceSecondsMap", "resourceSecondsMap", "preemptedResourceSecondsMap"),
		[]Field{joined("resourceRequests", "")},
		merged("ResourceUsages", "resourceInfo"),
		fields(First, "id", "user", "name", "queue", "state", "finalStatus", "progress", "trackingUI", "trackingUrl",
			"clusterId", "rmClusterId", "applicationType", "applicationTags", "priority", "startedTime",
			"launchTime", "finishedTime", "elapsedTime", "amContainerLogs", "amHostHttpAddress", "amRPCAddress",
			"masterNodeId", "unmanagedApplication",
			"appNodeLabelExpression", "amNodeLabelExpression", "timeouts"),
		[]Field{{
			Name: "logAggregationStatus", Rule: Logs, Of: "memorySeconds", Ended: "finishedTime", Note: logsNote,
		}},
		fields(Words, "diagnostics"),
		noted("of the whole federation: a member's percentage counts by its part of the memory of all",
			fields(SumKnown, "queueUsagePercentage", "clusterUsagePercentage")),
	)},
	{"ResourceSecondsMap", []Field{joined("entry", "ResourceSecondsEntry", "key")}},
	{"ResourceSecondsEntry", slices.Concat(fields(First, "key"), fields(SumKnown, "value"))},
	{"appStatInfo document", merged("ApplicationStatisticsInfo", "appStatInfo")},
	{"ApplicationStatisticsInfo", []Field{joined("statItem", "StatisticsItemInfo", "state", "type")}},
	{"StatisticsItemInfo", slices.Concat(fields(First, "state", "type"), fields(Sum, "count"))},
	{"containers document", slices.Concat(
		merged("ContainersInfo", "containers"),
		[]Field{{Name: "container", Rule: Join, Key: []string{"containerId"}}},
	)},
	{"ContainersInfo", []Field{joined("container", "", "containerId")}},
	{"reservations document", []Field{joined("reservations", "", "reservation-id")}},
}

var schedulerTypes = []Type{
	{"scheduler document", merged("SchedulerTypeInfo", "scheduler")},
	{"SchedulerTypeInfo", merged("SchedulerInfo", "schedulerInfo")},
	{"SchedulerInfo", slices.Concat(
		noted("members with another scheduler have no place in the tree", fields(Same, "type", "@type")),
		// Capacity
		capacityQueue,
		merged("SchedulerHealthInfo", "health"),
		// Fair
		merged("FairSchedulerQueueInfo", "rootQueue"),
		// Fifo
		[]Field{{Name: "qstate", Rule: Prefer, Of: "RUNNING"}},
		fields(Sum, "minQueueMemoryCapacity", "maxQueueMemoryCapacity", "numNodes", "usedNodeCapacity",
			"availNodeCapacity", "totalNodeCapacity"),
	)},
	{"CapacitySchedulerQueueInfo", slices.Concat(fields(First, "type", "@type"), capacityQueue)},
	{"CapacitySchedulerQueueInfoList", []Field{joined("queue", "CapacitySchedulerQueueInfo", "queueName")}},
	{"PlannedInfo", slices.Concat( // creel's own
		fields(BySize, "absoluteCapacity"), merged("ResourceInfo", "effectiveCapacity"),
		fields(Max, "planVersion", "until"),
	)},
	{
		"QueueCapacitiesInfo",
		[]Field{joined("queueCapacitiesByPartition", "PartitionQueueCapacitiesInfo", "partitionName")},
	},
	{"PartitionQueueCapacitiesInfo", slices.Concat(
		fields(First, "partitionName", "queueCapacityVectorInfo"),
		capacityShares,
		fields(BySize, "maxAMLimitPercentage"),
		merged("ResourceInfo", "configuredMinResource", "configuredMaxResource", "effectiveMinResource",
			"effectiveMaxResource"),
	)},
	{"SchedulerHealthInfo", slices.Concat(
		fields(Max, "lastrun"),
		noted("their times are not reported", fields(First, "operationsInfo")),
		[]Field{joined("lastRunDetails", "LastRunDetails", "operation")},
	)},
	{
		"LastRunDetails",
		slices.Concat(fields(First, "operation"), fields(Sum, "count"), merged("ResourceInfo", "resources")),
	},
	{"QueueAclsInfo", []Field{joined("queueAcl", "", "accessType")}},
	{"ResourceUsages", []Field{joined("resourceUsagesByPartition", "PartitionResourcesInfo", "partitionName")}},
	{"PartitionResourcesInfo", slices.Concat(
		fields(First, "partitionName"),
		merged("ResourceInfo", "used", "reserved", "pending", "amUsed", "amLimit", "userAmLimit"),
	)},
	{"UsersInfo", []Field{joined("user", "UserInfo", "username")}},
	{"UserInfo", slices.Concat(
		fields(First, "username", "userWeight"),
		fields(Sum, "numPendingApplications", "numActiveApplications"),
		merged("ResourceInfo", "resourcesUsed", "AMResourceUsed", "userResourceLimit"),
		merged("ResourceUsages", "resources"),
		fields(Any, "isActive"),
	)},
	{
		"FairSchedulerQueueInfo",
		slices.Concat(
			fields(First, "type", "@type", "queueName", "schedulingPolicy"),
			noted(ownLimit, fields(Sum, "maxApps", "maxOpportunisticContainers", "maxOpportunisticContainersPerUser")),
			merged("ResourceInfo", "minResources", "maxResources", "usedResources", "amUsedResources", "amMaxResources",
				"demandResources", "steadyFairResources", "fairResources", "clusterResources", "reservedResources"),
			merged("ResourceInfo, the largest", "maxContainerAllocation"),
			fields(
				Sum,
				"allocatedContainers",
				"reservedContainers",
				"pendingContainers",
				"numPendingApps",
				"numActiveApps",
				"opportunisticContainers",
				"opportunisticMemoryMB",
				"opportunisticVCores",
			),
			fields(Any, "preemptable"),
			merged("FairSchedulerQueueInfoList", "childQueues"),
		),
	},
	{"FairSchedulerQueueInfoList", []Field{joined("queue", "FairSchedulerQueueInfo", "queueName")}},
}

// capacityShares has a queue's percentages, which do not add up.
var capacityShares = slices.Concat(
	fields(BySize, "capacity", "maxCapacity", "absoluteCapacity", "absoluteMaxCapacity", "absoluteUsedCapacity",
		"weight", "normalizedWeight"),
	noted("it is a share of the queue's own capacity", weighted(BySize, "absoluteCapacity", "usedCapacity")),
)

// capacityQueue has the fields of CapacitySchedulerInfo, for parent and leaf queues.
var capacityQueue = slices.Concat(
	capacityShares,
	fields(First, "queueCapacityVectorInfo", "queueName", "queuePath", "isAbsoluteResource", "hideReservationQueues"),
	noted(setting, fields(First, "queuePriority", "orderingPolicyInfo", "mode", "queueType", "creationMethod",
		"autoCreationEligibility", "defaultNodeLabelExpression", "autoQueueTemplateProperties",
		"autoQueueParentTemplateProperties", "autoQueueLeafTemplateProperties", "autoCreateChildQueueEnabled",
		"leafQueueTemplate", "defaultPriority", "isAutoCreatedLeafQueue", "maxApplicationLifetime",
		"defaultApplicationLifetime")),
	noted(ownLimit, fields(Sum, "maxParallelApps", "maxApplications", "maxApplicationsPerUser",
		"maxOpportunisticContainers", "maxOpportunisticContainersPerUser")),
	merged("CapacitySchedulerQueueInfoList", "queues"),
	merged("QueueCapacitiesInfo", "capacities"),
	merged("ResourceInfo, the largest", "maximumAllocation"),
	merged("QueueAclsInfo", "queueAcls"),
	fields(Sum, "numApplications", "allocatedContainers", "reservedContainers", "pendingContainers",
		"numActiveApplications", "numPendingApplications", "numContainers",
		"opportunisticContainers", "opportunisticMemoryMB", "opportunisticVCores"),
	noted("it takes applications while one member does", []Field{{Name: "state", Rule: Prefer, Of: "RUNNING"}}),
	merged("ResourceInfo", "resourcesUsed", "minEffectiveCapacity", "maxEffectiveCapacity", "AMResourceLimit",
		"usedAMResource", "userAMResourceLimit"),
	merged("PlannedInfo", "planned"),
	fields(Union, "nodeLabels"),
	merged("ResourceUsages", "resources"),
	merged("UsersInfo", "users"),
	noted("a percentage or a factor of the queue's capacity", fields(BySize, "userLimit", "userLimitFactor",
		"configuredMaxAMResourceLimit")),
	fields(All, "preemptionDisabled", "intraQueuePreemptionDisabled"),
)
