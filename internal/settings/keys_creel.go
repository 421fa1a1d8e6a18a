// SPDX-License-Identifier: Apache-2.0

package settings

import "github.com/creelrm/creel/policies"

var creelStoreKeys = []Setting{
	{
		Key:     "creel.store.url",
		Type:    URL,
		Default: "memory",
		Doc:     "The state store: memory (one process), redis://, rediss://, redis-sentinel:// or redis-cluster://.",
	},
	{
		Key:     "creel.store.prefix",
		Type:    String,
		Default: "creel",
		Doc:     "What the store's keys begin with, so that federations can share a Redis.",
	},
	{Key: "creel.store.timeout", Type: Duration, Default: "2s", Doc: "How long one call of the store may take."},
	{Key: "creel.store.pool-size", Type: Int, Default: "16", Doc: "Connections to each Redis server."},
	{
		Key:     "creel.store.wait-replicas",
		Type:    Int,
		Default: "0",
		Doc:     "Replicas that must have a write before it counts; 0 leaves a failover free to lose the last ones.",
	},
	{Key: "creel.store.wait-timeout", Type: Duration, Default: "1s", Doc: "How long to wait for those replicas."},
	{
		Key:     "creel.store.home-ttl",
		Type:    Duration,
		Default: "24h",
		Doc:     "How long an ended application's home is remembered.",
	},
	{
		Key:     "creel.store.poll-interval",
		Type:    Duration,
		Default: "2s",
		Doc:     "How often members and policies are read again, beside the store's own notices.",
	},
	{
		Key:  "creel.subcluster.id",
		Type: String,
		Doc:  "This member's name in the federation; empty: yarn.resourcemanager.cluster-id.",
	},
	{
		Key:     "creel.membership.heartbeat-interval",
		Type:    Duration,
		Default: "1s",
		Doc:     "The time between a member's heartbeats.",
	},
	{
		Key:  "creel.http.allowed-hosts",
		Type: List,
		Doc: "Names of this host under which browsers may reach a router or ResourceManager over loopback, beside localhost and addresses;" +
			" * is any.",
	},
	{Key: "creel.membership.lease", Type: Duration, Default: "10s", Doc: "A member silent for so long is not alive."},
	{
		Key:     "creel.membership.take-over",
		Type:    Bool,
		Default: "false",
		Doc:     "Take the name of a member that is alive, which then is none any more (--take-over).",
	},
	{
		Key:     "creel.membership.accept-empty",
		Type:    Bool,
		Default: "false",
		Doc: "Start on an empty journal though the store has applications of this member, whose state is lost then" +
			" (--accept-empty).",
	},
	{
		Key:  "creel.cluster.secret-file",
		Type: Path,
		Doc: "A file with the secret that seals tokens in the store and signs members there: routers and proxies that " +
			"have it believe no others. It is made where there is none, and has to be the same for all daemons; empty: " +
			"one is made and kept in the store, and nothing is signed.",
	},
}

var creelRMKeys = []Setting{
	{
		Key:  "creel.rm.proxy.hosts",
		Type: List,
		Doc: "Hosts from which the web proxy fetches AMs' pages besides those on which the AMs run " +
			"(Spark's SPARK_PUBLIC_DNS, say); * is any.",
	},
	{Key: "creel.rm.data", Type: Path, Doc: "The directory of the journal; empty: nothing survives a restart."},
	{
		Key:     "creel.rm.journal.sync",
		Type:    Bool,
		Default: "true",
		Doc:     "Whether a change is on disk before it is acted on.",
	},
	{Key: "creel.rm.journal.batch", Type: Int, Default: "1024", Doc: "Changes that one write to disk carries at most."},
	{
		Key:     "creel.rm.node-order",
		Type:    Enum,
		Default: "spread",
		Choices: []string{"spread", "pack"},
		Doc:     "Whether containers spread over nodes or fill them one after the other; queues may say otherwise.",
	},
	{
		Key:     "creel.rm.recovery-wait",
		Type:    Duration,
		Default: "0s",
		Doc:     "How long after a restart no container is granted; YARN's yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms where that is set.",
	},
	{
		Key:     "creel.rm.inbox",
		Type:    Int,
		Default: "65536",
		Doc:     "Events that may wait for the scheduler before callers are told to try again.",
	},
	{
		Key:     "creel.rm.heartbeat-interval-max",
		Type:    Duration,
		Default: "10s",
		Doc:     "The longest time between heartbeats that nodes are told when the ResourceManager is loaded.",
	},
	{
		Key:     "creel.scheduler.**.node-order",
		Type:    Enum,
		Choices: []string{"spread", "pack"},
		Doc:     "The node order of one queue, by its path: creel.scheduler.root.a.node-order; its children inherit it.",
	},
}

