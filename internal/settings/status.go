// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"slices"
	"strings"
)

// Status is the use of a setting by daemons.
type Status uint8

const (
	InForce       Status = iota // read and applied: a test starts every daemon and checks which settings it reads
	WithoutEffect               // meaningless to creel; the note states why
	NotYet                      // planned; the note states the current behavior
)

func (s Status) String() string { return [...]string{"in force", "without effect", "not yet"}[s] }

// inactiveRows are rows that are not in force, with their common reason.
type inactiveRows struct {
	status Status
	note   string
	keys   []string
}

const (
	client   = "read by Hadoop's clients; creel's daemons do not use it"
	hadoopNM = "read by Hadoop's NodeManagers; creel's are simulated, without files and processes"
	twoKeys  = "its key changes at the interval of AMRM tokens, " +
		"yarn.resourcemanager.am-rm-tokens.master-key-rolling-interval-secs"
)

// notInForce lists every row that no daemon reads. A row that is listed but read, or neither listed nor read, is a
// mistake. The test of package role detects both.
var notInForce = []inactiveRows{
	{WithoutEffect, client, []string{
		"ipc.maximum.response.length",
		"ipc.client.connect.timeout",
		"ipc.client.connect.max.retries",
		"ipc.client.connect.max.retries.on.timeouts",
		"ipc.client.connect.retry.interval",
		"ipc.client.rpc-timeout.ms",
		"ipc.client.ping",
		"ipc.ping.interval",
		"ipc.client.fallback-to-simple-auth-allowed",
		"yarn.resourcemanager.connect.max-wait.ms",
		"yarn.resourcemanager.connect.retry-interval.ms",
		"yarn.client.application-client-protocol.poll-interval-ms",
		"yarn.application.classpath",
	}},
	{WithoutEffect, hadoopNM, []string{
		"hadoop.tmp.dir",
		"yarn.nodemanager.hostname",
		"yarn.nodemanager.address",
		"yarn.nodemanager.webapp.address",
		"yarn.nodemanager.localizer.address",
		"yarn.nodemanager.resource.memory-mb",
		"yarn.nodemanager.resource.cpu-vcores",
		"yarn.nodemanager.local-dirs",
		"yarn.nodemanager.log-dirs",
		"yarn.nodemanager.container-manager.thread-count",
		"yarn.nodemanager.sleep-delay-before-sigkill.ms",
		"yarn.nodemanager.resourcemanager.connect.max-wait.ms",
		"yarn.nodemanager.resourcemanager.connect.retry-interval.ms",
		"yarn.nodemanager.recovery.enabled",
		"yarn.nodemanager.container-diagnostics-maximum-size",
	}},
	{WithoutEffect, "expiry is exact, not checked at intervals", []string{
		"yarn.resourcemanager.container.liveness-monitor.interval-ms",
		"yarn.resourcemanager.application-timeouts.monitor.interval-ms",
		"yarn.resourcemanager.decommissioning-nodes-watcher.poll-interval-secs",
		"yarn.resourcemanager.delegation.token.remove-scan-interval",
	}},
	{WithoutEffect, "the store notifies of every change, and creel.store.poll-interval bounds the delay of missed ones", []string{
		"yarn.federation.cache-ttl.secs",
	}},
	{WithoutEffect, "the store is read in pages, whatever its size", []string{
		"yarn.federation.state-store.max-applications",
	}},
	{WithoutEffect, "creel's proxy uses creel.proxy.call-timeout and creel.proxy.member-timeout", []string{
		"yarn.federation.amrmproxy.hb.maximum.wait.ms",
		"yarn.federation.amrmproxy.subcluster.timeout.ms",
		"yarn.federation.amrmproxy.register.uam.retry-count",
		"yarn.federation.amrmproxy.register.uam.interval",
	}},
	{
		WithoutEffect,
		"creel's router uses creel.router.forward-timeout and creel.router.list-timeout",
		[]string{
			"yarn.router.webapp.connect-timeout",
			"yarn.router.webapp.read-timeout",
		},
	},
	{WithoutEffect, "another member is tried at once", []string{"yarn.router.submit.interval.time"}},
	{WithoutEffect, "creel pipelines its calls over a few connections, whatever their number", []string{
		"creel.store.pool-size",
	}},
	{WithoutEffect, "shares are computed when they change", []string{"yarn.scheduler.fair.update-interval-ms"}},
	{WithoutEffect, "a heartbeat's answer contains all containers that fit the node", []string{
		"yarn.scheduler.fair.assignmultiple",
		"yarn.scheduler.fair.dynamic.max.assign",
		"yarn.scheduler.fair.max.assign",
	}},
	{WithoutEffect, "an epoch is never used again", []string{"yarn.resourcemanager.epoch.range"}},
	{WithoutEffect, "answers never contain characters that XML cannot represent", []string{
		"yarn.webapp.filter-invalid-xml-chars",
	}},
	{WithoutEffect, "an AM's start is retried until yarn.client.nodemanager-connect.max-wait-ms is over", []string{
		"yarn.resourcemanager.nodemanager-connect-retries",
		"yarn.client.nodemanager-connect.retry-interval-ms",
	}},
	{WithoutEffect, "administrators share the limit of clients: a call in flight costs no thread", []string{
		"yarn.resourcemanager.admin.client.thread-count",
	}},
	{WithoutEffect, "containers always keep running over a restart", []string{
		"yarn.resourcemanager.work-preserving-recovery.enabled",
	}},

	{WithoutEffect, "the ResourceManager finds the nodes' racks, by net.topology.*", []string{
		"creel.nm.simulate.racks",
	}},
	{WithoutEffect, "the script gets one host at a time", []string{"net.topology.script.number.args"}},

	{WithoutEffect, "the content of a store decides", []string{
		"ssl.client.truststore.type", "ssl.client.keystore.type", "ssl.server.truststore.type",
	}},

	{NotYet, twoKeys, []string{
		"yarn.resourcemanager.container-tokens.master-key-rolling-interval-secs",
		"yarn.resourcemanager.nm-tokens.master-key-rolling-interval-secs",
	}},
	{NotYet, "tokens name their service by address", []string{"hadoop.security.token.service.use_ip"}},
	{NotYet, "reservations are rejected", []string{"yarn.resourcemanager.reservation-system.enable"}},
	{NotYet, "resource profiles are rejected", []string{"yarn.resourcemanager.resource-profiles.enabled"}},
	{NotYet, "AMs are not placed on nodes that a non-exclusive label shares", []string{
		"yarn.resourcemanager.node-labels.am.allow-non-exclusive-allocation",
	}},
	{WithoutEffect, "the scheduler places requests as they arrive, whichever handler is configured", []string{
		"yarn.resourcemanager.placement-constraints.algorithm.class",
		"yarn.resourcemanager.placement-constraints.algorithm.pool-size",
		"yarn.resourcemanager.placement-constraints.scheduler.pool-size",
	}},
	{WithoutEffect, "labels and attributes are stored in the journal, creel.rm.data", []string{
		"yarn.node-labels.fs-store.root-dir",
		"yarn.node-labels.fs-store.impl.class",
		"yarn.node-attribute.fs-store.root-dir",
		"yarn.node-attribute.fs-store.impl.class",
	}},
	{NotYet, "containers may be granted at once after a restart", []string{
		"yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms",
		"creel.rm.recovery-wait",
	}},
	{NotYet, "no page links to aggregated logs", []string{"yarn.log.server.url"}},
	{NotYet, "the rules of the queue file choose the queue", []string{"yarn.scheduler.queue-placement-rules"}},
	{NotYet, "a member without heartbeats stays in the list, as lost", []string{
		"yarn.router.deregister.subcluster.enabled",
		"yarn.router.subcluster.heartbeat.expiration.time",
	}},
	{NotYet, "a change is on disk before it is acted on, and one write contains all waiting changes", []string{
		"creel.rm.journal.sync",
		"creel.rm.journal.batch",
	}},
}

