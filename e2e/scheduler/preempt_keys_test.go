// SPDX-License-Identifier: Apache-2.0

package scheduler

import "github.com/creelrm/creel"

// reserving: the second queue asks for containers of half a node, of which Hadoop's
// scheduler reserves nodes that are full.
var reserving = tree{
	queues: two.queues,
	full:   two.full,
	then:   []job{{"b1", "u1", "root.b", 0, creel.NewResource(8192, 2), 30}},
}

// beyond: two queues of two fifths each, while the third asks for nothing. The first has
// all of the cluster, the second wants as much.
var beyond = tree{
	queues: shares(40, 40, 20, 0),
	full:   []job{{"a1", "u1", "root.a", 0, creel.NewResource(8192, 2), 40}},
	then:   []job{{"b1", "u1", "root.b", 0, creel.NewResource(8192, 2), 40}},
}

// little: a leaf has three eighths of its guarantee, as another keeps the rest, when an
// application of a higher priority comes.
var little = tree{
	queues: shares(80, 20, 0, 0) + "\nroot.b.disable_preemption = true\nroot.a.minimum-user-limit-percent = 100",
	full:   []job{{"other", "u1", "root.b", 0, big, 56}, {"low", "u1", "root.a", 0, big, 24}},
	then:   []job{{"high", "u1", "root.a", 5, big, 10}},
}

// withinCores is within of containers that hold more vcores than those that are asked for.
var withinCores = tree{
	queues: within.queues,
	full:   []job{{"low", "u1", "root.a", 0, creel.NewResource(4096, 4), 80}},
	then:   []job{{"high", "u1", "root.a", 5, big, 6}},
}

// all in one wave.
func atOnce(lines ...string) string {
	return keys(append([]string{"total_preemption_per_round = 1", "natural_termination_factor = 1"}, lines...)...)
}

// byPriority is within a leaf.
func byPriority(lines ...string) string {
	return atOnce(append([]string{intra + "enabled = true", intra + "preemption-order-policy = priority_first",
		intra + "max-allowable-limit = 0.5"}, lines...)...)
}

const (
	balance    = "preemption-to-balance-queue-after-satisfied."
	monitorOff = "\nyarn.resourcemanager.scheduler.monitor.enable = false"
)

// keyCases have with victimCases each key at two values.
var keyCases = []preemptionCase{
	{"killed after a round", two, atOnce("max_wait_before_kill = 300"), agreement{pace: true}},
	{"killed after two rounds", two, atOnce(), agreement{pace: true}},
	{"killed when it is needed", two, atOnce() + "\nlazy-preemption-enabled = true", exact},
	{"for what is not reserved", reserving, atOnce(), exact},
	{"where it is reserved", reserving, atOnce("select_based_on_reserved_containers = true"), exact},
	{"for what is reserved once more", reserving,
		atOnce("additional_res_balance_based_on_reserved_containers = true"), exact},
	{"its guarantee", beyond, atOnce(), exact},
	// Hadoop's user may ask for one container more than the queue has, so Hadoop takes one a wave; creel takes the
	// total at once.
	{"its part beyond", beyond, atOnce(balance+"enabled = true", balance+"max-wait-before-kill = 900"),
		agreement{total: true}},
	{"its part beyond, later", beyond, atOnce(balance+"enabled = true", balance+"max-wait-before-kill = 60000"), exact},
	{"within no leaf", within, atOnce(intra + "enabled = false"), exact},
	{"by user limit before priority", within, atOnce(intra+"enabled = true",
		intra+"preemption-order-policy = userlimit_first", intra+"max-allowable-limit = 0.5"), exact},
	{"within a leaf that uses little", little, byPriority(intra + "minimum-threshold = 0.3"), exact},
	{"not within a leaf that uses little", little, byPriority(intra + "minimum-threshold = 0.5"), exact},
	{"not within the leaves of root", within, byPriority() +
		"\nroot.intra-queue-preemption.disable_preemption = true", exact},
	{"a queue of a higher priority loses", three, atOnce() +
		"\nroot.ordering-policy = priority-utilization\nroot.b.priority = 5", exact},
	{"off", two, atOnce() + monitorOff, exact},
	{"killed after a longer round", two, atOnce("max_wait_before_kill = 300", "monitoring_interval = 1200"),
		agreement{pace: true}},
}