var creelNodeKeys = []Setting{
	{Key: "creel.nm.simulate", Type: Int, Default: "0", Doc: "Simulated nodes in this process; 0: one real node."},
	{Key: "creel.nm.simulate.memory-mb", Type: Int, Default: "10240", Doc: "Memory of a simulated node in MiB."},
	{Key: "creel.nm.simulate.vcores", Type: Int, Default: "10", Doc: "Virtual cores of a simulated node."},
	{Key: "creel.nm.simulate.racks", Type: Int, Default: "10", Doc: "Racks over which they are spread."},
	{
		Key:     "creel.nm.simulate.connections",
		Type:    Int,
		Default: "4",
		Doc:     "Connections over which they speak to the ResourceManager.",
	},
	{
		Key:     "creel.nm.simulate.run-time",
		Type:    Duration,
		Default: "1s",
		Doc:     "How long a simulated container runs when its environment does not say.",
	},
}

var creelRouterKeys = []Setting{
	{
		Key:     "creel.router.client.max-calls",
		Type:    Int,
		Default: "8192",
		Doc:     "Client calls in flight at a router; more are told to try again.",
	},
	{
		Key:     "creel.router.forward-timeout",
		Type:    Duration,
		Default: "10s",
		Doc:     "How long one subcluster may take to answer a forwarded call.",
	},
	{
		Key:     "creel.router.submit-timeout",
		Type:    Duration,
		Default: "30s",
		Doc:     "How long a submission may take over all subclusters that it tries.",
	},
	{
		Key:     "creel.router.unclear-wait",
		Type:    Duration,
		Default: "2m",
		Doc: "How long a Hadoop ResourceManager must have answered that it does not know an application, before " +
			"the application may leave it after a submission that got no answer.",
	},
	{
		Key:     "creel.router.list-timeout",
		Type:    Duration,
		Default: "5s",
		Doc:     "How long a list waits for its slowest subcluster.",
	},
	{
		Key:     "creel.router.last-parts",
		Type:    Duration,
		Default: "0s",
		Doc: "For how long a list has the last applications or nodes of a subcluster that does not answer, while the same user asks for the " +
			"same list. How old they are is told: by REST in the header X-Last-Known-SubClusters, by RPC in each application's diagnostics. " +
			"Nodes by RPC, and all other lists, are without it.",
	},
	{
		Key:     "creel.router.breaker.failures",
		Type:    Int,
		Default: "5",
		Doc:     "Failures in a row after which a subcluster is left alone for a while.",
	},
	{Key: "creel.router.breaker.open-time", Type: Duration, Default: "5s", Doc: "For how long."},
	{
		Key:     "creel.router.home-cache",
		Type:    Int,
		Default: "100000",
		Doc:     "Homes of applications that a router remembers.",
	},
	{
		Key:     "creel.router.policy",
		Type:    Enum,
		Default: "balanced",
		Choices: policies.HomeNames(),
		Doc:     "How a queue without a policy in the store chooses homes.",
	},
	{
		Key:     "creel.router.proxy-user",
		Type:    String,
		Default: "${user.name}",
		Doc:     "The user that a router acts as towards ResourceManagers, on behalf of its clients.",
	},
	{Key: "creel.router.decisions-kept", Type: Int, Default: "10000", Doc: "Decisions kept for `creel app why`."},
	{Key: "creel.router.dashboard", Type: Bool, Default: "true", Doc: "Whether the web address serves the dashboard."},
}