// setStatus writes the table above into the rows.
func (t *tables) setStatus() {
	rows := map[string]*Setting{}
	for _, s := range t.all {
		rows[s.Key] = s
	}
	for _, group := range notInForce {
		for _, key := range group.keys {
			row, ok := rows[key]
			if !ok {
				panic("settings: status of " + key + ", which is not in the registry")
			}
			if row.Status != InForce {
				panic("settings: two states of " + key)
			}
			row.Status, row.Note = group.status, group.note
		}
	}
}

// Role is a kind of daemon.
type Role string

// The roles.
const (
	RM         Role = "rm"
	NM         Role = "nm"
	Router     Role = "router"
	Proxy      Role = "proxy"
	Rebalancer Role = "rebalancer"
	Agent      Role = "agent"
)

// Roles are all roles.
var Roles = []Role{RM, NM, Router, Proxy, Rebalancer, Agent}

// families lists the roles that a family of keys concerns. A key outside these families concerns all roles.
var families = []struct {
	prefix string
	roles  []Role
}{
	{"yarn.resourcemanager.", []Role{RM}},
	{"yarn.scheduler.", []Role{RM}},
	{"yarn.node-labels.", []Role{RM}},
	{"yarn.node-attribute.", []Role{RM}},
	{"yarn.resource-types", []Role{RM}},
	{"yarn.log", []Role{RM}},
	{"yarn.app.", []Role{RM}},
	{"yarn.web", []Role{RM, Router}},
	{"yarn.federation.", []Role{RM, Router, Proxy}},
	{"yarn.router.", []Role{Router}},
	{"yarn.nodemanager.amrmproxy.", []Role{NM, Proxy}},
	{"yarn.nodemanager.", []Role{NM}},
	{"net.", []Role{RM}},
	{"hadoop.security.group", []Role{RM, Router, Proxy}},
	{"security.", []Role{RM, Router, Proxy}},
	{"hadoop.http.", []Role{RM, Router, Proxy, Rebalancer, NM}},
	{"creel.rm.", []Role{RM}},
	{"creel.scheduler.", []Role{RM}},
	{"creel.nm.", []Role{NM}},
	{"creel.router.", []Role{Router}},
	{"creel.proxy.", []Role{Proxy}},
	{"creel.rebalancer.", []Role{Rebalancer}},
}

// concerns reports whether a key concerns a role.
func concerns(key string, role Role) bool {
	for _, f := range families {
		if strings.HasPrefix(key, f.prefix) {
			return slices.Contains(f.roles, role)
		}
	}
	return true
}

// WarningsFor lists the warnings to log when a daemon of this role starts. They are Warnings, settings that differ from
// their default but are not yet in force, with the current behavior, and unused keys of Hadoop's.
func (s *Settings) WarningsFor(role Role) []string {
	out := slices.Clone(s.warnings)
	for _, e := range s.notYet() {
		if concerns(e.Key, role) {
			out = append(out, fmt.Sprintf("%s: %s=%s is not in force yet: %s", e.Origin, e.Key, e.Value, e.Note))
		}
	}
	return append(out, s.ignoredWarnings(role)...)
}

// notYet are the settings that differ from their default but that no daemon reads yet.
func (s *Settings) notYet() []Entry {
	var out []Entry
	for _, e := range s.Effective(false) {
		if e.Status != NotYet.String() {
			continue
		}
		row, _ := Find(e.Key)
		fallback, err := s.expand(row.Default)
		if err == nil && strings.TrimSpace(fallback) == s.values[e.Key].Text {
			continue
		}
		out = append(out, e)
	}
	return out
}
