// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"strings"
)

// Bound is the least value of a number, a duration or a size, or the largest of a share. A value out of bounds is
// meaningless: a daemon would silently use its default instead, or behave unexpectedly.
type Bound uint8

const (
	Unbound     Bound = iota
	NotNegative       // 0 or more
	Positive          // more than 0
	Share             // 0 to 1
)

// String follows the name of a type: "int, more than 0".
func (b Bound) String() string { return [...]string{"", ", 0 or more", ", more than 0", ", 0 to 1"}[b] }

// mayBeZero are creel's numbers, durations and sizes for which 0 is valid. All others are more than 0.
var mayBeZero = []string{
	"creel.store.wait-replicas",
	"creel.http.tls.hsts-max-age",
	"creel.rm.recovery-wait",
	"creel.nm.simulate",
	"creel.proxy.long-queue",
	"creel.router.last-parts",
	"creel.rebalancer.slow-start",
	"creel.rebalancer.audit.interval",
	"creel.rebalancer.audit.within",
	"creel.rebalancer.move.per-minute",
	"creel.rebalancer.move.queue-percent",
	"creel.rebalancer.move.dead-band",
	"creel.rebalancer.move.again-after",
	"creel.escrow.linger",
	"creel.escrow.recovery",
	"creel.ipc.server.max-connections-per-address",
	"creel.http.max-connections-per-address",
}

// shares are creel's settings that express a part of a whole.
var shares = []string{"creel.trace.sample"}

// yarnBounds are the bounds of YARN's settings. Most of them also prevent the start of Hadoop's daemons.
var yarnBounds = map[Bound][]string{
	Positive: {
		"ipc.maximum.data.length",
		"hadoop.security.group.mapping.ldap.directory.search.timeout",
		"hadoop.security.group.mapping.ldap.connection.timeout.ms",
		"hadoop.security.group.mapping.ldap.read.timeout.ms",
		"hadoop.security.group.mapping.ldap.num.attempts",
		"hadoop.security.group.mapping.ldap.num.attempts.before.failover",
		"yarn.am.liveness-monitor.expiry-interval-ms",
		"yarn.nm.liveness-monitor.expiry-interval-ms",
		"yarn.resourcemanager.rm.container-allocation.expiry-interval-ms",
		"yarn.resourcemanager.am.max-attempts",
		"yarn.resourcemanager.am.global.max-attempts",
		"yarn.resourcemanager.nodemanagers.heartbeat-interval-ms",
		"yarn.resourcemanager.nm-container-queuing.sorting-nodes-interval-ms",
		"yarn.resourcemanager.opportunistic-container-allocation.nodes-used",
		"yarn.resourcemanager.overallocation.per-node-max-ratio",
		"yarn.resourcemanager.monitor.capacity.preemption.monitoring_interval",
		"yarn.router.asc-interceptor-max-size",
		"yarn.nodemanager.overallocation.preemption-threshold.memory",
		"yarn.nodemanager.overallocation.preemption-threshold.cpu",
		"yarn.scheduler.maximum-allocation-mb",
		"yarn.scheduler.maximum-allocation-vcores",
	},
	NotNegative: {
		"hadoop.security.groups.cache.secs",
		"hadoop.security.groups.negative-cache.secs",
		"hadoop.security.groups.cache.warn.after.ms",
		"hadoop.security.group.mapping.ldap.search.group.hierarchy.levels",
		"yarn.resourcemanager.max-completed-applications",
		"yarn.resourcemanager.monitor.capacity.preemption.max_wait_before_kill",
		"yarn.resourcemanager.monitor.capacity.preemption.total_preemption_per_round",
		"yarn.resourcemanager.monitor.capacity.preemption.max_ignored_over_capacity",
		"yarn.resourcemanager.monitor.capacity.preemption.natural_termination_factor",
		"yarn.nodemanager.overallocation.preemption-threshold-count.cpu",
		"yarn.resourcemanager.nm-container-queuing.queue-limit-stdev",
		"yarn.resourcemanager.nm-container-queuing.min-queue-length",
		"yarn.resourcemanager.nm-container-queuing.min-queue-wait-time-ms",
		"yarn.router.submit.retry",
		"yarn.scheduler.fair.waitTimeBeforeKill",
		"yarn.scheduler.minimum-allocation-mb",
		"yarn.scheduler.minimum-allocation-vcores",
	},
}

// setBounds writes the tables above into the rows.
func (t *tables) setBounds() {
	for _, s := range t.all {
		switch s.Type {
		case Int, Long, Float, Percent, Duration, Bytes:
			if strings.HasPrefix(s.Key, "creel.") {
				s.Least = Positive
			}
		}
	}
	set := func(keys []string, to Bound) {
		for _, key := range keys {
			row, ok := t.exact[key]
			if !ok {
				panic("settings: bound of " + key + ", which is not in the registry")
			}
			row.Least = to
		}
	}
	set(mayBeZero, NotNegative)
	set(shares, Share)
	for bound, keys := range yarnBounds {
		set(keys, bound)
	}
}

// of rejects a number that is out of bounds.
func (b Bound) of(n float64) error {
	switch {
	case b == Positive && n <= 0:
		return errors.New("must be more than 0")
	case b == NotNegative && n < 0:
		return errors.New("must not be negative")
	case b == Share && !(n >= 0 && n <= 1):
		return errors.New("must be from 0 to 1")
	}
	return nil
}