var creelProxyKeys = []Setting{
	{
		Key:     "creel.proxy.call-timeout",
		Type:    Duration,
		Default: "10s",
		Doc:     "How long one call to a subcluster may take.",
	},
	{
		Key:     "creel.proxy.member-timeout",
		Type:    Duration,
		Default: "10s",
		Doc:     "How long a subcluster may fail to answer before what is asked of it moves to others.",
	},
	{
		Key:     "creel.proxy.heartbeat-interval",
		Type:    Duration,
		Default: "250ms",
		Doc:     "The time between the heartbeats of an unmanaged AM that waits for containers.",
	},
	{Key: "creel.proxy.max-sessions", Type: Int, Default: "10000", Doc: "Attempts that one proxy serves."},
	{
		Key:     "creel.proxy.policy",
		Type:    Enum,
		Default: "balanced",
		Choices: policies.SplitNames(),
		Doc:     "How asks of a queue without a policy in the store are split.",
	},
	{
		Key:     "creel.proxy.move-asks-after",
		Type:    Duration,
		Default: "30s",
		Doc: "How long asks wait at a subcluster that grants nothing before they are tried elsewhere; " +
			"a hundredth of it where the subcluster says that it has no room, or for fewer than wait there, and the split is balanced.",
	},
	{
		Key:     "creel.proxy.idle-uam-after",
		Type:    Duration,
		Default: "60s",
		Doc:     "How long an unmanaged AM may hold and ask for nothing before its subcluster is given back.",
	},
	{
		Key:     "creel.proxy.shuffling-types",
		Type:    List,
		Default: "MAPREDUCE,SPARK,TEZ",
		Doc: "Types of applications whose ended containers leave data on their nodes that others read: " +
			"a subcluster where one has run is given back only at the application's end.",
	},
	{
		Key:     "creel.proxy.one-id-types",
		Type:    List,
		Default: "MAPREDUCE,TEZ",
		Doc: "Types of applications whose containers find each other's data on a node by the application's id: " +
			"an unmanaged AM of theirs that died at a ResourceManager of Hadoop's, which takes an id once, is not made again.",
	},
	{
		Key:  "creel.proxy.hadoop-key-files",
		Type: List,
		Doc: "Items SUBCLUSTER=FILE: where Hadoop's ResourceManager of the subcluster keeps the keys of its AMs' tokens, " +
			"FSRMStateRoot/AMRMTokenSecretManagerRoot/AMRMTokenSecretManagerNode under its " +
			"yarn.resourcemanager.fs.state-store.uri. " +
			"The proxy then knows its AMs by itself; those of others log in at their ResourceManager through it.",
	},
	{Key: "creel.proxy.inbox", Type: Int, Default: "64", Doc: "Events that may wait for one attempt."},
}

