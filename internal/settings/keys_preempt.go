// SPDX-License-Identifier: Apache-2.0

package settings

const preemption = "yarn.resourcemanager.monitor.capacity.preemption."

// preemptionKeys configure preemption. CapacityScheduler's may also be in capacity-scheduler.xml, which wins. Of the
// two monitor keys only scheduler.monitor.enable may be there, and only to disable preemption.
var preemptionKeys = []Setting{
	{
		Key: "yarn.resourcemanager.scheduler.monitor.enable", Type: Bool, Default: "false",
		Doc: "Whether CapacityScheduler takes containers back for queues below their guarantee. A capacity-scheduler.xml " +
			"that says false is heard, too.",
	},
	{
		Key: "yarn.resourcemanager.scheduler.monitor.policies", Type: String,
		Default: "org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy",
		Doc:     "By which policies: ProportionalCapacityPreemptionPolicy; without it nothing is taken back, others are passed over.",
	},
	{
		Key: preemption + "observe_only", Type: Bool, Default: "false",
		Doc: "Whether victims are chosen and nobody is told or killed.",
	},
	{
		Key: preemption + "monitoring_interval", Type: Duration, Default: "3000",
		Doc: "The time between two rounds.",
	},
	{
		Key: preemption + "max_wait_before_kill", Type: Duration, Default: "15000",
		Doc: "From the notice to an AM to the kill of its container.",
	},
	{
		Key: preemption + "total_preemption_per_round", Type: Float, Default: "0.1",
		Doc: "The share of the cluster, of all partitions together, that may be under notice at once.",
	},
	{
		Key: preemption + "max_ignored_over_capacity", Type: Float, Default: "0.1",
		Doc: "A queue up to this share above its guarantee loses nothing.",
	},
	{
		Key: preemption + "natural_termination_factor", Type: Float, Default: "0.2",
		Doc: "The share of what is due that one wait takes; the rest is expected to end by itself. One ask is always served whole.",
	},
	{
		Key: preemption + "conservative-drf", Type: Bool, Default: "false",
		Doc: "Whether a container stays if it holds some of a type of which its queue has not too much.",
	},
	{
		Key: preemption + "intra-queue-preemption.enabled", Type: Bool, Default: "false",
		Doc: "Whether containers are taken back between users and applications of one leaf as well.",
	},
	{
		Key: preemption + "intra-queue-preemption.preemption-order-policy", Type: Enum, Default: "userlimit_first",
		Choices: []string{"userlimit_first", "priority_first"},
		Doc: "What decides first within a leaf. With userlimit_first no user falls below their limit for an application of a " +
			"higher priority.",
	},
	{
		Key: preemption + "intra-queue-preemption.minimum-threshold", Type: Float, Default: "0.5",
		Doc: "The share of its guarantee that a leaf uses before it is looked into.",
	},
	{
		Key: preemption + "intra-queue-preemption.max-allowable-limit", Type: Float, Default: "0.2",
		Doc: "The share of a leaf's guarantee that may be under notice within it.",
	},
	{
		Key: preemption + "intra-queue-preemption.conservative-drf", Type: Bool, Default: "true",
		Doc: "The same as conservative-drf, within a leaf.",
	},
	{
		Key: preemption + "select_based_on_reserved_containers", Type: Bool, Default: "false",
		Doc: "Whether the node that an ask has reserved is cleared for it before any other node is looked at.",
	},
	{
		Key: preemption + "additional_res_balance_based_on_reserved_containers", Type: Bool, Default: "false",
		Doc: "Whether what a queue has reserved counts as asked for once more, so that more may be taken from more queues.",
	},
	{
		Key: preemption + "preemption-to-balance-queue-after-satisfied.enabled", Type: Bool, Default: "false",
		Doc: "Whether queues that all have their guarantees share the rest in proportion to them: containers are taken from those with more.",
	},
	{
		Key:  preemption + "preemption-to-balance-queue-after-satisfied.max-wait-before-kill",
		Type: Duration, Default: "300000",
		Doc: "From the notice to the kill, for that.",
	},
	{
		Key: "yarn.scheduler.fair.preemption", Type: Bool, Default: "false",
		Doc: "Whether FairScheduler takes containers back for queues below their share.",
	},
	{
		Key: "yarn.scheduler.fair.preemption.cluster-utilization-threshold", Type: Float, Default: "0.8",
		Doc: "The share of the cluster above which it does.",
	},
	{
		Key: "yarn.scheduler.fair.waitTimeBeforeKill", Type: Duration, Default: "15000",
		Doc: "From the notice to an AM to the kill of its container.",
	},
	{
		Key: "creel.scheduler.**.preemption.victims", Type: Enum, Choices: []string{"newest", "least-work"},
		Doc: "What one queue, and those below it, lose first: Hadoop's order (newest), or what is expected to lose the least work: time run times size, by the chance that it has not ended by itself before it is killed (from how long the queue's containers ran), twice for applications that keep their containers over attempts, and twice for those with one attempt.",
	},
}
