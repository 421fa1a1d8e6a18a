// SPDX-License-Identifier: Apache-2.0

package settings

const preemption = "yarn.resourcemanager.monitor.capacity.preemption."

// preemptionKeys configure preemption. CapacityScheduler's keys may also be in capacity-scheduler.xml, which wins. Of
// the two monitor keys that file may contain only scheduler.monitor.enable, and only to disable preemption.
var preemptionKeys = []Setting{
	{
		Key: "yarn.resourcemanager.scheduler.monitor.enable", Type: Bool, Default: "false",
		Doc: "Whether CapacityScheduler preempts containers for queues below their guarantee. \"false\" in " +
			"capacity-scheduler.xml disables it too.",
	},
	{
		Key: "yarn.resourcemanager.scheduler.monitor.policies", Type: String,
		Default: "org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy",
		Doc: "The preemption policies: only ProportionalCapacityPreemptionPolicy is supported, others are " +
			"ignored. Without it nothing is preempted.",
	},
	{
		Key: preemption + "observe_only", Type: Bool, Default: "false",
		Doc: "Whether victims are only chosen, without notice to their AMs and without kills.",
	},
	{
		Key: preemption + "monitoring_interval", Type: Duration, Default: "3000",
		Doc: "The time between two rounds.",
	},
	{
		Key: preemption + "max_wait_before_kill", Type: Duration, Default: "15000",
		Doc: "The time between the notice to an AM and the kill of its container.",
	},
	{
		Key: preemption + "total_preemption_per_round", Type: Float, Default: "0.1",
		Doc: "The largest share of the cluster, over all partitions, that may be under notice at once.",
	},
	{
		Key: preemption + "max_ignored_over_capacity", Type: Float, Default: "0.1",
		Doc: "A queue up to this share above its guarantee loses nothing.",
	},
	{
		Key: preemption + "natural_termination_factor", Type: Float, Default: "0.2",
		Doc: "The share of the due amount that is preempted during one wait; the rest is expected to end by " +
			"itself. An ask is always served completely.",
	},
	{
		Key: preemption + "conservative-drf", Type: Bool, Default: "false",
		Doc: "Whether a container is spared if it uses a resource type of which its queue does not have too much.",
	},
	{
		Key: preemption + "intra-queue-preemption.enabled", Type: Bool, Default: "false",
		Doc: "Whether containers are also preempted between users and applications of one leaf.",
	},
	{
		Key: preemption + "intra-queue-preemption.preemption-order-policy", Type: Enum, Default: "userlimit_first",
		Choices: []string{"userlimit_first", "priority_first"},
		Doc: "Whether user limits or priorities come first within a leaf. With userlimit_first no user falls " +
			"below their limit for an application of a higher priority.",
	},
	{
		Key: preemption + "intra-queue-preemption.minimum-threshold", Type: Float, Default: "0.5",
		Doc: "The share of its guarantee that a leaf must use before preemption within it.",
	},
	{
		Key: preemption + "intra-queue-preemption.max-allowable-limit", Type: Float, Default: "0.2",
		Doc: "The largest share of a leaf's guarantee that may be under notice within it.",
	},
	{
		Key: preemption + "intra-queue-preemption.conservative-drf", Type: Bool, Default: "true",
		Doc: "conservative-drf for preemption within a leaf.",
	},
	{
		Key: preemption + "select_based_on_reserved_containers", Type: Bool, Default: "false",
		Doc: "Whether the node that an ask has reserved is cleared for it before any other node is considered. " +
			"A queue's reservations then count beside its asks.",
	},
	{
		Key: preemption + "additional_res_balance_based_on_reserved_containers", Type: Bool, Default: "false",
		Doc: "Whether a queue's reservations count as demand a second time, so that more may be preempted from " +
			"more queues.",
	},
	{
		Key: preemption + "preemption-to-balance-queue-after-satisfied.enabled", Type: Bool, Default: "false",
		Doc: "Whether queues that all have their guarantees share the rest in proportion to them: containers of " +
			"queues with more are preempted.",
	},
	{
		Key:  preemption + "preemption-to-balance-queue-after-satisfied.max-wait-before-kill",
		Type: Duration, Default: "300000",
		Doc: "The time between notice and kill for that purpose.",
	},
	{
		Key: "yarn.scheduler.fair.preemption", Type: Bool, Default: "false",
		Doc: "Whether FairScheduler preempts containers for queues below their share.",
	},
	{
		Key: "yarn.scheduler.fair.preemption.cluster-utilization-threshold", Type: Float, Default: "0.8",
		Doc: "The utilization of the cluster above which FairScheduler preempts.",
	},
	{
		Key: "yarn.scheduler.fair.waitTimeBeforeKill", Type: Duration, Default: "15000",
		Doc: "The time between the notice to an AM and the kill of its container.",
	},
	{
		Key: "creel.scheduler.**.preemption.victims", Type: Enum, Choices: []string{"newest", "least-work"},
		Doc: "Which containers a queue, and those below it, lose first. newest is Hadoop's order. least-work is " +
			"the least expected loss of work: run time times size, times the probability that the container " +
			"would still run when it is killed (estimated from the queue's earlier containers). It counts double " +
			"for applications that keep their containers over attempts, and double for those with one attempt.",
	},
}