var creelRebalancerKeys = []Setting{
	{Key: "creel.rebalancer.interval", Type: Duration, Default: "10s", Doc: "The time between two plans."},
	{Key: "creel.rebalancer.lease", Type: Duration, Default: "15s", Doc: "How long the leader leads without renewing."},
	{
		Key:     "creel.rebalancer.max-change",
		Type:    Percent,
		Default: "10",
		Doc: "The most by which one plan changes the part of a queue's maximum that is for one subcluster; all at " +
			"once where a subcluster is gone or has lost a fifth of what it had.",
	},
	{
		Key:     "creel.rebalancer.slow-start",
		Type:    Duration,
		Default: "2m",
		Doc: "In what time a subcluster that is new, was away or has got many nodes comes to count with all of its " +
			"size in balanced homes and splits: at once with a tenth, then evenly more; 0: at once with all. In " +
			"the first such time after the first plan all count with all.",
	},
	{
		Key:     "creel.rebalancer.capacities",
		Type:    Bool,
		Default: "true",
		Doc: "Whether queues get in ResourceManagers what the plan gives them there before others get more " +
			"than theirs, in place of what is configured and while the plan's lease lasts, where the federation's " +
			"queue tree gives some queue a guarantee or a weight. Hadoop's are set by their agents, where calls " +
			"change them.",
	},
	{
		Key:     "creel.escrow.lease",
		Type:    Duration,
		Default: "15s",
		Doc:     "How long a subcluster holds its part of a queue's federation-wide maximum without renewing it.",
	},
	{
		Key:     "creel.escrow.linger",
		Type:    Duration,
		Default: "10m",
		Doc:     "How long that part counts after its lease: containers of a subcluster that is cut off run on.",
	},
	{
		Key:     "creel.escrow.interval",
		Type:    Duration,
		Default: "500ms",
		Doc:     "The time between two looks of a ResourceManager at what its queues need of their maxima.",
	},
	{
		Key:     "creel.escrow.recovery",
		Type:    Duration,
		Default: "1m",
		Doc:     "How long after a restart a part is not lowered, and what has one does not grow: until all nodes have said what they run.",
	},
	{
		Key:     "creel.rebalancer.mend",
		Type:    Bool,
		Default: "false",
		Doc: "Whether routers bring the queues of members to what the federation's queue tree says, unasked, once two " +
			"looks a minute apart find the same drift: as `creel queue mend` does, as creel.router.proxy-user.",
	},
	{
		Key:     "creel.rebalancer.move.loaded",
		Type:    Bool,
		Default: "false",
		Doc: "Whether routers move waiting applications out of subclusters that are loaded, to such with room. " +
			"Drains with --mode move do so whatever this says. What has been granted a container is never moved.",
	},
	{
		Key:     "creel.rebalancer.move.per-minute",
		Type:    Int,
		Default: "60",
		Doc:     "How many applications are moved in a minute at most, in the whole federation.",
	},
	{
		Key:     "creel.rebalancer.move.queue-percent",
		Type:    Percent,
		Default: "20",
		Doc:     "Which part of what waits in a queue of a loaded subcluster is moved in a minute at most.",
	},
	{
		Key:     "creel.rebalancer.move.dead-band",
		Type:    Percent,
		Default: "20",
		Doc: "By how much of its size a subcluster must be in use more than another for applications to be moved " +
			"from it to that one.",
	},
	{
		Key:     "creel.rebalancer.move.again-after",
		Type:    Duration,
		Default: "10m",
		Doc:     "In what time an application is not moved a second time.",
	},
	{
		Key:     "creel.rebalancer.audit.interval",
		Type:    Duration,
		Default: "0",
		Doc: "The time between two looks at which the leading rebalancer holds the federation's invariants against what " +
			"members report: the metrics creel_invariant_checked_total and creel_invariant_broken_total, a line in the " +
			"log for each breach, and `creel rebalancer audit`; 0: it does not look.",
	},
	{
		Key:     "creel.rebalancer.audit.within",
		Type:    Duration,
		Default: "5m",
		Doc: "How long a queue may be short of its guarantee or entitlement, or room be idle that it waits for, " +
			"before an audit counts that as a breach.",
	},
	{Key: "creel.rebalancer.dry-run", Type: Bool, Default: "false", Doc: "Whether plans are only shown."},
}

var creelDaemonKeys = []Setting{
	{
		Key:     "creel.ipc.server.max-connections",
		Type:    Int,
		Default: "50000",
		Doc:     "Connections of one RPC port when ipc.server.max.connections is 0.",
	},
	{
		Key:     "creel.ipc.server.max-connections-per-address",
		Type:    Int,
		Default: "0",
		Doc:     "Connections of one remote address to a port; 0: no limit of its own.",
	},
	{
		Key:     "creel.ipc.server.max-calls-per-connection",
		Type:    Int,
		Default: "4096",
		Doc:     "Calls in flight on one connection.",
	},
	{
		Key:     "creel.ipc.server.max-request-memory",
		Type:    Bytes,
		Default: "1g",
		Doc:     "Bytes held on one port of requests that are incomplete or being served, above 1 KB each; an address may hold half.",
	},
	{
		Key:     "creel.ipc.server.max-reply-bytes",
		Type:    Bytes,
		Default: "16m",
		Doc:     "Bytes of answers that may wait on a connection that does not read.",
	},
	{
		Key:     "creel.ipc.server.max-reply-memory",
		Type:    Bytes,
		Default: "1g",
		Doc:     "The same over all connections of a port.",
	},
	{
		Key:     "creel.ipc.server.handshake-timeout",
		Type:    Duration,
		Default: "20s",
		Doc:     "How long a connection may take to say who it is.",
	},
	{
		Key:     "creel.ipc.server.stall-timeout",
		Type:    Duration,
		Default: "60s",
		Doc:     "A connection that takes no byte of its answers for so long is closed.",
	},
	{
		Key:     "creel.http.max-request-size",
		Type:    Bytes,
		Default: "8m",
		Doc:     "Bytes of the largest body that a request over HTTP may have.",
	},
	{
		Key:     "creel.http.max-connections",
		Type:    Int,
		Default: "20000",
		Doc:     "Connections of one web port; more are answered 503.",
	},
	{
		Key:     "creel.http.max-connections-per-address",
		Type:    Int,
		Default: "0",
		Doc:     "Connections of one remote address to a web port; 0: half of creel.http.max-connections.",
	},
	{
		Key:     "creel.http.read-header-timeout",
		Type:    Duration,
		Default: "10s",
		Doc:     "How long a web client may take to send its headers.",
	},
	{
		Key:  "creel.http.tls.certificate",
		Type: Path,
		Doc:  "A certificate for the web ports; they do not speak TLS yet, and one that is named stops the start.",
	},
	{Key: "creel.http.tls.key", Type: Path, Doc: "Its key; the same."},
	{
		Key:     "creel.drain-timeout",
		Type:    Duration,
		Default: "10s",
		Doc:     "How long calls in flight may finish after the first signal.",
	},
	{
		Key:     "creel.log.level",
		Type:    Enum,
		Default: "info",
		Choices: []string{"debug", "info", "warn", "error"},
		Doc:     "What is logged.",
	},
	{
		Key:     "creel.log.format",
		Type:    Enum,
		Default: "auto",
		Choices: []string{"auto", "text", "json"},
		Doc:     "How: auto is text on a terminal, JSON elsewhere.",
	},
	{
		Key:     "creel.log.audit",
		Type:    Enum,
		Default: "creel",
		Choices: []string{"creel", "hadoop"},
		Doc: "How lines of audit are written: as all others, or in the form of Hadoop's RMAuditLogger " +
			"(USER=… IP=… OPERATION=…), for programs that read that.",
	},
	{
		Key:     "creel.health.address",
		Type:    Address,
		Default: "127.0.0.1:0",
		Doc: "Where a proxy, a rebalancer or simulated nodes answer /healthz, /readyz and /metrics; port 0: a free one, " +
			"which the ready file names. ResourceManagers and routers answer on their web ports.",
	},
	{Key: "creel.debug.address", Type: Address, Doc: "Where /debug/pprof listens, on loopback; empty: nowhere."},
	{
		Key:  "creel.trace.endpoint",
		Type: URL,
		Doc: "Where OpenTelemetry traces are sent, by OTLP over HTTP. Empty: where OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or " +
			"OTEL_EXPORTER_OTLP_ENDPOINT say, else nowhere.",
	},
	{
		Key:     "creel.trace.sample",
		Type:    Float,
		Default: "0.01",
		Doc:     "The share of requests traced when the caller does not decide.",
	},
}
